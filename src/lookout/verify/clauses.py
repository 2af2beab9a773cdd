"""Every clause that a deployment has to keep, with its rules: to add a clause is a line here and a function."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, NamedTuple

from lookout.base.text import make_plain
from lookout.verify import edge_rules as edge
from lookout.verify import history_rules as history
from lookout.verify import http_rules as http
from lookout.verify import live_rules as live
from lookout.verify.client import TOO_LARGE, HttpAnswer
from lookout.verify.documents import Remark, Verdict, failed, inconclusive
from lookout.verify.visit import EndpointVisit, Visit
from lookout_reader import SERVICES

# The worst first: one failure among many passes is a failure, and one doubt among them a doubt.
VERDICTS: Final[tuple[Verdict, ...]] = ("fail", "could not tell", "pass")
_MOST_TEXTS: Final = 3
_LONGEST_TEXT: Final = 300

_NO_ANSWER: Final = "there was no answer to judge by"
_INSIDE: Final = "it is about the inside of the monitor, and does not show in answers"
_CONFIGURED: Final = "which services and chains there are is the operator's to configure"
_OVER_TIME: Final = "a single look at rows does not show how they came about"
_NO_SUCH_ROW: Final = "no row showed it"
_COMPARISON: Final = "how indexers are compared does not show in answers"
_GONE: Final = "the statuses of which buckets are made are gone"
_FEW_BUCKETS: Final = "no window has enough known buckets"
_NO_CACHE: Final = "there is no sign of a shared cache"


class _Seen(NamedTuple):
    """What rules judge: a visit, and the first of either document in it."""

    visit: Visit
    cache: str | None
    live: live.LiveReport
    history: history.History

    @property
    def endpoints(self) -> tuple[EndpointVisit, EndpointVisit]:
        return self.visit.live, self.visit.history


_Rule = Callable[[_Seen], Iterable[Remark]]
# When a healthy deployment shows a clause, whatever is configured and however its services are: a cache may answer some
# of what is asked in its own way.
_Shown = Literal["always", "without a cache", "sometimes"]


class _Clause(NamedTuple):
    """``unseen`` is why no rule may have anything to say of it."""

    unseen: str
    rules: tuple[_Rule, ...]
    shown: _Shown


class ClauseFinding(NamedTuple):
    clause: str
    verdict: Verdict
    what: str


def _always(*rules: _Rule) -> _Clause:
    return _Clause(_NO_ANSWER, rules, "always")


def _without_a_cache(*rules: _Rule) -> _Clause:
    return _Clause(_NO_ANSWER, rules, "without a cache")


def _sometimes(unseen: str, *rules: _Rule) -> _Clause:
    return _Clause(unseen, rules, "sometimes")


def _of_endpoints(
    rule: http.HttpRule, noun: str = "", *, unless: Callable[[EndpointVisit], str] = lambda _: ""
) -> _Rule:
    """The rule of both endpoints, or of the one that is named; ``unless`` says why it does not apply."""

    def judge(seen: _Seen) -> Iterator[Remark]:
        for endpoint in seen.endpoints:
            if noun in ("", endpoint.noun):
                why = unless(endpoint)
                for verdict, what in [inconclusive(why)] if why else rule(endpoint, seen.cache):
                    yield Remark(verdict, what if verdict == "pass" else f"{endpoint.noun}: {what}")

    return judge


def _if_answered(rule: http.HttpRule) -> _Rule:
    """The rule of endpoints that answer at all, and do not refuse the caller."""
    return _of_endpoints(rule, unless=lambda seen: _NO_ANSWER if seen.first_code in (None, 429) else "")


def _if_served(rule: http.HttpRule, noun: str = "") -> _Rule:
    """The rule of endpoints that serve a document."""
    return _of_endpoints(
        rule, noun, unless=lambda seen: "" if seen.first_code == 200 else "there is no document to look at"
    )


def _of_live(rule: live.LiveRule) -> _Rule:
    return lambda seen: rule(seen.live)


def _of_rows(rule: live.RowRule) -> _Rule:
    return _of_live(live.of_rows(rule))


def _of_history(rule: history.HistoryRule) -> _Rule:
    return lambda seen: rule(seen.history)


def _of_visit(rule: Callable[[Visit], Iterator[Remark]]) -> _Rule:
    return lambda seen: rule(seen.visit)


def _verify_both_rows(seen: _Seen) -> Iterator[Remark]:
    lives, histories = ([body for _, body in endpoint.documents()] for endpoint in seen.endpoints)
    rows = history.read_rows(lives, "checks"), history.read_rows(histories, "rows")
    yield history.compare_rows(*rows, seen.cache)


def _verify_ended_buckets(seen: _Seen) -> Iterator[Remark]:
    return history.verify_ended_buckets(body for _, body in seen.visit.history.documents())


def _verify_movement(seen: _Seen, noun: str) -> Iterable[Remark]:
    return _of_endpoints(lambda endpoint, cache: edge.verify_movement(endpoint, seen.visit.at, cache), noun)(seen)


def _verify_etags(seen: _Seen) -> Iterator[Remark]:
    return http.verify_etags(seen.endpoints, seen.cache)


_MESSAGING: Final = ("messaging",)
_OTHERS: Final = tuple(service for service in SERVICES if service not in _MESSAGING)

# The clauses C are the readers'.
_CLAUSES: Final[dict[str, _Clause]] = {
    **dict.fromkeys(("M1", "M2", "M3", "M4", "M6", "M7", "M8", "M11", "M12", "M13", "M16", "M17"), _sometimes(_INSIDE)),
    **dict.fromkeys(("M9", "M10"), _sometimes(_CONFIGURED)),
    **dict.fromkeys(("S2", "S5", "S6", "S8", "S9", "S15", "S16"), _sometimes(_OVER_TIME)),
    **dict.fromkeys(("S17", "S19", "S20", "S21"), _sometimes(_COMPARISON)),
    **dict.fromkeys(("H6", "H7", "H8", "H17"), _sometimes(_GONE)),
    "M5": _sometimes(_NO_ANSWER, lambda seen: _verify_movement(seen, "live report")),
    "M14": _sometimes("it shows only when the monitor stops"),
    "M15": _always(_of_live(live.verify_ages)),
    "R1": _always(_of_live(live.verify_report)),
    "R2": _always(_of_live(live.verify_row_objects), _of_rows(live.verify_fields)),
    "R3": _always(_of_rows(live.verify_chain)),
    "R4": _always(_of_live(live.verify_generated_at), _of_rows(live.verify_instants)),
    "R5": _always(_of_rows(live.verify_observed_at), _of_live(live.verify_observed_before)),
    "R6": _sometimes(_NO_ANSWER, _of_rows(live.verify_last_success_at)),
    "R7": _always(_of_rows(live.verify_expires_at), _of_live(live.verify_lifetimes)),
    "R8": _always(_of_rows(live.verify_empty_metrics)),
    "R9": _sometimes(_NO_ANSWER, _of_rows(live.verify_metric_names)),
    "R10": _sometimes(_NO_ANSWER, _of_rows(live.verify_metric_numbers)),
    "R11": _sometimes(_NO_SUCH_ROW, _of_rows(live.verify_head)),
    "R12": _always(_of_live(live.verify_order)),
    "R13": _sometimes(_NO_SUCH_ROW, _of_rows(live.verify_incompatible)),
    "R14": _sometimes(_NO_SUCH_ROW, _of_live(live.verify_own_services)),
    "S1": _sometimes(_OVER_TIME, _of_live(live.verify_reason("unreachable"))),
    "S3": _sometimes(_NO_SUCH_ROW, _of_live(live.verify_reason("synced")), _of_rows(live.verify_allowance)),
    "S4": _sometimes(_NO_SUCH_ROW, _of_live(live.verify_reason("behind")), _of_rows(live.verify_lag)),
    "S7": _sometimes(_NO_SUCH_ROW, _of_rows(live.verify_ppoi)),
    "S10": _sometimes(
        _NO_SUCH_ROW,
        _of_live(live.verify_reason("responding", "partial-coverage", services=_OTHERS)),
        _of_rows(live.verify_broadcasters),
    ),
    "S11": _sometimes(
        _NO_SUCH_ROW,
        _of_live(live.verify_reason("responding", "partial-coverage", services=_MESSAGING)),
        _of_rows(live.verify_messaging),
    ),
    "S12": _sometimes(_NO_SUCH_ROW, _of_live(live.verify_reason("no-observation", is_enough=True))),
    "S13": _sometimes(_NO_SUCH_ROW, _of_live(live.verify_reason("incompatible-reference", is_enough=True))),
    "S14": _sometimes(_NO_SUCH_ROW, _of_live(live.verify_reason("not-configured", is_enough=True))),
    "S18": _sometimes(_NO_SUCH_ROW, _of_live(live.verify_reason("incomplete", "inconsistent", is_enough=True))),
    "H1": _always(_of_history(history.verify_fields)),
    "H2": _always(_of_history(history.verify_rows), _verify_both_rows),
    "H3": _always(_of_history(history.verify_lengths)),
    "H4": _always(_of_history(history.verify_borders)),
    "H5": _always(_of_history(history.verify_characters)),
    "H9": _sometimes(_FEW_BUCKETS, _of_history(history.verify_uptime)),
    "H10": _always(_of_history(history.verify_null_uptime)),
    "H11": _sometimes(_FEW_BUCKETS, _of_history(history.verify_whole_uptime)),
    "H12": _sometimes(
        "the history is too young for a window to be shorter than it", _of_history(history.verify_window)
    ),
    "H13": _sometimes("it shows only over days"),
    "H14": _sometimes(_NO_ANSWER, lambda seen: _verify_movement(seen, "history")),
    "H15": _sometimes("it shows only when the configuration changes"),
    "H16": _sometimes("only one history was seen", _verify_ended_buckets),
    "A1": _always(_of_endpoints(http.verify_reachable), _if_served(http.verify_query)),
    "A2": _without_a_cache(_if_served(http.verify_head), _if_answered(http.verify_other_methods)),
    "A3": _always(_if_served(http.verify_content_type)),
    "A4": _without_a_cache(_verify_etags, _if_served(http.verify_tags_of_304)),
    "A5": _without_a_cache(_if_served(http.verify_conditional)),
    "A6": _always(_if_answered(http.verify_cors)),
    "A7": _without_a_cache(_if_answered(http.verify_preflights)),
    "A8": _without_a_cache(_if_answered(http.verify_errors)),
    "A9": _always(_if_served(http.verify_caching, "live report")),
    "A10": _always(_if_served(http.verify_caching, "history")),
    "A11": _sometimes("it shows only when something fails", _of_endpoints(http.verify_live_503, "live report")),
    "A12": _sometimes("it shows only when there is no history", _of_endpoints(http.verify_history_503, "history")),
    "A13": _sometimes("not every service was unhealthy", _of_live(live.verify_health)),
    "A14": _always(_if_answered(http.verify_callers)),
    "A15": _without_a_cache(
        _if_served(http.verify_whole_bodies),
        _if_served(http.verify_range),
        _if_served(http.verify_accept),
        _if_served(http.verify_codings),
        _if_served(http.verify_gzip),
        _if_served(http.verify_vary),
    ),
    "A16": _sometimes("it takes many connections and half a minute, which a visit does not take"),
    "E1": _always(_of_visit(edge.verify_other_paths)),
    "E2": _sometimes(_NO_ANSWER, _of_visit(edge.verify_rate_limit)),
    "E3": _sometimes(_NO_CACHE, _of_endpoints(edge.verify_copies)),
    "E4": _sometimes("how many copies a cache keeps does not show in answers"),
    "E5": _sometimes("how the deployment is built does not show in answers"),
    "E6": _sometimes("whom a deployment trusts is not tried from outside"),
    "V1": _sometimes(_NO_ANSWER, _of_visit(edge.verify_schemas)),
    "V2": _sometimes(_NO_ANSWER, _of_visit(edge.verify_openapi)),
    "V3": _sometimes(_NO_ANSWER, _of_visit(edge.verify_descriptions)),
}
# In the contract's order.
CLAUSES: Final = {
    name: _CLAUSES[name] for name in sorted(_CLAUSES, key=lambda name: ("MRSHAEV".index(name[0]), int(name[1:])))
}


def verify_visit(visit: Visit) -> list[ClauseFinding]:
    """One finding for every clause but the readers', in the contract's order."""
    seen = _Seen(visit, visit.cache, _read_live_report(visit.live), _read_history(visit.history))
    findings = []
    for name, clause in CLAUSES.items():
        remarks = [remark for rule in clause.rules for remark in rule(seen)]
        findings.append(ClauseFinding(name, *merge_remarks(remarks or [inconclusive(clause.unseen)])))
    return findings


def merge_remarks(remarks: Iterable[Remark]) -> Remark:
    """The worst verdict, with the first of its texts. What a server sent may be quoted there: the terminal gets none of
    its control characters."""
    texts: dict[Verdict, dict[str, None]] = {}
    for verdict, what in remarks:
        texts.setdefault(verdict, {})[make_plain(what, _LONGEST_TEXT)] = None
    worst = next(verdict for verdict in VERDICTS if verdict in texts)
    first, more = list(texts[worst])[:_MOST_TEXTS], len(texts[worst]) - _MOST_TEXTS
    return Remark(worst, "; ".join(first) + (f"; and {more} more" if more > 0 else ""))


def find_doubts(visit: Visit, findings: list[ClauseFinding]) -> list[ClauseFinding]:
    """What could not be decided although a healthy deployment shows it; M5, if the monitor looks stopped."""
    expected = {"always"} if visit.cache else {"always", "without a cache"}
    is_stopped = edge.looks_stopped(visit)
    return [
        finding
        for finding in findings
        if finding.verdict == "could not tell"
        and (CLAUSES[finding.clause].shown in expected or (is_stopped and finding.clause == "M5"))
    ]


def is_unseen(finding: ClauseFinding) -> bool:
    """Whether nothing in the visit had to do with a clause."""
    return finding.verdict == "could not tell" and finding.what == CLAUSES[finding.clause].unseen


def _read_live_report(endpoint: EndpointVisit) -> live.LiveReport:
    first = endpoint.outcome("get")
    if isinstance(first, HttpAnswer) and first.http_code == 200 and first.problem == TOO_LARGE:
        return live.LiveReport(failed("live report: larger than any live report"), {}, [])
    body = next((body for _, body in endpoint.documents()), None)
    return live.LiveReport(inconclusive(_NO_ANSWER), {}, []) if body is None else live.read_live_report(body)


def _read_history(endpoint: EndpointVisit) -> history.History:
    body = next((body for _, body in endpoint.documents()), None)
    return history.History(inconclusive(_NO_ANSWER), {}, None, []) if body is None else history.read_history(body)
