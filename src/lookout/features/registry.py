"""Every feature. Nothing else names one, but its own command in ``cli``."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from lookout.core.ledger import State
from lookout.core.notices import Notices
from lookout.features.alerts.alerts import Alerts
from lookout.features.feature import Feature
from lookout.features.lists.lists import Lists
from lookout.features.witnesses.witnesses import Witnesses
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.state.codec import CLAIMED, decode_notices, decode_sightings, decode_state

FEATURES: Final[tuple[type[Feature], ...]] = (
    Lists,
    Witnesses,
    Alerts,
)
"""Alerts are last: they report what the others found."""


class Kept(NamedTuple):
    """All that a monitor resumes; a state of None is of a monitor that never published."""

    state: State | None
    sightings: dict[str, SeenBroadcasters]
    notices: Notices
    of_features: Mapping[type[Feature], Any]
    unclaimed: dict[str, bytes]
    """Of features that are not here: written along as they are."""


def decode_all(stored: Mapping[str, bytes], features: Iterable[type[Feature]] = FEATURES) -> Kept:
    """StateError if a document cannot be read: then no monitor starts, and no backup is restored."""
    state, documents = decode_state(stored)
    claimed = {*CLAIMED, *(name for feature in features for name in feature.claimed)}
    return Kept(
        state,
        decode_sightings(documents),
        decode_notices(documents),
        {feature: feature.decode(documents) for feature in features},
        {name: document for name, document in documents.items() if name.partition("/")[0] not in claimed},
    )
