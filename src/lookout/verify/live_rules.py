"""The rules of the live report (clauses R and S). Each is a question to one row, or to the report: whether it is
right, or None if it does not show."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

import msgspec

from lookout.verify import documents
from lookout.verify.documents import FINE, LiveReport, Remark, Row, is_integer, read_instant, unsure, wrong
from lookout.verify.visit import Rule, Visit
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
_METRICS: Final = {
    "messaging": frozenset({"peers"}),
    "broadcasters": _MEMBERS,
    **dict.fromkeys(_COMPARED, _HEIGHTS),
}
_METRICS_BY_REASON: Final = {"synced": _HEIGHTS, "behind": _HEIGHTS, "partial-coverage": _MEMBERS}
_ALL_METRICS: Final = frozenset[str]().union(_FINDINGS, *_METRICS.values())
# The statuses that go with a reason, and which of the five services can have it.
_REASONS: Final = {
    "synced": (("current",), _COMPARED),
    "behind": (("catching-up", "degraded"), _COMPARED),
    "responding": (("current",), ("broadcasters", "messaging")),
    "partial-coverage": (("degraded",), ("broadcasters",)),
    "unreachable": (("unknown", "unavailable"), SERVICES),
    "not-configured": (("unmonitored",), SERVICES),
    "no-observation": (("unknown",), SERVICES),
    "incompatible-reference": (("unknown",), _COMPARED),
    "incomplete": (("degraded",), _INDEXERS),
    "inconsistent": (("degraded",), _COMPARED),
}


def of_report(question: Callable[[LiveReport], Iterator[Remark]]) -> Rule:
    return lambda visit: (
        remark for report in visit.reports[:1] if isinstance(report, LiveReport) for remark in question(report)
    )


def of_rows(question: Callable[[Row], bool | None]) -> Rule:
    def judge(report: LiveReport) -> Iterator[Remark]:
        for row in report.rows:
            answer = question(row)
            if answer is not None:
                yield FINE if answer else wrong(msgspec.json.encode(row).decode())

    return of_report(judge)


def is_readable(visit: Visit) -> Iterator[Remark]:
    for report in visit.reports[:1]:
        if isinstance(report, Remark):
            yield report
            continue
        if read_instant(report.generated_at) is None:
            yield wrong(f"generatedAt is {report.generated_at}")
        yield FINE if report.checks else wrong("there is no row, and messaging always has one")
        yield from map(wrong, documents.list_doubles(report.rows))


@of_report
def has_fields(report: LiveReport) -> Iterator[Remark]:
    return (row if isinstance(row, Remark) else FINE for row in documents.read_rows(report.checks, Row))


@of_rows
def has_its_chain(row: Row) -> bool | None:
    if row.chain_id is None or row.service == "messaging":
        return row.chain_id is None and (row.service == "messaging" or row.service not in SERVICES)
    return is_integer(row.chain_id) and row.chain_id > 0


@of_rows
def has_instants(row: Row) -> bool | None:
    instants = (row.observed_at, row.last_success_at, row.expires_at)
    return all(instant is None or read_instant(instant) is not None for instant in instants)


@of_rows
def is_observed(row: Row) -> bool | None:
    if row.status == "unmonitored":
        return row.observed_at is None
    is_probed = row.status in KNOWN_STATUSES or row.reason in ("unreachable", "incompatible-reference")
    return row.observed_at is not None or not is_probed


@of_rows
def has_last_success(row: Row) -> bool | None:
    if row.status in _EVALUATED:
        return bool(row.last_success_at == row.observed_at)
    is_shown = row.last_success_at is not None and row.status in CHARACTERS
    return bool(row.last_success_at != row.observed_at) if is_shown else None


@of_rows
def expires(row: Row) -> bool | None:
    return (row.expires_at is not None) == (row.status in KNOWN_STATUSES) if row.status in CHARACTERS else None


@of_report
def has_one_lifetime(report: LiveReport) -> Iterator[Remark]:
    """The lifetime is a setting: another one is no failure as long as it is the same for all."""
    spans = [(read_instant(row.observed_at), read_instant(row.expires_at)) for row in report.rows]
    lifetimes = {(end - start) / 1000 for start, end in spans if start is not None and end is not None}
    text = f"rows expire after {', '.join(map(str, sorted(lifetimes)))} s"
    if lifetimes - {_LIFETIME_S}:
        yield wrong(text) if len(lifetimes) > 1 or min(lifetimes) <= 0 else unsure(f"all {text}: tuned, it seems")


@of_rows
def has_metrics_if_known(row: Row) -> bool | None:
    is_unknown = row.status == "unmonitored" or row.reason == "unreachable"
    return isinstance(row.metrics, dict) and not (is_unknown and row.metrics)


@of_rows
def has_its_metrics(row: Row) -> bool | None:
    """The five services have metrics of their own; those of an operator's services go by the reason."""
    found, numbers = row.named_metrics.keys() & _ALL_METRICS, row.numbers
    allowed = _METRICS.get(row.service, _ALL_METRICS - _FINDINGS)
    if row.reason in ("incomplete", "inconsistent"):
        allowed |= _FINDINGS
    wanted = _METRICS.get(row.service, _METRICS_BY_REASON.get(row.reason)) if row.status in _EVALUATED else None
    if not found and not wanted:
        return None
    is_split = len(found & _MEMBERS) == 1 or numbers.get("responding", 0) > numbers.get("monitored", _LARGEST_METRIC)
    return (wanted or frozenset()) <= found <= allowed and not is_split


@of_rows
def counts_whole_numbers(row: Row) -> bool | None:
    known = [number for key, number in row.named_metrics.items() if key in _ALL_METRICS]
    return all(is_integer(number) and 0 <= number <= _LARGEST_METRIC for number in known) if known else None


@of_rows
def has_no_head_below_0(row: Row) -> bool | None:
    return row.numbers["head"] >= 0 if "head" in row.numbers else None


@of_report
def is_in_order(report: LiveReport) -> Iterator[Remark]:
    """The operator's own services come after the five; in which order, only the configuration says."""
    rows = [row for row in report.rows if row.chain_id is None or is_integer(row.chain_id)]
    order = list(dict.fromkeys((*SERVICES, *(row.service for row in rows))))
    for before, after in pairwise((order.index(row.service), row.chain_id or 0) for row in rows):
        text = f"{order[after[0]]} {after[1]} stands behind {order[before[0]]} {before[1]}"
        yield FINE if before <= after else wrong(text)


@of_rows
def has_no_head_if_incompatible(row: Row) -> bool | None:
    if row.reason != "incompatible-reference" or row.service not in _COMPARED:
        return None
    return row.named_metrics.keys() & _ALL_METRICS == (set() if row.service == "ppoi" else {"position"})


@of_report
def names_own_services(report: LiveReport) -> Iterator[Remark]:
    own = [row for row in report.rows if row.service not in SERVICES]
    shared = {row.service for row in own if row.chain_id is None}
    for row in own:
        is_right = _OWN_NAME.fullmatch(row.service) and (row.chain_id is None or row.service not in shared)
        yield FINE if is_right else wrong(f"{row.service} {row.chain_id}")


def goes_with(*reasons: str) -> Rule:
    """The rule of the statuses and services that go with these reasons."""

    def is_possible(row: Row) -> bool | None:
        if row.reason not in reasons or row.status not in CHARACTERS:
            return None
        statuses, services = _REASONS[row.reason]
        return row.status in statuses and (row.service in services or row.service not in SERVICES)

    return of_rows(is_possible)


def _measure_lag(row: Row, *reasons: str) -> int | None:
    numbers = row.numbers
    return numbers["head"] - numbers["position"] if row.reason in reasons and numbers.keys() >= _HEIGHTS else None


@of_rows
def is_near_if_synced(row: Row) -> bool | None:
    lag = _measure_lag(row, "synced")
    most = _DEGRADED_BLOCKS.get(row.chain_id, _MOST_DEGRADED_BLOCKS) if is_integer(row.chain_id) else 0
    return None if lag is None or row.service not in _INDEXERS else lag <= most


@of_rows
def lags_if_behind(row: Row) -> bool | None:
    lag = _measure_lag(row, "behind")
    return None if lag is None or row.service == "ppoi" else lag > 0


@of_rows
def is_current_at_its_head(row: Row) -> bool | None:
    lag = _measure_lag(row, "synced", "behind")
    return None if lag is None or row.service != "ppoi" or lag > 0 else row.status == "current"


@of_rows
def is_current_if_all_answer(row: Row) -> bool | None:
    if not row.numbers.keys() >= _MEMBERS or row.reason not in ("responding", "partial-coverage"):
        return None
    responding, monitored = row.numbers["responding"], row.numbers["monitored"]
    return responding > 0 and (responding == monitored) == (row.status == "current")


@of_rows
def has_a_peer(row: Row) -> bool | None:
    return row.numbers["peers"] > 0 if row.reason == "responding" and "peers" in row.numbers else None
