"""Small bugs, planted where a world is put together, to see that its rules find them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager

from msgspec.structs import replace

from lookout.alerts.sender import Way
from lookout.base.clock import Clock
from lookout.base.threads import Caller
from lookout.core.heads import Reading
from lookout.core.history import HistoryView
from lookout.core.ledger import State
from lookout.core.model import Failed, Observation, Row
from lookout.core.plan import Limits, Plan
from lookout.core.policy import Memory
from lookout.documents.document import Document, DocumentName, PlainName
from lookout.monitor.alerts import Alerts, Telling
from lookout.monitor.metrics import Instruments
from lookout.monitor.publisher import Publisher
from lookout.monitor.recorder import Recorder
from lookout.monitor.watcher import Watcher
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint, Source
from lookout.server.mirror import Forms, Mirror
from lookout.state.pieces import Pieces
from lookout.store.protocol import LostStoreError, StoreError, Writer
from tests.simulation.worlds.alert_texts import Told
from tests.simulation.worlds.scene import Life, Scene


class ForgetsWhatFailed(Publisher):
    """What could not be written is not written with the next publication."""

    async def _publish(self, thread: Caller) -> None:
        await super()._publish(thread)
        self._writer._backlog.clear()


class StartsByItsOwnClock(Publisher):
    """A monitor whose clock is a little behind takes over as if nobody had been before it."""

    def start(self) -> None:
        self._wall_at, self._elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        self._start(self._wall_at, None)


class NoticesNoJump(Publisher):
    """A clock that is set is taken for time that passed."""

    def look_at_the_clock(self) -> None:
        self._wall_at, self._elapsed_ms = self._clock.now(), self._clock.elapsed_ms()


class TrustsWhoAnswersFirst(Publisher):
    """A head that a single endpoint gave, the others' answers being too old by a clock that was just set."""

    def read_head(self, chain_id: int, head: Reading) -> None:
        self.look_at_the_clock()
        was_set = self.clock_was_set.is_set()
        self.clock_was_set.clear()
        super().read_head(chain_id, head)
        if was_set:
            self.clock_was_set.set()


class PublishesTwice(Publisher):
    """A publication is not gathered with the one before it."""

    async def _publish(self, thread: Caller) -> None:
        await super()._publish(thread)
        if self._changed.is_set():
            await super()._publish(thread)


class StopsWhenOvertaken(Publisher):
    """A store that is lost is taken for the wish that the monitor end."""

    def start(self) -> None:
        super().start()
        self._whole = asyncio.current_task()

    async def run(self) -> None:
        try:
            await super().run()
        except LostStoreError:
            if self._whole is not None:
                self._whole.cancel()
            raise


class DoesNotReload(Publisher):
    """Other settings are heeded with the next start."""

    def replan(self, plan: Plan, write_history_every_ms: int, recorder: Recorder | None) -> None: ...


class AsksOnAndOn(Watcher):
    """Who left the settings is asked all the same."""

    def _leave(self, *left: Source | Endpoint) -> None: ...


class AsksAllAnew(Watcher):
    """A reload is taken for a start."""

    def replan(
        self, sources: Iterable[Source], endpoints: Iterable[Endpoint], session: Session, limits: Limits
    ) -> None:
        super().replan(sources, endpoints, session, limits)
        self.wake()


class CountsItsAbsence(Alerts):
    """Time that nobody saw pass makes an alert."""

    def start(self) -> None: ...


class KeepsWhoLeft(Alerts):
    """Episodes of checks and rules that left go on in silence."""

    def change(self, telling: Telling) -> None:
        checks = frozenset(episode.check for episode in self._state.episodes)
        rules = tuple(replace(rule, checks=rule.checks | checks) for rule in telling.rules.rules)
        super().change(replace(telling, rules=replace(telling.rules, rules=rules)))


class TriesOnce(Alerts):
    """A message that is not accepted is given up."""

    async def _is_accepted(
        self, thread: Caller, name: str, number: int, wait_s: float, ask: Callable[[], None]
    ) -> bool:
        accepted = await super()._is_accepted(thread, name, number, wait_s, ask)
        if not accepted:
            self._outbox.pop(number, None)
        return accepted


class WaitsTooLong(Alerts):
    """Who refused a message is left alone for a quarter of an hour."""

    def __init__(
        self,
        telling: Telling,
        stored: Mapping[str, bytes],
        clock: Clock,
        instruments: Instruments,
        open_way: Callable[[str], Way],
        open_thread: Callable[[str], AbstractContextManager[Caller]],
    ) -> None:
        super().__init__(telling, stored, clock, instruments, open_way, 900, open_thread)


class ForgetsWhatWasAccepted(Alerts):
    """What is accepted while the monitor ends is not stored as such."""

    def _accepted(self, number: int, target: str, ask: Callable[[], None]) -> None:
        task = asyncio.current_task()
        is_the_end = task is not None and task.cancelling() > 0
        super()._accepted(number, target, (lambda: None) if is_the_end else ask)


class SendsAgain(Alerts):
    """What was accepted stays where it is."""

    def _accepted(self, number: int, target: str, ask: Callable[[], None]) -> None:
        message = self._outbox.get(number)
        super()._accepted(number, target, ask)
        if message is not None and number % 3 == 0:
            self._outbox[number] = message


class SendsAtOnce(Alerts):
    """A message is sent before the publication that made it is stored."""

    def published(self, at: int, rows: Iterable[Row]) -> None:
        super().published(at, rows)
        self._sendable = frozenset(self._outbox)
        self._stored_again.set()
        self._stored_again = asyncio.Event()


class SendsWithoutTheStore(Alerts):
    """A monitor that has not had the store for long sends all the same."""

    def _is_ours(self) -> bool:
        return self._stored_ms is not None


class NewestFirst(Alerts):
    """The last message is the first to be sent."""

    def stored(self, began_ms: int) -> None:
        self._outbox = dict(sorted(self._outbox.items(), reverse=True))
        super().stored(began_ms)


class ForgetsFailures(Told):
    """A restart excuses every failure before it."""

    def __init__(self, plan: Plan, state: State | None, scene: Scene, life: Life) -> None:
        super().__init__(plan, state, scene, life)
        for check, judged in list(self._judged.items()):
            self._judged[check] = replace(judged, memory=replace(judged.memory, failures=0))


class ForgetsSuccess(Told):
    """After a restart a check has never succeeded, until it does again."""

    def __init__(self, plan: Plan, state: State | None, scene: Scene, life: Life) -> None:
        super().__init__(plan, state, scene, life)
        for check, judged in list(self._judged.items()):
            self._judged[check] = replace(judged, memory=Memory(judged.memory.failures))


class KeepsRowsGreen(Told):
    """A row is renewed with every publication, as if it had been probed."""

    def publish(self, at: int) -> None:
        for check, row in self._rows.items():
            if row.status == "current" and row.expires_at is not None and check not in self._changed:
                self._changed[check] = replace(row, expires_at=at + 150_000)
        super().publish(at)


class ExcusesOneFailure(Told):
    """The first failure leaves a row as it was."""

    def observe(self, seen: Observation) -> Row:
        before = self.row(seen.check)
        if isinstance(seen.found, Failed) and before.status == "current":
            return before
        return super().observe(seen)


class RewritesBuckets(Told):
    """The oldest bucket is told as it suits, from the tenth minute on."""

    def view(self) -> HistoryView:
        view = super().view()
        if len(view.rows[0].buckets) > 2:
            view = replace(view, rows=tuple(replace(row, buckets="d" + row.buckets[1:]) for row in view.rows))
        return view


class DropsOnError(Mirror):
    """A report that cannot be read is no report."""

    def _document(self, name: PlainName) -> tuple[Document | None, str | None]:
        document, error = super()._document(name)
        if error is not None and name == "live":
            self._live = None
        return document, error


class ServesDamage(Mirror):
    """Whatever the store gives is served."""

    def _document(self, name: PlainName) -> tuple[Document | None, str | None]:
        try:
            return self._reader.read(name), None
        except StoreError as error:
            return None, str(error)


class KeepsHistoryForEver(Mirror):
    """A history that cannot be read is served for ever."""

    def _take(self, live: Forms | None, history: Forms | None) -> None:
        super()._take(live, history or self._history)


class Loses:
    """Every fifth write is acknowledged, and lost."""

    def __init__(self, real: Writer) -> None:
        self._real = real
        self._times = 0

    def load(self) -> dict[str, bytes]:
        return self._real.load()

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self._times += 1
        if self._times % 5:
            self._real.write(documents, pieces)

    def close(self) -> None:
        self._real.close()


class LosesPieces(Loses):
    """Every write loses one of its pieces."""

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        lost = min(pieces.put)
        kept = {name: piece for name, piece in pieces.put.items() if name != lost or len(pieces.put) < 3}
        self._real.write(documents, Pieces(kept, pieces.delete, pieces.replace_all))
