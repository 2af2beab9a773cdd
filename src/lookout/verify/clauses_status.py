"""Clauses S, as far as a row shows them: which status goes with which reason, service and numbers."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from lookout.verify.documents import Json, describe_row, is_integer
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed
from lookout_reader.statuses import CHARACTERS, KNOWN_STATUSES

STATUSES: Final = tuple(CHARACTERS)
ACTIONABLE: Final = KNOWN_STATUSES
# The latest probe succeeded and was compared.
EVALUATED: Final = tuple(status for status in ACTIONABLE if status != "unavailable")
FAILED: Final = "unreachable"
_ALLOWANCE_BLOCKS: Final = 10
# Blocks in the 30 minutes after which no row is current, however its allowance is tuned (S5), by the pace that its
# chain had at launch; by ten blocks a second if it is another chain.
_DEGRADED_BLOCKS: Final = {1: 150, 42161: 7_200, 137: 1_029, 56: 4_000, 11155111: 150}
_MOST_DEGRADED_BLOCKS: Final = 18_000

_INDEXERS: Final = ("indexer", "hosted-indexer")
_COMPARED: Final = ("ppoi", *_INDEXERS)
_COUNTED: Final = ("broadcasters", "messaging")
_ANY: Final = (*_COMPARED, *_COUNTED)


class _Reason(NamedTuple):
    clause: str
    statuses: tuple[str, ...]
    services: tuple[str, ...]


REASONS: Final = {
    "synced": _Reason("S3", ("current",), _COMPARED),
    "behind": _Reason("S4", ("catching-up", "degraded"), _COMPARED),
    "responding": _Reason("S10", ("current",), _COUNTED),
    "partial-coverage": _Reason("S10", ("degraded",), ("broadcasters",)),
    FAILED: _Reason("S1", ("unknown", "unavailable"), _ANY),
    "not-configured": _Reason("S14", ("unmonitored",), _ANY),
    "no-observation": _Reason("S12", ("unknown",), _ANY),
    "incompatible-reference": _Reason("S13", ("unknown",), _COMPARED),
    "incomplete": _Reason("S18", ("degraded",), _INDEXERS),
    "inconsistent": _Reason("S18", ("degraded",), _INDEXERS),
}


def verify_status(row: Json) -> Iterator[ClauseFinding]:
    """A row's status against its own reason and numbers; words that are not known here say nothing."""
    service, status, reason = row.get("service"), row.get("status"), row.get("reason")
    if status not in STATUSES or not isinstance(reason, str) or reason not in REASONS or service not in _ANY:
        return
    name, rule = describe_row(row), REASONS[reason]
    clause = "S11" if rule.clause == "S10" and service == "messaging" else rule.clause
    if status not in rule.statuses:
        yield failed(clause, f"{name}: {status} does not go with {reason}")
    elif service not in rule.services:
        yield failed(clause, f"{name}: {reason} is no reason of this service")
    else:
        if clause in ("S12", "S13", "S14", "S18"):
            yield passed(clause, f"{reason} goes with {status}")
        metrics = row.get("metrics")
        if isinstance(metrics, dict) and status in EVALUATED and clause != "S18":  # its status is not by these numbers
            yield from _verify_numbers(str(service), str(status), row, metrics)


def _verify_numbers(service: str, status: str, row: Json, metrics: Json) -> Iterator[ClauseFinding]:
    name = describe_row(row)
    position, head = metrics.get("position"), metrics.get("head")
    responding, monitored, peers = metrics.get("responding"), metrics.get("monitored"), metrics.get("peers")
    if service in _COMPARED and is_integer(position) and is_integer(head):
        yield from _verify_lag(service, status, row, max(0, head - position))
    elif service == "broadcasters" and is_integer(responding) and is_integer(monitored) and responding <= monitored:
        if responding == 0 or (responding == monitored) != (status == "current"):
            yield failed("S10", f"{name}: {status} with {responding} of {monitored} broadcasters")
        else:
            yield passed("S10", "broadcasters are current when all answer, and degraded when some do")
    elif service == "messaging" and is_integer(peers):
        if peers == 0:
            yield failed("S11", f"{name}: current without a peer")
        else:
            yield passed("S11", "messaging is current with a peer or more")


def _verify_lag(service: str, status: str, row: Json, lag: int) -> Iterator[ClauseFinding]:
    name, chain_id = describe_row(row), row.get("chainId")
    most = _DEGRADED_BLOCKS.get(chain_id, _MOST_DEGRADED_BLOCKS) if is_integer(chain_id) else _MOST_DEGRADED_BLOCKS
    if service == "ppoi":
        if lag == 0 and status != "current":
            yield failed("S7", f"{name}: {status}, although its position has reached its head")
        elif lag == 0:
            yield passed("S7", "a ppoi node that has reached its own head is current")
    elif status == "current" and lag > most:
        yield failed(
            "S3", f"{name}: current with {lag} blocks of lag: its chain makes no more than {most} in 30 minutes"
        )
    elif status == "current" and lag > _ALLOWANCE_BLOCKS:
        yield inconclusive(
            "S3", f"{name}: current with {lag} blocks of lag: right if they take its chain 2 minutes at most"
        )
    elif status == "current":
        yield passed("S3", f"current with at most {_ALLOWANCE_BLOCKS} blocks of lag")
    elif lag == 0:
        yield failed("S3", f"{name}: {status} without any lag")
    elif lag <= _ALLOWANCE_BLOCKS:
        yield inconclusive("S3", f"{name}: {status} with {lag} blocks of lag: the allowance is tuned, it seems")
    else:
        yield passed("S4", f"behind with more than {_ALLOWANCE_BLOCKS} blocks of lag")
