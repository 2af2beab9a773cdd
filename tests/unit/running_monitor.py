"""A monitor's tasks on a loop that does not wait: an hour of its life takes a moment, and each run is the same."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from random import Random
from typing import Any, cast

from prometheus_client import CollectorRegistry

from lookout.base.clock import Clock
from lookout.base.concurrency import Worker
from lookout.config.settings import Settings, Upstreams
from lookout.core.heads import Reading
from lookout.core.model import Check, Failed, Found
from lookout.core.plan import Plan
from lookout.documents.document import Document, DocumentName
from lookout.features.feature import Feature
from lookout.features.registry import FEATURES
from lookout.monitor.assembly import Machine, Succession
from lookout.monitor.board import Board
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint, Now, Source
from lookout.state.codec import decode_state
from lookout.state.log import Event
from lookout.store.protocol import Writer
from tests.builders import NOON
from tests.machines import a_machine

FAILED = Failed("timeout")
NO_SESSION = Session(cast("Any", None), 0)  # these sources need none

Happening = Callable[[Succession], None]


class FastLoop(asyncio.SelectorEventLoop):
    """An event loop that does not wait: when nothing is ready, its time jumps to the next timer. It may be a little
    late for each, as a busy machine is."""

    def __init__(self, late_s: float = 0) -> None:
        super().__init__()
        self._jumped_s = 0.0
        selector = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def jump(timeout_s: float | None = None) -> object:
            if timeout_s:
                self._jumped_s += timeout_s + late_s
            return select(0)

        selector.select = jump

    def time(self) -> float:
        return self._jumped_s


class FastClock:
    """It is noon when the loop begins, unless the clock is set."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now(self) -> int:
        return NOON + self.elapsed_ms() + self.ahead_ms

    def elapsed_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)


class Even(Random):
    """The same luck for everybody."""

    def __init__(self, luck: float = 0.5) -> None:
        super().__init__()
        self._luck = luck

    def random(self) -> float:
        return self._luck


class InLine:
    async def call(self, work: Callable[[], None], /) -> None:
        work()


class KeptInMemory:
    """A store that keeps the documents that every write changed, and the state, which a later life continues from."""

    def __init__(self) -> None:
        self.documents: list[Mapping[DocumentName, Document]] = []
        self.state: Mapping[str, bytes] = {}
        self._last: Mapping[DocumentName, Document] = {}

    @property
    def others(self) -> dict[str, bytes]:
        """What is stored of sources, lists, alerts and notices."""
        return decode_state(self.state)[1]

    def load(self) -> dict[str, bytes]:
        return dict(self.state)

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        self.documents.append({name: new for name, new in documents.items() if self._last.get(name) != new})
        self._last, self.state = documents, state

    def close(self) -> None: ...


class Kept(KeptInMemory):
    """And when they came."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[int, Mapping[DocumentName, Document]]] = []

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        super().write(documents, state)
        self.written.append((FastClock().elapsed_ms(), self.documents[-1]))


class Record(list[Event]):
    """A record without a disk."""

    def record(self, event: Event) -> None:
        self.append(event)

    def record_to(self, name: str) -> None: ...


class Asked:
    """A source that takes its time to answer, and remembers when it was asked.

    It says one thing after the other, the last of them from then on: what it found, or how the probe ends.
    """

    name = "asked"

    def __init__(self, check: Check, *said: Found | Exception, takes_s: float = 1) -> None:
        self.checks: tuple[Check, ...] = (check,)
        self.asked: list[int] = []
        self._said = said or (FAILED,)
        self._takes_s = takes_s

    async def probe(self, _session: Session, now: Now, /) -> Mapping[Check, Found]:
        said = self._said[min(len(self.asked), len(self._said) - 1)]
        self.asked.append(now() - NOON)
        await asyncio.sleep(self._takes_s)
        if isinstance(said, Exception):
            raise said.with_traceback(None)  # else each raise would lengthen it
        return {self.checks[0]: said}


class Read:
    """An endpoint that takes its time, and remembers when it was asked and when that was over.

    It says one thing after the other, the last of them from then on: a height, or how it fails.
    """

    def __init__(
        self, chain_id: int = 1, *said: int | ProbeFailed | OwnFault, takes_s: float = 1, name: str = "read"
    ) -> None:
        self.name = name
        self.chain_id = chain_id
        self.asked: list[int] = []
        self.ended: list[int] = []
        self._said = said or (100,)
        self._takes_s = takes_s

    async def read(self, _session: Session, now: Now, /) -> Reading:
        said = self._said[min(len(self.asked), len(self._said) - 1)]
        self.asked.append(now() - NOON)
        await asyncio.sleep(self._takes_s)
        self.ended.append(now() - NOON)
        if isinstance(said, Exception):
            raise said.with_traceback(None)  # else each raise would lengthen it
        return Reading(now(), said, now())


class Given(Settings, frozen=True):
    """Settings whose plan, sources and endpoints a test has made."""

    given: Plan | None = None
    given_sources: tuple[Source, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()

    def plan(self) -> Plan:
        assert self.given is not None
        return self.given

    def sources_by_check(self) -> dict[Check, Any]:
        return {check: source for source in self.given_sources for check in source.checks}


def given_settings(
    plan: Plan, sources: Sequence[Source] = (), endpoints: Sequence[Endpoint] = (), **more: Any
) -> Given:
    return Given(given=plan, given_sources=tuple(sources), endpoints=tuple(endpoints), **more)


def built_as_given(settings: Settings) -> Upstreams:
    assert isinstance(settings, Given)
    return Upstreams(settings.given_sources, settings.endpoints)


def given(writer: Writer, clock: Clock, registry: CollectorRegistry | None = None, **replaced: Any) -> Machine:
    """For monitors of given settings: with real threads and connections, if they need any."""
    return a_machine(writer, clock, registry, build_upstreams=built_as_given, **replaced)


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Meanwhile; then it is cancelled, and its end waited for."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def lived(
    seconds: float,
    plan: Plan,
    sources: Sequence[Source],
    endpoints: Sequence[Endpoint],
    *happenings: tuple[float, Happening],
    clock: FastClock | None = None,
    record: Record | None = None,
    session: Session = NO_SESSION,
    luck: float = 0.5,
    late_s: float = 0,
    registry: CollectorRegistry | None = None,
    board: Board | None = None,
    stored: Mapping[str, bytes] | None = None,
    writer: Kept | None = None,
    store: Worker | None = None,
    features: tuple[type[Feature], ...] = FEATURES,
    **tables: Any,
) -> Kept:
    """Let a monitor live for so long; what happens is called at its second with its succession. It goes on from what is
    ``stored``; ``tables`` are of its settings."""
    writer = writer or Kept()
    machine = given(
        writer,
        clock or FastClock(),
        registry,
        chance=Even(luck),
        open_session=lambda _: nullcontext(session),
        store=store or InLine(),
        open_thread=lambda _: nullcontext(InLine()),
        features=features,
        recorder=cast("Any", record),
    )
    if board is not None:
        machine.instruments.board = board

    async def live() -> None:
        settings = given_settings(plan, sources, endpoints, **tables)
        succession = Succession(settings, stored or {}, machine)
        task = asyncio.create_task(succession.run())
        for at_s, happening in sorted(happenings, key=lambda each: each[0]):
            await asyncio.sleep(at_s - asyncio.get_running_loop().time())
            happening(succession)
        await asyncio.sleep(seconds - asyncio.get_running_loop().time())
        assert not task.done(), task.exception()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with asyncio.Runner(loop_factory=lambda: FastLoop(late_s)) as runner:
        runner.run(live())
    return writer


def reloading(plan: Plan, sources: Sequence[Source], endpoints: Sequence[Endpoint], **more: Any) -> Happening:
    settings = given_settings(plan, sources, endpoints, **more)

    def reload(succession: Succession) -> None:
        under_way.add(asyncio.create_task(succession.replace(settings)))

    under_way: set[asyncio.Task[None]] = set()
    return reload


def setting(clock: FastClock, by_ms: int) -> Happening:
    def set_clock(_succession: Succession) -> None:
        clock.ahead_ms += by_ms

    return set_clock
