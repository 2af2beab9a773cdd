"""A real server that a test speaks to in bytes of its own."""

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from lookout.documents.document import Document, DocumentName, etag
from lookout.store.sqlite import open_writer
from tests.builders import NOON
from tests.commands import a_command, said
from tests.integration.metrics import Samples, samples_in
from tests.integration.served import LIVE, Server, a_free_port, wait_until_it_answers, write_config
from tests.stores import once_free

STOP_WITHIN_S: Final = 60.0
OF_THE_SERVER: Final = {"date", "server", "connection"}  # what a server adds to an application's headers


class Answer(NamedTuple):
    """An answer as it came: the headers' names in lower case, in their order."""

    line: bytes
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def http_code(self) -> int:
        return int(self.line.split(b" ")[1])

    @property
    def ours(self) -> dict[str, str]:
        """The headers of Lookout itself; none is listed twice."""
        ours = [(name, text) for name, text in self.headers if name not in OF_THE_SERVER]
        assert len(dict(ours)) == len(ours), ours
        return dict(ours)


def a_request(method: str = "GET", path: str = LIVE, *headers: str, close: bool = True) -> bytes:
    last = ("Connection: close",) if close else ()
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: lookout", *headers, *last, "", "")).encode("latin-1")


class Speaker:
    """What answers at a port. Each request has a connection of its own."""

    host = "127.0.0.1"
    port: int

    def connect(self, peer: str = "") -> socket.socket:
        """From this address, if it is given: one of loopback's, 127.0.0.0/8."""
        return socket.create_connection((self.host, self.port), timeout=60, source_address=(peer, 0) if peer else None)

    def exchange(self, raw: bytes, peer: str = "") -> bytes:
        """Everything that is answered to these bytes until it closes; b"" if it resets the connection."""
        with self.connect(peer) as connection:
            try:
                connection.sendall(raw)
                return b"".join(iter(lambda: connection.recv(65_536), b""))
            except ConnectionError:
                return b""

    def ask(self, method: str = "GET", path: str = LIVE, *headers: str, peer: str = "") -> Answer:
        """Everything after the headers is the body."""
        return parsed(self.exchange(a_request(method, path, *headers), peer))

    def codes(self, times: int, method: str = "GET", path: str = LIVE, *headers: str) -> list[int]:
        return [self.ask(method, path, *headers).http_code for _ in range(times)]


@dataclass
class RawServer(Speaker):
    port: int
    process: subprocess.Popen[bytes]
    folder: Path
    host: str = "127.0.0.1"
    admin_port: int = 0

    def log(self) -> list[Any]:
        lines = said(self.folder).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def logged(self, event: str) -> int:
        return sum(line["event"] == event for line in self.log())


def parsed(raw: bytes) -> Answer:
    head, end, body = raw.partition(b"\r\n\r\n")
    assert end, f"no answer: {raw!r}"
    line, *fields = head.split(b"\r\n")
    pairs = (field.decode("latin-1").partition(": ") for field in fields)
    return Answer(line, [(name.lower(), text) for name, _, text in pairs], body)


def store(folder: Path, *, at: int = NOON, **bodies: bytes) -> dict[str, Document]:
    """Put documents into the folder's store, as a monitor would."""
    documents = {name: Document(body, etag(body), at) for name, body in bodies.items()}
    names: dict[str, DocumentName] = {"live": "live", "history": "history", "about": "about"}
    writer = once_free(lambda: open_writer(folder / "lookout.db"))
    try:
        writer.write({names[name]: document for name, document in documents.items()}, {})
    finally:
        writer.close()
    return documents


def admin(server: RawServer, path: str) -> tuple[int, bytes]:
    answer = Server("127.0.0.1", server.admin_port).ask("GET", path)
    return answer.http_code, answer.body


def metrics(server: RawServer) -> Samples:
    http_code, body = admin(server, "/metrics")
    assert http_code == 200
    return samples_in(body.decode())


@contextmanager
def a_raw_server(
    folder: Path, *, server: str = "", more: str = "", top: str = "", with_admin: bool = False, host: str = "127.0.0.1"
) -> Iterator[RawServer]:
    """``lookout serve`` meanwhile, in a process group of its own. It ends by SIGTERM, without a word of complaint."""
    port, admin_port = a_free_port(), a_free_port() if with_admin else 0
    config = write_config(folder, port, server=server, more=more, top=top, admin_port=admin_port, host=host)
    with a_command(folder, "serve", "-c", config) as process:
        raw = RawServer(port, process, folder, host, admin_port)
        wait_until_it_answers(Server(raw.host, port), process, folder)
        yield raw
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_WITHIN_S) == 0
    assert "Traceback" not in said(folder)
    assert "panicked" not in said(folder)
