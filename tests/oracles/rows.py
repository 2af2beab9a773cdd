"""Rows by the contract's sentences (S1 to S15, R5 to R8, R11, R13), worked out slowly.

An observer who does not know everything says what may have been: each possible past of a check is followed, and a row
is right if one of them leads to it.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from msgspec import to_builtins
from msgspec.structs import asdict

from lookout.core.heads import Reading
from lookout.core.model import Blocks, Failed, Found, Indexes, Members, MissingList, Nothing, Peers, Responding, Row
from lookout.core.plan import Limits

Verdict = Literal["failed", "nothing", "incomparable", "responding", "partial", "synced", "behind", "far"]
"""What one probe came to."""

_BY_LAG: Final[tuple[Verdict, ...]] = ("synced", "behind", "far")


class Past(NamedTuple):
    """What of a check's probes so far decides its next row."""

    failures: int = 0  # in a row
    far: int = 0  # evaluations in a row that found it far behind
    last_success_at: int | None = None
    trailing: tuple[tuple[int, int], ...] = ()  # ppoi, since it last was caught up: when it was behind which head


NO_PAST: Final = frozenset({Past()})


class Probe(NamedTuple):
    """A probe that ended, as far as somebody knows."""

    found: Found
    at: int
    ended_ms: int | None = None
    """The same instant on a clock that is never set, if ``at`` is not of such a one."""
    less_ms: float = 0
    """How much less time may have passed, by the monitor's clock, since any probe before it."""
    more_ms: float = 0
    compared: tuple[Verdict, ...] = ("incomparable",)
    """Of an indexer's position: what comparing it with the head may have come to."""
    head: int | None = None
    """Of an indexer: what it was compared with, if that is known."""


class Shown(NamedTuple):
    """A row."""

    status: str
    reason: str
    observed_at: int | None = None
    last_success_at: int | None = None
    expires_at: int | None = None
    metrics: dict[str, int] = {}  # noqa: RUF012  nobody changes it


def shown(row: Row) -> Shown:
    metrics: dict[str, int] = to_builtins(row.metrics)
    return Shown(row.status, row.reason, row.observed_at, row.last_success_at, row.expires_at, metrics)


UNOBSERVED: Final = Shown("unknown", "no-observation")  # S12


def follow(pasts: Iterable[Past], probe: Probe, limits: Limits) -> Iterator[tuple[Past, Shown]]:
    """Every row that the probe may have given, with the past it leaves."""
    for before in pasts:
        past, verdicts = _judge(before, probe, limits)
        for verdict in verdicts:
            yield _conclude(past, verdict, probe, limits)


def _judge(past: Past, probe: Probe, limits: Limits) -> tuple[Past, tuple[Verdict, ...]]:
    match probe.found:
        case Failed() | Peers(peers=0):  # S11
            return past, ("failed",)
        case Peers() | Responding():
            return past, ("responding",)
        case Nothing() | Members(monitored=0):  # S10, S12
            return past, ("nothing",)
        case Members(responding, monitored):  # S10
            return past, ("responding" if responding == monitored else "partial" if responding else "failed",)
        case MissingList():  # S13
            return past, ("incomparable",)
        case Blocks():
            return past, probe.compared
        case Indexes(position, head) if position >= head:  # S7
            return past._replace(trailing=()), ("synced",)
        case Indexes(position, head):
            now = probe.at if probe.ended_ms is None else probe.ended_ms
            past = past._replace(trailing=(*past.trailing, (now, head)))
            best, worst = (
                _compare_indexes(position, past, at, limits) for at in (now - probe.less_ms, now + probe.more_ms)
            )
            return past, between(best, worst)


def _compare_indexes(position: int, past: Past, at: float, limits: Limits) -> Verdict:
    """S8, S9."""
    since_at, _ = past.trailing[0]
    if at - since_at < limits.ppoi_behind_ms:
        return "synced"
    long_ago = [head for seen_at, head in past.trailing if at - seen_at >= limits.degraded_lag_ms]
    return "far" if position < max(long_ago, default=0) else "behind"


def compare_blocks(lag: int, block_ms: float | Fraction, limits: Limits) -> Verdict:
    """S3, S4, S5: an indexer that lacks so many blocks, each of which takes so long."""
    if lag <= limits.allowance_blocks or lag * block_ms <= limits.allowance_ms:
        return "synced"
    return "far" if lag * block_ms >= limits.degraded_lag_ms else "behind"


def between(best: Verdict, worst: Verdict) -> tuple[Verdict, ...]:
    """All that is possible if these two are the limits."""
    return _BY_LAG[_BY_LAG.index(best) : _BY_LAG.index(worst) + 1]


def _conclude(past: Past, verdict: Verdict, probe: Probe, limits: Limits) -> tuple[Past, Shown]:
    at = probe.at
    if verdict == "failed":  # S1, S2
        past = past._replace(failures=past.failures + 1)
        down = past.failures >= limits.failures_for_unavailable
        expires_at = at + limits.row_lifetime_ms if down else None
        return past, Shown("unavailable" if down else "unknown", "unreachable", at, past.last_success_at, expires_at)
    past = past._replace(failures=0)
    if verdict == "nothing":  # S12
        return past, Shown("unknown", "no-observation", at, past.last_success_at)
    if verdict == "incomparable":  # S13, R13
        metrics = asdict(probe.found)
        return past, Shown("unknown", "incompatible-reference", at, past.last_success_at, metrics=metrics)
    past = past._replace(far=past.far + 1 if verdict == "far" else 0, last_success_at=at)  # S5, S6, R6
    status, reason = {
        "responding": ("current", "responding"),
        "partial": ("degraded", "partial-coverage"),
        "synced": ("current", "synced"),
        "behind": ("catching-up", "behind"),
        "far": ("degraded" if past.far >= limits.degraded_evaluations else "catching-up", "behind"),
    }[verdict]
    head = {} if probe.head is None else {"head": probe.head}
    return past, Shown(status, reason, at, at, at + limits.row_lifetime_ms, asdict(probe.found) | head)


def is_far_above(position: int, height: int, block_ms: float | Fraction) -> bool:
    """S13: more than ten blocks, and more than ten minutes of blocks, above the height that was agreed on."""
    return position - height > 10 and (position - height) * block_ms > 600_000


def compare_with_heads(
    position: int, at: int, heads: Sequence[Reading], confirmations: int, block_ms: int, limits: Limits
) -> Verdict:
    """What a position comes to, all heads that were read of its chain being known (S13)."""
    if not heads or at - heads[-1].at > limits.head_max_age_ms:
        return "incomparable"
    height, pace = heads[-1].height, expected_pace(heads, block_ms)
    if is_far_above(position, height, pace):
        return "incomparable"
    return compare_blocks(max(0, max(0, height - confirmations) - position), pace, limits)


def expected_pace(heads: Sequence[Reading], block_ms: int) -> Fraction:
    """The time that a block takes, by what was read of a chain (S15)."""
    taken = [head for head in heads if heads[-1].at - head.at <= 3_600_000]
    for later in range(len(taken) - 1, 0, -1):
        before = taken[:later]
        highest = max(head.height for head in before)
        since_at = next(head.at for head in before if head.height == highest)
        if taken[later].height > highest and taken[later].at - since_at >= 600_000:
            taken = taken[later:]
            break
    fresh = [head for head in taken if head.at - head.block_at <= 600_000]
    if not fresh:
        return Fraction(block_ms)
    span_ms, blocks = fresh[-1].at - fresh[0].at, fresh[-1].height - fresh[0].height
    return Fraction(span_ms, blocks) if span_ms >= 600_000 and blocks >= 10 else Fraction(block_ms)
