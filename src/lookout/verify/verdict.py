"""From what a visit saw to one finding for every clause that a deployment has to keep."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.caches import find_cache_sign
from lookout.verify.clauses_codings import verify_codings, verify_etags
from lookout.verify.clauses_conditional import verify_conditional
from lookout.verify.clauses_edge import looks_stopped, verify_edge
from lookout.verify.clauses_history import verify_history
from lookout.verify.clauses_http import verify_documents
from lookout.verify.clauses_live import verify_live
from lookout.verify.clauses_methods import verify_head, verify_methods
from lookout.verify.clauses_rows import compare_rows, read_rows
from lookout.verify.clauses_schemas import verify_schemas
from lookout.verify.clauses_status import STATUSES
from lookout.verify.client import TOO_LARGE, HttpAnswer
from lookout.verify.documents import Unreadable, decode_document
from lookout.verify.findings import ClauseFinding, failed, inconclusive, merge_findings, passed
from lookout.verify.visit import EndpointVisit, Visit

_INSIDE: Final = "it is about the inside of the monitor, and does not show in answers"
_OVER_TIME: Final = "a single look at rows does not show how they came about"
_NO_SUCH_ROW: Final = "no row showed it"
# Clauses of the contract that no answer, or not every answer, shows, and why. The clauses C are the readers'.
UNSEEN: Final = {
    **dict.fromkeys(("M1", "M2", "M3", "M4", "M6", "M7", "M8", "M11", "M12", "M13", "M16", "M17"), _INSIDE),
    **dict.fromkeys(("M9", "M10"), "which services and chains there are is the operator's to configure"),
    "M14": "it shows only when the monitor stops",
    **dict.fromkeys(("S1", "S2", "S5", "S6", "S8", "S9", "S15", "S16"), _OVER_TIME),
    **dict.fromkeys(("S3", "S4", "S7", "S10", "S11", "S12", "S13", "S14", "S18", "R11", "R13", "R14"), _NO_SUCH_ROW),
    **dict.fromkeys(("S17", "S19"), "how indexers are compared does not show in answers"),
    **dict.fromkeys(("H6", "H7", "H8", "H17"), "the statuses of which buckets are made are gone"),
    **dict.fromkeys(("H9", "H11"), "no window has enough known buckets"),
    "H12": "the history is too young for a window to be shorter than it",
    "H13": "it shows only over days",
    "H15": "it shows only when the configuration changes",
    "H16": "only one history was seen",
    "A11": "it shows only when something fails",
    "A12": "it shows only when there is no history",
    "A13": "not every service was unhealthy",
    "A16": "it takes many connections and half a minute, which a visit does not take",
    "E5": "how the deployment is built does not show in answers",
    "E6": "whom a deployment trusts is not tried from outside",
}
# What every healthy deployment shows, whatever is configured and however its services are.
ALWAYS_SHOWN: Final = frozenset(
    {
        *("M15", "R1", "R2", "R3", "R4", "R5", "R7", "R8", "R12", "H1", "H2", "H3", "H4", "H5", "H10"),
        *("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10", "A14", "A15", "E1"),
    }
)
# Of these, what a cache may answer in its own way.
_CACHES_OWN: Final = frozenset({"A2", "A4", "A5", "A7", "A8", "A15"})
_EVERY: Final = {"M": 17, "R": 14, "S": 19, "H": 17, "A": 16, "E": 6, "V": 3}
_NOTHING_SEEN: Final = "there was no answer to judge by"
_OF_A_DOCUMENT: Final = ("A3", "A4", "A5", "A15")
_OF_EVERY_ANSWER: Final = ("A2", "A6", "A7", "A8", "A14")
_UNHEALTHY: Final = frozenset(STATUSES) - {"current", "unmonitored"}


def verify_visit(visit: Visit) -> list[ClauseFinding]:
    """One finding for every clause but the readers', in the contract's order."""
    found = merge_findings(_verify_all(visit, _find_cache_sign(visit)))
    by_clause = {finding.clause: finding for finding in found}
    rest = [
        inconclusive(clause, UNSEEN.get(clause, _NOTHING_SEEN))
        for letter, last in _EVERY.items()
        for clause in (f"{letter}{number}" for number in range(1, last + 1))
        if clause not in by_clause
    ]
    return merge_findings((*found, *rest))


def find_doubts(visit: Visit, findings: list[ClauseFinding]) -> list[ClauseFinding]:
    """What could not be decided although a healthy deployment shows it; M5, if the monitor looks stopped."""
    expected = ALWAYS_SHOWN - (_CACHES_OWN if _find_cache_sign(visit) else set()) | (
        {"M5"} if looks_stopped(visit) else set()
    )
    return [finding for finding in findings if finding.verdict == "could not tell" and finding.clause in expected]


def _find_cache_sign(visit: Visit) -> str | None:
    return find_cache_sign(
        exchange.outcome
        for exchange in (*visit.live.exchanges, *visit.history.exchanges)
        if isinstance(exchange.outcome, HttpAnswer)
    )


def _verify_all(visit: Visit, cache: str | None) -> Iterator[ClauseFinding]:
    for endpoint in (visit.live, visit.history):
        yield from _verify_http(endpoint, cache)
    yield from verify_etags((visit.live, visit.history), cache)
    yield from _verify_documents(visit)
    yield from verify_edge(visit, cache)
    yield from verify_schemas(visit)


def _verify_http(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    yield from verify_documents(endpoint, cache)
    first = endpoint.outcome("get")
    http_code = first.http_code if isinstance(first, HttpAnswer) else None
    if http_code == 200:
        yield from verify_codings(endpoint, cache)
        yield from verify_head(endpoint, cache)
        yield from verify_conditional(endpoint, cache)
    else:
        for clause in (*_OF_A_DOCUMENT, "A9" if endpoint.noun == "live report" else "A10"):
            yield inconclusive(clause, f"{endpoint.noun}: there is no document to look at")
    if http_code is None or http_code == 429:
        for clause in _OF_EVERY_ANSWER:
            yield inconclusive(clause, f"{endpoint.noun}: there was no answer to judge by")
    else:
        yield from verify_methods(endpoint, cache)


def _verify_documents(visit: Visit) -> Iterator[ClauseFinding]:
    lives, histories = ([body for _, body in each.documents()] for each in (visit.live, visit.history))
    for body in lives[:1]:
        yield from verify_live(body)
        yield from _verify_health(body)
    if _is_endless(visit.live):
        yield failed("R1", "live report: larger than any live report")
    for body in histories[:1]:
        yield from verify_history(body)
    rows = compare_rows(read_rows(lives, "checks"), read_rows(histories, "rows"))
    yield rows or inconclusive("H2", "there are no two documents to compare the rows of")


def _verify_health(body: bytes) -> Iterator[ClauseFinding]:
    report = decode_document(body)
    checks = None if isinstance(report, Unreadable) else report.get("checks")
    rows = [row for row in checks if isinstance(row, dict)] if isinstance(checks, list) else []
    statuses = {str(row.get("status")) for row in rows} - {"unmonitored"}
    if statuses and statuses <= _UNHEALTHY:
        yield passed("A13", "200, although every service is unhealthy")


def _is_endless(endpoint: EndpointVisit) -> bool:
    first = endpoint.outcome("get")
    return isinstance(first, HttpAnswer) and first.http_code == 200 and first.problem == TOO_LARGE
