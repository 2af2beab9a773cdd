"""Small bugs, planted where a world is put together, to see that its rules find them."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from lookout.alerts.event import AlertPolicy
from lookout.alerts.outbox import Attempt
from lookout.base.concurrency import Caller
from lookout.base.pieces import Pieces
from lookout.core.heads import Reading
from lookout.core.history import HistoryView
from lookout.core.ledger import State
from lookout.core.model import Check, Failed, Observation, Row
from lookout.core.plan import Plan
from lookout.core.policy import Memory
from lookout.documents.document import Document, DocumentName, PlainName
from lookout.monitor.alerts import NO_CAUSES, Alerts
from lookout.monitor.journal import Journal, Step, Timeline
from lookout.monitor.publisher import Publisher
from lookout.server.mirror import Forms, Mirror, MirrorEvent, Read, ReadFailed
from lookout.server.poller import Poller
from lookout.store.protocol import LostStoreError, StoreError
from tests.simulation.worlds.observed_parts import ObservedLedger
from tests.simulation.worlds.scene import Life, Scene
from tests.stores import PassingWriter


class ForgetsWhatFailed(Publisher):
    """What could not be written is not written with the next publication."""

    async def _publish(self, thread: Caller) -> None:
        await super()._publish(thread)
        self._writer._differ.mark_stored()


class StartsByItsOwnClock(Timeline):
    """A monitor whose clock is a little behind takes over as if nobody had been before it."""

    def start(self, last_at: int | None) -> int:  # noqa: ARG002
        return super().start(None)


class NoticesNoJump(Timeline):
    """A clock that is set is taken for time that passed."""

    def detect_step(self) -> Step | None:
        self._wall_at, self._elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        return None


class TrustsWhoAnswersFirst(Journal):
    """A head that a single endpoint gave, the others' answers being too old by a clock that was just set."""

    def read_head(self, chain_id: int, answer: Reading) -> None:
        self.detect_clock_step()
        was_set = self.timeline.stepped.is_set()
        self.timeline.stepped.clear()
        super().read_head(chain_id, answer)
        if was_set:
            self.timeline.stepped.set()


class PublishesTwice(Publisher):
    """A publication is not gathered with the one before it."""

    async def _publish(self, thread: Caller) -> None:
        await super()._publish(thread)
        if self._journal.changed.is_set():
            await super()._publish(thread)


class StopsWhenOvertaken(Publisher):
    """A store that is lost is taken for a request to stop."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._whole = asyncio.current_task()

    async def run(self) -> None:
        try:
            await super().run()
        except LostStoreError:
            if self._whole is not None:
                self._whole.cancel()
            raise


class CountsItsAbsence(Alerts):
    """Time that nobody saw pass makes an alert."""

    def restart(self) -> None: ...


class KeepsWhoLeft(Alerts):
    """Episodes of checks and rules that left go on in silence."""

    def __init__(self, policy: AlertPolicy, *given: Any) -> None:
        super().__init__(policy, *given)
        checks = frozenset(episode.check for episode in self._state.episodes)
        rules = tuple(replace(rule, checks=rule.checks | checks) for rule in policy.rules.rules)
        self._policy = replace(policy, rules=replace(policy.rules, rules=rules))


class TriesOnce(Alerts):
    """A message that is not accepted is given up."""

    def _refuse(self, attempt: Attempt) -> None:
        super()._refuse(attempt)
        self._outbox.messages.pop(attempt.number, None)


class WaitsTooLong(Alerts):
    """Who refused a message is left alone for a quarter of an hour."""

    def __init__(self, *given: Any) -> None:
        longer: Any = {"first_rest_ms": 900_000}
        super().__init__(*given, **longer)


class ForgetsWhatWasAccepted(Alerts):
    """What is accepted while the monitor ends is not stored as such."""

    def _accept(self, attempt: Attempt) -> None:
        task = asyncio.current_task()
        if task is not None and task.cancelling() > 0:
            self._request_publication = lambda: None
        super()._accept(attempt)


class SendsAgain(Alerts):
    """What was accepted stays where it is."""

    def _accept(self, attempt: Attempt) -> None:
        was_there = attempt.number in self._outbox.messages
        super()._accept(attempt)
        if was_there and attempt.number % 3 == 0:
            self._outbox.messages[attempt.number] = attempt.queued


class SendsAtOnce(Alerts):
    """A message is sent before the publication that made it is stored."""

    def advance(
        self,
        at: int,
        rows: Iterable[Row],
        causes: Mapping[Check, str] = NO_CAUSES,
        silenced: Collection[Check] = (),
    ) -> None:
        super().advance(at, rows, causes, silenced)
        self.mark_stored(self._clock.elapsed_ms())


class SendsWithoutTheStore(Alerts):
    """A monitor that has not had the store for long sends all the same."""

    def mark_stored(self, stored_ms: int) -> None:
        super().mark_stored(stored_ms + 86_400_000)


class EndsOvertake(Alerts):
    """A message that is refused is passed by every other one, also by the end of what it begins."""

    def _refuse(self, attempt: Attempt) -> None:
        super()._refuse(attempt)
        for number, queued in self._outbox.messages.items():
            if number != attempt.number and queued.event is not None:
                event = replace(
                    queued.event, items=tuple(replace(item, chain_id=-number) for item in queued.event.items)
                )
                self._outbox.messages[number] = replace(queued, event=event)


class NewestFirst(Alerts):
    """The last message is the first to be sent."""

    def mark_stored(self, stored_ms: int) -> None:
        self._outbox.messages = dict(sorted(self._outbox.messages.items(), reverse=True))
        super().mark_stored(stored_ms)


class ForgetsFailures(ObservedLedger):
    """A restart excuses every failure before it."""

    def __init__(self, plan: Plan, state: State | None, scene: Scene, life: Life) -> None:
        super().__init__(plan, state, scene, life)
        for check, judged in list(self._judged.items()):
            self._judged[check] = replace(judged, memory=replace(judged.memory, failures=0))


class ForgetsSuccess(ObservedLedger):
    """After a restart a check has never succeeded, until it does again."""

    def __init__(self, plan: Plan, state: State | None, scene: Scene, life: Life) -> None:
        super().__init__(plan, state, scene, life)
        for check, judged in list(self._judged.items()):
            self._judged[check] = replace(judged, memory=Memory(judged.memory.failures))


class KeepsRowsGreen(ObservedLedger):
    """A row is renewed with every publication, as if it had been probed."""

    def publish(self, at: int) -> None:
        for check, row in self._rows.items():
            if row.status == "current" and row.expires_at is not None and check not in self._changed:
                self._changed[check] = replace(row, expires_at=at + 150_000)
        super().publish(at)


class ExcusesOneFailure(ObservedLedger):
    """The first failure leaves a row as it was."""

    def judge(self, seen: Observation) -> Row:
        before = self.newest_row(seen.check)
        if isinstance(seen.found, Failed) and before.status == "current":
            return before
        return super().judge(seen)


class RewritesBuckets(ObservedLedger):
    """The oldest bucket is shown as it suits, from the tenth minute on."""

    def view(self) -> HistoryView:
        view = super().view()
        if len(view.rows[0].buckets) > 2:
            view = replace(view, rows=tuple(replace(row, buckets="d" + row.buckets[1:]) for row in view.rows))
        return view


class DropsOnError(Poller):
    """A report that cannot be read is no report."""

    def _apply(self, event: MirrorEvent) -> Mirror:
        after = super()._apply(event)
        if isinstance(event, ReadFailed) and event.name == "live":
            after = self.state = after._replace(live=None)
            self.resources = self._build_table()
        return after


class ServesDamage(Poller):
    """Whatever the store gives is served."""

    def _read(self, name: PlainName) -> Read | ReadFailed:
        at_ms = self._clock.elapsed_ms()
        try:
            document = self._reader.read(name)
        except StoreError as error:
            return ReadFailed(at_ms, name, str(error))
        return Read(at_ms, name, None if document is None else Forms(document))


class KeepsHistoryForEver(Poller):
    """A history that cannot be read is served for ever."""

    def _apply(self, event: MirrorEvent) -> Mirror:
        kept = self.state.history
        after = super()._apply(event)
        if after.history is None and kept is not None:
            after = self.state = after._replace(history=kept)
            self.resources = self._build_table()
        return after


class Loses(PassingWriter):
    """Every fifth write is acknowledged, and lost."""

    _times = 0

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self._times += 1
        if self._times % 5:
            self._real.write(documents, pieces)


class LosesPieces(PassingWriter):
    """Every write loses one of its pieces."""

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        lost = min(pieces.put)
        kept = {name: piece for name, piece in pieces.put.items() if name != lost or len(pieces.put) < 3}
        self._real.write(documents, Pieces(kept, pieces.delete, pieces.replace_all))
