"""All that happens between a request and its reply, whichever way a server passes them on."""

from typing import Final, Protocol

from lookout.base.clock import Clock
from lookout.server.callers import UNREADABLE, Callers
from lookout.server.counts import ENDPOINTS, OwnCounts
from lookout.server.gate import Gate
from lookout.server.hosts import is_one_host
from lookout.server.limiter import Limiter
from lookout.server.poller import Poller
from lookout.server.replies import NO_HOST, Reply
from lookout.server.responder import respond

_OWN: Final = "own"  # no path: the operator's own routes count together, as if they were one
_FILES: Final = "/assets/"  # the page's files alone count each by itself: a single view asks for all of them


class RequestHeaders(Protocol):
    """The headers of a request, with names in lower case. One may be there although the server passes on none of its
    lines: Granian leaves out lines that are not ASCII."""

    def __contains__(self, name: str, /) -> bool: ...

    def get_all(self, name: str, /) -> list[str]: ...


class Front:
    """The gate and the responder of one process."""

    def __init__(
        self, poller: Poller, callers: Callers, limiter: Limiter | None, counts: OwnCounts, clock: Clock
    ) -> None:
        self.poller = poller
        self._trusts_forwarded = callers.trusts_some
        self._gate = None if limiter is None else Gate(callers, limiter, clock)
        self._counts = counts
        self._clock = clock
        self._route = dict(zip(poller.site.paths, ENDPOINTS, strict=True))
        self._store_errors = 0

    def answer(self, method: str, path: str, http_version: str, peer: str, headers: RequestHeaders) -> Reply:
        reply = self._find_refusal(path, peer, headers) or self._reply(method, path, http_version, headers)
        self._counts.count(self._route.get(path, "other"), reply.http_code)
        return reply

    def _find_refusal(self, path: str, peer: str, headers: RequestHeaders) -> Reply | None:
        """What a caller that asks too often gets, None if it does not."""
        if self._gate is None:
            return None
        counted = path if path in self._route else self._group(path)
        if counted is None:
            return None
        forwarded = None
        if self._trusts_forwarded and "x-forwarded-for" in headers:
            # A proxy that appends to the one line there is can leave no line that is passed on.
            lines = headers.get_all("x-forwarded-for")
            forwarded = ", ".join(lines) if lines else UNREADABLE
        return self._gate.find_refusal(counted, peer, forwarded)

    def _group(self, path: str) -> str | None:
        """What a route of the operator's own counts as; None if it is none."""
        if path not in self.poller.resources:
            return None
        return path if path.startswith(_FILES) else _OWN

    def _reply(self, method: str, path: str, http_version: str, headers: RequestHeaders) -> Reply:
        hosts = headers.get_all("host")
        if not is_one_host(hosts) and (http_version == "1.1" or "host" in headers):  # before that there need be none
            return NO_HOST
        if_none_match = _join_lines(headers, "if-none-match")
        return respond(self.poller.resources, method, path, if_none_match, _join_lines(headers, "accept-encoding"))

    def look(self) -> None:
        """Follow the store; it may keep this waiting."""
        self.poller.look()
        self._counts.mark_present(self._clock.elapsed_ms(), self.poller.generated_at)

    def check_time(self) -> None:
        """Notice a store that keeps the other look waiting, and show the other processes that this one is there."""
        self.poller.check_time()
        errors = self.poller.store_errors  # read once: the other look may be adding to it
        self._counts.count_store_errors(errors - self._store_errors)
        self._store_errors = errors
        self._counts.mark_present(self._clock.elapsed_ms(), self.poller.generated_at)


def _join_lines(headers: RequestHeaders, name: str) -> str | None:
    """A header that may stand on several lines."""
    lines = headers.get_all(name)
    return ", ".join(lines) if lines else None
