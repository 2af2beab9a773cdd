"""The rules of the history (clauses H), and of documents that move on (M5, H14)."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Final

from lookout.verify.documents import (
    Remark,
    Unread,
    VisitedHistory,
    VisitedHistoryRow,
    describe_row,
    expect,
    fine,
    list_doubles,
    list_rows,
    quote,
    read_generated_at,
    read_instant,
    read_rows,
    unsure,
    wrong,
)
from lookout.verify.visit import EndpointVisit, Visit
from lookout_reader import WINDOWS
from lookout_reader.statuses import CHARACTERS, KNOWN_CHARACTERS, NO_DATA

_LAUNCH: Final = (300, 14)  # both are settings
_DAY_MS: Final = 86_400_000
_MIN_KNOWN: Final = 12
_CHARACTERS: Final = frozenset((*CHARACTERS.values(), NO_DATA))
# How long generatedAt may stand still, and how much longer in a shared cache (s-maxage, stale-while-revalidate).
_STILL_MS: Final = {"M5": 35_000, "H14": 75_000}
_CACHED_MS: Final = {"M5": 60_000, "H14": 180_000}
_WATCH_S: Final = {"M5": 40, "H14": 80}
_STOPPED_MS: Final = 150_000  # not even a row lives longer (R7)
_AHEAD_MS: Final = 30_000  # what a reader puts up with (C2)
_PUBLICATION_MS: Final = 500  # at the least (M5)


def judge(visit: Visit) -> Iterator[Remark]:
    for history in visit.histories[:1]:
        if isinstance(history, Unread):
            yield Remark("H1", *history)
        else:
            yield from _judge_history(history)
    for report, history in zip(visit.reports[:1], visit.histories[:1], strict=False):
        if not isinstance(report, Unread) and not isinstance(history, Unread):
            in_report, in_history = list_rows(report), list_rows(history)
            differing = ", ".join(sorted({*in_report} ^ {*in_history})[:3]) or "their order"
            text = f"{differing} differs from the live report; just after a reload, try again in a minute"
            yield expect("H2", in_report == in_history, text)
    for before, after in pairwise(history for history in visit.histories if isinstance(history, VisitedHistory)):
        for name, has_changed in compare_ended(before, after):
            yield expect("H16", not has_changed, f"a bucket of {name} changed")
    yield from _judge_movement("M5", visit.live, visit)
    yield from _judge_movement("H14", visit.history, visit)


def _judge_history(history: VisitedHistory) -> Iterator[Remark]:
    made_at = read_instant(history.generated_at)
    yield expect("H1", made_at is not None, f"generatedAt is {history.generated_at}")
    yield expect("H1", None not in (history.from_at, history.to_at), f"from is {history.from_}, and to {history.to}")
    span = history.bucket_seconds, history.retention_days
    yield fine("H1") if span == _LAUNCH else unsure("H1", f"bucketSeconds, retentionDays are {span}: tuned, it seems")
    for found in read_rows(history.raw_rows, VisitedHistoryRow):
        yield Remark("H2", *found) if isinstance(found, Unread) else fine("H2")
    yield from (wrong("H2", text) for text in list_doubles(history))
    most = history.retention_days * _DAY_MS // history.bucket_ms + 1
    for row in history.rows:
        name, length = describe_row(row), len(row.buckets)
        yield expect("H2", WINDOWS.keys() <= row.uptime.keys(), f"{name}: uptime has only {', '.join(row.uptime)}")
        if history.length is not None:
            yield expect("H3", length == history.length <= most, f"{name}: {length} instead of {history.length}")
        if length == history.length and not {*row.buckets} - _CHARACTERS:
            yield from _judge_uptime(row, name, history.bucket_seconds)
    if history.from_at is not None and history.to_at is not None and made_at is not None:
        text = f"from is {history.from_}, to {history.to}, generatedAt {history.generated_at}"
        is_aligned = history.from_at % history.bucket_ms == 0
        is_filling = history.to_at == made_at // history.bucket_ms * history.bucket_ms
        is_kept = 0 <= history.to_at - history.from_at <= history.retention_days * _DAY_MS
        yield expect("H4", is_aligned and is_filling and is_kept, text)
    strange = sorted({*"".join(row.buckets for row in history.rows)} - _CHARACTERS)
    if strange:
        yield unsure("H5", f"{quote(strange)} are not known here; new ones may appear")
    elif any(row.buckets for row in history.rows):
        yield fine("H5")


def _judge_uptime(row: VisitedHistoryRow, name: str, bucket_s: int) -> Iterator[Remark]:
    """Only a window whose uptime differs from that of a bucket more or less, or of the whole string, shows H12."""
    for window in WINDOWS.keys() & row.uptime.keys():
        length, shown = WINDOWS[window] // bucket_s + 1, row.uptime[window]
        lengths = (length, length - 1, length + 1, len(row.buckets))
        right, *others = (calculate_uptime(row.buckets[-buckets:]) for buckets in lengths)
        if shown == right:
            yield fine("H9" if right is not None else "H10")
            if right is not None and right < 1:
                yield fine("H11")
            if others != [right] * len(others):
                yield fine("H12")
        else:
            clause = "H12" if shown in others else "H10" if right is None else "H11" if shown == 1 else "H9"
            yield wrong(clause, f"{name}: {window} is {shown} instead of {right}")


def calculate_uptime(buckets: str) -> float | None:
    """Uptime as the contract has it, from the characters themselves."""
    current, known = buckets.count(CHARACTERS["current"]), sum(map(buckets.count, KNOWN_CHARACTERS))
    if known < _MIN_KNOWN:
        return None
    rounded = round(Fraction(current * 10_000, known))  # half to even
    return (rounded if current == known else min(rounded, 9_999)) / 10_000


def compare_ended(before: VisitedHistory, after: VisitedHistory) -> Iterator[tuple[str, bool]]:
    """The rows with buckets that have ended in both histories, and whether one of those changed."""
    if before.from_at is None or after.from_at is None or before.bucket_ms != after.bucket_ms:
        return
    moved, rest = divmod(after.from_at - before.from_at, after.bucket_ms)
    earlier = {describe_row(row): row.buckets[:-1] for row in before.rows}
    for row in after.rows if moved >= 0 and not rest else ():
        name = describe_row(row)
        if pairs := list(zip(earlier.get(name, "")[moved:], row.buckets[:-1], strict=False)):
            yield name, any(was != now for was, now in pairs)


def _judge_movement(clause: str, endpoint: EndpointVisit, visit: Visit) -> Iterator[Remark]:
    """Whether generatedAt moves on, but not with each answer. Only --wait says that the monitor is to run."""
    seen, watched = _list_dated(endpoint), _list_dated(endpoint, "watch")
    if not seen:
        return
    instants, took_ms = {at for _, at in seen}, seen[-1][0] - seen[0][0]
    if len(instants) > 3 + took_ms / _PUBLICATION_MS and not visit.cache:
        yield wrong(clause, f"{len(instants)} instants in {len(seen)} answers: it is the instant of serving")
    elif len(watched) > 1:
        (began_at, first_at), (ended_at, last_at) = watched[0], watched[-1]
        text = f"it moved by {(last_at - first_at) / 1000:.0f} s in {(ended_at - began_at) / 1000:.0f} s"
        may_be_still_ms = _STILL_MS[clause] + (_CACHED_MS[clause] if visit.cache else 0)
        if (ended_at - began_at) - (last_at - first_at) > may_be_still_ms:
            yield wrong(clause, f"{text}: the monitor has stopped, or publishes too rarely")
        else:
            is_long = ended_at - began_at > may_be_still_ms
            yield fine(clause) if is_long else Remark(clause, "not seen", f"{text}, which is too short to tell")
    else:
        stopped = ", and the monitor seems to have stopped" if looks_stopped(visit) else ""
        age = f"it was {(visit.at - seen[0][1]) / 1000:.0f} s old{stopped}"
        yield Remark(clause, "not seen", f"{age}; --wait {_WATCH_S[clause]} watches it move")


def _list_dated(endpoint: EndpointVisit, name: str = "") -> list[tuple[int, int]]:
    """When answers to requests of this name, or to all, were asked for, and their generatedAt."""
    found = [
        (exchange.at, read_generated_at(exchange.answer.plain_body or b""))
        for exchange in endpoint.exchanges
        if exchange.answer.http_code == 200 and name in ("", exchange.ask.name)
    ]
    return [(asked_at, at) for asked_at, at in found if at is not None]


def looks_stopped(visit: Visit) -> bool:
    """Whether the live report is older than any that a monitor keeps up to date, or not of this time at all."""
    return any(not -_AHEAD_MS <= visit.at - at <= _STOPPED_MS for _, at in _list_dated(visit.live)[:1])
