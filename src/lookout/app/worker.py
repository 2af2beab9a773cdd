"""One worker of a server: what it is built of is loaded in its own process, since the parent knows only its name."""

import signal
from asyncio import AbstractEventLoop
from pathlib import Path

from lookout.app.log import configure_log
from lookout.app.process import end_with_parent
from lookout.base.clock import SystemClock
from lookout.config.server_settings import ServerSettings
from lookout.server.callers import Callers
from lookout.server.counts import Counts
from lookout.server.follower import Follower
from lookout.server.front import Front
from lookout.server.guard import Allowed, Guard
from lookout.server.limiter import Limiter
from lookout.server.rsgi import RsgiApplication


def build_worker(
    settings: ServerSettings, folder: Path, limiter: Limiter | None, counts: Counts, allowed: Allowed
) -> RsgiApplication:
    """The application of one worker, built in its process."""
    from lookout.app.front import build_front

    configure_log(settings.log)
    end_with_parent()
    own = counts.attach()
    front = build_front(settings, folder, limiter, own)
    guard = Guard(allowed, Callers(settings.server.trusted_proxies), own, SystemClock())
    return _Worker(front, Follower(front), guard)


class _Worker(RsgiApplication):
    def __init__(self, front: Front, follower: Follower, guard: Guard) -> None:
        super().__init__(front, follower)
        self._guard = guard

    def __rsgi_init__(self, loop: AbstractEventLoop) -> None:
        # What a terminal says reaches all its processes; the parent alone decides about its workers.
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        super().__rsgi_init__(loop)
        self._guard.start()

    def __rsgi_del__(self, loop: AbstractEventLoop) -> None:
        self._guard.stop()
        super().__rsgi_del__(loop)
