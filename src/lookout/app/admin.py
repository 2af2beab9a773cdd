"""The admin ports of the monitor and of the server: the same HTTP server as the public one, with other routes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lookout.base.admin_port import (
    CONFIG_HEADER,
    AdminReply,
    AdminRoutes,
    Readiness,
    answer_request,
    error_reply,
    may_be_asked_by,
    process_registry,
    refuse_method,
)
from lookout.base.clock import Clock, SystemClock
from lookout.base.concurrency import DaemonThread
from lookout.base.logger import get_logger
from lookout.base.sockets import is_unix, listen_for, path_of, resolve
from lookout.base.url import format_host_port, host_and_port
from lookout.config.tables import AdminTable
from lookout.server.assembly import Server
from lookout.server.connection import Closed, Connection, ConnectionLimits, HttpServer
from lookout.server.request import Callers, HttpRequest, Wire

_LIMITS: Final = ConnectionLimits(connections=16, stalled_s=5.0, drops_for_new=True)
_MOST_BYTES: Final = 65_536  # of a request's body
_METHODS: Final = ("GET", "HEAD", "POST")

# They would be a second, unused series per counter.
disable_created_metrics()  # type: ignore[no-untyped-call]

log = get_logger()


def open_monitor_port(settings: AdminTable, folder: Path, routes: AdminRoutes) -> AbstractAsyncContextManager[str]:
    """Answer on the monitor's admin port inside the block. A path is relative to ``folder``. ListenError if listening
    fails."""
    address = resolve(settings.monitor, folder)
    return answer_on(listen_for("admin.monitor", address) if address else None, address, routes, settings.hosts)


def open_server_port(
    listener: socket.socket | None, address: str, settings: AdminTable, server: Server
) -> AbstractAsyncContextManager[str]:
    """Answer on the server's admin port inside the block."""
    registry = process_registry()
    instruments = ServerInstruments(registry, server, SystemClock())
    return answer_on(listener, address, AdminRoutes(registry, instruments.readiness), settings.hosts)


@asynccontextmanager
async def answer_on(
    listener: socket.socket | None, address: str, routes: AdminRoutes, hosts: Iterable[str] = ()
) -> AsyncIterator[str]:
    """Answer at the address, if it is not empty, inside the block; gives the address with its port. Requests may name
    the port's own hosts and ``hosts``."""
    if listener is None:
        yield ""
        return
    if is_unix(address):  # no page in a browser can reach it
        names, bound = None, address
    else:
        names = frozenset(host.lower() for host in (*hosts, host_and_port(address)[0], socket.gethostname()))
        bound = format_host_port(*listener.getsockname()[:2])
    async with HttpServer(listener, _AdminPort(routes, names), _LIMITS, Callers(())):
        log.info("admin port", address=bound)
        try:
            yield bound
        finally:
            if is_unix(address):  # while it listens, so that it never removes a successor's file
                Path(path_of(address)).unlink(missing_ok=True)  # noqa: ASYNC240  a short call, once


class _AdminPort:
    def __init__(self, routes: AdminRoutes, hosts: frozenset[str] | None) -> None:
        self._routes = routes
        self._hosts = hosts  # None: any
        self._date = b""
        self._answers: set[asyncio.Task[None]] = set()

    def answer(self, request: HttpRequest, connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(request, connection))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    def refuse(self, http_code: int, *, with_body: bool) -> Wire:
        return self._encode(error_reply(HTTPStatus(http_code), HTTPStatus(http_code).phrase), with_body=with_body)

    def note_closed(self, reason: Closed) -> None:
        """Not counted on the admin port."""

    def begin_second(self, date: bytes, _connections: int) -> None:
        self._date = date

    async def _answer(self, request: HttpRequest, connection: Connection) -> None:
        try:
            reply = await self._reply(request, connection)
        except Exception:
            log.exception("making an answer crashed")
            connection.abort()
        else:
            connection.reply(self._encode(reply, with_body=request.method != "HEAD"))

    async def _reply(self, request: HttpRequest, connection: Connection) -> AdminReply:
        path, routes = request.path, self._routes
        if not request.names_one_host:
            return error_reply(HTTPStatus.BAD_REQUEST, "exactly one valid Host header is required")
        hosts = self._hosts
        if hosts is not None and not all(may_be_asked_by(host, hosts) for host in request.headers.get("host", ())):
            # A foreign page could point its own DNS name at this port.
            why = "the Host header is not a name of this port; admin.hosts can add names"
            return error_reply(HTTPStatus.MISDIRECTED_REQUEST, why)
        if path == "*":
            return AdminReply(HTTPStatus.NO_CONTENT, "", b"", _METHODS)
        if request.method == "CONNECT":
            return error_reply(HTTPStatus.METHOD_NOT_ALLOWED, "this is not a proxy")._replace(allow=_METHODS)
        if request.method in ("GET", "HEAD"):
            with DaemonThread("admin") as thread:  # the event loop does not wait for a scrape
                return await thread.call(lambda: answer_request(path, request.query, routes))
        change = routes.changes.get(path)
        if request.method != "POST" or change is None:
            return refuse_method(path, routes)
        if request.join(change.header.lower()) != "1" or "origin" in request.headers:
            # A page in a browser on this machine could send it, but not with this header, nor without Origin.
            return error_reply(HTTPStatus.FORBIDDEN, f"needs the header {change.header}: 1, and is not for browsers")
        if "transfer-encoding" in request.headers:
            return error_reply(HTTPStatus.LENGTH_REQUIRED, "a body with Content-Length is required")
        length = int(request.join("content-length") or 0)
        if length > _MOST_BYTES:
            return error_reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body may have at most {_MOST_BYTES} bytes")
        is_expected = (request.join("expect") or "").lower() == "100-continue"
        body = await connection.read_body(length, is_expected=is_expected)
        if len(body) < length:
            return error_reply(HTTPStatus.BAD_REQUEST, "the body ended too early")
        return await change.apply(body, request.join(CONFIG_HEADER.lower()))

    def _encode(self, reply: AdminReply, *, with_body: bool) -> Wire:
        content = (f"Content-Type: {reply.content_type}", f"Content-Length: {len(reply.body)}")
        lines = (
            *(() if reply.http_code == HTTPStatus.NO_CONTENT else content),
            "Cache-Control: no-store",
            *([f"Allow: {', '.join(reply.allow)}"] if reply.allow else []),
            "Connection: close",
            "\r\n",
        )
        first = f"HTTP/1.1 {reply.http_code:d} {HTTPStatus(reply.http_code).phrase}\r\n".encode()
        return (first + self._date + "\r\n".join(lines).encode(), reply.body if with_body else b"")


class ServerInstruments(Collector):
    """The server's metrics in a registry, made at each scrape."""

    def __init__(self, registry: CollectorRegistry, server: Server, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        registry.register(self)

    def readiness(self, max_age_s: float | None) -> Readiness:
        """Whether there is a live report that is young enough."""
        age_s = self._age_s()
        if age_s is None:
            return Readiness(False, "no live report was loaded yet", None)
        if max_age_s is not None and age_s > max_age_s:
            return Readiness(False, f"the live report is older than {max_age_s:g} s", age_s)
        return Readiness(True, "the live report is served", age_s)

    def collect(self) -> Iterable[Metric]:
        counts, age_s = self._server.counts, self._age_s()
        requests = CounterMetricFamily("lookout_requests", "Requests answered", labels=["route", "code"])
        for (route, code), number in counts.requests.items():
            requests.add_metric([route, str(code)], number)
        yield requests
        yield CounterMetricFamily(
            "lookout_store_read_errors", "Times that the store could not be read", value=counts.store_errors
        )
        closed = CounterMetricFamily(
            "lookout_connections_closed", "Connections closed so that others are let in", labels=["reason"]
        )
        for reason, number in counts.closed.items():
            closed.add_metric([reason], number)
        yield closed
        yield GaugeMetricFamily("lookout_connections", "Connections that are open", counts.connections)
        age = GaugeMetricFamily("lookout_report_age_seconds", "How old the live report is that is served")
        if age_s is not None:
            age.add_metric([], age_s)
        yield age

    def _age_s(self) -> float | None:
        generated_at = self._server.poller.generated_at
        return None if generated_at is None else max(0, self._clock.now() - generated_at) / 1000
