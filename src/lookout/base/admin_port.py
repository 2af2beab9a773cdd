"""A small private HTTP server for those who run Lookout: ``/metrics``, ``/healthz`` and ``/readyz``; the monitor's has
``/reload``, ``/sources`` and ``/notices`` too.

What is measured, what ready means and what a reload does come from outside: the monitor and the server each bring
their own.
"""

import re
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socketserver import TCPServer
from threading import BoundedSemaphore, Thread
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import msgspec
from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from lookout import __version__
from lookout.base.host_port import format_host_port, host_and_port
from lookout.base.logger import get_logger
from lookout.base.unix_socket import bind, is_unix, path_of

_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_MOST_CONNECTIONS: Final = 16  # at a time; those beyond are closed at once
_PATIENCE_S: Final = 5.0  # for a request to come in, and for its answer to be taken, each as a whole
_LOOK_EVERY_S: Final = 0.2  # whether the server is to end
RELOAD_HEADER: Final = "Lookout-Reload"
CHANGE_HEADER: Final = "Lookout-Change"
CONFIG_HEADER: Final = "Lookout-Config"  # the file that the caller means, percent-encoded
_MOST_BYTES: Final = 65_536  # of what is sent to be changed
_SECONDS: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")

log = get_logger("admin")


class AdminError(Exception):
    """The address cannot be listened on; the text says which and why, in one sentence."""


class Readiness(NamedTuple):
    """Whether the process does its work; ``age_s`` is how old the last of that is, None before there was any."""

    ready: bool
    reason: str
    age_s: float | None


# Given the age in seconds beyond which work is too old, or None for any age.
AskReadiness = Callable[[float | None], Readiness]


class AdminReply(NamedTuple):
    http_code: int
    content_type: str
    body: bytes
    allow: tuple[str, ...] = ()
    """The methods that its path takes, where it is asked by another."""


# Reads the configuration again, if it is the one that is named, or none is; called from a thread of its own.
Reload = Callable[[str | None], AdminReply]
# Changes what the body says, if the configuration is the one that is named, or none is; called from its own thread.
Change = Callable[[bytes, str | None], AdminReply]


class AdminRoutes(NamedTuple):
    """What the routes of a process show and do. Without ``reload`` or ``sources`` there is no such route. ``lists`` and
    ``changes`` are more of them, by their paths."""

    registry: CollectorRegistry
    readiness: AskReadiness
    reload: Reload | None = None
    sources: Callable[[], Sequence[msgspec.Struct]] | None = None
    lists: Mapping[str, Callable[[], AdminReply]] = MappingProxyType({})
    changes: Mapping[str, Change] = MappingProxyType({})


def process_registry() -> CollectorRegistry:
    """A registry that already measures the process itself: memory, CPU, files, garbage collection; and its version."""
    registry = CollectorRegistry()
    Gauge("lookout_build_info", "1, with the version of Lookout", ["version"], registry=registry).labels(
        __version__
    ).set(1)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def answer_request(path: str, query: str, routes: AdminRoutes) -> AdminReply:
    match path:
        case "/metrics":
            return AdminReply(HTTPStatus.OK, _METRICS, generate_latest(routes.registry))
        case "/healthz":
            return json_reply(HTTPStatus.OK, {"status": "ok"})
        case "/readyz":
            return _readyz(query, routes.readiness)
        case "/sources" if routes.sources is not None:
            return json_reply(HTTPStatus.OK, routes.sources())
        case _ if path in routes.lists:
            return routes.lists[path]()
        case _:
            return refuse_method(path, routes)


def refuse_method(path: str, routes: AdminRoutes) -> AdminReply:
    """To one who asks for what is not there, or not by this method."""
    sources = () if routes.sources is None else ("/sources",)
    shown = ("/metrics", *sources, *routes.lists, "/healthz", "/readyz")
    is_changed = path in routes.changes or (path == "/reload" and routes.reload is not None)
    methods = (*(("GET", "HEAD") if path in shown else ()), *(("POST",) if is_changed else ()))
    if not methods:
        return error_reply(HTTPStatus.NOT_FOUND, f"there are {', '.join(shown[:-1])} and {shown[-1]}")
    what = f"{path} takes {' and '.join(methods)}"
    return error_reply(HTTPStatus.METHOD_NOT_ALLOWED, what)._replace(allow=methods)


def _readyz(query: str, readiness: AskReadiness) -> AdminReply:
    try:
        max_age_s = _max_age_s(query)
    except ValueError as error:
        return error_reply(HTTPStatus.BAD_REQUEST, str(error))
    ready, reason, age_s = readiness(max_age_s)
    return json_reply(
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


def error_reply(http_code: HTTPStatus, what: str) -> AdminReply:
    return json_reply(http_code, {"error": what})


def json_reply(http_code: HTTPStatus, document: Any) -> AdminReply:
    return AdminReply(http_code, "application/json", msgspec.json.encode(document))


@contextmanager
def open_port(address: str, routes: AdminRoutes, hosts: Iterable[str] = ()) -> Iterator[str]:
    """Answer on ``HOST:PORT`` or ``unix:PATH`` meanwhile. Gives the address with its port; port 0 is one that is free.
    ``hosts`` are the names that it may be asked by, besides its own. AdminError if it cannot be listened on."""
    try:
        server = _Server(address, routes, frozenset(host.lower() for host in hosts))
    except socket.gaierror:
        raise AdminError(f"{address}: there is no such host") from None
    except OSError as error:
        raise AdminError(f"{address}: {error.strerror or error}") from error
    thread = Thread(target=server.serve_forever, args=(_LOOK_EVERY_S,), name="admin", daemon=True)
    thread.start()
    try:
        yield address if is_unix(address) else format_host_port(*server.socket.getsockname()[:2])
    finally:
        server.shutdown()
        thread.join()
        if is_unix(address):  # while it listens: the next one's file is never taken for ours
            Path(path_of(address)).unlink(missing_ok=True)
        server.server_close()


class _Server(ThreadingHTTPServer):
    """A thread for each of a few connections: what it takes of the process is bounded (M17)."""

    def __init__(self, address: str, routes: AdminRoutes, hosts: frozenset[str]) -> None:
        self.routes = routes
        self._free = BoundedSemaphore(_MOST_CONNECTIONS)
        self._close_at: dict[socket.socket, float] = {}
        if is_unix(address):
            self.hosts: frozenset[str] | None = None  # no page in a browser gets there
            self.address_family = socket.AF_UNIX
            bound: Any = path_of(address)
        else:
            host, port = host_and_port(address)
            self.hosts = hosts | {host.lower(), socket.gethostname().lower()}
            (self.address_family, _, _, _, resolved), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            bound = resolved[:2]
        super().__init__(bound, _Handler)

    def server_bind(self) -> None:
        """Without the base's question to the name server, which may take long."""
        if self.address_family == socket.AF_UNIX:
            bind(self.socket, str(self.server_address))
        else:
            TCPServer.server_bind(self)

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except (OSError, MemoryError) as error:
            # No descriptor left, it may be: asking again at once would take all of a processor. Any other error than an
            # OSError would end the admin port.
            time.sleep(_LOOK_EVERY_S)
            raise OSError from error

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self.start_deadline(request)
        try:
            super().process_request(request, client_address)
        except (RuntimeError, MemoryError):  # the system gives no thread
            self._forget(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def _forget(self, request: socket.socket) -> None:
        self.cancel_deadline(request)
        self._free.release()

    def start_deadline(self, request: socket.socket) -> None:
        """The other side has so long from now on, however busy it looks."""
        self._close_at[request] = time.monotonic() + _PATIENCE_S

    def cancel_deadline(self, request: socket.socket) -> None:
        """It is for us now to answer."""
        self._close_at.pop(request, None)

    def service_actions(self) -> None:
        """Close what is too slow; called several times a second."""
        now = time.monotonic()
        for request, close_at in tuple(self._close_at.items()):
            if now >= close_at:
                with suppress(OSError):  # it ended just now
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, _request: Any, _client_address: Any) -> None:
        """A caller who went away is nobody's concern; anything else is a bug."""
        if not isinstance(sys.exception(), OSError):
            log.exception("an answer died of a bug")


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE_S
    server: _Server

    def parse_request(self) -> bool:
        """Whether it is one to be answered."""
        if not super().parse_request():
            return False
        self.server.cancel_deadline(self.connection)
        hosts = self.server.hosts
        if hosts is None or all(_may_be_asked_by(host, hosts) for host in self.headers.get_all("Host", ())):
            return True
        # Whose name leads here need not be whose port it is: a page's own name could be pointed at it.
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "not asked by a name of its own; admin.hosts can add names")
        return False

    def do_GET(self) -> None:
        self._send(self._answer())

    def do_HEAD(self) -> None:
        self._send(self._answer(), with_body=False)

    def do_POST(self) -> None:
        routes, meant = self.server.routes, self.headers.get(CONFIG_HEADER)
        path = self._path()
        is_reload = path == "/reload" and routes.reload is not None
        header = RELOAD_HEADER if is_reload else CHANGE_HEADER
        if not is_reload and path not in routes.changes:
            self._send(refuse_method(path, routes))
        elif self.headers.get(header) != "1" or "Origin" in self.headers:
            # A page in a browser on this machine could send it, but not with this header, nor without that one.
            self._send(error_reply(HTTPStatus.FORBIDDEN, f"needs the header {header}: 1, and is not for browsers"))
        elif is_reload and routes.reload is not None:
            self._send(routes.reload(meant))
        else:
            body = self._read_body()
            self._send(body if isinstance(body, AdminReply) else routes.changes[path](body, meant))

    def _read_body(self) -> bytes | AdminReply:
        """What was sent, or why it is not read."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return error_reply(HTTPStatus.LENGTH_REQUIRED, "needs a Content-Length")
        if len(length) > 9 or int(length) > _MOST_BYTES:
            return error_reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"may have {_MOST_BYTES} bytes")
        self.server.start_deadline(self.connection)
        body = self.rfile.read(int(length))
        self.server.cancel_deadline(self.connection)
        return body if len(body) == int(length) else error_reply(HTTPStatus.BAD_REQUEST, "ended too early")

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _answer(self) -> AdminReply:
        return answer_request(self._path(), self.path.partition("?")[2], self.server.routes)

    def send_error(self, code: int, message: str | None = None, _explain: str | None = None) -> None:
        """A request that the library refuses. It calls every other method not implemented."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._send(refuse_method(self._path(), self.server.routes))
        else:
            self._send(error_reply(HTTPStatus(code), message or HTTPStatus(code).phrase))

    def _send(self, reply: AdminReply, *, with_body: bool = True) -> None:
        self.server.start_deadline(self.connection)
        self.send_response_only(reply.http_code)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        if reply.allow:
            self.send_header("Allow", ", ".join(reply.allow))
        self.send_header("Connection", "close")
        self.end_headers()
        if with_body:
            self.wfile.write(reply.body)

    def log_message(self, *_: Any) -> None:
        """Who asked is not logged."""


def _may_be_asked_by(host: str, hosts: frozenset[str]) -> bool:
    """Whether nobody else can have pointed this at us: an address, a name that is ours, or one without a dot, which is
    of the machine or its own network."""
    name = re.sub(r":[0-9]*$", "", host.strip()).lower()
    return name in hosts or "." not in name.rstrip(".") or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
