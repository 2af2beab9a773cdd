"""Every clause that a deployment has to keep, and what a visit shows of it: a new clause is a line here and a rule."""

from collections import defaultdict
from itertools import chain
from typing import Final

from lookout.base.text import clean
from lookout.verify import history_rules as history
from lookout.verify import http_rules as http
from lookout.verify import live_rules as live
from lookout.verify.documents import Remark, Verdict, unsure
from lookout.verify.visit import Visit

# The first of those found counts: one failure among many passes is a failure, and one doubt among them a doubt.
VERDICTS: Final[tuple[Verdict, ...]] = ("fail", "could not tell", "pass", "not seen")
_MOST_TEXTS: Final = 3
_LONGEST_TEXT: Final = 300

# What the rules of a clause ask for, in words: what every healthy deployment shows, whatever is configured and however
# its services are.
_ALWAYS: Final = {
    "R1": "schemaVersion 1, an instant, and every row once",
    "R2": "every row has exactly its eight fields",
    "R3": "chains are positive integers, and null for messaging",
    "R7": "expiresAt is 150 s after observedAt, and null where nothing expires",
    "R8": "metrics is an object, and empty where nothing is known",
    "R12": "rows are in the order of services and chains",
    "H1": "all fields are there, instants in their forms",
    "H2": "rows have their fields, and are those of the live report",
    "H3": "every string is as long as from and to make it",
    "H4": "from and to are aligned, and to is the bucket that was filling",
    "H5": "all characters are known",
    "A1": "both paths get 200, and a query string makes no difference",
    "A3": "a 200 is application/json; charset=utf-8",
    "A6": "every origin may read each answer",
    "A9": f"Cache-Control of the live report is {http.LIVE_CACHING}",
    "A10": f"Cache-Control of the history is {http.HISTORY_CACHING}",
    "A14": "nothing is asked of callers, and no cookie is set",
    "E1": "another path gets 404 with a message",
    "A7": "OPTIONS gets 204 with the methods, the headers and a day to keep them",
}
# The same, but for what a cache in front may answer in its own way.
_WITHOUT_A_CACHE: Final = {
    "A2": "HEAD gets what GET does without a body, other methods get 405 with Allow: GET, HEAD, OPTIONS",
    "A4": "the ETag is strong, 16 characters in quotes, and each body has its own",
    "A5": "the ETag itself, with W/, in a list and as * gets 304 without a body",
    "A8": "an error is an object of one string, error, and not to be kept",
    "A15": "every 200 is the whole document, plain or as gzip for those who accept it",
}
# What shows only with some rows, over time, or if it is asked for.
_SOMETIMES: Final = {
    "M5": "generatedAt of the live report moves on",
    "R4": "instants are in UTC, to the millisecond",
    "R5": "observedAt is there for what was probed, and null for what is unmonitored",
    "R6": "lastSuccessAt is observedAt exactly where the probe was compared",
    "R9": "each service has its own metrics",
    "R10": "metrics are integers from 0 to 2^53 - 1",
    "R11": "no head is below 0",
    "R13": "a row that could not be compared has no head",
    "R14": "the operator's own services have proper names, and chains or none",
    "S1": "unreachable is unknown or unavailable",
    "S3": "synced is current, and not half an hour behind",
    "S4": "behind is catching-up or degraded, and lags",
    "S7": "synced of a ppoi node is current, and so is one that has reached its own head",
    "S8": "behind of a ppoi node is catching-up or degraded",
    "S10": "broadcasters are current when all answer, and degraded when some do",
    "S11": "messaging is current with a peer or more",
    "S12": "no-observation is unknown",
    "S13": "incompatible-reference is unknown",
    "S14": "not-configured is unmonitored",
    "S18": "incomplete and inconsistent are degraded",
    "S21": "inconsistent of a ppoi node is degraded",
    "W4": "not-everywhere is unknown, catching-up or degraded",
    "W5": "a row from several places expires after it was observed",
    "W7": "views is 2 or more, and agreeing is at most that",
    "H9": "uptime is c / (c + k + d + u), to 4 decimals",
    "H10": "uptime is null where fewer than 12 buckets are known",
    "H11": "uptime is 1 only where every known bucket is c",
    "H12": "a window holds the buckets that start within it",
    "H14": "generatedAt of the history moves on",
    "H16": "no ended bucket changes",
    "A11": "a 503 says that it is unavailable",
    "A12": "a 503 has Retry-After: 30",
    "E2": "callers get a proper 429 for a minute after 120 requests in one (--rate-limit tries it)",
    "E3": "no copy is older than 330 s, or 420 s of the history",
    "V3": "both schemas and the OpenAPI description are served",
}
# What a visit cannot show: it is inside the monitor, takes days, is the operator's choice, or is the same for every
# deployment of a version. C is the readers'.
_OF_MONITOR: Final = "M1 M2 M3 M4 M6 M7 M8 M9 M10 M11 M12 M13 M14 M15 M16 M17 S2 S5 S6 S9 S15 S16 S17 S19 S20"
_OF_PLACES: Final = "W1 W2 W3 W6 W8 W9"
_OF_DOCUMENTS_AND_EDGE: Final = "H6 H7 H8 H13 H15 H17 A13 A16 E4 E5 E6 V1 V2"
_UNSEEN: Final = (*_OF_MONITOR.split(), *_OF_PLACES.split(), *_OF_DOCUMENTS_AND_EDGE.split())
_SEEN: Final = _ALWAYS | _WITHOUT_A_CACHE | _SOMETIMES
_MAY_BE_A_CACHES: Final = {*_WITHOUT_A_CACHE, "H2"}
SHOWN: Final = _SEEN.keys()
# In the contract's order.
CLAUSES: Final = sorted((*_SEEN, *_UNSEEN), key=lambda clause: ("MRSHAEWV".index(clause[0]), int(clause[1:])))


def verify_visit(visit: Visit) -> list[Remark]:
    remarks: defaultdict[str, list[Remark]] = defaultdict(list)
    for remark in chain(live.judge(visit), history.judge(visit), http.judge(visit)):
        is_excused = remark.verdict == "fail" and visit.cache is not None and remark.clause in _MAY_BE_A_CACHES
        doubt = unsure(remark.clause, f"{remark.what}, perhaps by the cache ({visit.cache})")
        remarks[remark.clause].append(doubt if is_excused else remark)
    return [_conclude(clause, remarks[clause]) for clause in CLAUSES]


def _conclude(clause: str, remarks: list[Remark]) -> Remark:
    """The worst verdict, with the first of its texts. What a server sent may be quoted there: the terminal gets none of
    its control characters."""
    title = _SEEN.get(clause, "")
    remarks = remarks or [Remark(clause, "not seen", title or "it does not show from outside")]
    worst = min((remark.verdict for remark in remarks), key=VERDICTS.index)
    found = dict.fromkeys(remark.what for remark in remarks if remark.verdict == worst)
    texts = [clean(text, _LONGEST_TEXT) for text in found]
    more = [f"and {len(texts) - _MOST_TEXTS} more"] if len(texts) > _MOST_TEXTS else []
    seen = "; ".join((*texts[:_MOST_TEXTS], *more))
    return Remark(clause, worst, f"{title}, but: {seen}" if worst == "fail" else seen or title)


def find_doubts(visit: Visit, findings: list[Remark]) -> list[Remark]:
    """What was not seen, or not decided, although a healthy deployment shows it; M5, if the monitor looks stopped."""
    shown = {*_ALWAYS, *(() if visit.cache else _WITHOUT_A_CACHE), *(("M5",) if history.looks_stopped(visit) else ())}
    return [finding for finding in findings if finding.clause in shown and finding.verdict not in ("pass", "fail")]
