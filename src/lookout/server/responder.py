"""From a request to its reply: a pure function of the replies, and the counting around it."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.server.connection import KEPT_HEADS, Connection
from lookout.server.poller import Poller
from lookout.server.replies import NO_HOST, NOT_FOUND, REFUSALS, Form, Reply, Resource, too_many_requests
from lookout.server.request import Callers, Peer, Request, Wire
from lookout.server.shared import ENDPOINTS, CallerOnPath, Closed, Limiter, OwnCounts

_OWN: Final = "own"  # the operator's own routes count together under it
_FILES: Final = "/assets/"  # the page's files count separately, since a single view loads all
# A tag with the comma or the end of the list after it; tags may hold commas, but no quotation mark.
_TAG: Final = re.compile(r'(?:\A|,)[ \t]*(?:W/)?("[^"]*")(?=[ \t]*(?:,|\Z))')


def respond(
    resources: Mapping[str, Resource], method: str, path: str, if_none_match: str | None, *, prefers_gzip: bool = False
) -> Reply:
    """The reply to a request. ``path`` is without the query, which has no effect (A1); methods are
    case-sensitive."""
    resource = resources.get(path)
    if resource is None:
        return NOT_FOUND
    if method in ("GET", "HEAD"):
        chosen, other = resource.plain, resource.gzip
        if other is not None and prefers_gzip:
            chosen, other = other, chosen
        if if_none_match is None:
            return chosen.found
        return _unchanged(if_none_match, chosen) or _unchanged(if_none_match, other) or chosen.found
    return resource.preflight if method == "OPTIONS" else resource.not_allowed


def _unchanged(if_none_match: str, form: Form | None) -> Reply | None:
    if form is None or form.not_modified is None:
        return None
    return form.not_modified if matches(if_none_match, form.etag) else None


def matches(if_none_match: str, etag: str) -> bool:
    """Whether the header names this ETag, by RFC 9110 (A5), by weak comparison: ``W/`` is ignored. ``*`` matches any
    ETag."""
    if if_none_match == etag:
        return True
    return etag in _TAG.findall(if_none_match) if etag in if_none_match else if_none_match.strip(" \t") == "*"


class _Ready(NamedTuple):
    """The reply to a request, valid for these resources."""

    resources: Mapping[str, Resource]
    route: str
    http_code: int
    wire: Wire


class Responder:
    """Answers requests in one process, counts them, and refuses callers that ask too often (E2)."""

    def __init__(
        self, poller: Poller, callers: Callers, limiter: Limiter | None, counts: OwnCounts, clock: Clock
    ) -> None:
        self.poller = poller
        self._callers = callers
        self._limiter = limiter
        self._counts = counts
        self._clock = clock
        self._route = dict(zip(poller.site.paths, ENDPOINTS, strict=True))
        self._date = b""
        self._ready: dict[Request, _Ready] = {}  # for heads cached in this second

    def answer(self, request: Request, connection: Connection) -> Wire:
        refusal = None if self._limiter is None else self._find_refusal(self._limiter, request, connection.peer)
        if refusal is None:
            ready = self._ready.get(request)
            if ready is None or ready.resources is not self.poller.resources:
                ready = self._prepare(request)
        else:
            ready = self._encode(request, refusal, {})
        self._counts.count(ready.route, ready.http_code)
        return ready.wire

    def refuse(self, http_code: int, *, with_body: bool) -> Wire:
        return REFUSALS[http_code].encode(self._date, with_body=with_body, keeps_open=False)

    def note_closed(self, reason: Closed) -> None:
        self._counts.count_closed(reason)

    def begin_second(self, date: bytes, connections: int) -> None:
        self._date = date
        self._ready.clear()
        self._counts.set_open(connections)

    def _prepare(self, request: Request) -> _Ready:
        reply, resources = NO_HOST, self.poller.resources
        if request.names_one_host:
            tags = request.if_none_match
            reply = respond(resources, request.method, request.path, tags, prefers_gzip=request.prefers_gzip)
        ready = self._encode(request, reply, resources)
        if request.may_be_kept and len(self._ready) < KEPT_HEADS:
            self._ready[request] = ready
        return ready

    def _encode(self, request: Request, reply: Reply, resources: Mapping[str, Resource]) -> _Ready:
        wire = reply.encode(self._date, with_body=request.method != "HEAD", keeps_open=request.keeps_open)
        return _Ready(resources, self._route.get(request.path, "other"), reply.http_code, wire)

    def _find_refusal(self, limiter: Limiter, request: Request, peer: Peer) -> Reply | None:
        counted = request.path if request.path in self._route else self._group(request.path)
        if counted is None:
            return None
        banned_ms = limiter.count_request(self._locate(limiter, counted, request, peer), self._clock.elapsed_ms())
        return too_many_requests(-(-banned_ms // 1000)) if banned_ms else None

    def _locate(self, limiter: Limiter, path: str, request: Request, peer: Peer) -> CallerOnPath:
        caller = peer.caller
        forwarded = request.join("x-forwarded-for") if caller.is_trusted else None
        if forwarded is not None:
            return limiter.locate_caller(path, self._callers.follow(caller, forwarded).network)
        located = peer.located.get(path)
        if located is None:
            located = peer.located[path] = limiter.locate_caller(path, caller.network)
        return located

    def _group(self, path: str) -> str | None:
        """The name under which a path is counted; None for an unknown path."""
        if path not in self.poller.resources:
            return None
        return path if path.startswith(_FILES) else _OWN
