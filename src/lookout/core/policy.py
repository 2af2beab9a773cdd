"""The status policy: a check's memory and what a probe found in; its row out (clauses R and S)."""

from bisect import bisect_right
from operator import itemgetter
from typing import Final, assert_never

from msgspec import UNSET, Struct
from msgspec.structs import replace

from lookout.base.instants import move
from lookout.core.heads import Reference
from lookout.core.model import (
    NO_GAPS,
    NO_METRICS,
    Blocks,
    Failed,
    Gaps,
    Indexes,
    Members,
    Metrics,
    MissingList,
    Nothing,
    Observation,
    Peers,
    Reason,
    Responding,
    Row,
    Status,
)
from lookout.core.plan import Limits

# A head may be a minute old, so a position may exceed it by some blocks. A position above both limits is of another
# chain, or is no position at all (S13).
FAR_ABOVE_BLOCKS: Final = 10
FAR_ABOVE_MS: Final = 600_000

# Rising instants, with the highest head seen up to that instant.
HeadsSeen = tuple[tuple[int, int], ...]
# The row's part of a comparison.
Judgement = tuple[Status, Reason, Metrics]


class Memory(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a check's next judgement needs of the earlier ones (M7)."""

    failures: int = 0  # consecutive
    far_behind: int = 0  # consecutive evaluations
    last_success_at: int | None = None
    trailing_since_at: int | None = None  # ppoi
    heads_seen: HeadsSeen = ()  # ppoi, since it trails
    gaps: Gaps = NO_GAPS  # indexers and ppoi
    address: str = ""  # fingerprint of the address; "" if unknown
    position: int | None = None  # the last one that was heard
    still_since_at: int | None = None  # since when that has been the position, with something to take in


def judge(
    memory: Memory, seen: Observation, reference: Reference | None, limits: Limits, *, blind: bool
) -> tuple[Memory, Row]:
    """The row that this observation gives, and the memory it leaves.

    ``reference`` is an indexer's net head. ``blind`` says that no third party has answered for long: then a failure
    is the monitor's own, not the service's (M13).
    """
    match seen.found:
        # The two most frequent types without attribute patterns, which take twice as long.
        case Blocks() as blocks:
            return _judge_blocks(memory, seen, blocks.position, reference, limits)
        case Indexes() as indexes:
            return _judge_indexes(memory, seen, indexes.position, indexes.head, limits)
        case Members(responding, monitored):  # S10
            metrics = Metrics(responding=responding, monitored=monitored)
            if monitored == 0:
                memory, row = _incomparable(memory, seen, "no-observation")
                return memory, replace(row, has_lapsed=True)
            if responding == 0:
                return _failed(memory, seen, limits, blind=blind)
            if responding < monitored:
                return _evaluated(memory, seen, ("degraded", "partial-coverage", metrics), limits)
            return _evaluated(memory, seen, ("current", "responding", metrics), limits)
        case Peers(peers):  # S11
            if peers == 0:
                return _failed(memory, seen, limits, blind=blind)
            return _evaluated(memory, seen, ("current", "responding", Metrics(peers=peers)), limits)
        case Responding():  # R14
            return _evaluated(memory, seen, ("current", "responding", NO_METRICS), limits)
        case Nothing():  # S12
            return _incomparable(memory, seen, "no-observation")
        case MissingList():  # S13, R13
            return _incomparable(memory, seen, "incompatible-reference")
        case Failed():  # S1, S2
            return _failed(memory, seen, limits, blind=blind)
        case _ as never:
            assert_never(never)


def apply_gaps(row: Row, gaps: Gaps) -> Row:
    """The row of a check with these gaps: if it would be current, it is degraded (S18, S20, S21)."""
    if gaps == NO_GAPS or row.status != "current":
        return row
    metrics = replace(
        row.metrics,
        missing=gaps.missing or UNSET,
        extra=gaps.extra or UNSET,
        breaks=gaps.breaks or UNSET,
        gap=gaps.gap or UNSET,
    )
    reason: Reason = "incomplete" if gaps.missing or gaps.breaks else "inconsistent"
    return replace(row, status="degraded", reason=reason, metrics=metrics)


def split_gaps(row: Row, known: Gaps) -> tuple[Row, Gaps]:
    """A judged row as it would be without gaps, and the gaps by which it is published: those that it shows or, if it
    could show none, the ``known`` ones."""
    if row.status == "current":
        return row, NO_GAPS
    if row.reason not in ("incomplete", "inconsistent"):
        return row, known
    shown = row.metrics
    gaps = Gaps(shown.missing or 0, shown.extra or 0, shown.breaks or 0, shown.gap or 0)
    metrics = replace(shown, missing=UNSET, extra=UNSET, breaks=UNSET, gap=UNSET)
    return replace(row, status="current", reason="synced", metrics=metrics), gaps


def move_to(memory: Memory, address: str) -> Memory:
    """The check is asked at this address from now on. Another address is another deployment, which is not judged by
    its predecessor's past; only the last success is kept."""
    if memory.address == address:
        return memory
    if not memory.address:  # an earlier version stored none
        return replace(memory, address=address)
    return Memory(last_success_at=memory.last_success_at, gaps=memory.gaps, address=address)


def set_clock(memory: Memory, by_ms: int) -> Memory:
    """The clock was set by ``by_ms``: a node has trailed for as long as before."""
    trailing_since_at, still_since_at = memory.trailing_since_at, memory.still_since_at
    return replace(
        memory,
        trailing_since_at=None if trailing_since_at is None else move(trailing_since_at, by_ms),
        still_since_at=None if still_since_at is None else move(still_since_at, by_ms),
        heads_seen=tuple((move(at, by_ms), head) for at, head in memory.heads_seen),
    )


def _judge_blocks(
    memory: Memory, seen: Observation, position: int, reference: Reference | None, limits: Limits
) -> tuple[Memory, Row]:
    memory = _follow_position(memory, seen.at, position, None if reference is None else reference.target)
    if reference is None or seen.at - reference.read_at > limits.head_max_age_ms:  # S13, R13
        return _incomparable(memory, seen, "incompatible-reference", Metrics(position=position))
    pace, above = reference.pace, position - reference.head
    if above > FAR_ABOVE_BLOCKS and pace.takes_longer(above, FAR_ABOVE_MS):  # S13: the numbers are not of one chain
        return _incomparable(memory, seen, "incompatible-reference", Metrics(position=position))
    metrics = Metrics(position=position, head=reference.target)
    lag = max(0, reference.target - position)  # R11
    if lag <= limits.allowance_blocks or lag * pace.ms <= limits.allowance_ms * pace.blocks:  # S3
        return _at_head(memory, seen, metrics, limits)
    far = lag * pace.ms >= limits.degraded_lag_ms * pace.blocks
    return _behind(memory, seen, metrics, limits, far=far)


def _at_head(memory: Memory, seen: Observation, metrics: Metrics, limits: Limits) -> tuple[Memory, Row]:
    """The position is good: current, unless the list has known gaps."""
    memory, row = _evaluated(memory, seen, ("current", "synced", metrics), limits)
    return memory, apply_gaps(row, memory.gaps)


def _judge_indexes(memory: Memory, seen: Observation, position: int, head: int, limits: Limits) -> tuple[Memory, Row]:
    metrics = Metrics(position=position, head=head)
    memory = _follow_position(memory, seen.at, position, head)
    if position >= head:  # S7; S9: catching up forgets earlier heads
        memory = replace(memory, trailing_since_at=None, heads_seen=()) if memory.heads_seen else memory
        return _at_head(memory, seen, metrics, limits)
    since_at = seen.at if memory.trailing_since_at is None else memory.trailing_since_at
    long_ago_at = seen.at - limits.degraded_lag_ms
    heads_seen = _remember_head(memory.heads_seen, seen.at, head, long_ago_at)
    memory = replace(memory, trailing_since_at=since_at, heads_seen=heads_seen)
    if seen.at - since_at < limits.ppoi_behind_ms:  # S8, which wins over S9
        return _at_head(memory, seen, metrics, limits)
    first_seen_at, first_head = heads_seen[0]
    far = first_seen_at <= long_ago_at and position < first_head  # S9
    return _behind(memory, seen, metrics, limits, far=far)


def _remember_head(heads_seen: HeadsSeen, at: int, head: int, long_ago_at: int) -> HeadsSeen:
    """Add a head, and keep only the last, which is the highest, of heads seen before ``long_ago_at``."""
    if not heads_seen or head > heads_seen[-1][1]:
        heads_seen = (*heads_seen, (at, head))
    long_ago = bisect_right(heads_seen, long_ago_at, key=itemgetter(0))
    return heads_seen[max(0, long_ago - 1) :]


def _follow_position(memory: Memory, at: int, position: int, head: int | None) -> Memory:
    since_at = memory.still_since_at
    if head is not None and position >= head:  # it has taken in everything, and may stand still, however long
        since_at = None
    elif position != memory.position or since_at is None:
        since_at = at
    return replace(memory, position=position, still_since_at=since_at)


def _behind(memory: Memory, seen: Observation, metrics: Metrics, limits: Limits, *, far: bool) -> tuple[Memory, Row]:
    far_behind = memory.far_behind + 1 if far else 0
    status: Status = "degraded" if far_behind >= limits.degraded_evaluations else "catching-up"  # S4, S5, S6, S9
    memory, row = _evaluated(memory, seen, (status, "behind", metrics), limits, far_behind)
    return memory, replace(row, still_since_at=memory.still_since_at)


def _evaluated(
    memory: Memory, seen: Observation, judgement: Judgement, limits: Limits, far_behind: int = 0
) -> tuple[Memory, Row]:
    """The service answered and was compared (R6, R7)."""
    status, reason, metrics = judgement
    row = Row(seen.check, status, reason, seen.at, seen.at, seen.at + limits.row_lifetime_ms, metrics)
    return replace(memory, failures=0, far_behind=far_behind, last_success_at=seen.at), row


def _incomparable(
    memory: Memory, seen: Observation, reason: Reason, metrics: Metrics = NO_METRICS
) -> tuple[Memory, Row]:
    """The service answered, which ends consecutive failures, but without a comparable position (R6, S12, S13)."""
    row = Row(seen.check, "unknown", reason, seen.at, memory.last_success_at, None, metrics)
    return replace(memory, failures=0), row


def _failed(memory: Memory, seen: Observation, limits: Limits, *, blind: bool) -> tuple[Memory, Row]:
    if not blind:  # M13
        memory = replace(memory, failures=memory.failures + 1)
    if blind or memory.failures < limits.failures_for_unavailable:  # S1
        return memory, Row(seen.check, "unknown", "unreachable", seen.at, memory.last_success_at)
    expires_at = seen.at + limits.row_lifetime_ms
    return memory, Row(seen.check, "unavailable", "unreachable", seen.at, memory.last_success_at, expires_at)  # S2
