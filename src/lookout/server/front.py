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

    def find_refusal(self, path: str, peer: str, forwarded: str | None) -> Reply | None:
        """What a caller that asks too often gets, None if it does not. To be asked before anything else if this
        ``limits``; ``forwarded``, X-Forwarded-For, is looked at only if it ``trusts_forwarded``."""
        counted = path if path in self._route else self._group(path)
        if self._gate is None or counted is None:
            return None
        refusal = self._gate.find_refusal(counted, peer, forwarded)
        if refusal is not None:
            self._counts.count(self._route.get(path, "other"), refusal.http_code)
        return refusal

    def _group(self, path: str) -> str | None:
        """What a route of the operator's own counts as; None if it is none."""
        if path not in self.poller.resources:
            return None
        return path if path.startswith(_FILES) else _OWN

    def refuse_host(self, path: str) -> Reply:
        """To a request whose Host is missing, there twice, or none."""
        self._counts.count(self._route.get(path, "other"), NO_HOST.http_code)
        return NO_HOST

    def reply(self, method: str, path: str, if_none_match: str | None, accept_encoding: str | None) -> Reply:
        reply = respond(self.poller.resources, method, path, if_none_match, accept_encoding)
        self._counts.count(self._route.get(path, "other"), reply.http_code)
        return reply

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
