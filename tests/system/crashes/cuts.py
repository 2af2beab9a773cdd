"""A connection to PostgreSQL that can be cut at any statement: a proxy that knows just enough of the protocol."""

import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

SOCKET: Final = ".s.PGSQL.5432"
_LENGTH: Final = struct.Struct(">I")


class Harm(NamedTuple):
    """What happens at a statement, with the process that is to answer it: then it is passed on, or not, and answered,
    or not."""

    number: int
    strike: Callable[[int], None] = lambda _: None
    passes: bool = True
    strikes_first: bool = True  # before the server has it; otherwise when it has answered, and the answer is lost


class Proxy:
    """Between clients and a server, by the folders of their sockets. Harm is done once."""

    def __init__(self, server: Path, folder: Path, harm: Harm | None) -> None:
        self._server = server
        self._harm = harm
        self._counting = threading.Lock()
        self.statements: list[str] = []
        self.struck = threading.Event()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / SOCKET))
        self._listening.listen()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(client,), daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _converse(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with client, server, suppress(OSError, EOFError):
            server.connect(str(self._server / SOCKET))
            conversation = _Conversation(client, server, self._is_struck)
            threading.Thread(target=conversation.answers, daemon=True).start()
            conversation.requests()

    def _is_struck(self, request: bytes) -> Harm | None:
        with self._counting:
            self.statements.append(_text(request))
            if self._harm is None or self._harm.number != len(self.statements):
                return None
            self.struck.set()
            return self._harm


class _Conversation:
    """One session, passed on in both directions."""

    def __init__(self, client: socket.socket, server: socket.socket, is_struck: Callable[[bytes], Harm | None]) -> None:
        self._client = client
        self._server = server
        self._is_struck = is_struck
        self._pid = 0
        self._losing: Harm | None = None

    def requests(self) -> None:
        """From the client, a statement at a time."""
        try:
            self._server.sendall(_begin(self._client))
            request = b""
            while True:
                kind, message = _message(self._client)
                request += message
                if kind == b"X":
                    self._server.sendall(request)
                    return
                if kind not in (b"Q", b"S"):
                    continue
                harm = self._is_struck(request)
                if harm is not None and not self._strike(harm):
                    return
                self._server.sendall(request)
                request = b""
        finally:
            self._end()

    def answers(self) -> None:
        """From the server, a message at a time."""
        with suppress(OSError, EOFError):
            try:
                while True:
                    kind, message = _message(self._server)
                    if kind == b"K":
                        (self._pid,) = _LENGTH.unpack(message[5:9])
                    if self._losing is None:
                        self._client.sendall(message)
                    elif kind == b"Z":
                        self._losing.strike(self._pid)
                        return
            finally:
                self._end()

    def _strike(self, harm: Harm) -> bool:
        """Whether the statement is to be passed on."""
        if harm.strikes_first:
            harm.strike(self._pid)
        else:
            self._losing = harm
        return harm.passes

    def _end(self) -> None:
        for side in (self._client, self._server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


@contextmanager
def a_proxy(server: Path, harm: Harm | None = None) -> Iterator[tuple[Proxy, Path]]:
    """One to the server with its socket in this folder; it has its own socket in another."""
    with (
        tempfile.TemporaryDirectory(prefix="lookout-cut-") as folder,
        _serving(Proxy(server, Path(folder), harm)) as proxy,
    ):
        yield proxy, Path(folder)


@contextmanager
def _serving(proxy: Proxy) -> Iterator[Proxy]:
    serving = threading.Thread(target=proxy.serve, daemon=True)
    serving.start()
    try:
        yield proxy
    finally:
        proxy.close()
        serving.join()


def _begin(client: socket.socket) -> bytes:
    """The first message, which has no kind."""
    length = _exactly(client, 4)
    return length + _exactly(client, _LENGTH.unpack(length)[0] - 4)


def _message(of: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(of, 5)
    return head[:1], head + _exactly(of, _LENGTH.unpack(head[1:])[0] - 4)


def _exactly(of: socket.socket, length: int) -> bytes:
    got = b""
    while len(got) < length:
        more = of.recv(length - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def _text(request: bytes) -> str:
    """Enough of the statement to know it: that of a simple query, or of a message that has it parsed."""
    return request[5:].lstrip(b"\0")[:40].decode(errors="replace").strip("\0")
