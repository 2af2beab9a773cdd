"""Clause R14: the rows of an operator's own services."""

import re
from collections.abc import Iterator
from typing import Final

from lookout.verify.clauses_status import EVALUATED, REASONS, STATUSES
from lookout.verify.documents import Json, describe_row, is_integer
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout_reader import SERVICES

_NAME: Final = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)

# What a probe can find, as the metrics that a row then has.
_NOTHING: Final[frozenset[str]] = frozenset()
_POSITION: Final = frozenset({"position"})
_COMPARED: Final = frozenset({"position", "head"})
_MEMBERS: Final = frozenset({"responding", "monitored"})
_PEERS: Final = frozenset({"peers"})
_SHAPES: Final = (_NOTHING, _POSITION, _COMPARED, _MEMBERS, _PEERS)
_KNOWN: Final = frozenset().union(*_SHAPES)
# Of a reason that is not here, any of them; R8 has said what is to be empty.
_SHAPES_BY_REASON: Final = {
    "synced": (_COMPARED,),
    "behind": (_COMPARED,),
    "responding": (_NOTHING, _MEMBERS, _PEERS),
    "partial-coverage": (_MEMBERS,),
    "no-observation": (_NOTHING,),
    "incompatible-reference": (_NOTHING, _POSITION),
}


def verify_own_services(rows: list[Json]) -> Iterator[ClauseFinding]:
    """What the rows of services that are none of the five show. What is not known here may be of a newer contract."""
    own = [row for row in rows if isinstance(row.get("service"), str) and row["service"] not in SERVICES]
    shared = {row["service"] for row in own if row.get("chainId", ...) is None}
    for service in dict.fromkeys(row["service"] for row in own if row.get("chainId") is not None):
        if service in shared:
            yield failed("R14", f"live report: {quote(service)} has a row of no chain, and one of a chain")
    for row in own:
        wrong = list(_verify_row(row))
        yield from wrong or [passed("R14", "services of the operator's own have names and rows as they should be")]


def _verify_row(row: Json) -> Iterator[ClauseFinding]:
    name, status, reason, metrics = describe_row(row), row.get("status"), row.get("reason"), row.get("metrics")
    if not _NAME.fullmatch(row["service"]):
        yield failed("R14", f"{name}: a service of the operator's own cannot have that name")
    rule = REASONS.get(reason) if isinstance(reason, str) else None
    if rule is not None and status in STATUSES and status not in rule.statuses:
        yield failed("R14", f"{name}: {status} does not go with {reason}")
    if not isinstance(metrics, dict):
        return  # R2 and R8 have said so
    allowed = _SHAPES_BY_REASON.get(reason, _SHAPES) if isinstance(reason, str) else _SHAPES
    if metrics.keys() & _KNOWN not in allowed:
        yield failed("R14", f"{name}: {quote(reason)} with metrics {quote(metrics)}")
    elif status in EVALUATED and not _allow(metrics, is_current=status == "current"):
        yield failed("R14", f"{name}: {status} with metrics {quote(metrics)}")
    elif metrics.keys() - _KNOWN:
        more = min(metrics.keys() - _KNOWN)
        yield inconclusive("R14", f"{name}: metric {quote(more)} is not known here; new ones may appear")


def _allow(metrics: Json, *, is_current: bool) -> bool:
    """Whether a row of these numbers can be current, or can be otherwise: as far as no setting has a say in it."""
    numbers = {key: number for key, number in metrics.items() if is_integer(number)}
    match numbers:
        case {"responding": responding, "monitored": monitored}:  # S10
            return 0 < responding <= monitored and (responding == monitored) == is_current
        case {"position": position, "head": head}:  # S3, S7
            return position < head or is_current
        case {"peers": peers}:  # S11
            return peers != 0
        case _:
            return True
