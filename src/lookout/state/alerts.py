"""The stored form of alerts: the episodes in one piece, each message that waits in one of its own."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from lookout.alerts.outbox import Queued
from lookout.base.pieces import StateError
from lookout.core.episodes import AlertState, Instant, Lasted

_STATE: Final = "alerts"
_MESSAGE: Final = "alerts/"


class StoredAlerts(Struct, frozen=True):
    """All that has to survive a restart or a takeover."""

    state: AlertState = AlertState()
    next_number: int = 0
    messages: dict[int, Queued] = field(default_factory=dict)  # by their numbers, the oldest first
    restored_at: int | None = None  # when the backup was made that this is, until the messages say so


class _Kept(Struct, frozen=True, omit_defaults=True):
    state: AlertState
    next_id: Lasted
    restored_at: Instant | None = None


def encode_alerts(alerts: StoredAlerts) -> dict[str, bytes]:
    """All pieces. A quiet night makes the same ones, or none, each time: the time matters only to what is under way."""
    state = alerts.state if alerts.state.episodes or alerts.state.gathered or alerts.messages else AlertState()
    kept = _Kept(state, alerts.next_number, alerts.restored_at)
    if kept == _Kept(AlertState(), 0):
        return {}
    messages = {f"{_MESSAGE}{number}": msgspec.json.encode(queued) for number, queued in alerts.messages.items()}
    return {_STATE: msgspec.json.encode(kept), **messages}


def decode_alerts(pieces: Mapping[str, bytes]) -> StoredAlerts:
    """What is in the stored pieces, of which others are skipped. StateError if it cannot be read."""
    kept, messages = _Kept(AlertState(), 0), dict[int, Queued]()
    for name, piece in select_alerts(pieces).items():
        try:
            if name == _STATE:
                kept = msgspec.json.decode(piece, type=_Kept)
            else:
                messages[int(name.removeprefix(_MESSAGE))] = msgspec.json.decode(piece, type=Queued)
        except (ValueError, RecursionError) as error:
            raise StateError(f"the stored piece {name} cannot be read: {error}") from None
    return StoredAlerts(kept.state, kept.next_id, dict(sorted(messages.items())), kept.restored_at)


def select_alerts(pieces: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those of the stored pieces that are about alerts."""
    return {name: piece for name, piece in pieces.items() if name == _STATE or name.startswith(_MESSAGE)}


def mark_restored(pieces: Mapping[str, bytes], at: int) -> dict[str, bytes]:
    """The pieces of a backup of this instant, with a mark by which the monitor finds that it was restored: it does not
    know which alerts were sent since then, and says so."""
    return {**pieces, **encode_alerts(msgspec.structs.replace(decode_alerts(pieces), restored_at=at))}
