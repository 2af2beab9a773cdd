"""Rules about alerts: no message is lost, none is sent before it is stored while the store works, and none comes twice.

What is to be sent, and in which order, is tested by tests/property/test_episodes.py and tests/unit/test_outbox.py."""

from collections import defaultdict
from typing import Final, NamedTuple

from lookout.features.alerts.alerts import decode_alerts
from lookout.features.alerts.rules import STORE
from lookout.state.codec import decode_state
from tests.simulation.worlds import scene as s
from tests.simulation.worlds.rules import Rule
from tests.simulation.worlds.script import TARGETS

_HEARTBEAT_MS: Final = 30_000
_SLACK_MS: Final = 15_000  # to send
_UNSTORED_MS: Final = 60_000
_SENT_WITHIN_MS: Final = 150_000  # the minute, a beginning and its gathering, and other messages before it
_LAST_SEND_MS: Final = 5_000
_REST_MS: Final = 300_000
_SENDING_FAULTS: Final = ("send-fails", "send-hangs", "send-unanswered", "no-thread")


class NoneIsLost(Rule):
    """A message leaves the store when it was accepted, when it is so old that it is given up, or with its target."""

    clauses = ("alerts: none is lost",)

    def __init__(self) -> None:
        self._accepted: dict[int, set[s.Message]] = defaultdict(set)
        self._gone: set[tuple[int, str]] = set()  # the targets that a monitor had to do without
        self._last_clock_ms = 0
        self._made_ms: dict[s.Message, int] = {}  # not before, on the clock of its line

    def resumed(self, event: s.Resumed) -> None:
        publication = event.life.publication
        self._last_clock_ms = 0 if publication is None else publication.clock_ms
        self._look_who_is_gone(event.life)

    def reloaded(self, event: s.Reloaded) -> None:
        self._look_who_is_gone(event.life)

    def tried(self, event: s.Tried) -> None:
        if event.accepted:
            self._accepted[event.life.serial].add(event.message)

    def written(self, event: s.Written) -> None:
        life, clock_ms = event.life, event.publication.clock_ms
        self._made_ms.update(dict.fromkeys(event.came, self._last_clock_ms))
        self._last_clock_ms = clock_ms
        for message in event.went:
            age_ms = clock_ms - self._made_ms[message]
            is_given_up = age_ms >= life.alert_policy.give_up_ms
            if not (
                message in self._accepted[life.serial] or is_given_up or (life.serial, message.target) in self._gone
            ):
                self.broken(f"{message} is gone after {age_ms} ms, though it was not accepted")

    def _look_who_is_gone(self, life: s.Life) -> None:
        self._gone.update((life.serial, target) for target in TARGETS if target not in life.alert_policy.targets)


class _Acceptance(NamedTuple):
    life: s.Life
    answers: bool
    at_ms: int
    heard_ms: int | None = None


class _StoreWorked(Rule):
    """Remembers when the store worked last for each monitor."""

    def __init__(self) -> None:
        self.worked_ms: dict[int, int] = {}

    def resumed(self, event: s.Resumed) -> None:
        """A fault of the store that was stored itself, by a write whose answer was lost, has lasted for so long."""
        known = decode_alerts(decode_state(event.stored)[1]).state.episodes
        lasted_ms = max((episode.seen_ms for episode in known if episode.check == STORE), default=0)
        self.worked_ms[event.life.serial] = self.scene.ms - lasted_ms

    def has_failed(self, life: s.Life) -> bool:
        """Whether nothing could be stored for so long that messages are sent without."""
        return self.scene.ms - self.worked_ms[life.serial] >= _UNSTORED_MS

    def stored(self, event: s.Stored) -> None:
        if event.ok:
            self.worked_ms[event.life.serial] = self.scene.ms


class NoneComesTwice(Rule):
    """A message that was accepted leaves the store with the next publication, and is not sent again, unless its sender
    could not know or had no time to store it."""

    clauses = ("alerts: none comes twice",)

    def __init__(self) -> None:
        self._accepted: dict[s.Message, _Acceptance] = {}
        self._reloaded_ms: dict[s.Life, int] = {}
        self._stored: set[s.Message] = set()

    def reloaded(self, event: s.Reloaded) -> None:
        self._reloaded_ms[event.life] = self.scene.ms

    def tried(self, event: s.Tried) -> None:
        if not event.accepted:
            return
        before = self._accepted.get(event.message)
        if before is not None and before.answers:
            # A reload does not wait for a target that is slow.
            was_cut_off = self.scene.ms - self._reloaded_ms.get(event.life, -_SLACK_MS) < _SLACK_MS
            if before.life is event.life and not was_cut_off:
                self.broken(f"{event.message} was sent again")
            was_overtaken = self.scene.ms - self.scene.let_go_ms <= _HEARTBEAT_MS + _SLACK_MS
            # Who goes on from a store that could not be written does not know what was sent.
            is_forgotten = event.message not in self._stored
            if event.message not in self.scene.waiting.values() and not was_overtaken and not is_forgotten:
                self.broken(f"{event.message} was sent again, though it was known to be accepted")
        self._accepted[event.message] = _Acceptance(event.life, event.answers, self.scene.ms)

    def heard(self, event: s.Heard) -> None:
        if event.accepted and event.message is not None and event.message in self._accepted:
            known = self._accepted[event.message]
            if known.life is event.life:
                self._accepted[event.message] = known._replace(heard_ms=self.scene.ms)

    def written(self, event: s.Written) -> None:
        self._stored.update(event.came)
        for message in self._known_to(event.life, event.publication):
            self.broken(f"{message} is still in the store, though it was accepted before {event.publication.at}")

    def ended(self, event: s.Ended) -> None:
        life = event.life
        if event.how != "stopped" or self.scene.ms - self.scene.let_go_ms <= 2 * _SLACK_MS or life.publication is None:
            return
        for message in self.scene.waiting.values():
            accepted = self._accepted.get(message)
            if accepted is not None and accepted.life is life and (accepted.heard_ms or 0) > life.publication.ms:
                self.broken(f"{message} was accepted before {life.name} stopped, which did not store it")

    def _known_to(self, life: s.Life, publication: s.Publication) -> list[s.Message]:
        """The messages in the store that this monitor knew to be accepted when it made a publication."""
        accepted = ((message, self._accepted.get(message)) for message in self.scene.waiting.values())
        return [
            message
            for message, each in accepted
            if each is not None and each.life is life and each.heard_ms is not None and each.heard_ms < publication.ms
        ]


class StoredBeforeSent(_StoreWorked):
    """What is sent is stored, unless nothing could be for a minute; and who lost the store sends nothing."""

    clauses = ("alerts: none is lost", "M17")

    def __init__(self) -> None:
        super().__init__()
        self._stored_ms: dict[s.Message, int] = {}
        self._began: dict[tuple[int, str], tuple[int, bool]] = {}  # when, and whether without the store

    def written(self, event: s.Written) -> None:
        for message in event.came:
            self._stored_ms.setdefault(message, self.scene.ms)

    def sending(self, event: s.Sending) -> None:
        self._began[event.life.serial, event.target] = self.scene.ms, self.has_failed(event.life)

    def tried(self, event: s.Tried) -> None:
        """What hangs on its way arrives when the store works again, perhaps after it was given up."""
        life, now_ms = event.life, self.scene.ms
        began_ms, without_store = self._began[life.serial, event.message.target]
        if not without_store and self._stored_ms.get(event.message, now_ms) > began_ms:
            self.broken(f"{event.message} was sent before it was stored")
        if life.lost_ms is not None and now_ms - life.lost_ms > _LAST_SEND_MS:
            self.broken(f"{event.message} was sent by a monitor that had lost the store")


class SentWithoutStore(_StoreWorked):
    """That the store cannot be written is sent to every target that accepts, soon after a minute of it."""

    clauses = ("M17",)

    def __init__(self) -> None:
        super().__init__()
        self._heard: set[tuple[int, str]] = set()  # since it failed
        self._reloaded_ms = 0

    def resumed(self, event: s.Resumed) -> None:
        super().resumed(event)
        for episode in decode_alerts(decode_state(event.stored)[1]).state.episodes:
            if episode.check == STORE:
                self._heard.update((event.life.serial, target) for target in episode.reported_to)

    def reloaded(self, _event: s.Reloaded) -> None:
        self._reloaded_ms = self.scene.ms

    def stored(self, event: s.Stored) -> None:
        super().stored(event)
        if event.ok:
            self._heard = {heard for heard in self._heard if heard[0] != event.life.serial}

    def tried(self, event: s.Tried) -> None:
        if "\n- the store: nothing can be stored" in event.message.body:
            self._heard.add((event.life.serial, event.message.target))

    def published(self, event: s.Published) -> None:
        life, now_ms = event.life, self.scene.ms
        since_ms = max(self.worked_ms[life.serial], self._reloaded_ms, life.began_ms or 0)
        if now_ms - since_ms < _SENT_WITHIN_MS or life.stopping:
            return
        for target in life.alert_policy.targets:
            if (life.serial, target) not in self._heard and not self._was_troubled(target, since_ms):
                self.broken(f"{target} has not heard for {now_ms - since_ms} ms that the store cannot be written")

    def _was_troubled(self, target: str, since_ms: int) -> bool:
        """Whether sending to it was in trouble since then, or just before, from which it may still rest."""
        return any(
            fault.of == target and fault.kind in _SENDING_FAULTS and fault.at_ms + fault.lasts_ms > since_ms - _REST_MS
            for fault in self.scene.script.faults
            if fault.at_ms <= self.scene.ms
        )


RULES: Final = (NoneIsLost, NoneComesTwice, StoredBeforeSent, SentWithoutStore)
