"""The alerts' state as it is stored: one document, and one per message that waits."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from lookout.base.instants import Lasted
from lookout.core.model import Check
from lookout.features.alerts.outbox import Queued
from lookout.features.alerts.rules import AlertState
from lookout.features.outcome import StandIn
from lookout.state.errors import naming

_ALERTS: Final = "alerts"
_MESSAGE: Final = "alerts/"  # followed by a message's number


class StoredAlerts(Struct, frozen=True):
    """The alerts' state that survives a restart or a takeover."""

    state: AlertState = AlertState()
    next_number: int = 0
    messages: dict[int, Queued] = field(default_factory=dict)  # by number, the oldest first


class _AlertPiece(Struct, frozen=True, omit_defaults=True):
    state: AlertState
    next_id: Lasted


def encode_alerts(alerts: StoredAlerts) -> dict[str, bytes]:
    """All documents of alerts. Without episodes or messages they do not change with time, so nothing is written."""
    state = alerts.state if alerts.state.episodes or alerts.state.gathered or alerts.messages else AlertState()
    piece = _AlertPiece(state, alerts.next_number)
    if piece == _AlertPiece(AlertState(), 0):
        return {}
    messages = {f"{_MESSAGE}{number}": msgspec.json.encode(queued) for number, queued in alerts.messages.items()}
    return {_ALERTS: msgspec.json.encode(piece), **messages}


def decode_alerts(documents: Mapping[str, bytes]) -> StoredAlerts:
    kept, messages = _AlertPiece(AlertState(), 0), dict[int, Queued]()
    for name, document in documents.items():
        with naming(name):
            if name == _ALERTS:
                kept = msgspec.json.decode(document, type=_AlertPiece)
            elif name.startswith(_MESSAGE):
                messages[int(name.removeprefix(_MESSAGE))] = msgspec.json.decode(document, type=Queued)
    return StoredAlerts(_restore_stand_ins(kept.state), kept.next_id, dict(sorted(messages.items())))


def _restore_stand_ins(state: AlertState) -> AlertState:
    """A stand-in is stored as a check whose service has a space, which no service's name has."""
    episodes = tuple(replace(episode, check=_restore(episode.check)) for episode in state.episodes)
    gathered = tuple(replace(news, check=_restore(news.check)) for news in state.gathered)
    return replace(state, episodes=episodes, gathered=gathered)


def _restore(check: Check) -> Check:
    return StandIn(*check) if " " in check.service else check
