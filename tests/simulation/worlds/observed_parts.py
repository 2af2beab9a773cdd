"""The parts of a monitor through which a world sees what happens in it, and the thread that is none."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lookout.config.settings import Upstreams
from lookout.core.heads import ChainProgress, Reading
from lookout.core.history import Uptime
from lookout.core.ledger import Ledger, State
from lookout.core.model import Check, Found, Observation, Row
from lookout.core.plan import Plan
from lookout.core.services import Service
from lookout.features.feature import Feature
from lookout.features.outcome import Sample
from lookout.monitor import metrics
from lookout.monitor.board import Board
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import Lacking
from lookout.public.about import ChainDescription
from lookout.store.protocol import LostStoreError
from tests.simulation.worlds.scene import (
    Agreed,
    Judged,
    Life,
    Publication,
    Published,
    Reloaded,
    Scene,
    Seen,
    Started,
    Stored,
)


def forget_unwatched(memory: Mapping[object, Any], plan: Plan) -> dict[object, Any]:
    """What is no longer watched is forgotten, but for a check's last success."""
    watched = {*plan.monitored, *(("head", chain_id) for chain_id in plan.chains)}
    return {
        what: remembered if what in watched else remembered.leave()
        for what, remembered in memory.items()
        if what in watched or isinstance(what, Check)
    }


class ObservedLedger(Ledger):
    """The real ledger, which emits what happens in it."""

    def __init__(self, plan: Plan, state: State | None, scene: Scene, life: Life) -> None:
        super().__init__(plan, state)
        self._scene = scene
        self._life = life

    def start(self, at: int, last_at: int | None = None, step_ms: int = 0) -> None:
        super().start(at, last_at, step_ms)
        self._adopt_next_settings()
        self._life.began_ms, self._life.is_new = self._scene.ms, True
        self._scene.note(f"{self._life.name} started at {at}")
        self._scene.emit(Started(self._life))

    def _adopt_next_settings(self) -> None:
        """The monitor of the settings that a reload brought begins."""
        life, new = self._life, self._life.next_settings
        if new is not None and self._plan == new.plan():
            before = life.plan
            life.next_settings, life.stopping = None, False
            life.apply_settings(new)
            life.memory = forget_unwatched(life.memory, life.plan)
            self._scene.emit(Reloaded(life, before))

    def judge(self, seen: Observation) -> Row:
        row = super().judge(seen)
        life = self._life
        self._scene.note(f"{life.name} judged {row.check} {row.status}")
        self._scene.emit(Judged(life, Seen(self._scene.ms, seen, row)))
        return row

    def read_head(self, chain_id: int, reading: Reading) -> None:
        super().read_head(chain_id, reading)
        self._scene.emit(Agreed(self._life, chain_id, reading))

    def publish(self, at: int) -> None:
        super().publish(at)
        life, scene = self._life, self._scene
        life.publication = Publication(life.publication, life, scene.ms, at, self.published_rows)
        life.publication.memory = dict(life.memory)
        life.is_new = False
        scene.publications += 1
        scene.emit(Published(life, life.publication))

    def state(self) -> State:
        state, publication = super().state(), self._life.publication
        # A reload asks for it too, later than the last publication.
        if publication is not None and publication.ms == self._scene.ms:
            self._life.to_store = publication
            if self._scene.end_is_near():
                publication.state = state
        return state


class ObservedInstruments(Instruments):
    """The monitor's instruments, without Prometheus, which would be most of what a simulated day costs."""

    def __init__(self, scene: Scene, life: Life) -> None:  # the registry of the real ones is not made
        self._scene = scene
        self._life = life
        self.board = Board()

    def count_tasks_of(self, loop: asyncio.AbstractEventLoop) -> None: ...

    def describe_watched(
        self,
        chains: tuple[ChainDescription, ...],
        own_services: Iterable[Service],
        upstreams: Upstreams,
    ) -> None: ...

    def count_probe(self, checks: Sequence[Check], took_ms: int, found: Mapping[Check, Found]) -> None: ...

    def count_reading(self, chain_id: int, endpoint: str, took_ms: int, cause: str | None) -> None: ...

    def set_samples(self, feature: type[Feature], samples: tuple[Sample, ...]) -> None: ...

    def count_own_fault(self, lacking: Lacking) -> None: ...

    def is_exhausted(self, recheck_ms: int) -> bool:  # noqa: ARG002
        return False

    def count(self, name: str, *_labels: str, by: int = 1) -> None:
        self._scene.bugs_counted += by if name == "lookout_probe_bugs_total" else 0

    def measure(self, name: str, took_ms: int, *labels: str) -> None: ...

    def published(self, at: int, rows: tuple[Row, ...], chains: Mapping[int, ChainProgress]) -> metrics.Publication:
        return metrics.Publication(at, 0, rows, chains)

    def set_uptimes(self, uptimes: Mapping[Check, Uptime]) -> None: ...

    def stored(self, publication: metrics.Publication, took_ms: int) -> None:  # noqa: ARG002
        self._scene.emit(Stored(self._life, ok=True))

    def not_stored(self, took_ms: int) -> None:  # noqa: ARG002
        self._scene.note(f"{self._life.name} could not store")
        self._scene.emit(Stored(self._life, ok=False))


class VirtualThread:
    """Makes calls one after the other, each taking the time that the script gives it; the loop goes on meanwhile."""

    def __init__(self, scene: Scene, life: Life) -> None:
        self._scene = scene
        self._life = life
        self._chance = scene.chance(f"thread {life.serial}")
        self._calls: deque[tuple[Callable[[], None], Publication | None, asyncio.Future[None]]] = deque()

    async def call(self, work: Callable[[], None], /) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._life.to_store is not None:
            self._life.to_store.sightings = self._life.sightings
        self._calls.append((work, self._life.to_store, done))
        if len(self._calls) == 1:
            self._begin()
        await done

    def _begin(self) -> None:
        self._life.writing_since_ms = self._scene.ms
        self._scene.loop.call_later(self._takes_s(), self._make)

    def _make(self) -> None:
        if hang := self._scene.active("write-hangs"):  # it came while the call was on its way
            left_ms = hang.at_ms + hang.lasts_ms - self._scene.ms
            self._scene.loop.call_later(left_ms / 1000, self._make)
            return
        work, self._life.writing, _ = self._calls[0]
        error = None
        try:
            work()
        except Exception as raised:  # noqa: BLE001  it is the waiting one's
            error = raised
        self._scene.loop.call_later(self._takes_s() / 2, self._finish, error)

    def _finish(self, error: Exception | None) -> None:
        self._life.writing_since_ms, self._life.wrote_ms = None, self._scene.ms
        if isinstance(error, LostStoreError):
            self._life.lost_ms = self._scene.ms
        _, _, done = self._calls.popleft()
        if self._calls:
            self._begin()
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def _takes_s(self) -> float:
        slow = self._scene.active("write-slow")
        return (slow.size if slow else 1 + 60 * self._chance.random() ** 8) / 1000
