"""What a feature is to the monitor, and the monitor to a feature."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

from msgspec import Struct

from lookout.base.clock import Clock
from lookout.base.concurrency import Worker
from lookout.base.problem import Problem
from lookout.base.setting_types import Table
from lookout.core.ledger import Combine, Ledger
from lookout.core.model import Check, Gaps, Reason, Row, Status
from lookout.core.plan import Plan
from lookout.core.services import Service
from lookout.features.outcome import EntryKey, Note, Sample, StandIn
from lookout.protocols.client.request import SourceTable
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint, Source
from lookout.public.about import Description
from lookout.state.log import Event

Declared = Mapping[str, tuple[str, *tuple[str, ...]]]
"""Metrics: the help text and the labels of each, by name."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something that is asked again and again."""

    key: EntryKey
    ask: Callable[[Session], Awaitable[int]]
    """Asks, and returns how many milliseconds to wait until the next time."""
    rest: Callable[[float], Awaitable[None]] = asyncio.sleep
    first_wait_s: float = 0


@dataclass(frozen=True, kw_only=True)
class Around:
    """The deployment that a feature belongs to."""

    plan: Plan
    description: Description
    name: str
    """For people; empty if it has none."""
    tables: Mapping[Check, SourceTable]
    """The settings of the source that answers for each check."""
    sources: tuple[Source, ...]
    endpoints: tuple[Endpoint, ...]
    place: str
    """The monitor's own name among the places; empty if it has none."""
    has_admin_port: bool
    config: str = ""
    """The path of the configuration file, for messages."""


class Verdict(NamedTuple):
    """The status of a source, an RPC endpoint or the store, and why it is bad."""

    status: Status
    reason: Reason
    cause: str | None = None


@dataclass(frozen=True, kw_only=True)
class Host:
    """The running monitor. Its functions are called on the event loop."""

    around: Around
    ledger: Ledger
    clock: Clock
    open_thread: Callable[[str], AbstractContextManager[Worker]]
    now: Callable[[], int]
    """The current instant; if the clock was set, a start comes first."""
    heights: Callable[[int], Mapping[str, int]]
    """Of a chain's endpoints that agree on the head, by name."""
    set_gaps: Callable[[Check, Gaps], None]
    """Sets by what a row is judged beside its probe, from now on."""
    causes: Mapping[Check, str]
    """Why probed checks are not current."""
    find_silenced: Callable[[int, Iterable[Check]], frozenset[Check]]
    judge: Callable[[EntryKey], Verdict]
    describe_endpoints: Callable[[int | None], tuple[tuple[str, str], ...]]
    """The name and the state of each RPC endpoint of a chain."""
    publish_soon: Callable[[], None]
    record: Callable[[Event], None]
    """Writes an event into the observation log."""
    note: Callable[[Note], None]
    count: Callable[..., None]
    """Counts one, or ``by`` so many, of a declared counter with these labels."""
    set_samples: Callable[[type["Feature"], tuple[Sample, ...]], None]
    """Replaces all gauges of a feature that are no note's."""
    verdicts: dict[StandIn, Verdict] = field(default_factory=dict)
    """What alerts report beside rows, and how it is now: filled by the features earlier in ``FEATURES``."""


class ProbedPart(Struct, frozen=True):
    """What asking once found about a check beside its row; a finding counts only if it lasts."""

    check: Check
    found: str
    can_be_checked: bool = True
    place: str = ""
    """If it is the status that another place sees: that place's name."""


@dataclass(frozen=True)
class Probing:
    """Sources and endpoints that are asked once."""

    around: Around
    ledger: Ledger
    session: Session
    clock: Clock
    rows: Mapping[Check, Row]
    heights: Callable[[int], Mapping[str, int]]
    """Of a chain's endpoints that agree on the head, by name."""


class SentMessage(NamedTuple):
    at: str
    target: str
    title: str


class Rehearsal:
    """A feature while a log is replayed. What it does not need stays as it is here: it does nothing."""

    combine: Combine | None = None

    def start(self, at: int) -> None:
        """The monitor started, or its clock was set."""

    def hear(self, event: Event) -> bool:
        """An event of a feature. Whether it is this one's, and counts under its table."""
        return False

    def publish(self, at: int, rows: tuple[Row, ...]) -> Iterable[SentMessage]:
        """What would have been sent."""
        return ()


class Feature:
    """An optional part of the monitor. What a feature does not need stays as it is here: it does nothing."""

    key: ClassVar[str] = ""
    """The name of its table in the configuration file; empty if it has none of its own."""
    table: ClassVar[Any] = Table
    """Its class, or a tuple of it if there may be several."""
    claimed: ClassVar[tuple[str, ...]] = ()
    """The names, up to a slash, of its documents in the store."""
    counters: ClassVar[Declared] = {}
    gauges: ClassVar[Declared] = {}
    gauges_in_use: ClassVar[Declared] = {}
    """Those that a scrape names only if they have a sample."""

    @classmethod
    def check(cls, table: Any, monitored: frozenset[Check], services: tuple[Service, ...]) -> Iterable[Problem]:
        """Problems of its table with the rest of a configuration."""
        return ()

    @classmethod
    def warnings(cls, table: Any, place: str) -> Iterable[Problem]:
        """What is allowed in its table, but may not be wanted; ``place`` is the monitor's name among the places."""
        return ()

    @classmethod
    def check_here(cls, table: Any) -> Iterable[Problem]:
        """Problems of its table that only this machine can find."""
        return ()

    @classmethod
    def reaches_people(cls, table: Any) -> bool:
        """Whether it alerts people when something is wrong."""
        return False

    @classmethod
    def decode(cls, documents: Mapping[str, bytes]) -> Any:
        """What it keeps, from its documents among these. StateError if one of them cannot be read."""
        return None

    @classmethod
    def rehearse(cls, table: Any, around: Around) -> Rehearsal | None:
        return None

    @classmethod
    async def probe(cls, table: Any, probing: Probing) -> tuple[ProbedPart, ...]:
        """Ask once, for ``lookout probe``."""
        return ()

    @classmethod
    def build(cls, table: Any, kept: Any, host: Host) -> Self:
        """Of a monitor with this table that goes on with what was kept."""
        raise NotImplementedError

    def documents(self) -> Mapping[str, bytes]:
        """All that it has in the store, by name. What did not change has equal bytes."""
        return {}

    def jobs(self) -> Iterable[Job]:
        return ()

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run its own tasks inside the block. The last publication comes after its end."""
        return nullcontext()

    def start(self, at: int, *, was_set: bool) -> None:
        """The monitor starts, or its clock was set."""

    def report_clock(self, at: int, error_ms: int) -> None:
        """This machine's clock is wrong (M17), or right again if 0."""

    def hear(self, check: Check, found: Any, at: int) -> None:
        """A probe of a source ended, and its row is judged."""

    def combiner(self) -> Combine | None:
        """What becomes of all rows before they are published; None if they stay as they are."""
        return None

    def describe_gaps(self, check: Check) -> str:
        """What is wrong with a check beside its probe; "" if nothing is."""
        return ""

    def publish(self, at: int, rows: tuple[Row, ...]) -> None:
        """After a publication, before it is stored together with the documents."""

    def describe(self, description: Description, at: int) -> Description:
        """The deployment, with what is known of it now."""
        return description

    def begin_write(self) -> None:
        """The documents, as they are now, are about to be stored."""

    def mark_stored(self) -> None:
        """What was about to be stored is."""
