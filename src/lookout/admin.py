"""A small private HTTP server for those who run Lookout: ``/metrics``, ``/healthz`` and ``/readyz``; the monitor's has
``/reload`` too.

What is measured, what ready means and what a reload does come from outside: the monitor and the server each bring
their own.
"""

import re
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qs

import msgspec
import structlog
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

from lookout.host_port import host_and_port, written

_JSON: Final = "application/json"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_SILENCE_S: Final = 5.0  # a connection that says nothing for this long is closed
_LOOK_EVERY_S: Final = 0.2  # whether the server is to end
RELOAD_HEADER: Final = "Lookout-Reload"
CONFIG_HEADER: Final = "Lookout-Config"  # the file that the caller means, percent-encoded
_SECONDS: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")

log = structlog.get_logger("admin")


class AdminError(Exception):
    """The address cannot be listened on; the text says which and why, in one sentence."""


class Readiness(NamedTuple):
    """Whether the process does its work; ``age_s`` is how old the last of that is, None before there was any."""

    ready: bool
    reason: str
    age_s: float | None


# Given the age in seconds beyond which work is too old, or None for any age.
AskReadiness = Callable[[float | None], Readiness]


class Reply(NamedTuple):
    http_code: int
    content_type: str
    body: bytes


Answer = Callable[[str, str], Reply]  # to a path and a query
# Reads the configuration again, if it is the one that is named, or none is; called from a thread of its own.
Reload = Callable[[str | None], Reply]


def process_registry() -> CollectorRegistry:
    """A registry that already measures the process itself: memory, CPU, files, garbage collection."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def reply_to(path: str, query: str, registry: CollectorRegistry, readiness: AskReadiness) -> Reply:
    match path:
        case "/metrics":
            return Reply(HTTPStatus.OK, _METRICS, generate_latest(registry))
        case "/healthz":
            return _json(HTTPStatus.OK, {"status": "ok"})
        case "/readyz":
            return _readyz(query, readiness)
        case _:
            return _error(HTTPStatus.NOT_FOUND, "there are /metrics, /healthz and /readyz")


def _readyz(query: str, readiness: AskReadiness) -> Reply:
    try:
        max_age_s = _max_age_s(query)
    except ValueError as error:
        return _error(HTTPStatus.BAD_REQUEST, str(error))
    ready, reason, age_s = readiness(max_age_s)
    return _json(
        HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
        {"ready": ready, "reason": reason, "ageSeconds": age_s},
    )


def _max_age_s(query: str) -> float | None:
    match parse_qs(query, keep_blank_values=True).get("maxAge", []):
        case []:
            return None
        case [text] if _SECONDS.fullmatch(text) and float(text) > 0:
            return float(text)
        case _:
            raise ValueError("maxAge: has to be one positive number of seconds")


def _error(http_code: HTTPStatus, what: str) -> Reply:
    return _json(http_code, {"error": what})


def _json(http_code: HTTPStatus, document: dict[str, Any]) -> Reply:
    return Reply(http_code, _JSON, msgspec.json.encode(document))


class AdminPort:
    """The server, on ``HOST:PORT`` for as long as it is entered; port 0 is one that is free."""

    def __init__(
        self, address: str, registry: CollectorRegistry, readiness: AskReadiness, reload: Reload | None = None
    ) -> None:
        self._wanted = address
        self._reload = reload
        self._answer: Answer = lambda path, query: reply_to(path, query, registry, readiness)
        self._server: _Server | None = None
        self._thread: Thread | None = None

    @property
    def address(self) -> str:
        """Where it listens, with the port that it was given."""
        if self._server is None:
            return self._wanted
        host, port = self._server.server_address[:2]
        return written(str(host), port)

    def __enter__(self) -> Self:
        """AdminError if the address cannot be listened on."""
        host, port = host_and_port(self._wanted)
        try:
            self._server = _Server(host, port, self._answer, self._reload)
        except socket.gaierror:
            raise AdminError(f"{self._wanted}: there is no such host") from None
        except OSError as error:
            raise AdminError(f"{self._wanted}: {error.strerror}") from error
        self._thread = Thread(target=self._server.serve_forever, args=(_LOOK_EVERY_S,), name="admin", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    def __init__(self, host: str, port: int, answer: Answer, reload: Reload | None) -> None:
        self.answer = answer
        self.reload = reload
        (family, _, _, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self.address_family = family
        super().__init__(address[:2], _Handler)  # type: ignore[arg-type]  # a host is text unless IPv6 is left out

    def server_bind(self) -> None:
        """Without the base's question to the name server, which may take long."""
        TCPServer.server_bind(self)

    def handle_error(self, _request: Any, _client_address: Any) -> None:
        """A caller who went away is nobody's concern; anything else is a bug."""
        if not isinstance(sys.exception(), OSError):
            log.exception("an answer died of a bug")


class _Handler(BaseHTTPRequestHandler):
    timeout = _SILENCE_S
    server: _Server

    def do_GET(self) -> None:
        self._send(self._reply())

    def do_HEAD(self) -> None:
        self._send(self._reply(), with_body=False)

    def do_POST(self) -> None:
        reload = self.server.reload
        if reload is None or self.path != "/reload":
            self.send_error(HTTPStatus.NOT_IMPLEMENTED)
        elif self.headers.get(RELOAD_HEADER) != "1" or "Origin" in self.headers:
            # A page in a browser on this machine could send it, but not with this header, nor without that one.
            self._send(_error(HTTPStatus.FORBIDDEN, f"needs the header {RELOAD_HEADER}: 1, and is not for browsers"))
        else:
            self._send(reload(self.headers.get(CONFIG_HEADER)))

    def _reply(self) -> Reply:
        path, _, query = self.path.partition("?")
        return self.server.answer(path, query)

    def send_error(self, code: int, message: str | None = None, _explain: str | None = None) -> None:
        """A request that the library refuses. It calls every other method not implemented."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._send(_error(HTTPStatus.METHOD_NOT_ALLOWED, "there are GET and HEAD"), allow="GET, HEAD")
        else:
            self._send(_error(HTTPStatus(code), message or HTTPStatus(code).phrase))

    def _send(self, reply: Reply, *, with_body: bool = True, allow: str | None = None) -> None:
        self.send_response_only(reply.http_code)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        if allow is not None:
            self.send_header("Allow", allow)
        self.send_header("Connection", "close")
        self.end_headers()
        if with_body:
            self.wfile.write(reply.body)

    def log_message(self, *_: Any) -> None:
        """Who asked is not told."""
