"""What a wallet's users may notice of a row, in the words of the page: no more than the row says (C12)."""

from typing import Final

from lookout.core.model import Reason, Status

_OF_INDEXERS: Final = {
    "unavailable": "new transactions may show up late",
    "behind": "new transactions may show up late",
    "far-behind": "new transactions may show up very late",
    "incomplete": "past transactions may be missing or wrong",
}
EFFECTS: Final = {
    "messaging": {"unavailable": "sending through broadcasters may fail"},
    "ppoi": {
        "unavailable": "new proofs of innocence may be delayed",
        "behind": "new proofs of innocence may be delayed",
        "far-behind": "new proofs of innocence may be delayed for long",
    },
    "broadcasters": {
        "unavailable": "sending may fail",
        "partial": "sending may take longer: some broadcasters are not heard, others may work",
    },
    "indexer": _OF_INDEXERS,
    "hosted-indexer": _OF_INDEXERS,
}
_BY_REASON: Final = {"partial-coverage": "partial", "incomplete": "incomplete", "inconsistent": "incomplete"}
_BY_STATUS: Final = {"unavailable": "unavailable", "catching-up": "behind", "degraded": "far-behind"}
_UNJUDGED: Final = "perhaps nothing of what cannot be judged"


def describe_effect(service: str, status: Status, reason: Reason) -> str | None:
    """None of a service of the operator's own: what it is for is not known."""
    if service not in EFFECTS:
        return None
    if status == "unknown":
        return _UNJUDGED
    return EFFECTS[service].get(_BY_REASON.get(reason) or _BY_STATUS.get(status, ""))
