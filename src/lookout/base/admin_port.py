"""The routes of an admin port, for operators: ``/metrics``, ``/healthz`` and ``/readyz``, and those of its process."""

import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
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

_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
RELOAD_HEADER: Final = "Lookout-Reload"
CHANGE_HEADER: Final = "Lookout-Change"
CONFIG_HEADER: Final = "Lookout-Config"  # the file that the caller means, percent-encoded
_SECONDS: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


class Readiness(NamedTuple):
    """Whether the process does its work; ``age_s`` is the age of its last result, None before the first."""

    ready: bool
    reason: str
    age_s: float | None


# From the largest allowed age in seconds, or None for any age.
AskReadiness = Callable[[float | None], Readiness]


class AdminReply(NamedTuple):
    http_code: int
    content_type: str
    body: bytes
    allow: tuple[str, ...] = ()
    """The allowed methods, in the answer to another method."""


class Change(NamedTuple):
    """A route that takes POST, with the header that keeps browsers from asking it. ``apply`` gets the body and the
    configuration that the caller means, if it names one."""

    header: str
    apply: Callable[[bytes, str | None], Awaitable[AdminReply]]


class AdminRoutes(NamedTuple):
    """What the routes of a process show and do; ``reads`` and ``changes`` by path."""

    registry: CollectorRegistry
    readiness: AskReadiness
    reads: Mapping[str, Callable[[], AdminReply]] = MappingProxyType({})
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
        case _ if path in routes.reads:
            return routes.reads[path]()
        case _:
            return refuse_method(path, routes)


def refuse_method(path: str, routes: AdminRoutes) -> AdminReply:
    """The answer to an unknown path, or to a method that the path does not allow."""
    shown = ("/metrics", *routes.reads, "/healthz", "/readyz")
    methods = (*(("GET", "HEAD") if path in shown else ()), *(("POST",) if path in routes.changes else ()))
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


def may_be_asked_by(host: str, hosts: frozenset[str]) -> bool:
    """Whether no foreign DNS name leads here: the host is an address, an own name, or a name without a dot, which the
    machine or its network resolves."""
    name = re.sub(r":[0-9]*$", "", host.strip()).lower()
    return name in hosts or "." not in name.rstrip(".") or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
