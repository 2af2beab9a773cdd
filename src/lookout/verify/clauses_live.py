"""Clauses R: the live report and its rows, as a pure function of its body."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from lookout.verify.clauses_own import verify_own_services
from lookout.verify.clauses_status import ACTIONABLE, EVALUATED, FAILED, REASONS, STATUSES, verify_status
from lookout.verify.documents import Json, describe_row, is_integer, list_identities, read_document, read_instant
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout_reader import SERVICES

_LARGEST_METRIC: Final = 2**53 - 1  # R10
LIFETIME_MS: Final = 150_000
_AHEAD_MS: Final = 30_000  # what a reader puts up with (C2)
_ROW_AGE_MS: Final = 44_000  # M15, about
_FAILING_AGE_MS: Final = 133_000
_ABOUT_MS: Final = 6_000

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
_COMPARED: Final = ("ppoi", "indexer", "hosted-indexer")


def verify_live(body: bytes) -> Iterator[ClauseFinding]:
    """What a live report shows of the clauses R and S, and of M15."""
    report = read_document(body, "live report", "R1")
    if isinstance(report, ClauseFinding):
        yield report
        return
    checks = report.get("checks")
    if not is_integer(report.get("schemaVersion")):
        yield failed(
            "R1", f"live report: schemaVersion is {_quote_field(report, 'schemaVersion')}, and not the integer 1"
        )
    generated_at = read_instant(report.get("generatedAt"))
    if "generatedAt" not in report:
        yield failed("R1", "live report: there is no generatedAt")
    elif generated_at is None:
        yield failed("R4", f"live report: generatedAt is {quote(report['generatedAt'])}")
    if not isinstance(checks, list):
        yield failed("R1", f"live report: checks is {_quote_field(report, 'checks')}, and not a list")
        return
    rows = [row for row in checks if isinstance(row, dict)]
    yield from _verify_report(checks, rows)
    for row in rows:
        yield from _verify_row(row)
        yield from verify_status(row)
    yield from verify_own_services(rows)
    yield from _verify_lifetimes(rows)
    if generated_at is not None:
        yield from _verify_ages(rows, generated_at)


def _quote_field(holder: Json, key: str) -> str:
    return quote(holder[key]) if key in holder else "missing"


def _verify_report(checks: list[object], rows: list[Json]) -> Iterator[ClauseFinding]:
    doubles = [identity for identity, times in Counter(list_identities(rows)).items() if times > 1]
    for identity in doubles:
        yield failed("R1", f"live report: {quote(identity)} has more than one row")
    if checks and not doubles:
        yield passed("R1", f"schemaVersion 1, {len(checks)} rows, none of them twice")
    if not checks:
        yield failed("R1", "live report: there is not one row, and messaging always has one")
    if len(rows) < len(checks):
        yield failed("R2", f"live report: {len(checks) - len(rows)} rows are not objects")
    once = list(dict.fromkeys(list_identities(rows)))
    # The operator's own services come after the five; in which order, only the configuration says.
    services = dict.fromkeys((*SERVICES, *(service for service, _ in once)))
    order = {service: place for place, service in enumerate(services)}
    places = [(order[service], chain_id or 0) for service, chain_id in once]
    wrong = next((once[i] for i, (one, next_) in enumerate(pairwise(places), 1) if one > next_), None)
    if wrong is None:
        yield passed("R12", "rows are in the order of services and chains")
    else:
        yield failed("R12", f"live report: {quote(wrong)} is out of order")


def _verify_row(row: Json) -> Iterator[ClauseFinding]:
    name = describe_row(row)
    yield from _verify_fields(row, name)
    yield from _verify_chain(row, name)
    yield from _verify_instants(row, name)
    metrics = row.get("metrics")
    if isinstance(metrics, dict):
        yield from _verify_emptiness(row, name, metrics)
        yield from _verify_keys(row, name, metrics)
        yield from _verify_numbers(name, metrics)
    elif "metrics" in row:
        yield failed("R8", f"{name}: metrics is {quote(metrics)}, and not an object")


def _verify_fields(row: Json, name: str) -> Iterator[ClauseFinding]:
    missing = [field for field in _FIELDS if field not in row]
    if missing:
        yield failed("R2", f"{name}: without {', '.join(missing)}")
        return
    more = [field for field in row if field not in _FIELDS]
    if more:
        yield failed("R2", f"{name}: with {quote(more[0])}, and a row has exactly eight fields")
    for field, known in (("service", (row["service"],)), ("status", STATUSES), ("reason", tuple(REASONS))):
        if not isinstance(row[field], str):
            yield failed("R2", f"{name}: {field} is {quote(row[field])}, and not a string")
        elif row[field] not in known:
            yield inconclusive("R2", f"{name}: {field} {quote(row[field])} is not known here; new ones may appear")
    yield passed("R2", "every row has exactly its eight fields")


def _verify_chain(row: Json, name: str) -> Iterator[ClauseFinding]:
    if "chainId" not in row:
        return
    service, chain_id = row.get("service"), row["chainId"]
    if service in SERVICES and (chain_id is None) != (service == "messaging"):
        yield failed("R3", f"{name}: chainId is {quote(chain_id)}; null is for messaging alone")
    elif chain_id is not None and not (is_integer(chain_id) and chain_id > 0):
        yield failed("R3", f"{name}: chainId is {quote(chain_id)}, and not a positive integer")
    else:
        yield passed("R3", "chains are positive integers, and null for messaging")


def _verify_instants(row: Json, name: str) -> Iterator[ClauseFinding]:
    wrong = [field for field in _INSTANTS if row.get(field) is not None and read_instant(row[field]) is None]
    for field in wrong:
        yield failed("R4", f"{name}: {field} is {quote(row[field])}, and not like 2026-11-01T00:00:00.000Z")
    if not wrong:
        yield passed("R4", "instants are in UTC, to the millisecond")
    observed_at, success_at = read_instant(row.get("observedAt")), read_instant(row.get("lastSuccessAt"))
    status, reason = row.get("status"), row.get("reason")
    if "observedAt" in row and "observedAt" not in wrong:
        yield from _verify_observed_at(name, status, reason, observed_at)
    if "lastSuccessAt" in row and not {"observedAt", "lastSuccessAt"} & set(wrong):
        yield from _verify_last_success_at(name, status, reason, observed_at, success_at)


def _verify_observed_at(name: str, status: object, reason: object, observed_at: int | None) -> Iterator[ClauseFinding]:
    probed = status in ACTIONABLE or (status == "unknown" and reason in (FAILED, "incompatible-reference"))
    if probed and observed_at is None:
        yield failed("R5", f"{name}: {status} / {reason}, but observedAt is null")
    elif status == "unmonitored" and observed_at is not None:
        yield failed("R5", f"{name}: unmonitored, but with an observedAt")
    elif status in STATUSES:
        yield passed("R5", "observedAt is there for what was probed, and null for what is unmonitored")


def _verify_last_success_at(
    name: str, status: object, reason: object, observed_at: int | None, success_at: int | None
) -> Iterator[ClauseFinding]:
    if status in EVALUATED:
        if success_at != observed_at:
            yield failed("R6", f"{name}: {status}, but lastSuccessAt is not observedAt: the latest probe was a success")
        else:
            yield passed("R6", "lastSuccessAt is observedAt in rows that were compared, and earlier in others")
    elif status in STATUSES and success_at is not None:
        if success_at == observed_at or (observed_at is None and status == "unknown"):
            yield failed(
                "R6", f"{name}: {status} / {reason}, but lastSuccessAt says that the latest probe was a success"
            )
        elif observed_at is not None and success_at > observed_at:
            yield inconclusive("R6", f"{name}: lastSuccessAt is after observedAt, as only after a clock was set back")
        else:
            yield passed("R6", "lastSuccessAt is observedAt in rows that were compared, and earlier in others")


def _verify_lifetimes(rows: list[Json]) -> Iterator[ClauseFinding]:
    """R7. The lifetime is policy: another one is no failure as long as it is the same for all."""
    lifetimes: dict[int, str] = {}
    for row in rows:
        name, status, expires = describe_row(row), row.get("status"), row.get("expiresAt")
        if "expiresAt" not in row or (expires is not None and read_instant(expires) is None):
            continue  # R2 and R4 have said so
        observed_at, expires_at = read_instant(row.get("observedAt")), read_instant(expires)
        if status in ("unknown", "unmonitored") and expires_at is not None:
            yield failed("R7", f"{name}: {status}, but with an expiresAt")
        elif status in ACTIONABLE and expires_at is None:
            yield failed("R7", f"{name}: {status}, but expiresAt is null")
        elif status in ACTIONABLE and expires_at is not None and observed_at is not None:
            if expires_at <= observed_at:
                yield failed("R7", f"{name}: expiresAt is not after observedAt")
            else:
                lifetimes.setdefault(expires_at - observed_at, name)
        elif status in STATUSES:
            yield passed("R7", "expiresAt is null where nothing expires")
    if len(lifetimes) > 1:
        for lifetime_ms, name in lifetimes.items():
            if lifetime_ms != LIFETIME_MS:
                yield failed(
                    "R7", f"{name}: expiresAt is {lifetime_ms / 1000:g} s after observedAt, and not so elsewhere"
                )
    elif lifetimes:
        (lifetime_ms,) = lifetimes
        if lifetime_ms == LIFETIME_MS:
            yield passed("R7", "expiresAt is 150 s after observedAt")
        else:
            yield inconclusive(
                "R7", f"expiresAt is {lifetime_ms / 1000:g} s after observedAt in every row: tuned, it seems"
            )


def _verify_emptiness(row: Json, name: str, metrics: Json) -> Iterator[ClauseFinding]:
    if metrics and (row.get("status") == "unmonitored" or row.get("reason") == FAILED):
        yield failed("R8", f"{name}: {row.get('status')} / {row.get('reason')}, but with metrics {quote(metrics)}")
    else:
        yield passed("R8", "metrics is an object, and empty where nothing is known")
    if row.get("reason") == "incompatible-reference" and row.get("service") in _COMPARED:
        wanted = set() if row.get("service") == "ppoi" else {"position"}
        if set(metrics) & _ALL_METRICS != wanted:
            yield failed("R13", f"{name}: incompatible-reference, but metrics {quote(metrics)}")
        else:
            yield passed("R13", "a row that could not be compared has no head")


def _verify_keys(row: Json, name: str, metrics: Json) -> Iterator[ClauseFinding]:
    service, status = row.get("service"), row.get("status")
    if not isinstance(service, str) or service not in _METRICS:
        return
    own, found = _METRICS[service], set(metrics) & _ALL_METRICS
    if found - set(own):
        yield failed("R9", f"{name}: {', '.join(sorted(found - set(own)))} is not a metric of this service")
    elif status in EVALUATED and not set(own) <= found:
        yield failed("R9", f"{name}: {status}, but without {' and '.join(key for key in own if key not in found)}")
    elif service == "broadcasters" and len(found) == 1:
        yield failed("R9", f"{name}: {found.pop()} alone")
    elif service == "broadcasters" and found and _is_above(metrics["responding"], metrics["monitored"]):
        yield failed("R9", f"{name}: responding {metrics['responding']} is above monitored {metrics['monitored']}")
    elif found:
        yield passed("R9", "each service has its own metrics")


def _is_above(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one > other


def _verify_numbers(name: str, metrics: Json) -> Iterator[ClauseFinding]:
    for key in sorted(set(metrics) & _ALL_METRICS):
        value = metrics[key]
        if key == "head" and is_integer(value):
            yield failed("R11", f"{name}: head is {value}") if value < 0 else passed("R11", "no head is below 0")
        if not (is_integer(value) and 0 <= value <= _LARGEST_METRIC):
            yield failed("R10", f"{name}: {key} is {quote(value)}")
        else:
            yield passed("R10", "metrics are integers from 0 to 2^53 - 1")


def _verify_ages(rows: list[Json], generated_at: int) -> Iterator[ClauseFinding]:
    """How old rows were when they were published; what is old is no failure, since a monitor may stop (M14)."""
    old = []
    for row in rows:
        observed_at = read_instant(row.get("observedAt"))
        if observed_at is None:
            continue
        if observed_at > generated_at + _AHEAD_MS:
            ahead_s = (observed_at - generated_at) / 1000
            yield failed("R5", f"{describe_row(row)}: observedAt is {ahead_s:.0f} s after the report was made")
        elif observed_at > generated_at:
            yield inconclusive(
                "R5", f"{describe_row(row)}: observed after the report was made, as only after a clock was set back"
            )
        most_ms = _FAILING_AGE_MS if row.get("reason") == FAILED else _ROW_AGE_MS
        if generated_at - observed_at > most_ms + _ABOUT_MS:
            old.append(describe_row(row))
    if old:
        yield inconclusive("M15", f"{len(old)} rows are older than that ({old[0]}), as after a stop of the monitor")
    elif rows:
        yield passed("M15", "no row was older than about 44 s, or 133 s where its source fails, when it was published")
