"""A monitor's tasks on a loop that does not wait: an hour of its life takes a moment, and each run is the same."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from random import Random
from typing import cast

from prometheus_client import CollectorRegistry

from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Check, Failed, Found
from lookout.core.plan import Plan
from lookout.documents.document import Document, DocumentName
from lookout.monitor.metrics import Instruments
from lookout.monitor.monitor import run_together
from lookout.monitor.publisher import Publisher
from lookout.monitor.recorder import Recorder
from lookout.monitor.watcher import Watcher
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint, Now, Source
from lookout.state.log import Event
from lookout.state.pieces import Pieces
from tests.builders import NOON

FAILED = Failed("timeout")
NO_SESSION = cast("Session", None)

Happening = Callable[[Publisher, Watcher], None]


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


class Kept:
    """A writer that keeps the documents, with when they came."""

    def __init__(self) -> None:
        self.written: list[tuple[int, Mapping[DocumentName, Document]]] = []

    def load(self) -> dict[str, bytes]:
        return {}

    def write(self, documents: Mapping[DocumentName, Document], _pieces: Pieces) -> None:
        self.written.append((FastClock().elapsed_ms(), documents))

    def close(self) -> None: ...


class Record(list[Event]):
    """A record without a disk."""

    def record(self, event: Event) -> None:
        self.append(event)


class Asked:
    """A source that takes a second to answer, and remembers when it was asked."""

    def __init__(self, check: Check, found: Found = FAILED) -> None:
        self.name = "asked"
        self.checks: tuple[Check, ...] = (check,)
        self.asked: list[int] = []
        self._found = found

    async def probe(self, _session: Session, now: Now, /) -> Mapping[Check, Found]:
        self.asked.append(now() - NOON)
        await asyncio.sleep(1)
        return {self.checks[0]: self._found}


class Read:
    """An endpoint that takes its time, and remembers when it was asked and when that was over.

    It says one thing after the other, the last of them from then on: a height, or how it fails.
    """

    name = "read"

    def __init__(self, chain_id: int = 1, *said: int | ProbeFailed | OwnFault, takes_s: float = 1) -> None:
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
            raise said
        return Reading(now(), said, now())


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
) -> Kept:
    """Let a monitor live for so long; what happens is called at its second with the publisher and the watcher."""
    writer, its_clock = Kept(), clock or FastClock()

    async def live() -> None:
        publisher = Publisher(
            Ledger(plan),
            writer,
            its_clock,
            plan.limits,
            60_000,
            recorder=cast("Recorder | None", record),
            open_thread=lambda: nullcontext(InLine()),
        )
        instruments = Instruments(registry or CollectorRegistry(), its_clock)
        watcher = Watcher(sources, endpoints, publisher, session, its_clock, plan.limits, Even(luck), instruments)
        task = asyncio.create_task(run_together(publisher, watcher))
        for at_s, happening in sorted(happenings, key=lambda each: each[0]):
            await asyncio.sleep(at_s - asyncio.get_running_loop().time())
            happening(publisher, watcher)
        await asyncio.sleep(seconds - asyncio.get_running_loop().time())
        assert not task.done(), task.exception()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with asyncio.Runner(loop_factory=lambda: FastLoop(late_s)) as runner:
        runner.run(live())
    return writer


def going_on_with(
    plan: Plan, sources: Sequence[Source], endpoints: Sequence[Endpoint], record: Record | None = None
) -> Happening:
    """A reload."""

    def reload(publisher: Publisher, watcher: Watcher) -> None:
        publisher.replan(plan, 60_000, cast("Recorder | None", record))
        watcher.replan(sources, endpoints, NO_SESSION, plan.limits)

    return reload
