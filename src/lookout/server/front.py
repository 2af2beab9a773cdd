"""All that happens between a request and its reply, whichever way a server passes them on."""

from typing import Final

from lookout.base.clock import Clock
from lookout.server.callers import Callers
from lookout.server.counts import ENDPOINTS, OwnCounts
from lookout.server.gate import Gate
from lookout.server.limiter import Limiter
from lookout.server.poller import Poller
from lookout.server.replies import NO_HOST, Reply
from lookout.server.responder import respond

_OWN: Final = "own"  # no path: the operator's own routes count together, as if they were one
_FILES: Final = "/assets/"  # the page's files alone count each by itself: a single view asks for all of them


class Front:
    """The gate and the responder of one process."""

    def __init__(
        self, poller: Poller, callers: Callers, limiter: Limiter | None, counts: OwnCounts, clock: Clock
    ) -> None:
        self.poller = poller
        self.limits = limiter is not None
        self.trusts_forwarded = self.limits and callers.trusts_some
        self._gate = None if limiter is None else Gate(callers, limiter, clock)
        self._counts = counts
        self._clock = clock
        self._route = dict(zip(poller.site.paths, ENDPOINTS, strict=True))
        self._store_errors = 0

    def reply(
        self,
        method: str,
        path: str,
        if_none_match: str | None,
        peer: str,
        forwarded: str | None,
        accept_encoding: str | None = None,
    ) -> Reply:
        """``peer`` is looked at only if this ``limits``, and ``forwarded``, X-Forwarded-For, if it
        ``trusts_forwarded``."""
        route = self._route.get(path, "other")
        resources = self.poller.resources
        reply = self._find_refusal(route, path, peer, forwarded)
        if reply is None:
            reply = respond(resources, method, path, if_none_match, accept_encoding)
        self._counts.count(route, reply.http_code)
        return reply

    def refuse_host(self, path: str, peer: str, forwarded: str | None) -> Reply:
        """To a request whose Host is missing, there twice, or none. It counts like any other."""
        route = self._route.get(path, "other")
        reply = self._find_refusal(route, path, peer, forwarded) or NO_HOST
        self._counts.count(route, reply.http_code)
        return reply

    def _find_refusal(self, route: str, path: str, peer: str, forwarded: str | None) -> Reply | None:
        if self._gate is None or (route == "other" and path not in self.poller.resources):
            return None
        counted = path if route != "other" or path.startswith(_FILES) else _OWN
        return self._gate.find_refusal(counted, peer, forwarded)

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
