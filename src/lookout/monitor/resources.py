"""What a monitor uses of the world outside it."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from random import Random
from typing import NamedTuple

from lookout.alerts.outbox import FIRST_WAIT_MS
from lookout.alerts.sender import Sender, open_sender
from lookout.base.clock import Clock
from lookout.base.concurrency import Caller, DaemonThread
from lookout.config.settings import Settings
from lookout.core.completeness.tasks import Rules
from lookout.monitor.comparison import rules_of
from lookout.monitor.metrics import Instruments
from lookout.monitor.sources import Built, seen_by, sources_of
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.lists import CompleteTable
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
    open_thread: Callable[[str], AbstractContextManager[Caller]] = DaemonThread  # by its name
    open_sender: Callable[[str], Sender] = open_sender
    first_rest_ms: int = FIRST_WAIT_MS  # of a target that did not accept a message
    rules_of: Callable[[CompleteTable], Rules] = rules_of
    config: str = ""  # the path of the configuration file, if there is one
