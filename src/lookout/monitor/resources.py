"""What a monitor uses of the world outside it."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from random import Random
from typing import NamedTuple

from lookout.base.clock import Clock
from lookout.base.threads import Caller, DaemonThread
from lookout.config.settings import Settings
from lookout.monitor.metrics import Instruments
from lookout.monitor.sources import Built, seen_by, sources_of
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.source import Source
from lookout.store.protocol import Writer


class Resources(NamedTuple):
    """The real ones by default; a test or a simulated world gives others."""

    writer: Writer
    clock: Clock
    chance: Random
    instruments: Instruments
    build_sources: Callable[[Settings, Mapping[str, SeenBroadcasters]], Built] = sources_of
    seen_by: Callable[[Iterable[Source]], Mapping[str, SeenBroadcasters]] = seen_by
    open_session: Callable[[float], AbstractAsyncContextManager[Session]] = open_session
    open_store_thread: Callable[[], AbstractContextManager[Caller]] = partial(DaemonThread, "store")
