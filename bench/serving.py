"""What a server answers in a second, beside nginx with the same bytes as static files, each with one worker."""

import http.client
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.figures import Figure
from bench.plans import a_plan
from bench.processes import a_folder, a_process, children, kept_to, memory_mb
from bench.publishing import a_full_fortnight
from lookout.core.pieces import Pieces
from lookout.core.wire import Document, paths
from lookout.store.sqlite import open_writer
from lookout.wiring.listening import a_free_port

LIVE, HISTORY = paths("protocol")
CONNECTIONS = 64
RUN_S = 2
ROUNDS = 5
STARTS = 5
FIRST_ANSWER_S = 1.0
NEEDED = ("wrk", "nginx")
NO_LIMIT = 2**53 - 1

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
    target: float
    conditional: bool = False


QUESTIONS = (
    Question("live 200", LIVE, 0.55),
    Question("live 304", LIVE, 0.55, conditional=True),
    Question("history 200", HISTORY, 0.45),
)


def measure() -> Iterator[Figure]:
    with a_folder() as folder:
        fill_a_store(folder)
        yield from starts(folder)
        missing = [program for program in NEEDED if shutil.which(program) is None]
        if missing:
            yield Figure("requests a second", "not measured", f"apt-get install {' '.join(missing)}")
            return
        yield from throughput(folder)


def fill_a_store(folder: Path) -> None:
    """A full fortnight of 21 rows, in the store and as files for nginx."""
    ledger, _ = a_full_fortnight(a_plan(5))
    documents = {"live": ledger.live(), "history": ledger.history()}
    writer = open_writer(folder / "lookout.db")
    writer.write({"live": documents["live"], "history": documents["history"]}, Pieces({}, (), whole=False))
    writer.close()
    for path, document in ((LIVE, documents["live"]), (HISTORY, documents["history"])):
        _static(folder, path, document)


def _static(folder: Path, path: str, document: Document) -> None:
    # The history's path goes below the live report's, which therefore cannot be a file of that name.
    file = folder / "www" / (path[1:] if path == HISTORY else path[1:] + ".json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(document.body)


def starts(folder: Path) -> Iterator[Figure]:
    took_s, memories = [], []
    for _ in range(STARTS):
        began = time.monotonic()
        with a_server(folder, 120) as (process, port):
            first_answer(port)
            took_s.append(time.monotonic() - began)
            memories.append(max(memory_mb(child) for child in children(process.pid)))
    longest = max(took_s)
    yield Figure(
        f"first 200 after the start, longest of {STARTS}",
        f"{longest:.2f} s",
        "",
        None,
        f"within {FIRST_ANSWER_S:.0f} s",
        longest > FIRST_ANSWER_S,
    )
    yield Figure("a server's worker with a full fortnight", f"{max(memories):.0f} MB")


def throughput(folder: Path) -> Iterator[Figure]:
    with a_server(folder, 0) as (_, free), a_server(folder, NO_LIMIT) as (_, limited), an_nginx(folder) as nginx:
        for port in (free, limited):
            first_answer(port)
        for question in QUESTIONS:
            ours, limited_ones, theirs = [], [], []
            for _ in range(ROUNDS):  # by turns, so that what else the machine does falls on each of them
                theirs.append(per_second(nginx, nginx_path(question.path), question.conditional))
                ours.append(per_second(free, question.path, question.conditional))
                limited_ones.append(per_second(limited, question.path, question.conditional))
            yield compared(question.name, ours, theirs, question.target)
            yield compared(f"{question.name}, with the rate limit", limited_ones, theirs)


def compared(name: str, ours: list[float], theirs: list[float], target: float | None = None) -> Figure:
    """The middle one of the rounds' ratios."""
    ratio = median(one / other for one, other in zip(ours, theirs, strict=True))
    return Figure(
        name,
        f"{median(ours):,.0f}/s",
        f"nginx {median(theirs):,.0f}/s",
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
    """One worker, on one core if told."""
    port = a_free_port()
    folder.chmod(0o755)  # its worker is another user
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
    command = [shutil.which("nginx") or "nginx", "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=kept_to(core)) as process:
        try:
            first_answer(port, nginx_path(LIVE))
            yield port
        finally:
            process.terminate()


def nginx_path(path: str) -> str:
    return f"{path}.json" if path == LIVE else path


def first_answer(port: int, path: str = LIVE, within_s: float = 20) -> str:
    """Wait for a 200; its ETag."""
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                return answer.headers["ETag"]
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.005)
    raise RuntimeError(f"port {port} did not answer {path} with 200")


def per_second(port: int, path: str, conditional: bool, *headers: str) -> float:
    sent = [*headers, f"If-None-Match: {first_answer(port, path)}"] if conditional else headers
    options = [f"-H{header}" for header in sent]
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{RUN_S}s", *options, f"http://127.0.0.1:{port}{path}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said and not conditional:
        raise RuntimeError(f"not every answer was a 200:\n{said}")
    found = re.search(r"Requests/sec:\s+([\d.]+)", said)
    if found is None:
        raise RuntimeError(f"wrk said:\n{said}")
    return float(found[1])
