"""One HTTP/1.1 request on a connection of its own. What comes back is kept as it came: headers that are there twice,
and bodies where none belongs."""

import socket
import ssl
import zlib
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.text import shorten
from lookout.base.url import BaseUrl
from lookout_reader.urllib_fetch import explain_failure

_MOST_BYTES: Final = 32 * 1024 * 1024
_GZIP: Final = 31  # zlib's number for gzip's format


class HttpAnswer(NamedTuple):
    """An answer, with the names of headers in lower case. ``problem`` says why its body is not whole, or why there is
    no answer: ``http_code`` is then None."""

    http_code: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes
    problem: str = ""

    def header(self, name: str) -> str | None:
        """A header's lines as one."""
        lines = [text for of, text in self.headers if of == name]
        return ", ".join(lines) if lines else None

    @property
    def coding(self) -> str:
        return (self.header("content-encoding") or "identity").lower()

    @property
    def plain_body(self) -> bytes | None:
        """The body without its coding; None if it is not whole, or not what its coding says."""
        if self.problem or self.coding not in ("identity", "gzip"):
            return None
        if self.coding == "identity":
            return self.body
        unpacking = zlib.decompressobj(_GZIP)
        try:
            body = unpacking.decompress(self.body, _MOST_BYTES)
        except zlib.error:
            return None
        return body if unpacking.eof and not unpacking.unused_data else None


class Client:
    def __init__(self, base: BaseUrl, clock: Clock) -> None:
        self._base = base
        self._clock = clock
        self._tls = ssl.create_default_context() if base.scheme == "https" else None

    def send(self, method: str, path: str, headers: Mapping[str, str], timeout_s: float) -> HttpAnswer:
        """The answer as far as it came within ``timeout_s``."""
        until = self._clock.elapsed_ms() + int(timeout_s * 1000)
        received, problem = bytearray(), ""
        try:
            with self._connect(timeout_s) as connection:
                connection.sendall(self._encode(method, path, headers))
                while len(received) <= _MOST_BYTES and (part := connection.recv(65_536)):
                    received += part
                    connection.settimeout(max(0.001, (until - self._clock.elapsed_ms()) / 1000))
        except TimeoutError:
            problem = f"no end within {timeout_s:g} s"
        except (OSError, UnicodeError) as error:
            problem = explain_failure(error)
        if len(received) > _MOST_BYTES:
            problem = f"more than {_MOST_BYTES >> 20} MB"
        return parse_answer(method, bytes(received), problem)

    def _connect(self, timeout_s: float) -> socket.socket:
        connection = socket.create_connection((self._base.host, self._base.port), timeout_s)
        return connection if self._tls is None else self._tls.wrap_socket(connection, server_hostname=self._base.host)

    def _encode(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        sent = {"Host": self._base.authority, **headers, "Connection": "close"}
        lines = [f"{method} {self._base.prefix}{path} HTTP/1.1", *map(": ".join, sent.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1")


class _Received(BytesIO):
    """What came on a connection, in the place of the connection that http.client reads."""

    def makefile(self, _mode: str) -> BytesIO:
        return self


def parse_answer(method: str, received: bytes, problem: str = "") -> HttpAnswer:
    """The answer in what came on a connection; ``problem`` is why no more came, if it was not the end."""
    connection = _Received(received)
    response = HTTPResponse(connection, method=method)  # type: ignore[arg-type]
    try:
        response.begin()
    except (HTTPException, ValueError) as error:
        why = problem or f"not HTTP ({type(error).__name__}): {shorten(ascii(received), 60)}"
        if not received and ": " not in problem:
            why = f"no answer: {problem or 'the connection was closed'}"
        return HttpAnswer(None, (), b"", why)
    headers = tuple((name.lower(), text.strip()) for name, text in response.getheaders())
    if response.length == 0:  # also where no body may be: whatever follows is kept
        return HttpAnswer(response.status, headers, connection.read())
    ends_with_connection = response.length is None and not response.chunked
    try:
        return HttpAnswer(response.status, headers, response.read(), problem if ends_with_connection else "")
    except (HTTPException, ValueError) as error:
        return HttpAnswer(response.status, headers, b"", problem or f"its body is not whole ({type(error).__name__})")
