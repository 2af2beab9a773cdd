"""Rows worked out the slow way: from all that was ever observed of a check, each time anew."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from lookout.core.heads import Reading
from lookout.core.model import Blocks, Check, Failed, Found, Indexes, Members, MissingList, Nothing, Observation, Peers
from lookout.core.plan import Limits
from lookout.state.log import Event, HeadRead

Row = tuple[str, str, int | None, int | None, int | None, dict[str, int]]


def expected_row(check: Check, past: Sequence[Event], confirmations: int, block_time_ms: int, limits: Limits) -> Row:
    """What the report has to say of a monitored check after these events, in which no clock was set back."""
    probes = [event for event in past if isinstance(event, Observation) and event.check == check]
    if not probes:
        return "unknown", "no-observation", None, None, None, {}
    last = probes[-1]
    compared = [p for p in probes if _evaluate(p, past, confirmations, block_time_ms, limits) is not None]
    success_at = compared[-1].at if compared else None
    if _is_failure(last.found):
        row = 0
        for probe in reversed(probes):
            if not _is_failure(probe.found):
                break
            row += 1
        if row < limits.failures_for_unavailable:
            return "unknown", "unreachable", last.at, success_at, None, {}
        return "unavailable", "unreachable", last.at, success_at, last.at + limits.row_lifetime_ms, {}
    if isinstance(last.found, Nothing) or last.found == Members(0, 0):
        return "unknown", "no-observation", last.at, success_at, None, {}
    if isinstance(last.found, MissingList):
        return "unknown", "incompatible-reference", last.at, success_at, None, {}
    if compared[-1:] != [last]:
        assert isinstance(last.found, Blocks)
        return "unknown", "incompatible-reference", last.at, success_at, None, {"position": last.found.position}
    status, reason, metrics = _told(last, compared, past, confirmations, block_time_ms, limits)
    return status, reason, last.at, last.at, last.at + limits.row_lifetime_ms, metrics


def _told(
    last: Observation,
    compared: list[Observation],
    past: Sequence[Event],
    confirmations: int,
    block_ms: int,
    limits: Limits,
) -> tuple[str, str, dict[str, int]]:
    found = last.found
    if isinstance(found, Peers):
        return "current", "responding", {"peers": found.peers}
    if isinstance(found, Members):
        metrics = {"responding": found.responding, "monitored": found.monitored}
        if found.responding == found.monitored:
            return "current", "responding", metrics
        return "degraded", "partial-coverage", metrics
    verdicts = [_evaluate(probe, past, confirmations, block_ms, limits) for probe in compared]
    if isinstance(found, Indexes):
        metrics = {"position": found.position, "head": found.head}
    else:
        assert isinstance(found, Blocks)
        head = [event for event in _before(last, past) if isinstance(event, HeadRead)][-1]
        metrics = {"position": found.position, "head": max(0, head.reading.height - confirmations)}
    if verdicts[-1] == "fine":
        return "current", "synced", metrics
    needed = verdicts[-limits.degraded_evaluations :]
    if len(needed) == limits.degraded_evaluations and set(needed) == {"far"}:
        return "degraded", "behind", metrics
    return "catching-up", "behind", metrics


def _evaluate(probe: Observation, past: Sequence[Event], confirmations: int, block_ms: int, limits: Limits) -> Any:
    """ "fine", "behind" or "far"; None for a probe that failed or could not be compared."""
    found = probe.found
    if _is_failure(found) or isinstance(found, Nothing | MissingList | Failed) or found == Members(0, 0):
        return None
    before = _before(probe, past)
    if isinstance(found, Indexes):
        return _evaluate_indexes(probe, found, before, limits)
    if not isinstance(found, Blocks):
        return "fine"
    heads = [event.reading for event in before if isinstance(event, HeadRead)]
    if not heads or probe.at - heads[-1].at > limits.head_max_age_ms:
        return None
    pace = expected_pace(heads, block_ms)
    lag = max(0, max(0, heads[-1].height - confirmations) - found.position)
    if lag <= max(Fraction(limits.allowance_blocks), limits.allowance_ms / pace):
        return "fine"
    return "far" if lag * pace >= limits.degraded_lag_ms else "behind"


def expected_pace(heads: Sequence[Reading], block_ms: int) -> Fraction:
    """The time that a block takes, by what was read of a chain."""
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


def _evaluate_indexes(probe: Observation, found: Indexes, before: Sequence[Event], limits: Limits) -> str:
    if found.position >= found.head:
        return "fine"
    trailing: list[tuple[int, int]] = []
    for event in before:
        if isinstance(event, Observation) and event.check == probe.check and isinstance(event.found, Indexes):
            caught_up = event.found.position >= event.found.head
            trailing = [] if caught_up else [*trailing, (event.at, event.found.head)]
    if probe.at - trailing[0][0] < limits.ppoi_behind_ms:
        return "fine"
    long_ago = [head for at, head in trailing if at <= probe.at - limits.degraded_lag_ms]
    return "far" if long_ago and found.position < max(long_ago) else "behind"


def _before(probe: Observation, past: Sequence[Event]) -> Sequence[Event]:
    """All up to this very probe."""
    return past[: next(n for n, event in enumerate(past) if event is probe) + 1]


def _is_failure(found: Found) -> bool:
    if isinstance(found, Members):
        return found.responding == 0 and found.monitored > 0
    return isinstance(found, Failed) or found == Peers(0)
