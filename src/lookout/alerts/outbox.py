"""Messages that wait for their targets, and what to do next for each target.

There is neither clock nor task here: the caller says what time it is, on a clock that is never set.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from lookout.alerts.event import AlertEvent
from lookout.alerts.messages import OVER, Message
from lookout.core.episodes import Lasted

MOST_WAITING: Final = 100  # messages to one target
# PostgreSQL lets another monitor in when this one was silent for 5 s: what was stored a moment ago is still ours.
FRESH_MS: Final = 4_000
FIRST_WAIT_MS: Final = 5_000  # after messages were refused
_LONGEST_WAIT_MS: Final = 300_000


class Queued(Struct, frozen=True):
    """A message that waits, as it is stored; the first ones that were had neither ``is_over`` nor ``event``."""

    target: str
    title: str
    body: str
    made_ms: Lasted  # on the clock of AlertState: only time that was seen makes it old
    is_over: bool = False
    event: AlertEvent | None = None

    @property
    def message(self) -> Message:
        return Message(self.title, self.body, self.is_over, self.event)

    def checks(self, kinds: Collection[str] | None = None) -> set[tuple[str, int | None]]:
        """The checks that it has news of, or news of these kinds. Empty for a message that is about all checks."""
        items = () if self.event is None else self.event.items
        return {(item.service, item.chain_id) for item in items if kinds is None or item.kind in kinds}


class Attempt(NamedTuple):
    """Try this message now."""

    number: int
    queued: Queued
    wait_ms: int  # the next rest, if it is refused


class Wait(NamedTuple):
    """Try nothing before this instant; None: before the next publication is stored."""

    until_ms: int | None = None
    needs_publication: bool = False  # only one that is stored shows that the store is still ours


class _Round(Struct, frozen=True):
    """Where the trying of one target is: a round ends with a rest."""

    wait_ms: int  # the next rest
    rest_until_ms: int = 0
    refused: tuple[int, ...] = ()  # in this round
    second: int = -1  # the message that was last tried after another one was refused


class Outbox:
    """The messages by their numbers, the oldest first. They can be tried once they are stored."""

    def __init__(self, messages: Mapping[int, Queued], next_number: int, first_wait_ms: int = FIRST_WAIT_MS) -> None:
        self.messages = dict(messages)
        self.next_number = next_number
        self._first_wait_ms = first_wait_ms
        self._storing_below = self._stored_below = 0  # numbers
        self._stored_ms: int | None = None
        self._rounds: dict[str, _Round] = {}

    def next(self, target: str, now_ms: int) -> Attempt | Wait:
        """What to do for a target: try its oldest message. If that is refused the reason may be the message and not the
        target, so another one is tried, each in its turn, before the target rests. Rests double."""
        waiting = self._sendable(target)
        current = self._round(target)
        if not waiting:
            return Wait()
        if now_ms < current.rest_until_ms:
            return Wait(current.rest_until_ms)
        if not self.owns_store(now_ms):
            return Wait(needs_publication=True)
        others = [number for number in waiting if number not in current.refused] or waiting  # the other one may be gone
        in_turn = (number for number in others if current.refused and number > current.second)
        number = next(in_turn, others[0])
        return Attempt(number, self.messages[number], current.wait_ms)

    def owns_store(self, now_ms: int) -> bool:
        """Whether no other monitor can have taken over yet, and with the store the messages."""
        return self._stored_ms is not None and now_ms - self._stored_ms < FRESH_MS

    def accept(self, attempt: Attempt, now_ms: int) -> None:
        """The target took the message."""
        self.messages.pop(attempt.number, None)  # it may have been given up meanwhile
        refused = self._round(attempt.queued.target).refused
        self._end_attempt(attempt, refused, self._first_wait_ms, now_ms)

    def refuse(self, attempt: Attempt, now_ms: int) -> None:
        """The target did not take the message."""
        current = self._round(attempt.queued.target)
        self._end_attempt(attempt, (*current.refused, attempt.number), current.wait_ms, now_ms)

    def put(self, queued: Queued) -> dict[int, Queued]:
        """Add a message. Those that are dropped for it, if too many wait for its target: the oldest that are no check's
        last word."""
        self.messages[self.next_number] = queued
        self.next_number += 1
        waiting = [number for number, each in self.messages.items() if each.target == queued.target]
        excess = max(0, len(waiting) - MOST_WAITING)
        return self._remove([number for number in waiting if excess and not self._is_last_word(number)][:excess])

    def give_up(self, made_ms: int) -> dict[int, Queued]:
        """Remove the messages that were made by then, on the clock of AlertState, and are no check's last word."""
        old = [number for number, each in self.messages.items() if each.made_ms <= made_ms]
        return self._remove([number for number in old if not self._is_last_word(number)])

    def keep_targets(self, targets: Collection[str]) -> dict[int, Queued]:
        """Remove the messages to other targets. Those that stay are tried at once: an address may be a new one."""
        rounds = self._rounds.items()
        self._rounds = {name: _Round(each.wait_ms, second=each.second) for name, each in rounds if name in targets}
        return self._remove([number for number, each in self.messages.items() if each.target not in targets])

    def mark_storing(self) -> None:
        """All that is here is about to be stored."""
        self._storing_below = self.next_number

    def mark_stored(self, stored_ms: int) -> None:
        """All that was about to be stored is; at this instant the store was ours."""
        self._stored_below, self._stored_ms = self._storing_below, stored_ms

    def _sendable(self, target: str) -> list[int]:
        """The stored messages to a target, but for those that follow another one about the same check: the end of an
        episode never overtakes its beginning. Those about no check have an order among themselves."""
        sendable: list[int] = []
        ahead: list[set[tuple[str, int | None]]] = []
        for number, queued in self.messages.items():
            if queued.target == target and number < self._stored_below:
                checks = queued.checks()
                if all(checks.isdisjoint(others) if checks else others for others in ahead):
                    sendable.append(number)
                ahead.append(checks)
        return sendable

    def _is_last_word(self, number: int) -> bool:
        """Whether a message reports an end, and none after it to the same target is about that check. It is kept until
        it is accepted: otherwise people would be left with the beginning."""
        queued = self.messages[number]
        later = [each for after, each in self.messages.items() if after > number and each.target == queued.target]
        ended = queued.checks(OVER)
        return bool(ended.difference(*(each.checks() for each in later)))

    def _round(self, target: str) -> _Round:
        return self._rounds.get(target, _Round(self._first_wait_ms))

    def _end_attempt(self, attempt: Attempt, refused: tuple[int, ...], wait_ms: int, now_ms: int) -> None:
        """Rest after two were refused, or one and no other is left to try."""
        target = attempt.queued.target
        before = self._round(target)
        second = attempt.number if before.refused else before.second
        left = [number for number in self._sendable(target) if number not in refused]
        if len(refused) > 1 or (refused and not left):
            self._rounds[target] = _Round(min(2 * wait_ms, _LONGEST_WAIT_MS), now_ms + wait_ms, second=second)
        else:
            self._rounds[target] = _Round(wait_ms, refused=refused, second=second)

    def _remove(self, numbers: Collection[int]) -> dict[int, Queued]:
        return {number: self.messages.pop(number) for number in numbers}
