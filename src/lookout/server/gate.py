"""Which callers are let through, and what the others get (E2)."""

from functools import lru_cache

from lookout.base.clock import Clock
from lookout.server.callers import Callers
from lookout.server.limiter import CallerOnPath, Limiter
from lookout.server.replies import NO_CALLER, Reply, too_many_requests


class Gate:
    """Counts the requests of each caller on each path, in one process."""

    def __init__(self, callers: Callers, limiter: Limiter, clock: Clock) -> None:
        self._callers = callers
        self._limiter = limiter.attach()
        self._clock = clock
        # Callers come again. From a connection's other end it is one step; what a proxy forwards is read each time,
        # since it may be long and is not to be kept.
        self._locate_caller = lru_cache(4096)(self._limiter.locate_caller)
        self._peer_on = lru_cache(4096)(self._look_up)
        self._too_many = lru_cache(too_many_requests)

    def find_refusal(self, path: str, peer: str, forwarded: str | None) -> Reply | None:
        """Count a request. None: it passes."""
        caller = self._peer_on(path, peer) if forwarded is None else self._look_up(path, peer, forwarded)
        if caller is None:
            return NO_CALLER
        banned_ms = self._limiter.count_request(caller, self._clock.elapsed_ms())
        return self._too_many(-(-banned_ms // 1000)) if banned_ms else None

    def _look_up(self, path: str, peer: str, forwarded: str | None = None) -> CallerOnPath | None:
        caller = self._callers.identify(peer, forwarded)
        return None if caller is None else self._locate_caller(path, caller)
