"""One HTTP/1.1 request on a connection of its own. What comes back is kept as it came: headers that are there twice,
and bodies where none belongs."""

import re
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from lookout.base.clock import Clock
from lookout.verify.findings import quoted

MOST_BYTES: Final = 32 * 1024 * 1024
_MOST_HEAD_BYTES: Final = 65_536
_CHUNK: Final = 65_536
# A body that follows a head without one comes at once; nobody waits longer to see that there is none.
_STRAY_BODY_MS: Final = 250

_STATUS_LINE: Final = re.compile(r"HTTP/1\.[01] ([1-9]\d\d)(?: .*)?")
_FIELD_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NEVER_IN_A_FIELD: Final = frozenset("\r\n\0")
_PORTS: Final = {"http": 80, "https": 443}

Headers = tuple[tuple[str, str], ...]


class AddressError(ValueError):
    """The base address cannot be used; the text says why."""


class Address(NamedTuple):
    """Where a deployment is. ``prefix`` is a path before all others, mostly empty."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def base(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"


class Request(NamedTuple):
    method: str
    path: str
    headers: Headers


class Answer(NamedTuple):
    """Names of headers are in lower case. ``problem`` says why the body is not whole, if it is not."""

    http_code: int
    headers: Headers
    body: bytes
    problem: str = ""

    def each(self, name: str) -> list[str]:
        return [text for of, text in self.headers if of == name]

    def header(self, name: str) -> str | None:
        """A header's lines as one."""
        lines = self.each(name)
        return ", ".join(lines) if lines else None


class NoAnswer(NamedTuple):
    """``asked`` is False for a request that was not even made."""

    why: str
    asked: bool = True


Reply = Answer | NoAnswer


class _NotHttpError(Exception):
    """What came back is not HTTP/1.1."""


def parse_address(url: str) -> Address:
    """``http://host:port`` or ``https://host``; AddressError says what else it is."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressError(f"{quoted(url)} is not an address: {error}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise AddressError(f"{quoted(url)} is not an address like http://host:port")
    if parts.username is not None or parts.query or parts.fragment or not re.fullmatch(r"[!-~]*", url):
        raise AddressError(f"{quoted(url)}: only a scheme, a host, a port and a path can be given")
    if port == 0:
        raise AddressError(f"{quoted(url)}: there is no port 0")
    return Address(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], parts.path.rstrip("/"))


class Asker:
    """Asks one deployment. Its name is looked up once."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._found: list[tuple[socket.AddressFamily, tuple[object, ...]]] = []
        self._tls = ssl.create_default_context() if address.scheme == "https" else None

    def ask(self, request: Request, timeout_s: float) -> Reply:
        """The answer, or why there is none, within ``timeout_s`` in all."""
        until = self._clock.elapsed_ms() + int(timeout_s * 1000)
        try:
            with self._connected(until) as connection:
                connection.settimeout(self._left_s(until))
                connection.sendall(self._bytes_of(request))
                return _Exchange(connection, lambda: self._left_s(until), request.method == "HEAD").answer()
        except TimeoutError:
            return NoAnswer(f"no answer within {timeout_s:g} s")
        except _NotHttpError as error:
            return NoAnswer(str(error))
        except OSError as error:
            return NoAnswer(f"no connection: {error.strerror or error}")

    def _connected(self, until: int) -> socket.socket:
        if not self._found:
            self._found = _looked_up(self._address, self._left_s(until))
        refusal = OSError("the name has no address")
        for family, address in self._found:
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.settimeout(self._left_s(until))
                connection.connect(address)
                if self._tls is None:
                    return connection
                connection.settimeout(self._left_s(until))
                return self._tls.wrap_socket(connection, server_hostname=self._address.host)
            except OSError as error:
                connection.close()
                refusal = error
        raise refusal

    def _left_s(self, until: int) -> float:
        left_ms = until - self._clock.elapsed_ms()
        if left_ms <= 0:
            raise TimeoutError
        return left_ms / 1000

    def _bytes_of(self, request: Request) -> bytes:
        lines = [
            f"{request.method} {self._address.prefix}{request.path} HTTP/1.1",
            f"Host: {self._address.authority}",
            *(f"{name}: {text}" for name, text in request.headers),
            "Connection: close",
        ]
        return "\r\n".join((*lines, "", "")).encode("latin-1")


class _Exchange:
    """Reads one answer from a connection; ``left_s`` says for how long it may still take."""

    def __init__(self, connection: socket.socket, left_s: Callable[[], float], is_head: bool) -> None:
        self._connection = connection
        self._left_s = left_s
        self._is_head = is_head
        self._buffer = bytearray()
        self._ended = False

    def answer(self) -> Answer:
        http_code, headers = self._head()
        while http_code < 200:
            http_code, headers = self._head()
        told = Answer(http_code, headers, b"")
        if self._is_head or http_code in (204, 304):
            return told._replace(body=self._stray())
        try:
            body, problem = self._body(told)
        except TimeoutError:
            body, problem = bytes(self._buffer), "its body did not end in time"
        except OSError:
            body, problem = bytes(self._buffer), "its connection was lost within the body"
        return told._replace(body=body, problem=problem)

    def _more(self) -> bool:
        """Whether there was more to read."""
        if self._ended:
            return False
        self._connection.settimeout(self._left_s())
        try:
            chunk = self._connection.recv(_CHUNK)
        except ssl.SSLEOFError:  # many servers close TLS without saying so
            chunk = b""
        self._ended = not chunk
        self._buffer += chunk
        return bool(chunk)

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _head(self) -> tuple[int, Headers]:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _MOST_HEAD_BYTES:
                raise _NotHttpError(f"not HTTP: no end of the headers in {_MOST_HEAD_BYTES} bytes")
            if not self._more():
                began = quoted(bytes(self._buffer[:40])) if self._buffer else "nothing"
                raise _NotHttpError(f"no answer: the connection was closed after {began}")
        line, *fields = self._taken(end + 4)[:-4].decode("latin-1").split("\r\n")
        status = _STATUS_LINE.fullmatch(line)
        if status is None:
            raise _NotHttpError(f"not HTTP/1.1: {quoted(line)}")
        return int(status[1]), tuple(map(_field, fields))

    def _stray(self) -> bytes:
        """What follows a head that nothing may follow."""
        left_s = min(self._left_s(), _STRAY_BODY_MS / 1000)
        self._connection.settimeout(left_s)
        with suppress(OSError):  # mostly nothing comes, which is right
            self._buffer += self._connection.recv(_CHUNK)
        return bytes(self._buffer)

    def _body(self, told: Answer) -> tuple[bytes, str]:
        if "chunked" in (told.header("transfer-encoding") or "").lower():
            return self._chunked()
        lengths = set(told.each("content-length"))
        if not lengths:
            while len(self._buffer) <= MOST_BYTES and self._more():
                pass
            return self._within(bytes(self._buffer))
        length = lengths.pop()
        if lengths or not (length.isascii() and length.isdigit() and len(length) < 18):
            raise _NotHttpError(f"not HTTP: the Content-Length {quoted(told.header('content-length'))}")
        while len(self._buffer) < min(int(length), MOST_BYTES + 1) and self._more():
            pass
        if len(self._buffer) < int(length) <= MOST_BYTES:
            return bytes(self._buffer), f"its body ended after {len(self._buffer)} of {length} bytes"
        return self._within(bytes(self._buffer[: int(length)]))

    def _within(self, body: bytes) -> tuple[bytes, str]:
        return (body, "") if len(body) <= MOST_BYTES else (b"", f"its body is larger than {MOST_BYTES >> 20} MB")

    def _chunked(self) -> tuple[bytes, str]:
        body = bytearray()
        while len(body) <= MOST_BYTES:
            size = self._line().partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
                return bytes(body), "its chunks are not as HTTP has them, or end too soon"
            count = int(size, 16)
            if count == 0:
                return bytes(body), ""  # trailers, if any, say nothing that is judged
            while len(self._buffer) < min(count + 2, MOST_BYTES) and self._more():
                pass
            if len(self._buffer) < min(count + 2, MOST_BYTES):
                return bytes(body), "its body ended within a chunk"
            body += self._taken(count)
            self._taken(2)
        return self._within(bytes(body))

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _MOST_HEAD_BYTES or not self._more():
                return b""
        return self._taken(end + 2)[:-2]


def _field(line: str) -> tuple[str, str]:
    """A header's name and value. Whoever sends it may want it to take long: no regular expression sees the value."""
    name, colon, text = line.partition(":")
    if not colon or _FIELD_NAME.fullmatch(name) is None or not _NEVER_IN_A_FIELD.isdisjoint(text):
        raise _NotHttpError(f"not HTTP: the header {quoted(line)}")
    return name.lower(), text.strip(" \t")


def _looked_up(address: Address, within_s: float) -> list[tuple[socket.AddressFamily, tuple[object, ...]]]:
    """The addresses of a host. The system's own look-up has no time limit, so a thread waits for it."""
    found: list[tuple[socket.AddressFamily, tuple[object, ...]]] = []
    wrong: list[OSError] = []

    def look_up() -> None:
        try:
            for family, _, _, _, where in socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM):
                found.append((family, where))
        except OSError as error:
            wrong.append(error)
        except UnicodeError:
            wrong.append(OSError(f"{quoted(address.host)} is not a name"))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(within_s)
    if wrong:
        raise wrong[0]
    if thread.is_alive():
        raise TimeoutError
    return found
