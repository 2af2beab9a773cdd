"""The rules of the history (clauses H), and of documents that move on (M5, H14)."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from operator import ne
from typing import Final

from lookout.verify import documents
from lookout.verify.documents import FINE, History, HistoryRow, LiveReport, Remark, describe_row, unsure, wrong
from lookout.verify.visit import EndpointVisit, Rule, Visit
from lookout_reader import WINDOWS
from lookout_reader.statuses import CHARACTERS, KNOWN_CHARACTERS, NO_DATA

_LAUNCH: Final = (300, 14)  # both are settings
_DAY_MS: Final = 86_400_000
_MIN_KNOWN: Final = 12
_CHARACTERS: Final = frozenset((*CHARACTERS.values(), NO_DATA))
# How long generatedAt may stand still, and how much longer in a shared cache (s-maxage, stale-while-revalidate).
_STILL_MS: Final = {"live report": 35_000, "history": 75_000}
_CACHED_MS: Final = {"live report": 60_000, "history": 180_000}
_STOPPED_MS: Final = 150_000  # not even a row lives longer (R7)
_AHEAD_MS: Final = 30_000  # what a reader puts up with (C2)
_PUBLICATION_MS: Final = 500  # at the least (M5)


def of_history(question: Callable[[History], Iterator[Remark]]) -> Rule:
    return lambda visit: (
        remark for history in visit.histories[:1] if isinstance(history, History) for remark in question(history)
    )


def is_readable(visit: Visit) -> Iterator[Remark]:
    for history in visit.histories[:1]:
        if isinstance(history, Remark):
            yield history
            continue
        if documents.read_instant(history.generated_at) is None:
            yield wrong(f"generatedAt is {history.generated_at}")
        if None in (history.from_at, history.to_at):
            yield wrong(f"from is {history.from_}, and to {history.to}")
        span = history.bucket_seconds, history.retention_days
        yield FINE if span == _LAUNCH else unsure(f"bucketSeconds and retentionDays are {span}: tuned, it seems")


@of_history
def has_fields(history: History) -> Iterator[Remark]:
    for found in documents.read_rows(history.raw_rows, HistoryRow):
        yield found if isinstance(found, Remark) else FINE
    yield from map(wrong, documents.list_doubles(history.rows))
    for row in history.rows:
        if not WINDOWS.keys() <= row.uptime.keys():
            yield wrong(f"{describe_row(row)}: uptime has only {', '.join(row.uptime)}")


def has_rows_of_the_report(visit: Visit) -> Iterator[Remark]:
    """The newest documents have the same rows in the same order."""
    for report, history in zip(visit.reports[-1:], visit.histories[-1:], strict=False):
        if isinstance(report, LiveReport) and isinstance(history, History):
            in_report, in_history = ([describe_row(row) for row in rows] for rows in (report.rows, history.rows))
            differing = ", ".join(sorted({*in_report} ^ {*in_history})[:3]) or "their order"
            text = f"{differing} differs from the live report; just after a reload, try again in a minute"
            yield FINE if in_report == in_history else wrong(text)


@of_history
def has_its_length(history: History) -> Iterator[Remark]:
    most = history.retention_days * _DAY_MS // history.bucket_ms + 1
    for row in history.rows if history.length is not None else ():
        is_right = len(row.buckets) == history.length and len(row.buckets) <= most
        yield FINE if is_right else wrong(f"{describe_row(row)}: {len(row.buckets)} instead of {history.length}")


@of_history
def has_borders(history: History) -> Iterator[Remark]:
    from_at, to_at, made_at = history.from_at, history.to_at, documents.read_instant(history.generated_at)
    if from_at is None or to_at is None or made_at is None:
        return
    is_aligned = from_at % history.bucket_ms == 0 and to_at == made_at // history.bucket_ms * history.bucket_ms
    is_right = is_aligned and 0 <= to_at - from_at <= history.retention_days * _DAY_MS
    text = f"from is {history.from_}, to {history.to}, generatedAt {history.generated_at}"
    yield FINE if is_right else wrong(text)


@of_history
def has_known_characters(history: History) -> Iterator[Remark]:
    strange = sorted({*"".join(row.buckets for row in history.rows)} - _CHARACTERS)
    yield unsure(f"{documents.quote(strange)} are not known here; new ones may appear") if strange else FINE


@of_history
def has_uptime(history: History) -> Iterator[Remark]:
    """Of every row of the right length that has known characters alone."""
    for row in history.rows:
        if len(row.buckets) != history.length or {*row.buckets} - _CHARACTERS:
            continue
        for name in WINDOWS.keys() & row.uptime.keys():
            right = calculate_uptime(row.buckets[-(WINDOWS[name] // history.bucket_seconds) - 1 :])
            text = f"{describe_row(row)}: {name} is {row.uptime[name]} instead of {right}"
            yield FINE if row.uptime[name] == right else wrong(text)


def calculate_uptime(buckets: str) -> float | None:
    """Uptime as the contract has it, from the characters themselves."""
    current, known = buckets.count(CHARACTERS["current"]), sum(map(buckets.count, KNOWN_CHARACTERS))
    if known < _MIN_KNOWN:
        return None
    rounded = round(Fraction(current * 10_000, known))  # half to even
    return (rounded if current == known else min(rounded, 9_999)) / 10_000


def keeps_ended_buckets(visit: Visit) -> Iterator[Remark]:
    readable = [history for history in visit.histories if isinstance(history, History)]
    for before, after in pairwise(readable):
        changed = find_change(before, after)
        yield FINE if changed is None else wrong(f"a bucket of {changed} changed")


def find_change(before: History, after: History) -> str | None:
    if before.from_at is None or after.from_at is None or before.bucket_ms != after.bucket_ms:
        return None
    moved, rest = divmod(after.from_at - before.from_at, after.bucket_ms)
    earlier = {describe_row(row): row.buckets[:-1] for row in before.rows}
    for row in after.rows if moved >= 0 and not rest else ():
        if any(map(ne, earlier.get(describe_row(row), "")[moved:], row.buckets[:-1])):
            return describe_row(row)
    return None


def _list_dated(endpoint: EndpointVisit, *names: str) -> list[tuple[int, int]]:
    """When answers to these requests, or to all, were asked for, and their generatedAt."""
    found = [
        (exchange.at, documents.read_generated_at(answer.plain_body or b""))
        for exchange, answer in endpoint.answers(200)
        if exchange.name in names or not names
    ]
    return [(asked_at, at) for asked_at, at in found if at is not None]


def moves(noun: str, watch_s: int) -> Rule:
    """The rule that generatedAt moves on, but not with each answer. Only --wait says that the monitor is to run."""

    def judge(visit: Visit) -> Iterator[Remark]:
        endpoint = visit.live if noun == visit.live.noun else visit.history
        seen, watched = _list_dated(endpoint), _list_dated(endpoint, "watch")
        if not seen:
            return
        instants, took_ms = {at for _, at in seen}, seen[-1][0] - seen[0][0]
        if len(instants) > 3 + took_ms / _PUBLICATION_MS and not visit.cache:
            yield wrong(f"{len(instants)} instants in {len(seen)} answers: it is the instant of serving")
        elif len(watched) > 1:
            (began_at, first_at), (ended_at, last_at) = watched[0], watched[-1]
            text = f"it moved by {(last_at - first_at) / 1000:.0f} s in {(ended_at - began_at) / 1000:.0f} s"
            still_ms = (ended_at - began_at) - (last_at - first_at)
            if still_ms > _STILL_MS[noun] + (_CACHED_MS[noun] if visit.cache else 0):
                yield wrong(f"{text}: the monitor has stopped, or publishes too rarely")
            else:
                yield FINE if last_at > first_at else unsure(f"{text}, which is too short to tell")
        else:
            stopped = ", and the monitor seems to have stopped" if looks_stopped(visit) else ""
            yield unsure(
                f"it was {(visit.at - seen[0][1]) / 1000:.0f} s old{stopped}; --wait {watch_s} watches it move"
            )

    return judge


def looks_stopped(visit: Visit) -> bool:
    """Whether the live report is older than any that a monitor keeps up to date, or not of this time at all."""
    return any(not -_AHEAD_MS <= visit.at - at <= _STOPPED_MS for _, at in _list_dated(visit.live)[:1])
