"""A real varnishd with the configuration that Lookout makes, and an origin for it that does what a test tells it."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from lookout.config.settings import Settings
from lookout.config.tables import EdgeTable, ServerTable
from lookout.edge.varnish import configuration, parameters
from tests.integration.raw import Answer, Speaker
from tests.integration.served import LIVE, a_free_port
from tests.wait import until

VARNISHD: Final = shutil.which("varnishd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin") or ""
_MODULE: Final = "varnish/vmods/libvmod_vsthrottle.so"
VSTHROTTLE: Final = any(any(Path("/usr").glob(f"{place}/{_MODULE}")) for place in ("lib*", "lib/*", "local/lib*"))
needs_varnish: Final = pytest.mark.skipif(
    not (VARNISHD and VSTHROTTLE), reason="needs Varnish 7 and its modules; on Debian: varnish varnish-modules"
)
START_WITHIN_S: Final = 30
STOP_WITHIN_S: Final = 60
_COMPILE: Final = "exec cc -O0 -w -pthread -fpic -shared -o %o %s"  # in a third of the time

Script = Callable[[socket.socket], None]


class Edge(Speaker):
    """What stands before an origin."""

    def __init__(self, port: int) -> None:
        self.port = port

    def answers(self) -> bool:
        try:
            return self.ask("GET", "/nowhere").http_code == 404
        except (AssertionError, OSError):
            return False

    def at_once(self, times: int, *headers: str) -> list[Answer]:
        """So many requests for the live report at the same time."""
        answers: list[Answer] = []
        threads = [
            threading.Thread(target=lambda: answers.append(self.ask("GET", LIVE, *headers))) for _ in range(times)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers


class Origin:
    """A server that plays a script for each request, and keeps what it was asked."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.asked: list[str] = []
        self.script: Script = says("first")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._players: list[threading.Thread] = []
        self._thread.start()

    def die(self) -> None:
        """From here on nobody listens."""
        self._closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for player in self._players:
            player.join()

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            player = threading.Thread(target=self._play, args=(connection,))
            self._players.append(player)
            player.start()

    def _play(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(10)
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65_536)
                if not piece:
                    return
                head += piece
            self.asked.append(head.decode("latin-1"))
            self.script(connection)


def caching(fresh: int = 1, while_revalidate: int = 1, if_error: int = 4) -> str:
    """The launch's Cache-Control with seconds for minutes."""
    return (
        f"public, max-age={fresh}, s-maxage={fresh}, stale-while-revalidate={while_revalidate}, "
        f"stale-if-error={if_error}"
    )


def says(
    body: str,
    *headers: str,
    http_code: int = 200,
    content_type: str = "application/json; charset=utf-8",
    cache_control: str | None = None,
    etag: str | None = None,
    after_s: float = 0,
    cut: int = 0,
) -> Script:
    """The script of an answer, whose last ``cut`` bytes are never sent."""
    lines = [
        f"HTTP/1.1 {http_code} So",
        f"Content-Type: {content_type}",
        f"Cache-Control: {caching() if cache_control is None else cache_control}",
        f'ETag: "{body if etag is None else etag}"',
        "Access-Control-Allow-Origin: *",
        "Vary: Accept-Encoding",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    raw = ("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1")

    def play(connection: socket.socket) -> None:
        time.sleep(after_s)
        connection.sendall(raw[: len(raw) - cut])

    return play


def fails(http_code: int) -> Script:
    """The API's own kind of error (A8)."""
    return says('{"error":"no"}', http_code=http_code, cache_control="no-store")


def babbles(connection: socket.socket) -> None:
    connection.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")


def hangs(connection: socket.socket) -> None:
    """Until the other end gives up."""
    connection.recv(1)


@contextmanager
def an_origin(port: int = 0) -> Iterator[Origin]:
    origin = Origin(port)
    try:
        yield origin
    finally:
        origin.die()


@contextmanager
def an_edge(
    folder: Path,
    origin_port: int,
    *,
    limit: int = 0,
    ban_s: float = 60,
    trusted: tuple[str, ...] = (),
    minute_s: int = 60,
    **others: str,
) -> Iterator[Edge]:
    """Varnish in front of an origin meanwhile, started as it is shipped; with ``others`` of its parameters."""
    settings = Settings(
        server=ServerTable(rate_limit_per_minute=limit, ban_s=ban_s, trusted_proxies=trusted),
        edge=EdgeTable(origin=f"127.0.0.1:{origin_port}"),
    )
    with a_varnish(folder, configuration(settings, minute_s), **others) as edge:
        yield edge


def forget_everything(edge: Edge, folder: Path) -> None:
    """Start the process again that has the copies, counts and failures. What its parent compiled stays."""
    for order in ("stop", "start"):
        subprocess.run(["varnishadm", "-n", folder / "varnish", order], check=True, capture_output=True)  # noqa: S607
    until(edge.answers, "Varnish answers", START_WITHIN_S)


@contextmanager
def a_varnish(folder: Path, vcl: str, **others: str) -> Iterator[Edge]:
    file = folder / "edge.vcl"
    file.write_text(vcl)
    edge = Edge(a_free_port())
    command = [VARNISHD, "-F", "-j", "none", "-n", str(folder / "varnish"), "-f", str(file), "-s", "malloc,16m"]
    command += ["-a", f"127.0.0.1:{edge.port}", "-p", f"cc_command={_COMPILE}"]
    command += parameters(thread_pool_min="20", **others)
    with (folder / "varnish.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        until(lambda: edge.answers() or process.poll() is not None, "Varnish answers", START_WITHIN_S)
        assert process.poll() is None, (folder / "varnish.log").read_text()
        yield edge
        assert "Panic" not in (folder / "varnish.log").read_text()
    finally:
        process.terminate()
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
