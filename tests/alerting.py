"""Alerts that are sent to a test."""

from collections.abc import Callable
from typing import Any

from lookout.core.services import SERVICES
from lookout.features.alerts.alerts import Alerts
from lookout.features.alerts.messages import Deployment
from lookout.features.alerts.sender import Sender
from lookout.features.alerts.settings import AlertRule, AlertsTable
from lookout.features.feature import Feature
from lookout.features.registry import FEATURES

THE_FIVE = Deployment({}, SERVICES.names)


def sending_into(sent: list[str], *rules: AlertRule) -> dict[str, Any]:
    """Of a monitor whose alerts put their titles into this list."""
    table = AlertsTable(targets={"ops": "json://127.0.0.1"}, rules=rules)
    return {"features": with_sender(lambda _: lambda message: sent.append(message.title)), "alerts": table}


def with_sender(open_sender: Callable[[str], Sender]) -> tuple[type[Feature], ...]:
    """All features, of which alerts send like this."""
    return tuple(sending_by(open_sender) if feature is Alerts else feature for feature in FEATURES)


def sending_by(sender: Callable[[str], Sender], rest_ms: int = Alerts.first_rest_ms) -> type[Alerts]:
    class Sending(Alerts):
        open_sender = staticmethod(sender)
        first_rest_ms = rest_ms

    return Sending
