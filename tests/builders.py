"""Values for tests: each builder gives something ordinary, and a test says only what matters to it."""

from msgspec.structs import replace

from lookout.base.instants import parse_instant
from lookout.config.tables import HistoryTable, PolicyTable
from lookout.core.heads import Pace, Reference
from lookout.core.model import Check, Found, Observation, Row, Status
from lookout.core.plan import Limits, Plan, Span

LAUNCH: Limits = PolicyTable().limits()
LAUNCH_SPAN: Span = HistoryTable().span()

MESSAGING = Check("messaging", None)
PPOI = Check("ppoi", 1)
BROADCASTERS = Check("broadcasters", 1)
INDEXER = Check("indexer", 1)
HOSTED_INDEXER = Check("hosted-indexer", 1)

NOON = parse_instant("2026-11-05T12:00:00.000Z")  # the start of a bucket
SECOND = 1_000
MINUTE = 60_000
HOUR = 3_600_000
DAY = 86_400_000

# By the characters of the history.
STATUSES: dict[str, Status] = {
    "c": "current",
    "k": "catching-up",
    "d": "degraded",
    "u": "unavailable",
    "?": "unknown",
    ".": "unmonitored",
}

TWELVE_SECONDS = Pace(12_000, 1)


def an_observation(found: Found, *, at: int = NOON, check: Check = MESSAGING) -> Observation:
    return Observation(check, at, found)


def a_reference(head: int, *, confirmations: int = 0, read_at: int = NOON, pace: Pace = TWELVE_SECONDS) -> Reference:
    return Reference(head + confirmations, head, read_at, pace)


def a_row(status: Status, *, check: Check = MESSAGING, expires_at: int | None = None) -> Row:
    return Row(check, status, "responding", expires_at=expires_at)


def a_plan(
    *monitored: Check,
    chains: tuple[int, ...] = (1,),
    confirmations: int = 5,
    limits: Limits = LAUNCH,
    span: Span = LAUNCH_SPAN,
) -> Plan:
    """A plan of these checks, or of every check, on chains with a block every 12 s."""
    every = Plan(dict.fromkeys(chains, TWELVE_SECONDS), frozenset(), {}, limits, span)
    checks = frozenset(monitored or every.checks())
    return replace(
        every,
        monitored=checks,
        confirmations={check: confirmations for check in checks if check.service.endswith("indexer")},
    )
