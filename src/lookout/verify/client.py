"""One HTTP/1.1 request on a connection of its own. What comes back is kept as it came: headers that are there twice,
and bodies where none belongs."""

import re
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

import h11

from lookout.base.clock import Clock
from lookout.base.url import BaseUrl
from lookout.verify.documents import quote
from lookout_reader.urllib_fetch import in_a_thread

MOST_BYTES: Final = 32 * 1024 * 1024
TOO_LARGE: Final = f"its body is larger than {MOST_BYTES >> 20} MB"
_MOST_HEAD_BYTES: Final = 65_536
# Also the longest line between chunks: h11's time for a line can grow with the square of its length.
_READ_BYTES: Final = 4_096
# A body that follows a head without one comes at once; nobody waits longer to see that there is none.
_STRAY_BODY_MS: Final = 250
# Lines that h11 would accept although they do not end in CR LF, or go on in the next one; and what makes it slow.
_NEVER_IN_A_HEAD: Final = re.compile(rb"[\0\v\f]|\r(?!\n)|(?<!\r)\n|\n[ \t]")

_VERSIONS: Final = (b"1.0", b"1.1")

Headers = tuple[tuple[str, str], ...]


class HttpRequest(NamedTuple):
    method: str
    path: str
    headers: Headers


class HttpAnswer(NamedTuple):
    """An answer as it came, with names of headers in lower case. ``problem`` says why the body is not whole, if it is
    not."""

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
    why: str
    was_sent: bool = True


HttpOutcome = HttpAnswer | NoAnswer


class _NotHttpError(Exception):
    """What came back is not HTTP/1.1."""


class Client:
    """Sends requests to one deployment. Its name is looked up once."""

    def __init__(self, base: BaseUrl, clock: Clock) -> None:
        self._base = base
        self._clock = clock
        self._addresses: list[tuple[socket.AddressFamily, tuple[object, ...]]] = []
        self._tls = ssl.create_default_context() if base.scheme == "https" else None

    def send(self, request: HttpRequest, timeout_s: float) -> HttpOutcome:
        """The answer, or why there is none, within ``timeout_s`` in all."""
        until = self._clock.elapsed_ms() + int(timeout_s * 1000)
        try:
            with self._connect(until) as connection:
                connection.settimeout(self._left_s(until))
                http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_READ_BYTES)
                connection.sendall(self._encode(request, http))
                return _AnswerReader(connection, http, lambda: self._left_s(until)).read(request.method)
        except TimeoutError:
            return NoAnswer(f"no answer within {timeout_s:g} s")
        except _NotHttpError as error:
            return NoAnswer(str(error))
        except OSError as error:
            return NoAnswer(f"no connection: {error.strerror or error}")

    def _connect(self, until: int) -> socket.socket:
        if not self._addresses:
            self._addresses = _look_up(self._base, self._left_s(until))
        refusal = OSError("the name has no address")
        for family, address in self._addresses:
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.settimeout(self._left_s(until))
                connection.connect(address)
                if self._tls is None:
                    return connection
                connection.settimeout(self._left_s(until))
                return self._tls.wrap_socket(connection, server_hostname=self._base.host)
            except OSError as error:
                connection.close()
                refusal = error
        raise refusal

    def _left_s(self, until: int) -> float:
        left_ms = until - self._clock.elapsed_ms()
        if left_ms <= 0:
            raise TimeoutError
        return left_ms / 1000

    def _encode(self, request: HttpRequest, http: h11.Connection) -> bytes:
        headers = [("Host", self._base.authority), *request.headers, ("Connection", "close")]
        encoded = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers]
        target = self._base.prefix + request.path
        return http.send(h11.Request(method=request.method, target=target, headers=encoded)) + http.send(
            h11.EndOfMessage()
        )


class _AnswerReader:
    """Reads one answer from a connection; ``left_s`` says for how long it may still take."""

    def __init__(self, connection: socket.socket, http: h11.Connection, left_s: Callable[[], float]) -> None:
        self._connection = connection
        self._http = http
        self._left_s = left_s
        self._buffer = bytearray()  # until h11 has it

    def read(self, method: str) -> HttpAnswer:
        answer = self._read_head()
        while answer.http_code < 200:
            answer = self._read_head()
        if method == "HEAD" or answer.http_code in (204, 304):
            return answer._replace(body=self._read_stray_body())
        body = bytearray()
        if self._buffer:  # no bytes would be the end
            self._http.receive_data(bytes(self._buffer))
        try:
            return answer._replace(problem=self._read_body(body), body=bytes(body))
        except TimeoutError:
            problem = "its body did not end in time"
        except OSError:
            problem = "its connection was lost within the body"
        except h11.RemoteProtocolError as error:
            problem = f"its body is not as HTTP has it: {_in_words(error)}"
        return answer._replace(problem=problem, body=bytes(body))

    def _receive(self) -> bytes:
        self._connection.settimeout(self._left_s())
        try:
            return self._connection.recv(_READ_BYTES)
        except ssl.SSLEOFError:  # many servers close TLS without saying so
            return b""

    def _read_head(self) -> HttpAnswer:
        """h11 checks it, and later finds the end of the body. But the headers are taken as they came: h11 makes one of
        several equal lengths, also of those in one line."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _MOST_HEAD_BYTES:
                raise _NotHttpError(f"not HTTP: no end of the headers in {_MOST_HEAD_BYTES} bytes")
            received = self._receive()
            if not received:
                began = quote(bytes(self._buffer[:40])) if self._buffer else "nothing"
                raise _NotHttpError(f"no answer: the connection was closed after {began}")
            self._buffer += received
        head = bytes(self._buffer[: end + 4])
        del self._buffer[: end + 4]
        line, *fields = head[:-4].decode("latin-1").split("\r\n")
        wrong = _NEVER_IN_A_HEAD.search(head)
        if wrong is not None:
            raise _NotHttpError(f"not HTTP: the headers have {quote(head[max(0, wrong.start() - 20) : wrong.end()])}")
        self._http.receive_data(head)
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise _NotHttpError(f"not HTTP: {_in_words(error)}") from None
        if not isinstance(event, h11.InformationalResponse | h11.Response) or event.http_version not in _VERSIONS:
            raise _NotHttpError(f"not HTTP/1.1: {quote(line)}")
        split = (field.partition(":") for field in fields)
        answer = HttpAnswer(event.status_code, tuple((name.lower(), text.strip(" \t")) for name, _, text in split), b"")
        if any("," in length for length in answer.each("content-length")):
            raise _NotHttpError(f"not HTTP: the Content-Length {quote(answer.header('content-length'))}")
        return answer

    def _read_stray_body(self) -> bytes:
        """What follows a head that nothing may follow."""
        left_s = min(self._left_s(), _STRAY_BODY_MS / 1000)
        self._connection.settimeout(left_s)
        with suppress(OSError):  # mostly nothing comes, which is right
            self._buffer += self._connection.recv(_READ_BYTES)
        return bytes(self._buffer)

    def _read_body(self, body: bytearray) -> str:
        """Fill ``body``; the problem with it, if it is too large."""
        while len(body) <= MOST_BYTES:
            event = self._http.next_event()
            if isinstance(event, h11.EndOfMessage):
                return ""
            if isinstance(event, h11.Data):
                body += event.data
            else:
                self._http.receive_data(self._receive())
        body.clear()
        return TOO_LARGE


def _in_words(error: h11.RemoteProtocolError) -> str:
    """What h11 says, which may quote what a stranger sent: short, and without its names of types."""
    return re.sub(r"bytearray\((b'.*?')\)", r"\1", str(error))[:120]


def _look_up(base: BaseUrl, within_s: float) -> list[tuple[socket.AddressFamily, tuple[object, ...]]]:
    """The addresses of a host. The system's own look-up has no time limit, so a thread waits for it."""
    looking_up = in_a_thread(lambda: socket.getaddrinfo(base.host, base.port, type=socket.SOCK_STREAM))
    try:
        return [(family, address) for family, _, _, _, address in looking_up.result(within_s)]
    except UnicodeError:
        raise OSError(f"{quote(base.host)} is not a name") from None
