"""Queued messages, and the next step for a target.

It has neither clock nor task: the caller gives the time, on a clock that is never set.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from lookout.base.instants import Lasted
from lookout.features.alerts.messages import OVER, AlertEvent, Message

MOST_WAITING: Final = 100  # messages to one target
_LONGEST_WAIT_MS: Final = 300_000


class Queued(Struct, frozen=True):
    """A queued message as stored; the earliest version stored neither ``is_over`` nor ``event``."""

    target: str
    title: str
    body: str
    made_ms: Lasted  # on the clock of AlertState: only monitored time ages it
    is_over: bool = False
    event: AlertEvent | None = None

    @property
    def message(self) -> Message:
        return Message(self.title, self.body, self.is_over, self.event)

    def checks(self, kinds: Collection[str] | None = None) -> set[tuple[str, int | None]]:
        """The checks with news, or with news of these kinds. Empty for a message about all checks."""
        items = () if self.event is None else self.event.items
        return {(item.service, item.chain_id) for item in items if kinds is None or item.kind in kinds}


class Attempt(NamedTuple):
    """Try this message now."""

    number: int
    queued: Queued


class _Turn(Struct, frozen=True):
    """The retry state of a target."""

    wait_ms: int  # the next rest
    rest_until_ms: int = 0
    last: int = -1  # the last message tried


class Outbox:
    """The messages by number, the oldest first. They can be sent once they are stored, or released."""

    def __init__(self, messages: Mapping[int, Queued], next_number: int, first_rest_ms: int) -> None:
        self.messages = dict(messages)
        self.next_number = next_number
        self._first_rest_ms = first_rest_ms
        self._storing_below = self._sendable_below = 0  # numbers
        self._turns: dict[str, _Turn] = {}

    def next(self, target: str, now_ms: int) -> Attempt | int | None:
        """What to try next with a target, or the instant before which to try nothing; None: before the next publication
        is stored.

        Messages are tried in turn. After a refusal the target rests, and the next message follows, since the message
        may be the cause. Rests double until a message is accepted.
        """
        waiting, turn = self._sendable(target), self._turn(target)
        if not waiting:
            return None
        if now_ms < turn.rest_until_ms:
            return turn.rest_until_ms
        number = next((number for number in waiting if number > turn.last), waiting[0])
        return Attempt(number, self.messages[number])

    def accept(self, attempt: Attempt) -> None:
        """The target took the message."""
        self.messages.pop(attempt.number, None)  # may have been given up meanwhile
        self._turns[attempt.queued.target] = _Turn(self._first_rest_ms, last=attempt.number)

    def refuse(self, attempt: Attempt, now_ms: int) -> None:
        """The target did not take the message."""
        wait_ms = self._turn(attempt.queued.target).wait_ms
        next_ms = min(2 * wait_ms, _LONGEST_WAIT_MS)
        self._turns[attempt.queued.target] = _Turn(next_ms, now_ms + wait_ms, attempt.number)

    def put(self, queued: Queued) -> dict[int, Queued]:
        """Add a message. Returns dropped ones, if too many wait for its target: the oldest without a check's last
        news."""
        self.messages[self.next_number] = queued
        self.next_number += 1
        waiting = [number for number, waits in self.messages.items() if waits.target == queued.target]
        excess = max(0, len(waiting) - MOST_WAITING)
        return self._remove([number for number in waiting if excess and not self._is_last_word(number)][:excess])

    def give_up(self, made_ms: int) -> dict[int, Queued]:
        """Remove messages made until then, on the clock of AlertState, without a check's last news."""
        old = [number for number, waits in self.messages.items() if waits.made_ms <= made_ms]
        return self._remove([number for number in old if not self._is_last_word(number)])

    def keep_targets(self, targets: Collection[str]) -> dict[int, Queued]:
        """Remove the messages to other targets."""
        return self._remove([number for number, waits in self.messages.items() if waits.target not in targets])

    def mark_storing(self) -> None:
        """All messages are about to be stored."""
        self._storing_below = self.next_number

    def mark_stored(self) -> None:
        """The messages of the last ``mark_storing`` are stored; later ones can be, since the store works."""
        self._sendable_below = self._storing_below

    def release(self) -> None:
        """All messages can be sent without being stored."""
        self._sendable_below = self.next_number

    def _sendable(self, target: str) -> list[int]:
        """The stored or released messages to a target, without those that follow another about the same check: the end
        of an episode never overtakes its beginning. Messages about no check are ordered among themselves."""
        sendable: list[int] = []
        ahead: list[set[tuple[str, int | None]]] = []
        for number, queued in self.messages.items():
            if queued.target == target and number < self._sendable_below:
                checks = queued.checks()
                if all(checks.isdisjoint(others) if checks else others for others in ahead):
                    sendable.append(number)
                ahead.append(checks)
        return sendable

    def _is_last_word(self, number: int) -> bool:
        """Whether a message reports an end, and no later one to the same target is about that check. It is kept until
        it is accepted: otherwise the target would only have the beginning."""
        queued = self.messages[number]
        newer = (message for after, message in self.messages.items() if after > number)
        later = [message for message in newer if message.target == queued.target]
        return bool(queued.checks(OVER).difference(*(message.checks() for message in later)))

    def _turn(self, target: str) -> _Turn:
        return self._turns.get(target, _Turn(self._first_rest_ms))

    def _remove(self, numbers: Collection[int]) -> dict[int, Queued]:
        return {number: self.messages.pop(number) for number in numbers}
