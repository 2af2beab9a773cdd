"""What a server answers in a second, beside nginx with the same bytes as static files, and beside a C program that
sends the same bytes without parsing anything, which is the limit of one core."""

import gzip
import http.client
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.figures import Figure
from bench.plans import a_plan
from bench.processes import a_folder, a_process, kept_to, memory_mb, program
from bench.publish import QUIET, SOME_TROUBLE, a_full_fortnight
from lookout.base.sockets import a_free_port
from lookout.documents.api import paths
from lookout.documents.document import Document, with_compressed
from lookout.documents.reports import history_document, live_document
from lookout.store.sqlite import open_writer

LIVE, HISTORY = paths("protocol")
CONNECTIONS = 64
RUN_S = 2
ROUNDS = 5
STARTS = 5
FIRST_ANSWER = 1.3
"""Of what a new Python needs to import aiohttp, in the same run."""
NEEDED = ("wrk", "nginx", "cc")
CONSTANT = Path(__file__).parent / "constant.c"
OF_CONSTANT = 0.70
WITH_LIMIT = 0.92  # of without
NO_LIMIT = 2**53 - 1
LIMIT = 120
QUIET_BYTES = 1_500
GZIP = "Accept-Encoding: gzip"  # as every browser says

NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  gzip_static on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  default_type "application/json; charset=utf-8";
  server {{
    listen 127.0.0.1:{port};
    root {folder}/www;
    add_header Cache-Control "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300";
    add_header Access-Control-Allow-Origin "*";
    add_header Access-Control-Expose-Headers "ETag";
  }}
}}
"""


class Question(NamedTuple):
    name: str
    path: str
    target: float | None = None
    conditional: bool = False
    headers: tuple[str, ...] = ()


QUESTIONS = (
    Question("live 200", LIVE, 1.2),
    Question("live 200, gzip", LIVE, 1.2, headers=(GZIP,)),
    Question("live 304", LIVE, 1.2, conditional=True),
    Question("history 200", HISTORY, 0.75),
    Question("history 200, gzip", HISTORY, 1.2, headers=(GZIP,)),
)


def measure() -> Iterator[Figure]:
    yield from sizes()
    with a_folder() as folder:
        fill_a_store(folder)
        yield from starts(folder)
        missing = [name for name in NEEDED if program(name) is None]
        if missing:
            yield Figure("requests a second", "not measured", f"apt-get install {' '.join(missing)}")
            return
        yield from throughput(folder)


def fill_a_store(folder: Path, buckets: str = SOME_TROUBLE) -> None:
    """A full fortnight of 21 rows, in the store and as files for nginx."""
    ledger, _ = a_full_fortnight(a_plan(5), buckets)
    live, history = live_document(ledger.report()), history_document(ledger.view())
    writer = open_writer(folder / "lookout.db")
    writer.write(with_compressed({"live": live, "history": history}), {})
    writer.close()
    for path, document in ((LIVE, live), (HISTORY, history)):
        _static(folder, path, document)


def _static(folder: Path, path: str, document: Document) -> None:
    # The history's path goes below the live report's, which therefore cannot be a file of that name.
    file = folder / "www" / (path[1:] if path == HISTORY else path[1:] + ".json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(document.body)
    Path(f"{file}.gz").write_bytes(gzip.compress(document.body, 6))


def sizes() -> Iterator[Figure]:
    """Of the history on the wire, as a browser asks for it."""
    for name, buckets, most in (("a quiet fortnight", QUIET, QUIET_BYTES), ("one with trouble", SOME_TROUBLE, None)):
        with a_folder() as folder:
            fill_a_store(folder, buckets)
            with a_server(folder, LIMIT) as (_, port):
                answer = first_answer(port, HISTORY, GZIP)
        is_met = answer.coding == "gzip" and most is not None and answer.body_bytes < most
        yield Figure(
            f"history on the wire, {name}",
            f"{answer.body_bytes:,} bytes",
            answer.coding or "gzip is not offered",
            None,
            "" if most is None else f"gzip, under {most:,} bytes",
            most is not None and not is_met,
        )


def starts(folder: Path) -> Iterator[Figure]:
    took_s, imports_s, memories = [], [], []
    for _ in range(STARTS):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", "import aiohttp"], check=True)
        imports_s.append(time.monotonic() - began)
        began = time.monotonic()
        with a_server(folder, LIMIT) as (process, port):
            first_answer(port)
            took_s.append(time.monotonic() - began)
            memories.append(memory_mb(process.pid))
    ratio = median(took_s) / median(imports_s)
    yield Figure(
        f"first 200 after the start, median of {STARTS}",
        f"{median(took_s):.2f} s",
        f"import aiohttp {median(imports_s):.2f} s",
        ratio,
        f"at most {FIRST_ANSWER:g}",
        ratio > FIRST_ANSWER,
    )
    yield Figure("a server's process with a full fortnight", f"{max(memories):.0f} MB")


def throughput(folder: Path) -> Iterator[Figure]:
    """The promise is the default configuration's, which counts callers; here so many may ask that none is refused."""
    with a_server(folder, NO_LIMIT) as (_, limited), a_server(folder, 0) as (_, free), an_nginx(folder) as nginx:
        for port in (limited, free):
            first_answer(port)
        for question in QUESTIONS:
            with a_constant(folder, raw_answer(free, question)) as constant:
                theirs, ours, unlimited, most = measure_rates(question, nginx, limited, free, constant)
            yield compare(question.name, ours, theirs, question.target)
            yield compare(f"{question.name}, no rate limit", unlimited, theirs)
            yield compare(f"{question.name}, with the rate limit and without", ours, unlimited, WITH_LIMIT, "without")
            target = OF_CONSTANT if question.name == "live 200" else None
            yield compare(f"{question.name}, of the limit of a core", ours, most, target, "a constant answer in C")


def measure_rates(question: Question, nginx: int, *others: int) -> list[list[float]]:
    """What each port answers in a second, several times."""
    rates: list[list[float]] = [[], *([] for _ in others)]
    static = nginx_path(question.path)
    asked = (
        (question.path, sent(others[0], question.path, question)),
        (static, sent(nginx, static, question)),  # whose ETags are its own
    )
    for _ in range(ROUNDS):  # by turns, so that what else the machine does falls on each of them
        for port, found in zip((nginx, *others), rates, strict=True):
            path, headers = asked[port == nginx]
            found.append(per_second(port, path, *headers))
    return rates


def compare(
    name: str, ours: list[float], theirs: list[float], target: float | None = None, against: str = "nginx"
) -> Figure:
    """The middle one of the rounds' ratios."""
    ratio = median(one / other for one, other in zip(ours, theirs, strict=True))
    return Figure(
        name,
        f"{median(ours):,.0f}/s",
        f"{against} {median(theirs):,.0f}/s",
        ratio,
        "" if target is None else f"at least {target}",
        target is not None and ratio < target,
    )


@contextmanager
def a_server(folder: Path, limit: int, admin: str = "") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = a_free_port()
    name = f"serve-{limit}.toml"
    connections = "" if limit else "connections_per_address = 0\n"  # as behind an edge
    (folder / name).write_text(
        f'[server]\nlisten = "127.0.0.1:{port}"\nrate_limit_per_minute = {limit}\n{connections}'
        f'[admin]\nserver = "{admin}"\n'
    )
    with a_process(folder, "serve", "-c", name) as process:
        yield process, port


@contextmanager
def an_nginx(folder: Path, core: int | None = None) -> Iterator[int]:
    """One worker, on one core if asked for."""
    port = a_free_port()
    folder.chmod(0o755)  # its worker is another user
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
    command = [program("nginx") or "nginx", "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=kept_to(core)) as process:
        try:
            first_answer(port, nginx_path(LIVE))
            yield port
        finally:
            process.terminate()


@contextmanager
def a_constant(folder: Path, answer: bytes) -> Iterator[int]:
    """A C program that gives this answer to everything."""
    port, built, file = a_free_port(), folder / "constant", folder / "answer"
    subprocess.run([program("cc") or "cc", "-O2", "-o", built, CONSTANT], check=True)
    file.write_bytes(answer)
    with subprocess.Popen([built, str(port), file]) as process:
        try:
            yield port
        finally:
            process.kill()


def raw_answer(port: int, question: Question) -> bytes:
    """The bytes with which a server answers, and keeps the connection open."""
    lines = (f"GET {question.path} HTTP/1.1", "Host: a", *sent(port, question.path, question))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall("\r\n".join((*lines, "", "")).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(65_536)
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", answer)
        whole = answer.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
        while len(answer) < whole:
            answer += connection.recv(65_536)
    return answer


def nginx_path(path: str) -> str:
    return f"{path}.json" if path == LIVE else path


class Answer(NamedTuple):
    etag: str
    coding: str
    body_bytes: int


def first_answer(port: int, path: str = LIVE, *headers: str, within_s: float = 20) -> Answer:
    """Wait for a 200."""
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path, headers=dict(header.split(": ", 1) for header in headers))
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 200:
                return Answer(answer.headers["ETag"], answer.headers.get("Content-Encoding", ""), len(body))
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.005)
    raise RuntimeError(f"port {port} did not answer {path} with 200")


def sent(port: int, path: str, question: Question) -> tuple[str, ...]:
    """The headers with which a server is asked."""
    if not question.conditional:
        return question.headers
    return (*question.headers, f"If-None-Match: {first_answer(port, path, *question.headers).etag}")


def per_second(port: int, path: str, *headers: str) -> float:
    options = [f"-H{header}" for header in headers]
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{RUN_S}s", *options, f"http://127.0.0.1:{port}{path}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said and not any(header.startswith("If-None-Match") for header in headers):
        raise RuntimeError(f"not every answer was a 200:\n{said}")
    found = re.search(r"Requests/sec:\s+([\d.]+)", said)
    if found is None:
        raise RuntimeError(f"wrk said:\n{said}")
    return float(found[1])
