"""From what a visit saw to one finding for every clause that a deployment has to keep."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.asking import Answer
from lookout.verify.caches import sign_of_a_cache
from lookout.verify.clauses_conditional import conditional_findings
from lookout.verify.clauses_edge import edge_findings
from lookout.verify.clauses_history import LiveRows, history_findings
from lookout.verify.clauses_http import document_findings
from lookout.verify.clauses_live import live_findings
from lookout.verify.clauses_methods import head_findings, method_findings
from lookout.verify.clauses_schemas import schema_findings
from lookout.verify.documents import SCHEMA_VERSION, Json, Unreadable, decoded, identities, instant, is_integer
from lookout.verify.findings import Finding, failed, merged, passed, untold
from lookout.verify.visit import Endpoint, Visit

_INSIDE: Final = "it is about the inside of the monitor, and does not show in answers"
_OVER_TIME: Final = "a single look at rows does not show how they came about"
_NO_SUCH_ROW: Final = "no row showed it"
# Clauses of the contract that no answer, or not every answer, can tell of, and why. The clauses C are the readers'.
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
_EVERY: Final = {"M": 17, "R": 14, "S": 19, "H": 17, "A": 16, "E": 6, "V": 3}
_NOTHING_SEEN: Final = "there was no answer to judge by"
_OF_A_DOCUMENT: Final = ("A3", "A4", "A5", "A15")
_OF_EVERY_ANSWER: Final = ("A2", "A6", "A7", "A8", "A14")
_UNHEALTHY: Final = {"catching-up", "degraded", "unavailable", "unknown"}


def judged(visit: Visit) -> list[Finding]:
    """One finding for every clause but the readers', in the contract's order."""
    cache = sign_of_a_cache(
        asked.reply for asked in (*visit.live.asked, *visit.history.asked) if isinstance(asked.reply, Answer)
    )
    told = merged(_findings(visit, cache))
    by_clause = {finding.clause: finding for finding in told}
    rest = [
        untold(clause, UNSEEN.get(clause, _NOTHING_SEEN))
        for letter, last in _EVERY.items()
        for clause in (f"{letter}{number}" for number in range(1, last + 1))
        if clause not in by_clause
    ]
    return merged((*told, *rest))


def _findings(visit: Visit, cache: str | None) -> Iterator[Finding]:
    for endpoint in (visit.live, visit.history):
        yield from _http(endpoint, cache)
    yield from _documents(visit)
    yield from edge_findings(visit, cache)
    yield from schema_findings(visit)


def _http(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    yield from document_findings(endpoint, cache)
    first = endpoint.reply("get")
    http_code = first.http_code if isinstance(first, Answer) else None
    if http_code == 200:
        yield from head_findings(endpoint, cache)
        yield from conditional_findings(endpoint, cache)
    else:
        for clause in (*_OF_A_DOCUMENT, "A9" if endpoint.noun == "live report" else "A10"):
            yield untold(clause, f"{endpoint.noun}: there is no document to look at")
    if http_code is None or http_code == 429:
        for clause in _OF_EVERY_ANSWER:
            yield untold(clause, f"{endpoint.noun}: there was no answer to judge by")
    else:
        yield from method_findings(endpoint, cache)


def _documents(visit: Visit) -> Iterator[Finding]:
    live = _body(visit.live)
    rows: LiveRows | None = None
    if live is not None:
        yield from live_findings(live)
        report = decoded(live)
        if not isinstance(report, Unreadable) and isinstance(report.get("checks"), list) and _is_known(report):
            once = list(dict.fromkeys(identities(report["checks"])))  # R1 tells of doubles
            rows = LiveRows(once, instant(report.get("generatedAt")))
            yield from _health(report["checks"])
    elif _is_endless(visit.live):
        yield failed("R1", "live report: larger than any live report")
    history = _body(visit.history)
    if history is not None:
        yield from history_findings(history, rows)


def _is_known(report: Json) -> bool:
    version = report.get("schemaVersion")
    return version == SCHEMA_VERSION or not is_integer(version)


def _health(checks: list[object]) -> Iterator[Finding]:
    statuses = {str(row.get("status")) for row in checks if isinstance(row, dict)} - {"unmonitored"}
    if statuses and statuses <= _UNHEALTHY:
        yield passed("A13", "200, although every service is unhealthy")


def _body(endpoint: Endpoint) -> bytes | None:
    """The document of the first request, as far as it came whole and as it is."""
    first = endpoint.reply("get")
    whole = isinstance(first, Answer) and first.http_code == 200 and not first.problem
    return first.body if isinstance(first, Answer) and whole and not first.header("content-encoding") else None


def _is_endless(endpoint: Endpoint) -> bool:
    first = endpoint.reply("get")
    return isinstance(first, Answer) and first.http_code == 200 and "larger" in first.problem
