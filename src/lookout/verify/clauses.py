"""Every clause that a deployment has to keep, with its rules: to add a clause is a line here and a rule."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from lookout.base.text import make_plain
from lookout.verify import history_rules as history
from lookout.verify import http_rules as http
from lookout.verify import live_rules as live
from lookout.verify.documents import Remark, Verdict, unsure
from lookout.verify.http_rules import gets, has_header, of_answers
from lookout.verify.visit import Rule, Visit

# The worst first: one failure among many passes is a failure, and one doubt among them a doubt.
VERDICTS: Final[tuple[Verdict, ...]] = ("fail", "could not tell", "pass")
_MOST_TEXTS: Final = 3
_LONGEST_TEXT: Final = 300

_JSON: Final = "application/json; charset=utf-8"
_METHODS: Final = "GET, HEAD, OPTIONS"
_LIVE_CACHING: Final = "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300"
_HISTORY_CACHING: Final = "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300"


class ClauseFinding(NamedTuple):
    clause: str
    verdict: Verdict
    what: str


def _all_of(*rules: Rule) -> Rule:
    return lambda visit: (remark for rule in rules for remark in rule(visit))


def _unless_cached(*rules: Rule) -> Rule:
    """The rules, whose failures may be a cache's own doing if there is one."""

    def judge(visit: Visit) -> Iterator[Remark]:
        for remark in _all_of(*rules)(visit):
            is_excused = remark.verdict == "fail" and visit.cache is not None
            yield unsure(f"{remark.what}, perhaps by the cache ({visit.cache})") if is_excused else remark

    return judge


def _lets_every_origin_read(*codes: int) -> Rule:
    return _all_of(
        has_header("access-control-allow-origin", r"\*", *codes),
        has_header("access-control-expose-headers", r"(.*,)?\s*etag\s*(,.*)?", *codes),
        has_header("access-control-allow-credentials", "", *codes),
        has_header("vary", r"(?!.*origin).*", *codes),
    )


# What the rules of a clause ask for, in words, and the rules.
_Table = dict[str, tuple[str, *tuple[Rule, ...]]]

# What every healthy deployment shows, whatever is configured and however its services are.
_ALWAYS: Final[_Table] = {
    "R1": ("schemaVersion 1, an instant, and every row once", live.is_readable),
    "R2": ("every row has exactly its eight fields", live.has_fields),
    "R3": ("chains are positive integers, and null for messaging", live.has_its_chain),
    "R4": ("instants are in UTC, to the millisecond", live.has_instants),
    "R5": ("observedAt is there for what was probed, and null for what is unmonitored", live.is_observed),
    "R7": ("expiresAt is 150 s after observedAt, and null where nothing expires", live.expires, live.has_one_lifetime),
    "R8": ("metrics is an object, and empty where nothing is known", live.has_metrics_if_known),
    "R12": ("rows are in the order of services and chains", live.is_in_order),
    "H1": ("all fields are there, instants in their forms", history.is_readable),
    "H2": (
        "rows have their fields, and are those of the live report",
        history.has_fields,
        _unless_cached(history.has_rows_of_the_report),
    ),
    "H3": ("every string is as long as from and to make it", history.has_its_length),
    "H4": ("from and to are aligned, and to is the bucket that was filling", history.has_borders),
    "H5": ("all characters are known", history.has_known_characters),
    "H10": ("uptime is null where fewer than 12 buckets are known", history.has_uptime),
    "A1": (
        "both paths get 200, and a query string makes no difference",
        http.is_reachable,
        gets(200, "query"),
        _unless_cached(http.gets_the_document("query")),
    ),
    "A3": (f"a 200 is {_JSON}", has_header("content-type", _JSON, 200)),
    "A6": (
        "every origin may read each answer",
        _lets_every_origin_read(200, 204, 304),
        _unless_cached(_lets_every_origin_read(405, 503)),
    ),
    "A9": (
        f"Cache-Control of the live report is {_LIVE_CACHING}",
        has_header("cache-control", _LIVE_CACHING, 200, 304, noun="live report"),
    ),
    "A10": (
        f"Cache-Control of the history is {_HISTORY_CACHING}",
        has_header("cache-control", _HISTORY_CACHING, 200, 304, noun="history"),
    ),
    "A14": (
        "nothing is asked of callers, and no cookie is set",
        of_answers(lambda _: False, 401, 403, method="GET"),
        gets(200, "bare"),
        has_header("set-cookie", "", 200, 204, 304, 405, 503),
    ),
    "E1": (
        "another path gets 404 with a message",
        gets(404, "other path", "slash"),
        of_answers(lambda answer: isinstance(http.read_object(answer).get("message"), str), 404),
    ),
}
# The same, but for what a cache in front may answer in its own way.
_WITHOUT_A_CACHE: Final[_Table] = {
    "A2": (
        f"HEAD gets what GET does without a body, other methods get 405 with Allow: {_METHODS}",
        gets(200, "head", "gzip head"),
        has_header("etag", ".+", 200, method="HEAD"),
        _unless_cached(gets(405, "POST", "PATCH", "PROPFIND"), has_header("allow", _METHODS, 405)),
    ),
    "A4": (
        "the ETag is strong, 16 characters in quotes, and each body has its own",
        _unless_cached(has_header("etag", r'"[^"]{16}"', 200, method="GET")),
        http.has_its_own_etag,
        http.has_the_matching_etag,
    ),
    "A5": (
        "the ETag itself, with W/, in a list and as * gets 304 without a body",
        gets(304, "exact", "gzip exact"),
        _unless_cached(gets(304, "weak", "list", "star", "conditional head", "gzip for identity", "identity for gzip")),
        gets(200, "other tag"),
    ),
    "A7": (
        "OPTIONS gets 204 with the methods, the headers and a day to keep them",
        _unless_cached(gets(204, "options", "preflight")),
        has_header("access-control-allow-methods", _METHODS, 204),
        has_header("access-control-allow-headers", "Accept, Content-Type, If-None-Match", 204),
        has_header("access-control-max-age", "86400", 204),
    ),
    "A8": (
        "an error is an object of one string, error, and not to be kept",
        _unless_cached(
            of_answers(http.is_error, 405, 503),
            has_header("content-type", _JSON, 405, 503),
            has_header("cache-control", "no-store", 405, 503),
        ),
    ),
    "A15": (
        "every 200 is the whole document, plain or as gzip for those who accept it",
        gets(200, "accept", "gzip", "gzip of a browser", "any coding", "gzip refused", "identity refused"),
        of_answers(lambda answer: answer.plain_body is not None, 200, method="GET"),
        _unless_cached(
            gets(200, "range"),
            http.has_an_accepted_coding,
            http.gets_the_document("range", "accept", "gzip", "gzip of a browser", "any coding", "bare"),
            has_header("vary", r"(?!.*\*).*accept-encoding.*", 200, 304),
        ),
    ),
}
# What shows only with some rows, over time, or if it is asked for.
_SOMETIMES: Final[_Table] = {
    "M5": ("generatedAt of the live report moves on", history.moves("live report", 40)),
    "R6": ("lastSuccessAt is observedAt exactly where the probe was compared", live.has_last_success),
    "R9": ("each service has its own metrics", live.has_its_metrics),
    "R10": ("metrics are integers from 0 to 2^53 - 1", live.counts_whole_numbers),
    "R11": ("no head is below 0", live.has_no_head_below_0),
    "R13": ("a row that could not be compared has no head", live.has_no_head_if_incompatible),
    "R14": ("the operator's own services have proper names, and chains or none", live.names_own_services),
    "S1": ("unreachable is unknown or unavailable", live.goes_with("unreachable")),
    "S3": ("synced is current, and not half an hour behind", live.goes_with("synced"), live.is_near_if_synced),
    "S4": ("behind is catching-up or degraded, and lags", live.goes_with("behind"), live.lags_if_behind),
    "S7": ("a ppoi node that has reached its own head is current", live.is_current_at_its_head),
    "S10": (
        "broadcasters are current when all answer, and degraded when some do",
        live.goes_with("responding", "partial-coverage"),
        live.is_current_if_all_answer,
    ),
    "S11": ("messaging is current with a peer or more", live.has_a_peer),
    "S12": ("no-observation is unknown", live.goes_with("no-observation")),
    "S13": ("incompatible-reference is unknown", live.goes_with("incompatible-reference")),
    "S14": ("not-configured is unmonitored", live.goes_with("not-configured")),
    "S18": ("incomplete and inconsistent are degraded", live.goes_with("incomplete", "inconsistent")),
    "H9": ("uptime is c / (c + k + d + u), to 4 decimals", history.has_uptime),
    "H11": ("uptime is 1 only where every known bucket is c", history.has_uptime),
    "H12": ("a window holds the buckets that start within it", history.has_uptime),
    "H14": ("generatedAt of the history moves on", history.moves("history", 80)),
    "H16": ("no ended bucket changes", history.keeps_ended_buckets),
    "A11": (
        "a 503 says that it is unavailable",
        of_answers(lambda answer: b"unavailable" in answer.body, 503, noun="live report"),
    ),
    "A12": ("a 503 has Retry-After: 30", has_header("retry-after", "30", 503, noun="history")),
    "E2": (
        "callers get a proper 429 for a minute after 120 requests in one (--rate-limit tries it)",
        has_header("retry-after", "[1-8]?[0-9]|90", 429),
        has_header("content-type", "text/plain.*", 429),
        has_header("access-control-allow-origin", "", 429),
        of_answers(lambda answer: b"1015" in answer.body, 429, method="GET"),
        http.limits_callers,
    ),
    "E3": (
        "no copy is older than 330 s, or 420 s of the history",
        of_answers(http.is_no_older(330), 200, 304, noun="live report", header="age"),
        of_answers(http.is_no_older(420), 200, 304, noun="history", header="age"),
    ),
    "V1": ("schemas are of 2020-12, and refuse nothing that they do not know", http.has_permissive_schemas),
    "V2": ("OpenAPI 3.1 has both endpoints with their codes and headers", http.has_openapi),
    "V3": ("both schemas and the OpenAPI description are served", http.serves_descriptions),
}
# What cannot be seen from outside, and why. The clauses C are the readers'.
_NEVER: Final = {
    "it is about the inside of the monitor": "M1 M2 M3 M4 M6 M7 M8 M11 M12 M13 M16 M17 S16 S17 S19 S20 S21",
    "which services and chains there are is the operator's to configure": "M9 M10",
    "a single look at rows does not show how they came about": "M15 S2 S5 S6 S8 S9 S15",
    "the statuses of which buckets are made are gone": "H6 H7 H8 H17",
    "it shows only over days, or when something stops or changes": "M14 H13 H15 A13",
    "it takes many connections and half a minute, which a visit does not take": "A16",
    "how the deployment is built does not show in answers": "E4 E5 E6",
}
_UNSEEN: Final = {clause: reason for reason, clauses in _NEVER.items() for clause in clauses.split()}
_SEEN: Final = _ALWAYS | _WITHOUT_A_CACHE | _SOMETIMES
SHOWN: Final = _SEEN.keys()
# In the contract's order.
CLAUSES: Final = sorted((*_SEEN, *_UNSEEN), key=lambda clause: ("MRSHAEV".index(clause[0]), int(clause[1:])))


def verify_visit(visit: Visit) -> list[ClauseFinding]:
    return [ClauseFinding(clause, *_judge(clause, visit)) for clause in CLAUSES]


def _judge(clause: str, visit: Visit) -> Remark:
    """The worst verdict, with the first of its texts. What a server sent may be quoted there: the terminal gets none of
    its control characters."""
    title, *rules = _SEEN.get(clause, ("",))
    remarks = [remark for rule in rules for remark in rule(visit)] or [
        unsure(_UNSEEN.get(clause, f"not shown: {title}"))
    ]
    worst = min((remark.verdict for remark in remarks), key=VERDICTS.index)
    texts = list(dict.fromkeys(make_plain(what, _LONGEST_TEXT) for verdict, what in remarks if verdict == worst))
    more = [f"and {len(texts) - _MOST_TEXTS} more"] if len(texts) > _MOST_TEXTS else []
    seen = "; ".join((*texts[:_MOST_TEXTS], *more))
    return Remark(worst, {"pass": title, "fail": f"{title}, but: {seen}", "could not tell": seen}[worst])


def find_doubts(visit: Visit, findings: list[ClauseFinding]) -> list[ClauseFinding]:
    """What could not be decided although a healthy deployment shows it; M5, if the monitor looks stopped."""
    shown = {*_ALWAYS, *(() if visit.cache else _WITHOUT_A_CACHE), *(("M5",) if history.looks_stopped(visit) else ())}
    return [finding for finding in findings if finding.verdict == "could not tell" and finding.clause in shown]
