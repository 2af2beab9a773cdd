"""The rules of the live report (clauses R and S)."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec

from lookout.verify.documents import (
    Remark,
    Unread,
    VisitedReport,
    VisitedRow,
    expect,
    fine,
    is_integer,
    list_doubles,
    read_instant,
    read_rows,
    unsure,
    wrong,
)
from lookout.verify.visit import Visit
from lookout_reader import SERVICES
from lookout_reader.statuses import CHARACTERS, KNOWN_STATUSES

_LARGEST_METRIC: Final = 2**53 - 1
_LIFETIME_S: Final = 150
# Blocks in the 30 minutes after which no row is current, however its allowance is tuned (S5), by the pace that its
# chain had at launch; by ten blocks a second if it is another chain.
_DEGRADED_BLOCKS: Final = {1: 150, 42161: 7_200, 137: 1_029, 56: 4_000, 11155111: 150}
_MOST_DEGRADED_BLOCKS: Final = 18_000

# The latest probe succeeded and was compared.
_EVALUATED: Final = tuple(status for status in KNOWN_STATUSES if status != "unavailable")
_OWN_NAME: Final = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)
_INDEXERS: Final = ("indexer", "hosted-indexer")
_COMPARED: Final = ("ppoi", *_INDEXERS)
_HEIGHTS: Final = frozenset({"position", "head"})
_MEMBERS: Final = frozenset({"responding", "monitored"})
_FINDINGS: Final = frozenset({"missing", "extra", "breaks", "gap"})
_PLACES: Final = frozenset({"views", "agreeing"})  # of a row that is watched from several places
_METRICS: Final = {
    "messaging": frozenset({"peers"}),
    "broadcasters": _MEMBERS,
    **dict.fromkeys(_COMPARED, _HEIGHTS),
}
_METRICS_BY_REASON: Final = {"synced": _HEIGHTS, "behind": _HEIGHTS, "partial-coverage": _MEMBERS}
_ALL_METRICS: Final = frozenset[str]().union(_FINDINGS, _PLACES, *_METRICS.values())
# The clause of a reason, the statuses that go with it, and which of the five services can have it.
_REASONS: Final = {
    "unreachable": ("S1", ("unknown", "unavailable"), SERVICES),
    "synced": ("S3", ("current",), _COMPARED),
    "behind": ("S4", ("catching-up", "degraded"), _COMPARED),
    "responding": ("S10", ("current",), ("broadcasters", "messaging")),
    "partial-coverage": ("S10", ("degraded",), ("broadcasters",)),
    "no-observation": ("S12", ("unknown",), SERVICES),
    "incompatible-reference": ("S13", ("unknown",), _COMPARED),
    "not-configured": ("S14", ("unmonitored",), SERVICES),
    "incomplete": ("S18", ("degraded",), _INDEXERS),
    "inconsistent": ("S18", ("degraded",), _COMPARED),
    "not-everywhere": ("W4", ("unknown", "catching-up", "degraded"), SERVICES),
}
# The clause of a reason for services that have their own; "" is any of the operator's own.
_CLAUSES_OF_SERVICES: Final = {
    ("messaging", "responding"): "S11",
    ("ppoi", "synced"): "S7",
    ("ppoi", "behind"): "S8",
    ("ppoi", "inconsistent"): "S21",
    **{("", reason): "R14" for reason in ("synced", "behind", "responding")},
}


def judge(visit: Visit) -> Iterator[Remark]:
    for report in visit.reports[:1]:
        if isinstance(report, Unread):
            yield Remark("R1", *report)
        else:
            yield from _judge_report(report)


def _judge_report(report: VisitedReport) -> Iterator[Remark]:
    yield expect("R1", read_instant(report.generated_at) is not None, f"generatedAt is {report.generated_at}")
    yield expect("R1", bool(report.checks), "there is no row, and messaging always has one")
    yield from (wrong("R1", text) for text in list_doubles(report))
    for row in read_rows(report.checks, VisitedRow):
        if isinstance(row, Unread):
            yield Remark("R2", *row)
            continue
        yield fine("R2")
        text = msgspec.json.encode(row).decode()
        yield from (expect(clause, is_right, text) for clause, is_right in (*_judge_row(row), *_judge_status(row)))
    yield from _judge_lifetimes(report)
    yield from _judge_order(report)
    shared = {row.service for row in report.rows if row.chain_id is None}
    for row in report.rows:
        if row.service not in SERVICES and row.service in shared:
            yield expect("R14", row.chain_id is None, f"{row.service} has rows with a chain and without one")


def _judge_row(row: VisitedRow) -> Iterator[tuple[str, bool]]:
    """The clauses that the row shows, and whether it keeps them."""
    is_shared, is_own = row.chain_id is None, row.service not in SERVICES
    has_chain = is_integer(row.chain_id) and row.chain_id > 0
    yield "R3", is_shared if row.service == "messaging" else has_chain or (is_shared and is_own)
    instants = (row.observed_at, row.last_success_at, row.expires_at)
    yield from (("R4", read_instant(instant) is not None) for instant in instants if instant is not None)
    if row.status == "unmonitored":
        yield "R5", row.observed_at is None
    elif row.status in KNOWN_STATUSES or row.reason in ("unreachable", "incompatible-reference"):
        yield "R5", row.observed_at is not None
    if row.status in _EVALUATED:
        yield "R6", bool(row.last_success_at == row.observed_at)
    elif row.last_success_at is not None and row.status in CHARACTERS and not _is_combined(row):
        yield "R6", bool(row.last_success_at != row.observed_at)
    if row.status in CHARACTERS:
        yield "R7", (row.expires_at is not None) == (row.status in KNOWN_STATUSES)
    is_unknown = row.status == "unmonitored" or row.reason == "unreachable"
    allowed = _PLACES if _is_combined(row) and row.status != "unmonitored" else frozenset[str]()
    yield "R8", isinstance(row.metrics, dict) and not (is_unknown and row.metrics.keys() - allowed)
    if is_own:
        yield "R14", _OWN_NAME.fullmatch(row.service) is not None
    yield from _judge_metrics(row)
    if _known_metrics(row).keys() & _PLACES or row.reason == "not-everywhere":
        yield "W7", _has_fitting_views(row)


def _is_combined(row: VisitedRow) -> bool:
    """Whether the row was made of what several places see, so that its instants may be of different probes (W5)."""
    return "views" in _known_metrics(row)


def _has_fitting_views(row: VisitedRow) -> bool:
    """No place sees what is made of places that differ, and none of them saw what our own finding made of it (W6)."""
    views, agreeing = (_numbers(row).get(name, -1) for name in ("views", "agreeing"))
    is_made = row.status not in KNOWN_STATUSES or row.reason in ("not-everywhere", "incomplete", "inconsistent")
    return views >= 2 and (0 if is_made else 1) <= agreeing <= views


def _judge_metrics(row: VisitedRow) -> Iterator[tuple[str, bool]]:
    """The five services have metrics of their own; those of an operator's services go by the reason."""
    metrics, numbers = _known_metrics(row), _numbers(row)
    allowed = _METRICS.get(row.service, _ALL_METRICS - _FINDINGS)
    if row.reason in ("incomplete", "inconsistent"):
        allowed |= _FINDINGS
    allowed |= _PLACES
    wanted = _METRICS.get(row.service, _METRICS_BY_REASON.get(row.reason)) if row.status in _EVALUATED else None
    if metrics or wanted:
        is_split = len(metrics.keys() & _MEMBERS) == 1
        is_split |= numbers.get("responding", 0) > numbers.get("monitored", _LARGEST_METRIC)
        yield "R9", (wanted or frozenset()) <= metrics.keys() <= allowed and not is_split
    if metrics:
        yield "R10", all(is_integer(number) and 0 <= number <= _LARGEST_METRIC for number in metrics.values())
    if "head" in numbers:
        yield "R11", numbers["head"] >= 0
    if row.reason == "incompatible-reference" and row.service in _COMPARED:
        yield "R13", metrics.keys() == (set() if row.service == "ppoi" else {"position"})


def _judge_status(row: VisitedRow) -> Iterator[tuple[str, bool]]:
    if row.reason in _REASONS and row.status in CHARACTERS:
        clause, statuses, services = _REASONS[row.reason]
        clause = _CLAUSES_OF_SERVICES.get((row.service if row.service in SERVICES else "", row.reason), clause)
        yield clause, row.status in statuses and (row.service in services or row.service not in SERVICES)
    numbers, is_ppoi = _numbers(row), row.service == "ppoi"
    if numbers.keys() >= _HEIGHTS and row.reason in ("synced", "behind"):
        lag = numbers["head"] - numbers["position"]
        if row.reason == "synced" and row.service in _INDEXERS:
            most = _DEGRADED_BLOCKS.get(row.chain_id, _MOST_DEGRADED_BLOCKS) if is_integer(row.chain_id) else 0
            yield "S3", lag <= most
        if row.reason == "behind" and not is_ppoi:
            yield "S4" if row.service in _INDEXERS else "R14", lag > 0
        if is_ppoi and lag <= 0:
            yield "S7", row.status == "current"
    if numbers.keys() >= _MEMBERS and row.reason in ("responding", "partial-coverage"):
        responding, monitored = numbers["responding"], numbers["monitored"]
        yield "S10", responding > 0 and (responding == monitored) == (row.status == "current")
    if row.reason == "responding" and "peers" in numbers:
        yield "S11", numbers["peers"] > 0


def _known_metrics(row: VisitedRow) -> dict[str, object]:
    metrics = row.metrics if isinstance(row.metrics, dict) else {}
    return {key: number for key, number in metrics.items() if key in _ALL_METRICS}


def _numbers(row: VisitedRow) -> dict[str, int]:
    return {key: number for key, number in _known_metrics(row).items() if is_integer(number)}


def _judge_lifetimes(report: VisitedReport) -> Iterator[Remark]:
    """The lifetime is a setting: another one is no failure as long as it is the same for all, but for rows that were
    made of several."""
    lifetimes = set[float]()
    for row in report.rows:
        start, end = read_instant(row.observed_at), read_instant(row.expires_at)
        if start is not None and end is not None and not _is_combined(row):
            lifetimes.add((end - start) / 1000)
        elif start is not None and end is not None:
            yield expect("W5", start < end, f"{row.service} {row.chain_id} expires before it was observed")
    text = f"rows expire after {', '.join(map(str, sorted(lifetimes)))} s"
    if lifetimes - {_LIFETIME_S}:
        is_tuned = len(lifetimes) == 1 and min(lifetimes) > 0
        yield unsure("R7", f"all {text}: tuned, it seems") if is_tuned else wrong("R7", text)


def _judge_order(report: VisitedReport) -> Iterator[Remark]:
    """The operator's own services come after the five; in which order, only the configuration says."""
    rows = [row for row in report.rows if row.chain_id is None or is_integer(row.chain_id)]
    order = list(dict.fromkeys((*SERVICES, *(row.service for row in rows))))
    for before, after in pairwise((order.index(row.service), row.chain_id or 0) for row in rows):
        text = f"{order[after[0]]} {after[1]} stands behind {order[before[0]]} {before[1]}"
        if before > after or before[0] < len(SERVICES) or before[0] == after[0]:
            yield expect("R12", before <= after, text)
