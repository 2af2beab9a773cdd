"""What the monitor needs to know to alert people."""

from msgspec import Struct

from lookout.alerts.deployment import DEPLOYMENT_OF_THE_FIVE, Deployment
from lookout.core.episodes import EpisodeRules


class AlertPolicy(Struct, frozen=True):
    """The rules, the targets' addresses by their names, for how long a message is tried, and what messages say of the
    deployment."""

    rules: EpisodeRules
    targets: dict[str, str]
    give_up_ms: int
    deployment: Deployment = DEPLOYMENT_OF_THE_FIVE
