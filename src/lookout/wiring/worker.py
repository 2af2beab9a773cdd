"""Builds what answers requests in one process."""

import signal
from asyncio import AbstractEventLoop
from pathlib import Path

from lookout.api.callers import Callers
from lookout.api.counting import Counts, OwnCounts
from lookout.api.following import Follower
from lookout.api.front import Front
from lookout.api.guard import Allowed, Guard
from lookout.api.limiting import Limiter
from lookout.api.mirror import Mirror
from lookout.api.replies import passing
from lookout.api.rsgi import RsgiApplication
from lookout.api.site import assets, site, status_page
from lookout.clock import SystemClock
from lookout.config.settings import ServerSettings
from lookout.core.wire import paths
from lookout.feeds.making import make
from lookout.feeds.picture import Names
from lookout.page import rendering
from lookout.wiring.log import configure_log
from lookout.wiring.process import end_with_parent
from lookout.wiring.stores import reader_of


def worker(
    settings: ServerSettings, folder: Path, limiter: Limiter | None, counts: Counts, allowed: Allowed
) -> RsgiApplication:
    """The application of one worker, built in its process."""
    configure_log(settings.log)
    end_with_parent()
    own = counts.own()
    front = front_of(settings, folder, limiter, own)
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


def front_of(settings: ServerSettings, folder: Path, limiter: Limiter | None, counts: OwnCounts) -> Front:
    clock = SystemClock()
    live_path, history_path = paths(settings.protocol)
    names = Names(settings.protocol, settings.chains)
    mirror = Mirror(
        reader_of(settings.store_url, folder, settings.store_key),
        clock,
        settings.protocol,
        round(settings.server.history_unreadable_s * 1000),
        site(settings.protocol) | assets(rendering.assets()),
        lambda live: status_page(rendering.render(live, live_path, history_path, names.chains)),
        lambda *seen: passing(make(names, *seen)),
    )
    return Front(mirror, Callers(settings.server.trusted_proxies), limiter, counts, clock)
