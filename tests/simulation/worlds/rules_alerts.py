"""Rules about alerts: people are sent what the publications say and nothing else, and of the messages none is lost,
none comes twice, and none before its turn."""

from collections import Counter, defaultdict
from typing import Final, NamedTuple

from lookout.core.model import Check
from tests.simulation.worlds import scene as s
from tests.simulation.worlds.message_lines import Lines, lines_of
from tests.simulation.worlds.rules import Rule
from tests.simulation.worlds.script import TARGETS

_SLOW_WRITE_MS: Final = 2_000
_HEARTBEAT_MS: Final = 30_000
_FIRST_WAIT_MS: Final = 5_000
_LONGEST_WAIT_MS: Final = 300_000
_SLACK_MS: Final = 15_000  # to send


def is_of_clock(message: s.Message) -> bool:
    """Whether it is about the monitor's own clock, and no check (M17)."""
    return "this machine's clock is" in message.title


def checks_of(message: s.Message) -> set[Check]:
    return set() if is_of_clock(message) else {each.check for each in lines_of(message.body)}


class _AboutMessages(Rule):
    """Knows when each message was made, on the clock of its line, and which targets a monitor had to do without."""

    def __init__(self) -> None:
        self._last_clock_ms = 0
        self._made_ms: dict[s.Message, tuple[int, int]] = {}  # not before, and not after
        self._gone_ms: dict[tuple[int, str], int] = {}
        self._newest: dict[tuple[str, Check], s.Message] = {}  # to a target, about a check

    def resumed(self, event: s.Resumed) -> None:
        publication = event.life.publication
        self._last_clock_ms = 0 if publication is None else publication.due.clock_ms
        self._look_who_is_gone(event.life)

    def reloaded(self, event: s.Reloaded) -> None:
        self._look_who_is_gone(event.life)

    def written(self, event: s.Written) -> None:
        clock_ms = event.publication.due.clock_ms
        waiting = Counter(self.scene.waiting.values())
        for message in event.came:
            # The first of two in the same words is given up first.
            not_before_ms = self._made_ms[message][0] if waiting[message] > 1 else self._last_clock_ms
            self._made_ms[message] = not_before_ms, clock_ms
            self._newest.update(dict.fromkeys(((message.target, check) for check in checks_of(message)), message))
        self._last_clock_ms = clock_ms

    def may_be_given_up(self, life: s.Life, message: s.Message) -> bool:
        publication = life.publication
        clock_ms = 0 if publication is None else publication.due.clock_ms
        return clock_ms - self._made_ms[message][0] >= life.alert_policy.give_up_ms

    def is_last_word(self, message: s.Message) -> bool:
        """Whether it ends something, and is the newest message to its target about that check."""
        if is_of_clock(message):
            return "right again" in message.title
        over = {each.check for each in lines_of(message.body) if each.kind in ("ended", "left")}
        return any(self._newest[message.target, check] == message for check in over)

    def may_be_dropped(self, life: s.Life, target: str, made_ms: int = -1) -> bool:
        """Whether the target has been gone since then."""
        return self._gone_ms.get((life.serial, target), -2) >= made_ms

    def _look_who_is_gone(self, life: s.Life) -> None:
        gone = (target for target in TARGETS if target not in life.alert_policy.targets)
        self._gone_ms.update(dict.fromkeys(((life.serial, target) for target in gone), self.scene.ms))


class SendsWhatIsDue(_AboutMessages):
    """With each publication exactly those messages are stored that it makes due, or that one before it did which was
    not stored."""

    clauses = ("alerts: what is sent, and when", "alerts: when the configuration changes")

    def __init__(self) -> None:
        super().__init__()
        self._upto: s.Publication | None = None

    def resumed(self, event: s.Resumed) -> None:
        super().resumed(event)
        self._upto = event.life.publication

    def written(self, event: s.Written) -> None:
        super().written(event)
        due = self._due(event)
        for message in event.came:
            if is_of_clock(message):
                self._check_clock_message(event.life, message)
                continue
            try:
                lines = lines_of(message.body)
            except ValueError as error:
                self.broken(f"{message.target} is sent {error}")
            while due and due[0][:2] != (message.target, lines):
                self._excuse(event, *due.pop(0), f", but {lines}")
            if not due:
                self.broken(f"{message.target} is sent what is not due: {lines}")
            due.pop(0)
        for each in due:
            self._excuse(event, *each)

    def _check_clock_message(self, life: s.Life, message: s.Message) -> None:
        """The clock is called wrong only if it is (M17). It may have been set since the message was made."""
        is_set_lately = self.scene.ms - (life.began_ms or 0) < _SLACK_MS
        if "right again" not in message.title and not life.may_suspect_its_clock and not is_set_lately:
            self.broken(f"{message} is sent of a clock that is {life.clock.ahead_ms()} ms ahead")

    def _due(self, event: s.Written) -> list[tuple[str, Lines, s.Publication]]:
        line: list[s.Publication] = []
        each: s.Publication | None = event.publication
        while each is not None and each is not self._upto:
            line.append(each)
            each = each.before
        self._upto = event.publication
        due = [(target, lines, made) for made in reversed(line) for target, lines in made.messages]
        return [each for place, each in enumerate(due) if not self._is_dropped(event, *each, due[place + 1 :])]

    def _is_dropped(
        self,
        event: s.Written,
        target: str,
        lines: Lines,
        made: s.Publication,
        later: list[tuple[str, Lines, s.Publication]],
    ) -> bool:
        """It was given up, or its target left, before it could be stored."""
        is_old = event.publication.due.clock_ms - made.due.clock_ms >= event.life.alert_policy.give_up_ms
        over = {each.check for each in lines if each.kind in ("ended", "left")}
        over -= {each.check for to, others, _ in later if to == target for each in others}
        gone_ms = self._gone_ms.get((event.life.serial, target), -1)
        return (is_old and not over) or made.ms < gone_ms < event.publication.ms

    def _excuse(self, event: s.Written, target: str, lines: Lines, made: s.Publication, instead: str = "") -> None:
        """Its target may have left in the very instant."""
        if not self.may_be_dropped(event.life, target, made.ms):
            self.broken(f"{target} is not sent {lines}{instead}")


class NoneIsLost(_AboutMessages):
    """A message stays in the store until it is accepted or given up, and is tried as often as is said."""

    clauses = ("alerts: none is lost", "alerts: targets do not disturb the watching, nor each other")

    def __init__(self) -> None:
        super().__init__()
        self._accepted: dict[int, set[s.Message]] = defaultdict(set)
        self._quiet_ms: dict[tuple[int, str], int] = {}  # when something last happened
        self._refusals: dict[tuple[int, str], int] = defaultdict(int)
        self._in_trouble_ms: dict[int, int] = {}  # when the store last was
        self._came_ms: dict[s.Message, int] = {}

    def tried(self, event: s.Tried) -> None:
        key = event.life.serial, event.message.target
        self._quiet_ms[key] = self.scene.ms
        if event.accepted:
            self._accepted[event.life.serial].add(event.message)
        self._refusals[key] = 0 if event.accepted and event.answers else self._refusals[key] + 1

    def heard(self, event: s.Heard) -> None:
        self._quiet_ms[event.life.serial, event.target] = self.scene.ms

    def written(self, event: s.Written) -> None:
        super().written(event)
        self._came_ms.update(dict.fromkeys(event.came, self.scene.ms))
        life, clock_ms = event.life, event.publication.due.clock_ms
        for message in event.went:
            accepted = message in self._accepted[life.serial]
            age_ms = clock_ms - self._made_ms[message][0]
            is_due = age_ms >= life.alert_policy.give_up_ms and not self.is_last_word(message)
            if not accepted and not is_due and not self.may_be_dropped(life, message.target):
                self.broken(f"{message} is gone after {age_ms} ms, though it was not accepted")
        waiting = self.scene.waiting.values()
        for message in waiting:
            age_ms = clock_ms - self._made_ms[message][1]
            followers = {self._newest[message.target, check] for check in checks_of(message)}  # or lost with the store
            is_followed = not self.is_last_word(message) and followers <= {*waiting}
            if age_ms >= life.alert_policy.give_up_ms and is_followed:
                self.broken(f"{message} is still there after {age_ms} ms")

    def stored(self, event: s.Stored) -> None:
        life, scene = event.life, self.scene
        slow = life.writing is None or scene.ms - life.writing.ms > _SLOW_WRITE_MS
        if not event.ok or slow or life.serial not in self._in_trouble_ms:
            self._in_trouble_ms[life.serial] = scene.ms
        for message in scene.waiting.values():
            key = life.serial, message.target
            hindered_ms = max(scene.last_active_ms(kind, message.target) for kind in ("send-hangs", "no-thread"))
            self._quiet_ms[key] = max(self._quiet_ms.get(key, 0), hindered_ms)
            wait_ms = min(_FIRST_WAIT_MS * 2 ** min(self._refusals[key], 10), _LONGEST_WAIT_MS)
            since_ms = (self._quiet_ms[key], self._in_trouble_ms[life.serial], self._came_ms[message])
            idle_ms = scene.ms - max(since_ms)
            if idle_ms > wait_ms + _SLACK_MS and not self.may_be_dropped(life, message.target):
                self.broken(f"{message} has not been tried for {idle_ms} ms, after {self._refusals[key]} refusals")


class _Acceptance(NamedTuple):
    life: s.Life
    answers: bool
    at_ms: int
    heard_ms: int | None = None


class NoneComesTwice(Rule):
    """A message that was accepted leaves the store with the next publication, and is not sent again, unless its sender
    could not know or had no time to store it."""

    clauses = ("alerts: none comes twice",)

    def __init__(self) -> None:
        self._accepted: dict[s.Message, _Acceptance] = {}
        self._came: Counter[s.Message] = Counter()
        self._reloaded_ms: dict[s.Life, int] = {}

    def reloaded(self, event: s.Reloaded) -> None:
        self._reloaded_ms[event.life] = self.scene.ms

    def tried(self, event: s.Tried) -> None:
        if not event.accepted or self._has_a_twin(event.message):
            return
        before = self._accepted.get(event.message)
        if before is not None and before.answers:
            # A reload does not wait for a target that is slow.
            was_cut_off = self.scene.ms - self._reloaded_ms.get(event.life, -_SLACK_MS) < _SLACK_MS
            if before.life is event.life and not was_cut_off:
                self.broken(f"{event.message} was sent again")
            was_overtaken = self.scene.ms - self.scene.let_go_ms <= _HEARTBEAT_MS + _SLACK_MS
            is_forgotten = self.scene.went_back_ms >= before.at_ms  # and due again, in the same words
            if event.message not in self.scene.waiting.values() and not was_overtaken and not is_forgotten:
                self.broken(f"{event.message} was sent again, though it was known to be accepted")
        self._accepted[event.message] = _Acceptance(event.life, event.answers, self.scene.ms)

    def heard(self, event: s.Heard) -> None:
        if event.accepted and event.message is not None and event.message in self._accepted:
            known = self._accepted[event.message]
            if known.life is event.life:
                self._accepted[event.message] = known._replace(heard_ms=self.scene.ms)

    def written(self, event: s.Written) -> None:
        self._came.update(event.came)
        for message in self._known_to(event.life, event.publication):
            self.broken(f"{message} is still in the store, though it was accepted before {event.publication.at}")

    def ended(self, event: s.Ended) -> None:
        life = event.life
        if event.how != "stopped" or self.scene.ms - self.scene.let_go_ms <= 2 * _SLACK_MS or life.publication is None:
            return
        for message in self.scene.waiting.values():
            accepted = None if self._has_a_twin(message) else self._accepted.get(message)
            if accepted is not None and accepted.life is life and (accepted.heard_ms or 0) > life.publication.ms:
                self.broken(f"{message} was accepted before {life.name} stopped, which did not store it")

    def _has_a_twin(self, message: s.Message) -> bool:
        """Two rules that remind of one check within a second do so in the same words: which one was accepted cannot be
        known."""
        return self._came[message] > 1

    def _known_to(self, life: s.Life, publication: s.Publication) -> list[s.Message]:
        """The messages in the store that this monitor knew to be accepted when it made a publication."""
        waiting = (message for message in self.scene.waiting.values() if not self._has_a_twin(message))
        accepted = ((message, self._accepted.get(message)) for message in waiting)
        return [
            message
            for message, each in accepted
            if each is not None and each.life is life and each.heard_ms is not None and each.heard_ms < publication.ms
        ]


class StoredBeforeSent(Rule):
    """What is sent is stored."""

    clauses = ("alerts: none is lost",)

    def __init__(self) -> None:
        self._stored: set[s.Message] = set()

    def written(self, event: s.Written) -> None:
        self._stored.update(event.came)

    def tried(self, event: s.Tried) -> None:
        if event.message not in self._stored:
            self.broken(f"{event.message} was sent before it was stored")


class InOrder(_AboutMessages):
    """To each target the oldest message goes first, but for those that it refused; about one check even then."""

    clauses = ("alerts: messages come in order",)

    def __init__(self) -> None:
        super().__init__()
        self._resumed: s.Life | None = None  # the last one: the messages that wait are its own
        self._heard: dict[tuple[int, s.Message], bool] = {}  # as a monitor knows: whether it was accepted

    def resumed(self, event: s.Resumed) -> None:
        super().resumed(event)
        self._resumed = event.life

    def heard(self, event: s.Heard) -> None:
        if event.message is not None:
            self._heard[event.life.serial, event.message] = event.accepted

    def tried(self, event: s.Tried) -> None:
        life, target = event.life, event.message.target
        if life is not self._resumed:
            return  # it was overtaken and does not know it yet: what waits in the store is another monitor's
        if event.message not in self.scene.waiting.values() or self.may_be_dropped(life, target):
            return  # it was given up while it was being sent
        held_up: set[Check] = set()
        for _, message in sorted(self.scene.waiting.items()):
            if message == event.message:
                return
            heard = self._heard.get((life.serial, message))
            if message.target == target and not heard:
                checks = checks_of(message)
                may_be_gone = self.may_be_given_up(life, message)  # or hold up others until the next publication
                has_had_its_turn = may_be_gone or heard is not None or not held_up.isdisjoint(checks)
                if not has_had_its_turn or not (may_be_gone or checks.isdisjoint(checks_of(event.message))):
                    self.broken(f"{event.message} was sent before {message}")
                held_up |= checks


RULES: Final = (SendsWhatIsDue, NoneIsLost, NoneComesTwice, StoredBeforeSent, InOrder)
