"""The rules of ``lookout verify``, without a deployment: over what was seen, whatever strangers send."""

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookout.base.url import BaseUrlError, parse_base_url
from lookout.core.history import uptime
from lookout.verify.clauses import verify_visit
from lookout.verify.documents import Remark, Verdict, VisitedHistory, VisitedReport, read_document
from lookout.verify.history_rules import calculate_uptime, compare_ended
from lookout.verify.visit import Ask, EndpointVisit, Exchange, HttpAnswer, Visit, parse_answer
from tools.clauses import read_clauses

NOON = 1_793_880_000_000
AT = "2026-11-05T12:00:00.000Z"
INDEXER = {
    "service": "indexer",
    "chainId": 1,
    "status": "current",
    "reason": "synced",
    "observedAt": AT,
    "lastSuccessAt": AT,
    "expiresAt": "2026-11-05T12:02:30.000Z",
    "metrics": {"position": 5, "head": 6},
}
LIVE: dict[str, Any] = {"schemaVersion": 1, "generatedAt": "2026-11-05T12:00:01.000Z", "checks": [INDEXER]}
HISTORY: dict[str, Any] = {
    "schemaVersion": 1,
    "generatedAt": "2026-11-05T12:00:01.000Z",
    "bucketSeconds": 300,
    "retentionDays": 14,
    "from": "2026-11-05T10:55:00Z",
    "to": "2026-11-05T12:00:00Z",
    "rows": [
        {
            "service": "indexer",
            "chainId": 1,
            "buckets": "cccccckccccc-?",
            "uptime": {"24h": 0.9167, "7d": 0.9167, "14d": 0.9167},
        }
    ],
}


def seen(
    *live: tuple[int, HttpAnswer],
    history: tuple[tuple[int, HttpAnswer], ...] = (),
    ask: str = "watch",
    at: int = NOON,
) -> Visit:
    """A visit whose requests, all of one name, were answered so many seconds after its beginning."""
    first, second = (
        tuple(Exchange(Ask(ask, "", 200), "/", {}, answer, at_s * 1000) for at_s, answer in answers)
        for answers in (live, history)
    )
    return Visit(
        at,
        EndpointVisit("live report", "/", VisitedReport, first),
        EndpointVisit("history", "/", VisitedHistory, second),
    )


def served(*documents: object) -> tuple[tuple[int, HttpAnswer], ...]:
    bodies = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in documents]
    return tuple((0, HttpAnswer(200, (), body)) for body in bodies)


def judge(live: object = LIVE, *histories: object) -> list[Remark]:
    """What the documents themselves show of the clauses."""
    findings = verify_visit(seen(*served(live), history=served(*histories)))
    return [finding for finding in findings if finding.clause[0] in "RSHW" and finding.verdict != "not seen"]


def clauses(findings: list[Remark], verdict: Verdict) -> set[str]:
    return {finding.clause for finding in findings if finding.verdict == verdict}


def verdict_of(clause: str, visit: Visit) -> Verdict:
    (found,) = (finding.verdict for finding in verify_visit(visit) if finding.clause == clause)
    return found


def test_every_clause_but_the_readers_gets_one_finding_in_the_contracts_order() -> None:
    of_the_contract = [clause for clause in read_clauses() if not clause.startswith("C")]
    findings = verify_visit(seen())
    assert [finding.clause for finding in findings] == of_the_contract
    assert {finding.verdict for finding in findings} == {"not seen"}


def test_a_failure_has_its_first_texts_without_a_servers_control_characters() -> None:
    kinds = [HttpAnswer(200, (("content-type", f"\x1b[31m\u202e{number}"),), b"") for number in range(9)]
    findings = verify_visit(seen(*((0, answer) for answer in kinds)))
    (finding,) = (finding for finding in findings if finding.clause == "A3")
    assert finding.verdict == "fail"
    assert finding.what.isascii()
    assert finding.what.isprintable()
    assert finding.what.endswith("; and 6 more")


def test_ordinary_documents_have_no_failure() -> None:
    findings = judge(LIVE, HISTORY)
    assert clauses(findings, "fail") == set()
    passed = "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 S3 H1 H2 H3 H4 H5 H9 H11"
    assert clauses(findings, "pass") == set(passed.split())


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(AT)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def places(document: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to each value in a document."""
    within: list[tuple[str | int, object]] = []
    if isinstance(document, dict):
        within = list(document.items())
    elif isinstance(document, list):
        within = list(enumerate(document))
    return [way, *(place for key, value in within for place in places(value, (*way, key)))]


def put(document: Any, way: tuple[str | int, ...], value: object) -> object:
    """The document with another value at a place."""
    if not way:
        return value
    changed = copy.deepcopy(document)
    holder = changed
    for step in way[:-1]:
        holder = holder[step]
    holder[way[-1]] = value
    return changed


@given(st.sampled_from(places(LIVE)), st.sampled_from(places(HISTORY)), values)
@example((), ("from",), None)
@example((), ("from",), "2026-11-05T13:00:00Z")
def test_no_document_is_too_strange_to_be_judged(
    in_live: tuple[str | int, ...], in_history: tuple[str | int, ...], value: object
) -> None:
    judge(put(LIVE, in_live, value), HISTORY)
    judge(LIVE, HISTORY, put(HISTORY, in_history, value), HISTORY)


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[]", b"{", b"NaN", b"[" * 100_000], ids=["empty", "no UTF-8", "list", "cut", "NaN", "deep"]
)
def test_what_is_no_json_object_is_a_failure(body: bytes) -> None:
    assert clauses(judge(body, body), "fail") == {"R1", "H1"}


@given(st.text("ckdu?.-", max_size=400))
@example("c" * 20_001 + "k")  # almost always
def test_uptime_counted_from_characters_is_the_monitors_own(buckets: str) -> None:
    known = sum(character in "ckdu" for character in buckets)
    assert calculate_uptime(buckets) == uptime(buckets.count("c"), known, 12)


@pytest.mark.parametrize(
    ("lifetime", "verdict"),
    [("12:02:30.000Z", "pass"), ("12:05:00.000Z", "could not tell"), ("12:00:00.000Z", "fail")],
    ids=["150 s", "tuned to 300 s", "0 s"],
)
def test_a_lifetime_of_all_rows_may_be_tuned(lifetime: str, verdict: Verdict) -> None:
    live = put(LIVE, ("checks", 0, "expiresAt"), f"2026-11-05T{lifetime}")
    assert "R7" in clauses(judge(live), verdict)


def a_history(from_: str, to: str, *buckets: str) -> VisitedHistory:
    rows = [HISTORY["rows"][0] | {"chainId": chain_id, "buckets": row} for chain_id, row in enumerate(buckets, 1)]
    span = {"from": f"2026-11-05T{from_}:00Z", "to": f"2026-11-05T{to}:00Z"}
    history = read_document(json.dumps(HISTORY | span | {"rows": rows}).encode(), VisitedHistory)
    assert isinstance(history, VisitedHistory)
    return history


@pytest.mark.parametrize(
    ("later", "changed"),
    [
        pytest.param(a_history("10:00", "10:15", "ckdc", "cccu"), [False, False], id="the bucket that fills"),
        pytest.param(a_history("10:05", "10:20", "kdu-", "cccc"), [False, False], id="moved on"),
        pytest.param(a_history("10:05", "10:20", "kduu", "cucc"), [False, True], id="moved on, and changed"),
        pytest.param(a_history("10:00", "10:10", "cud", "ccu"), [True, False], id="set back, and changed"),
        pytest.param(a_history("11:00", "11:15", "uuuu", "uuuu"), [], id="nothing in common"),
        pytest.param(a_history("10:15", "10:20", "uu", "uu"), [], id="in common only the bucket that filled"),
        pytest.param(a_history("10:00", "10:15", "ckdu"), [False], id="a row less"),
        pytest.param(a_history("10:00", "10:15", "ckdu", "cccc", "uuuu"), [False, False], id="a row more"),
    ],
)
def test_ended_buckets_of_two_histories(later: VisitedHistory, changed: list[bool]) -> None:
    compared = dict(compare_ended(a_history("10:00", "10:15", "ckdu", "cccc"), later))
    assert compared == {f"indexer {number}": is_changed for number, is_changed in enumerate(changed, 1)}


def watched(*looks: tuple[int, int], headers: tuple[tuple[str, str], ...] = ()) -> tuple[tuple[int, HttpAnswer], ...]:
    """A document seen so many seconds after the beginning, with a generatedAt so many seconds after noon."""
    bodies = [
        (at_s, json.dumps({"generatedAt": f"2026-11-05T12:{made_s // 60:02}:{made_s % 60:02}.000Z"}))
        for at_s, made_s in looks
    ]
    return tuple((at_s, HttpAnswer(200, headers, body.encode())) for at_s, body in bodies)


@pytest.mark.parametrize(
    ("clause", "looks", "verdict"),
    [
        pytest.param("M5", [(0, 0), (20, 25), (40, 50)], "pass", id="a report that moves on"),
        pytest.param("M5", [(0, 0), (34, 0)], "not seen", id="a report that stands still for 34 s"),
        pytest.param("M5", [(0, 0), (34, 34)], "not seen", id="a report that moves, and may stand still for longer"),
        pytest.param("M5", [(0, 0), (36, 0)], "fail", id="a report that stands still for 36 s"),
        pytest.param("M5", [(0, 0), (20, 10), (60, 10)], "fail", id="a report that moves too little"),
        pytest.param("H14", [(0, 0), (80, 60)], "pass", id="a history that moves on"),
        pytest.param("H14", [(0, 0), (70, 0)], "not seen", id="a history that stands still for 70 s"),
        pytest.param("H14", [(0, 0), (80, 0)], "fail", id="a history that stands still for 80 s"),
    ],
)
def test_a_document_that_is_watched(clause: str, looks: list[tuple[int, int]], verdict: Verdict) -> None:
    answers = watched(*looks)
    assert verdict_of(clause, seen(*answers) if clause == "M5" else seen(history=answers)) == verdict


def test_a_copy_in_a_cache_may_stand_still_longer() -> None:
    for headers, verdict in (((), "fail"), ((("age", "20"),), "not seen")):
        assert verdict_of("M5", seen(*watched((0, 0), (90, 0), headers=headers))) == verdict


@pytest.mark.parametrize(("age_s", "is_stopped"), [(150, False), (151, True)])
def test_a_report_older_than_its_rows_may_be_is_taken_for_a_stopped_monitor(age_s: int, is_stopped: bool) -> None:
    findings = verify_visit(seen(*watched((0, 0)), at=NOON + age_s * 1000))
    (what,) = (finding.what for finding in findings if finding.clause == "M5")
    assert ("the monitor seems to have stopped" in what) == is_stopped


PAGE = b"error code: 1015"
REFUSAL = (("content-type", "text/plain; charset=utf-8"), ("retry-after", "60"))


@pytest.mark.parametrize(
    ("made", "took_s", "last", "verdict"),
    [
        pytest.param(121, 5, HttpAnswer(429, REFUSAL, PAGE), "pass", id="refused the 121st"),
        pytest.param(60, 5, HttpAnswer(429, REFUSAL, PAGE), "could not tell", id="refused early: others ask too"),
        pytest.param(266, 20, HttpAnswer(200), "fail", id="never refused"),
        pytest.param(266, 70, HttpAnswer(200), "could not tell", id="too slow to be refused"),
        pytest.param(50, 5, HttpAnswer(None), "could not tell", id="no answer"),
        pytest.param(121, 5, HttpAnswer(429, (("retry-after", "3600"), REFUSAL[0]), PAGE), "fail", id="for an hour"),
        pytest.param(121, 5, HttpAnswer(429, REFUSAL, b"no"), "fail", id="without its error code"),
    ],
)
def test_the_rate_limit(made: int, took_s: int, last: HttpAnswer, verdict: Verdict) -> None:
    answers = [(0, HttpAnswer(200)), *[(took_s, HttpAnswer(200))] * (made - 2), (took_s, last)]
    assert verdict_of("E2", seen(*answers, ask="limit")) == verdict


@pytest.mark.parametrize(
    ("header", "sign"),
    [
        (("server", "granian"), None),
        (("server", "cloudflare"), "server: cloudflare"),
        (("via", "1.1 varnish"), "via: 1.1 varnish"),
    ],
)
def test_a_cache_gives_itself_away(header: tuple[str, str], sign: str | None) -> None:
    assert seen((0, HttpAnswer(200)), (0, HttpAnswer(200, (header,)))).cache == sign


OWN = INDEXER | {"service": "bundler", "reason": "responding", "metrics": {}}


@pytest.mark.clause("R14")
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"chainId": None}, id="of no chain"),
        pytest.param({"metrics": {"responding": 2, "monitored": 2}}, id="members that all answer"),
        pytest.param(
            {"status": "degraded", "reason": "behind", "metrics": {"position": 5, "head": 6}}, id="a position behind"
        ),
        pytest.param(
            {"status": "unknown", "expiresAt": None, "lastSuccessAt": None, "reason": "incompatible-reference"},
            id="a position without a head",
        ),
        pytest.param(
            {"status": "splendid", "reason": "brand-new", "metrics": {"latency": 5}}, id="of a newer contract"
        ),
    ],
)
def test_a_row_of_an_own_service_that_follows_the_rules_passes(fields: dict[str, Any]) -> None:
    findings = judge(LIVE | {"checks": [INDEXER, OWN | fields]})
    assert clauses(findings, "fail") == set()
    assert "R14" in clauses(findings, "pass")


@pytest.mark.clause("R14")
@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        pytest.param({"service": "Oracle 1"}, "R14", id="a name that is none"),
        pytest.param({"metrics": {"responding": 0, "monitored": 0}}, "S10", id="none of none"),
        pytest.param({"metrics": {"peers": 0}}, "S11", id="current without a peer"),
        pytest.param({"reason": "synced"}, "R9", id="synced without a position"),
        pytest.param({"metrics": {"responding": 1}}, "R9", id="responding alone"),
    ],
)
def test_a_row_of_an_own_service_that_breaks_a_rule_fails(fields: dict[str, Any], broken: str) -> None:
    assert clauses(judge(LIVE | {"checks": [INDEXER, OWN | fields]}), "fail") == {broken}


@pytest.mark.clause("R14")
def test_a_row_of_no_chain_is_the_only_one_of_its_service() -> None:
    assert clauses(judge(LIVE | {"checks": [INDEXER, OWN | {"chainId": None}, OWN]}), "fail") == {"R14"}


PLACES = {"position": 5, "head": 6, "views": 3, "agreeing": 2}


@pytest.mark.clause("R7", "W4", "W5", "W7")
@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        pytest.param({}, set(), id="two of three places agree"),
        pytest.param({"expiresAt": "2026-11-05T12:02:10.000Z"}, set(), id="its instants are of two places"),
        pytest.param({"expiresAt": AT}, {"W5"}, id="it expires when it was observed"),
        pytest.param({"metrics": PLACES | {"agreeing": 0}}, {"W7"}, id="no place sees what is published"),
        pytest.param({"metrics": PLACES | {"views": 1, "agreeing": 1}}, {"W7"}, id="one place is not several"),
        pytest.param({"metrics": {"position": 5, "head": 6, "agreeing": 1}}, {"W7"}, id="without the number of places"),
        pytest.param({"reason": "not-everywhere"}, {"W4"}, id="current cannot be from some places only"),
        pytest.param(
            {"status": "degraded", "reason": "not-everywhere", "metrics": PLACES | {"views": 4, "agreeing": 0}},
            set(),
            id="two of four places do not reach it",
        ),
        pytest.param(
            {
                "status": "unknown",
                "reason": "not-everywhere",
                "expiresAt": None,
                "metrics": {"views": 2, "agreeing": 0},
            },
            set(),
            id="of two places one reaches it",
        ),
        pytest.param(
            {"status": "unknown", "reason": "not-everywhere", "expiresAt": None, "metrics": {}},
            {"R6", "W7"},
            id="not everywhere, without places",
        ),
        pytest.param(
            {"status": "unavailable", "reason": "unreachable", "metrics": {"views": 3, "agreeing": 3}},
            set(),
            id="unavailable from three places, of which one had an answer when another had none",
        ),
        pytest.param(
            {"status": "unavailable", "reason": "unreachable", "lastSuccessAt": None, "metrics": PLACES},
            {"R8"},
            id="unavailable with a position",
        ),
    ],
)
def test_a_row_that_is_watched_from_several_places(fields: dict[str, Any], broken: set[str]) -> None:
    assert clauses(judge(LIVE | {"checks": [INDEXER | {"metrics": PLACES} | fields]}), "fail") == broken


OK = b"HTTP/1.1 200 OK\r\n"
SIZED = OK + b"Content-Length: 5\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "received", "http_code", "body"),
    [
        pytest.param("GET", OK + b"\r\nhello", 200, b"hello", id="a body that ends with the connection"),
        pytest.param("HEAD", SIZED + b"hello", 200, b"hello", id="HEAD with a body, which is seen"),
        pytest.param("GET", b"HTTP/1.1 304 x\r\n\r\nhello", 304, b"hello", id="a 304 with a body, which is seen"),
        pytest.param("GET", SIZED + b"hell", None, b"", id="too short"),
        pytest.param("GET", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", None, b"", id="not HTTP"),
        pytest.param("GET", b"", None, b"", id="nothing"),
    ],
)
def test_an_answer(method: str, received: bytes, http_code: int | None, body: bytes) -> None:
    answer = parse_answer(method, received)
    assert (answer.http_code, answer.body, bool(answer.problem)) == (http_code, body, http_code is None)


def test_an_answer_that_ends_with_its_connection_is_not_whole_if_that_did_not_end() -> None:
    assert parse_answer("GET", OK + b"\r\nhello", "no end within 5 s").problem == "no end within 5 s"
    assert parse_answer("GET", SIZED + b"hello", "no end within 5 s").http_code == 200


def test_a_header_that_is_there_twice_is_kept_so() -> None:
    answer = parse_answer("GET", OK + b"X: b\r\nx:a\r\n\r\n")
    assert answer.headers == (("x", "b"), ("x", "a"))


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://host/", "http://host"),
        ("HTTPS://Host:443/prefix/", "https://host/prefix"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_addresses_that_can_be_used(url: str, base: str) -> None:
    assert str(parse_base_url(url)) == base


@pytest.mark.parametrize(
    "url", ["", "host", "ftp://host", "http://host:0", "http://host?x", "http://a@host", "http://host:x"]
)
def test_addresses_that_cannot(url: str) -> None:
    with pytest.raises(BaseUrlError):
        parse_base_url(url)
