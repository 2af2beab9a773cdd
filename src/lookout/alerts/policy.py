"""What the monitor needs to know to alert people."""

from typing import Final

from msgspec import Struct

from lookout.alerts.messages import NAMES_OF_THE_FIVE, Names
from lookout.core.episodes import Rules


class AlertPolicy(Struct, frozen=True):
    """The rules, the targets' addresses by their names, for how long a message is tried, and what messages
    call things."""

    rules: Rules
    targets: dict[str, str]
    give_up_ms: int
    names: Names = NAMES_OF_THE_FIVE


NO_ALERTS: Final = AlertPolicy(Rules((), 0, 0), {}, 0)
