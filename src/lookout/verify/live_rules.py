"""The rules of the live report (clauses R, S and M15), as pure functions of the report.

A rule of one row gives nothing where another rule has said already that the row cannot be read."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from lookout.verify.documents import (
    Json,
    Remark,
    describe_row,
    failed,
    inconclusive,
    is_integer,
    list_identities,
    passed,
    quote,
    quote_field,
    read_document,
    read_instant,
)
from lookout_reader import SERVICES
from lookout_reader.statuses import CHARACTERS, KNOWN_STATUSES

_LARGEST_METRIC: Final = 2**53 - 1  # R10
_LIFETIME_MS: Final = 150_000
_AHEAD_MS: Final = 30_000  # what a reader puts up with (C2)
_ROW_AGE_MS: Final = 44_000  # M15, about
_FAILING_AGE_MS: Final = 133_000
_ABOUT_MS: Final = 6_000
_ALLOWANCE_BLOCKS: Final = 10
# Blocks in the 30 minutes after which no row is current, however its allowance is tuned (S5), by the pace that its
# chain had at launch; by ten blocks a second if it is another chain.
_DEGRADED_BLOCKS: Final = {1: 150, 42161: 7_200, 137: 1_029, 56: 4_000, 11155111: 150}
_MOST_DEGRADED_BLOCKS: Final = 18_000

_STATUSES: Final = tuple(CHARACTERS)
# The latest probe succeeded and was compared.
_EVALUATED: Final = tuple(status for status in KNOWN_STATUSES if status != "unavailable")
_UNHEALTHY: Final = frozenset(_STATUSES) - {"current", "unmonitored"}
_FAILED: Final = "unreachable"
_INSTANTS: Final = ("observedAt", "lastSuccessAt", "expiresAt")
_FIELDS: Final = ("service", "chainId", "status", "reason", *_INSTANTS, "metrics")

_METRICS: Final = {
    "messaging": ("peers",),
    "ppoi": ("position", "head"),
    "broadcasters": ("responding", "monitored"),
    "indexer": ("position", "head"),
    "hosted-indexer": ("position", "head"),
}
_ALL_METRICS: Final = frozenset(key for keys in _METRICS.values() for key in keys)
_INDEXERS: Final = ("indexer", "hosted-indexer")
_COMPARED: Final = ("ppoi", *_INDEXERS)
_COUNTED: Final = ("broadcasters", "messaging")


class _Reason(NamedTuple):
    """With which statuses and services a reason goes; ``by_numbers``: whether the row's metrics decide the status."""

    statuses: tuple[str, ...]
    services: tuple[str, ...]
    by_numbers: bool = True


_REASONS: Final = {
    "synced": _Reason(("current",), _COMPARED),
    "behind": _Reason(("catching-up", "degraded"), _COMPARED),
    "responding": _Reason(("current",), _COUNTED),
    "partial-coverage": _Reason(("degraded",), ("broadcasters",)),
    _FAILED: _Reason(("unknown", "unavailable"), SERVICES),
    "not-configured": _Reason(("unmonitored",), SERVICES),
    "no-observation": _Reason(("unknown",), SERVICES),
    "incompatible-reference": _Reason(("unknown",), _COMPARED),
    "incomplete": _Reason(("degraded",), _INDEXERS, by_numbers=False),
    "inconsistent": _Reason(("degraded",), _INDEXERS, by_numbers=False),
}

# The rows of the operator's own services (R14): what a probe can find, as the metrics that a row then has.
_OWN_NAME: Final = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)
_NOTHING: Final[frozenset[str]] = frozenset()
_POSITION: Final = frozenset({"position"})
_HEIGHTS: Final = frozenset({"position", "head"})
_MEMBERS: Final = frozenset({"responding", "monitored"})
_PEERS: Final = frozenset({"peers"})
_SHAPES: Final = (_NOTHING, _POSITION, _HEIGHTS, _MEMBERS, _PEERS)
# Of a reason that is not here, any of them; R8 says what has to be empty.
_SHAPES_BY_REASON: Final = {
    "synced": (_HEIGHTS,),
    "behind": (_HEIGHTS,),
    "responding": (_NOTHING, _MEMBERS, _PEERS),
    "partial-coverage": (_MEMBERS,),
    "no-observation": (_NOTHING,),
    "incompatible-reference": (_NOTHING, _POSITION),
}


class LiveReport(NamedTuple):
    """A live report as far as it can be read; ``problem`` is why there is nothing to read."""

    problem: Remark | None
    fields: Json
    rows: list[Json]

    @property
    def generated_at(self) -> int | None:
        return read_instant(self.fields.get("generatedAt"))


LiveRule = Callable[[LiveReport], Iterator[Remark]]
RowRule = Callable[[Json, str], Iterator[Remark]]


def read_live_report(body: bytes) -> LiveReport:
    report = read_document(body, "live report")
    if isinstance(report, Remark):
        return LiveReport(report, {}, [])
    checks = report.get("checks")
    return LiveReport(
        None, report, [row for row in checks if isinstance(row, dict)] if isinstance(checks, list) else []
    )


def of_rows(rule: RowRule) -> LiveRule:
    """The rule of a report whose rows, each with its name, keep a rule."""

    def verify_rows(report: LiveReport) -> Iterator[Remark]:
        for row in report.rows:
            yield from rule(row, describe_row(row))

    return verify_rows


def verify_report(report: LiveReport) -> Iterator[Remark]:
    if report.problem is not None:
        yield report.problem
        return
    checks = report.fields.get("checks")
    if not is_integer(report.fields.get("schemaVersion")):
        version = quote_field(report.fields, "schemaVersion")
        yield failed(f"live report: schemaVersion is {version}, and not the integer 1")
    if "generatedAt" not in report.fields:
        yield failed("live report: there is no generatedAt")
    if not isinstance(checks, list):
        yield failed(f"live report: checks is {quote_field(report.fields, 'checks')}, and not a list")
        return
    doubles = [identity for identity, times in Counter(list_identities(checks)).items() if times > 1]
    for identity in doubles:
        yield failed(f"live report: {quote(identity)} has more than one row")
    if not checks:
        yield failed("live report: there is not one row, and messaging always has one")
    elif not doubles:
        yield passed(f"schemaVersion 1, {len(checks)} rows, none of them twice")


def verify_row_objects(report: LiveReport) -> Iterator[Remark]:
    checks = report.fields.get("checks")
    if isinstance(checks, list) and len(report.rows) < len(checks):
        yield failed(f"live report: {len(checks) - len(report.rows)} rows are not objects")


def verify_fields(row: Json, name: str) -> Iterator[Remark]:
    missing = [field for field in _FIELDS if field not in row]
    if missing:
        yield failed(f"{name}: without {', '.join(missing)}")
        return
    more = [field for field in row if field not in _FIELDS]
    if more:
        yield failed(f"{name}: with {quote(more[0])}, and a row has exactly eight fields")
    for field, known in (("service", (row["service"],)), ("status", _STATUSES), ("reason", tuple(_REASONS))):
        if not isinstance(row[field], str):
            yield failed(f"{name}: {field} is {quote(row[field])}, and not a string")
        elif row[field] not in known:
            yield inconclusive(f"{name}: {field} {quote(row[field])} is not known here; new ones may appear")
    yield passed("every row has exactly its eight fields")


def verify_chain(row: Json, name: str) -> Iterator[Remark]:
    if "chainId" not in row:
        return
    service, chain_id = row.get("service"), row["chainId"]
    if service in SERVICES and (chain_id is None) != (service == "messaging"):
        yield failed(f"{name}: chainId is {quote(chain_id)}; null is for messaging alone")
    elif chain_id is not None and not (is_integer(chain_id) and chain_id > 0):
        yield failed(f"{name}: chainId is {quote(chain_id)}, and not a positive integer")
    else:
        yield passed("chains are positive integers, and null for messaging")


def verify_generated_at(report: LiveReport) -> Iterator[Remark]:
    if "generatedAt" in report.fields and report.generated_at is None:
        yield failed(f"live report: generatedAt is {quote(report.fields['generatedAt'])}")


def verify_instants(row: Json, name: str) -> Iterator[Remark]:
    wrong = [field for field in _INSTANTS if not _is_readable(row, field)]
    for field in wrong:
        yield failed(f"{name}: {field} is {quote(row[field])}, and not like 2026-11-01T00:00:00.000Z")
    if not wrong:
        yield passed("instants are in UTC, to the millisecond")


def _is_readable(row: Json, field: str) -> bool:
    return row.get(field) is None or read_instant(row[field]) is not None


def verify_observed_at(row: Json, name: str) -> Iterator[Remark]:
    if "observedAt" not in row or not _is_readable(row, "observedAt"):
        return
    status, reason, observed_at = row.get("status"), row.get("reason"), row["observedAt"]
    probed = status in KNOWN_STATUSES or (status == "unknown" and reason in (_FAILED, "incompatible-reference"))
    if probed and observed_at is None:
        yield failed(f"{name}: {status} / {reason}, but observedAt is null")
    elif status == "unmonitored" and observed_at is not None:
        yield failed(f"{name}: unmonitored, but with an observedAt")
    elif status in _STATUSES:
        yield passed("observedAt is there for what was probed, and null for what is unmonitored")


def verify_observed_before(report: LiveReport) -> Iterator[Remark]:
    for row in report.rows:
        observed_at = read_instant(row.get("observedAt"))
        if observed_at is None or report.generated_at is None or observed_at <= report.generated_at:
            continue
        name, ahead_ms = describe_row(row), observed_at - report.generated_at
        if ahead_ms > _AHEAD_MS:
            yield failed(f"{name}: observedAt is {ahead_ms / 1000:.0f} s after the report was made")
        else:
            yield inconclusive(f"{name}: observed after the report was made, as only after a clock was set back")


def verify_last_success_at(row: Json, name: str) -> Iterator[Remark]:
    if "lastSuccessAt" not in row or not (_is_readable(row, "observedAt") and _is_readable(row, "lastSuccessAt")):
        return
    status, reason = row.get("status"), row.get("reason")
    observed_at, success_at = read_instant(row.get("observedAt")), read_instant(row["lastSuccessAt"])
    if status not in _STATUSES or (success_at is None and status not in _EVALUATED):
        return
    if status in _EVALUATED and success_at != observed_at:
        yield failed(f"{name}: {status}, but lastSuccessAt is not observedAt: the latest probe was a success")
    elif status not in _EVALUATED and (success_at == observed_at or (observed_at is None and status == "unknown")):
        yield failed(f"{name}: {status} / {reason}, but lastSuccessAt says that the latest probe was a success")
    elif success_at is not None and observed_at is not None and success_at > observed_at:
        yield inconclusive(f"{name}: lastSuccessAt is after observedAt, as only after a clock was set back")
    else:
        yield passed("lastSuccessAt is observedAt in rows that were compared, and earlier in others")


def verify_expires_at(row: Json, name: str) -> Iterator[Remark]:
    if "expiresAt" not in row or not _is_readable(row, "expiresAt"):
        return
    status, expires_at, lifetime_ms = row.get("status"), row["expiresAt"], _measure_lifetime_ms(row)
    if status in ("unknown", "unmonitored") and expires_at is not None:
        yield failed(f"{name}: {status}, but with an expiresAt")
    elif status in KNOWN_STATUSES and expires_at is None:
        yield failed(f"{name}: {status}, but expiresAt is null")
    elif lifetime_ms is not None and lifetime_ms <= 0:
        yield failed(f"{name}: expiresAt is not after observedAt")
    elif status in _STATUSES and expires_at is None:
        yield passed("expiresAt is null where nothing expires")


def verify_lifetimes(report: LiveReport) -> Iterator[Remark]:
    """The lifetime is policy: another one is no failure as long as it is the same for all."""
    lifetimes: dict[int, str] = {}
    for row in report.rows:
        lifetime_ms = _measure_lifetime_ms(row)
        if lifetime_ms is not None and lifetime_ms > 0:
            lifetimes.setdefault(lifetime_ms, describe_row(row))
    for lifetime_ms, name in lifetimes.items():
        if lifetime_ms == _LIFETIME_MS:
            yield passed("expiresAt is 150 s after observedAt")
        elif len(lifetimes) > 1:
            yield failed(f"{name}: expiresAt is {lifetime_ms / 1000:g} s after observedAt, and not so elsewhere")
        else:
            yield inconclusive(f"expiresAt is {lifetime_ms / 1000:g} s after observedAt in every row: tuned, it seems")


def _measure_lifetime_ms(row: Json) -> int | None:
    """From observedAt to expiresAt, in a row that has both."""
    observed_at, expires_at = read_instant(row.get("observedAt")), read_instant(row.get("expiresAt"))
    if observed_at is None or expires_at is None or row.get("status") not in KNOWN_STATUSES:
        return None
    return expires_at - observed_at


def verify_empty_metrics(row: Json, name: str) -> Iterator[Remark]:
    metrics, status, reason = row.get("metrics"), row.get("status"), row.get("reason")
    if not isinstance(metrics, dict):
        if "metrics" in row:
            yield failed(f"{name}: metrics is {quote(metrics)}, and not an object")
    elif metrics and (status == "unmonitored" or reason == _FAILED):
        yield failed(f"{name}: {status} / {reason}, but with metrics {quote(metrics)}")
    else:
        yield passed("metrics is an object, and empty where nothing is known")


def verify_metric_names(row: Json, name: str) -> Iterator[Remark]:
    service, status, metrics = row.get("service"), row.get("status"), row.get("metrics")
    if not isinstance(service, str) or service not in _METRICS or not isinstance(metrics, dict):
        return
    own, found = _METRICS[service], set(metrics) & _ALL_METRICS
    if found - set(own):
        yield failed(f"{name}: {', '.join(sorted(found - set(own)))} is not a metric of this service")
    elif status in _EVALUATED and not set(own) <= found:
        yield failed(f"{name}: {status}, but without {' and '.join(key for key in own if key not in found)}")
    elif service == "broadcasters" and len(found) == 1:
        yield failed(f"{name}: {found.pop()} alone")
    elif service == "broadcasters" and found and _is_above(metrics["responding"], metrics["monitored"]):
        yield failed(f"{name}: responding {metrics['responding']} is above monitored {metrics['monitored']}")
    elif found:
        yield passed("each service has its own metrics")


def _is_above(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one > other


def verify_metric_numbers(row: Json, name: str) -> Iterator[Remark]:
    metrics = row.get("metrics")
    if not isinstance(metrics, dict):
        return
    for key in sorted(metrics.keys() & _ALL_METRICS):
        if not (is_integer(metrics[key]) and 0 <= metrics[key] <= _LARGEST_METRIC):
            yield failed(f"{name}: {key} is {quote(metrics[key])}")
        else:
            yield passed("metrics are integers from 0 to 2^53 - 1")


def verify_head(row: Json, name: str) -> Iterator[Remark]:
    metrics = row.get("metrics")
    head = metrics.get("head") if isinstance(metrics, dict) else None
    if is_integer(head):
        yield failed(f"{name}: head is {head}") if head < 0 else passed("no head is below 0")


def verify_order(report: LiveReport) -> Iterator[Remark]:
    once = list(dict.fromkeys(list_identities(report.rows)))
    # The operator's own services come after the five; in which order, only the configuration says.
    services = dict.fromkeys((*SERVICES, *(service for service, _ in once)))
    order = {service: place for place, service in enumerate(services)}
    places = [(order[service], chain_id or 0) for service, chain_id in once]
    wrong = next((once[i] for i, (one, next_) in enumerate(pairwise(places), 1) if one > next_), None)
    if wrong is not None:
        yield failed(f"live report: {quote(wrong)} is out of order")
    elif isinstance(report.fields.get("checks"), list):
        yield passed("rows are in the order of services and chains")


def verify_incompatible(row: Json, name: str) -> Iterator[Remark]:
    service, metrics = row.get("service"), row.get("metrics")
    if row.get("reason") == "incompatible-reference" and service in _COMPARED and isinstance(metrics, dict):
        wanted = _NOTHING if service == "ppoi" else _POSITION
        if set(metrics) & _ALL_METRICS != wanted:
            yield failed(f"{name}: incompatible-reference, but metrics {quote(metrics)}")
        else:
            yield passed("a row that could not be compared has no head")


def verify_own_services(report: LiveReport) -> Iterator[Remark]:
    """The rows of services that are none of the five. What is not known here may be of a newer contract."""
    own = [row for row in report.rows if isinstance(row.get("service"), str) and row["service"] not in SERVICES]
    shared = {row["service"] for row in own if row.get("chainId", ...) is None}
    for service in dict.fromkeys(row["service"] for row in own if row.get("chainId") is not None):
        if service in shared:
            yield failed(f"live report: {quote(service)} has a row of no chain, and one of a chain")
    for row in own:
        wrong = list(_verify_own_row(row, describe_row(row)))
        yield from wrong or [passed("services of the operator's own have names and rows as they should be")]


def _verify_own_row(row: Json, name: str) -> Iterator[Remark]:
    status, reason, metrics = row.get("status"), row.get("reason"), row.get("metrics")
    if not _OWN_NAME.fullmatch(row["service"]):
        yield failed(f"{name}: a service of the operator's own cannot have that name")
    rule = _REASONS.get(reason) if isinstance(reason, str) else None
    if rule is not None and status in _STATUSES and status not in rule.statuses:
        yield failed(f"{name}: {status} does not go with {reason}")
    if not isinstance(metrics, dict):
        return
    allowed = _SHAPES_BY_REASON.get(reason, _SHAPES) if isinstance(reason, str) else _SHAPES
    if metrics.keys() & _ALL_METRICS not in allowed:
        yield failed(f"{name}: {quote(reason)} with metrics {quote(metrics)}")
    elif status in _EVALUATED and not _allow(metrics, is_current=status == "current"):
        yield failed(f"{name}: {status} with metrics {quote(metrics)}")
    elif metrics.keys() - _ALL_METRICS:
        more = min(metrics.keys() - _ALL_METRICS)
        yield inconclusive(f"{name}: metric {quote(more)} is not known here; new ones may appear")


def _allow(metrics: Json, *, is_current: bool) -> bool:
    """Whether a row of these numbers can be current, or can be otherwise: as far as no setting has a say in it."""
    numbers = {key: number for key, number in metrics.items() if is_integer(number)}
    match numbers:
        case {"responding": responding, "monitored": monitored}:  # as S10
            return 0 < responding <= monitored and (responding == monitored) == is_current
        case {"position": position, "head": head}:  # as S3, S7
            return position < head or is_current
        case {"peers": peers}:  # as S11
            return peers != 0
        case _:
            return True


def verify_ages(report: LiveReport) -> Iterator[Remark]:
    """How old rows were when they were published; what is old is no failure, since a monitor may stop (M14)."""
    if report.generated_at is None or not report.rows:
        return
    old = []
    for row in report.rows:
        observed_at = read_instant(row.get("observedAt"))
        most_ms = _FAILING_AGE_MS if row.get("reason") == _FAILED else _ROW_AGE_MS
        if observed_at is not None and report.generated_at - observed_at > most_ms + _ABOUT_MS:
            old.append(describe_row(row))
    if old:
        yield inconclusive(f"{len(old)} rows are older than that ({old[0]}), as after a stop of the monitor")
    else:
        yield passed("no row was older than about 44 s, or 133 s where its source fails, when it was published")


def verify_health(report: LiveReport) -> Iterator[Remark]:
    statuses = {str(row.get("status")) for row in report.rows} - {"unmonitored"}
    if statuses and statuses <= _UNHEALTHY:
        yield passed("200, although every service is unhealthy")


def verify_reason(*reasons: str, services: tuple[str, ...] = SERVICES, is_enough: bool = False) -> LiveRule:
    """The rule of the statuses and services that go with reasons; ``is_enough``: nothing else is to be seen of it."""

    def verify(row: Json, name: str) -> Iterator[Remark]:
        service, status, reason = row.get("service"), row.get("status"), row.get("reason")
        if status not in _STATUSES or reason not in reasons or service not in services:
            return
        rule = _REASONS[str(reason)]
        if status not in rule.statuses:
            yield failed(f"{name}: {status} does not go with {reason}")
        elif service not in rule.services:
            yield failed(f"{name}: {reason} is no reason of this service")
        elif is_enough:
            yield passed(f"{reason} goes with {status}")

    return of_rows(verify)


def _read_numbers(row: Json, *services: str) -> dict[str, int]:
    """The metrics of a row of these services, if they decide its status; nothing where status and reason are wrong."""
    reason, metrics = row.get("reason"), row.get("metrics")
    rule = _REASONS.get(reason) if isinstance(reason, str) else None
    if rule is None or not rule.by_numbers or not isinstance(metrics, dict) or row.get("service") not in services:
        return {}
    if row.get("status") not in _EVALUATED or row["status"] not in rule.statuses or row["service"] not in rule.services:
        return {}
    return {key: number for key, number in metrics.items() if is_integer(number)}


def verify_allowance(row: Json, name: str) -> Iterator[Remark]:
    status, chain_id, numbers = row.get("status"), row.get("chainId"), _read_numbers(row, *_INDEXERS)
    if not numbers.keys() >= _HEIGHTS:
        return
    lag = max(0, numbers["head"] - numbers["position"])
    most = _DEGRADED_BLOCKS.get(chain_id, _MOST_DEGRADED_BLOCKS) if is_integer(chain_id) else _MOST_DEGRADED_BLOCKS
    if status == "current" and lag > most:
        yield failed(f"{name}: current with {lag} blocks of lag: its chain makes no more than {most} in 30 minutes")
    elif status == "current" and lag > _ALLOWANCE_BLOCKS:
        yield inconclusive(f"{name}: current with {lag} blocks of lag: right if they take its chain 2 minutes at most")
    elif status == "current":
        yield passed(f"current with at most {_ALLOWANCE_BLOCKS} blocks of lag")
    elif lag == 0:
        yield failed(f"{name}: {status} without any lag")
    elif lag <= _ALLOWANCE_BLOCKS:
        yield inconclusive(f"{name}: {status} with {lag} blocks of lag: the allowance is tuned, it seems")


def verify_lag(row: Json, _name: str) -> Iterator[Remark]:
    numbers = _read_numbers(row, *_INDEXERS)
    if not numbers.keys() >= _HEIGHTS or row.get("status") == "current":
        return
    if numbers["head"] - numbers["position"] > _ALLOWANCE_BLOCKS:
        yield passed(f"behind with more than {_ALLOWANCE_BLOCKS} blocks of lag")


def verify_ppoi(row: Json, name: str) -> Iterator[Remark]:
    numbers = _read_numbers(row, "ppoi")
    if not numbers.keys() >= _HEIGHTS or numbers["position"] < numbers["head"]:
        return
    if row.get("status") != "current":
        yield failed(f"{name}: {row.get('status')}, although its position has reached its head")
    else:
        yield passed("a ppoi node that has reached its own head is current")


def verify_broadcasters(row: Json, name: str) -> Iterator[Remark]:
    status, numbers = row.get("status"), _read_numbers(row, "broadcasters")
    if not numbers.keys() >= _MEMBERS or numbers["responding"] > numbers["monitored"]:
        return
    responding, monitored = numbers["responding"], numbers["monitored"]
    if responding == 0 or (responding == monitored) != (status == "current"):
        yield failed(f"{name}: {status} with {responding} of {monitored} broadcasters")
    else:
        yield passed("broadcasters are current when all answer, and degraded when some do")


def verify_messaging(row: Json, name: str) -> Iterator[Remark]:
    peers = _read_numbers(row, "messaging").get("peers")
    if peers == 0:
        yield failed(f"{name}: current without a peer")
    elif peers is not None:
        yield passed("messaging is current with a peer or more")
