"""What the monitor needs to know to alert people."""

from typing import Final

from msgspec import Struct

from lookout.core.episodes import Rules
from lookout.core.services import SERVICES


class AlertPolicy(Struct, frozen=True):
    """The rules, the targets' addresses by their names, for how long a message is tried, and what messages name:
    chains, and services in the report's order."""

    rules: Rules
    targets: dict[str, str]
    give_up_ms: int
    chain_names: dict[int, str] = {}
    service_names: tuple[str, ...] = SERVICES.names


NO_ALERTS: Final = AlertPolicy(Rules((), 0, 0), {}, 0)
