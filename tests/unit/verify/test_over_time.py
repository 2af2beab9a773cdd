"""What shows only in several answers: documents that move on, and the rate limit."""

import json
import tracemalloc

import pytest

from lookout.verify.clauses import verify_visit
from lookout.verify.client import HttpAnswer, HttpOutcome, HttpRequest, NoAnswer
from lookout.verify.documents import Verdict, inconclusive
from lookout.verify.visit import EndpointVisit, Exchange, Limit, Visit

STOPPED = "the monitor seems to have stopped"
PAGE = b"error code: 1015"
REFUSAL = (("content-type", "text/plain; charset=utf-8"), ("retry-after", "60"))


def watched(noun: str, looks: list[tuple[int, int]], headers: tuple[tuple[str, str], ...] = ()) -> EndpointVisit:
    """An endpoint seen so many seconds after the beginning, with a generatedAt so many seconds after noon."""
    exchanges = []
    for at_s, generated_s in looks:
        minute, second = divmod(generated_s, 60)
        body = json.dumps({"generatedAt": f"2026-11-05T12:{minute:02}:{second:02}.000Z"}).encode()
        exchanges.append(Exchange("watch", HttpRequest("GET", "/", ()), HttpAnswer(200, headers, body), at_s * 1000))
    return EndpointVisit(noun, "/", tuple(exchanges))


def a_visit(live: EndpointVisit, history: EndpointVisit, limit: Limit | None = None) -> Visit:
    first = [Exchange("get", HttpRequest("GET", "/", ()), NoAnswer("left out", was_sent=False), 0)]
    live, history = (each._replace(exchanges=(*first, *each.exchanges)) for each in (live, history))
    return Visit("http://host", "protocol", 0, live, history, (), limit)


@pytest.mark.parametrize(
    ("noun", "looks", "verdict"),
    [
        pytest.param("live report", [(0, 0), (20, 25), (40, 50)], "pass", id="a report that moves on"),
        pytest.param("live report", [(0, 0), (20, 0), (34, 0)], "could not tell", id="one that stands still for 34 s"),
        pytest.param("live report", [(0, 0), (20, 0), (36, 0)], "fail", id="one that stands still for 36 s"),
        pytest.param("live report", [(0, 0), (20, 10), (60, 10)], "fail", id="one that moves too little"),
        pytest.param("history", [(0, 0), (80, 60)], "pass", id="a history that moves on"),
        pytest.param("history", [(0, 0), (70, 0)], "could not tell", id="one that stands still for 70 s"),
        pytest.param("history", [(0, 0), (80, 0)], "fail", id="one that stands still for 80 s"),
    ],
)
def test_a_document_that_is_watched(noun: str, looks: list[tuple[int, int]], verdict: Verdict) -> None:
    live, history = (watched(each, looks if each == noun else []) for each in ("live report", "history"))
    clause = "M5" if noun == "live report" else "H14"
    findings = verify_visit(a_visit(live, history))
    assert [finding.verdict for finding in findings if finding.clause == clause] == [verdict]


@pytest.mark.parametrize(
    ("age_s", "text"),
    [
        (150, "live report: generatedAt was 150 s old; whether it moves, --wait 40 watches"),
        (151, f"live report: generatedAt was 151 s old: {STOPPED}; whether it moves, --wait 40 watches"),
    ],
)
def test_a_report_older_than_its_rows_may_be_is_taken_for_a_stopped_monitor(age_s: int, text: str) -> None:
    noon = 1_793_880_000_000
    visit = a_visit(watched("live report", [(0, 0)]), watched("history", []))._replace(at=noon + age_s * 1000)
    assert ("M5", *inconclusive(text)) in verify_visit(visit)


def test_a_copy_in_a_cache_may_stand_still_longer() -> None:
    looks = [(0, 0), (90, 0)]
    for headers, verdict in (((), "fail"), ((("age", "20"),), "could not tell")):
        visit = a_visit(watched("live report", looks, headers), watched("history", []))
        assert [finding.verdict for finding in verify_visit(visit) if finding.clause == "M5"] == [verdict]


@pytest.mark.parametrize(
    ("made", "took_s", "refused", "verdict"),
    [
        pytest.param(121, 5, HttpAnswer(429, REFUSAL, PAGE), "pass", id="refused the 121st"),
        pytest.param(200, 30, HttpAnswer(429, REFUSAL, PAGE), "pass", id="refused later, by calendar minute"),
        pytest.param(60, 5, HttpAnswer(429, REFUSAL, PAGE), "could not tell", id="refused early: others ask too"),
        pytest.param(266, 20, HttpAnswer(200, (), b""), "fail", id="never refused"),
        pytest.param(266, 70, HttpAnswer(200, (), b""), "could not tell", id="too slow to be refused"),
        pytest.param(50, 5, NoAnswer("no connection"), "could not tell", id="no answer"),
        pytest.param(121, 5, HttpAnswer(429, REFUSAL[:1], PAGE), "fail", id="without Retry-After"),
        pytest.param(121, 5, HttpAnswer(429, (("retry-after", "3600"), REFUSAL[0]), PAGE), "fail", id="for an hour"),
        pytest.param(121, 5, HttpAnswer(429, REFUSAL[1:], PAGE), "fail", id="not plain text"),
        pytest.param(121, 5, HttpAnswer(429, REFUSAL, b"no"), "fail", id="without its error code"),
        pytest.param(
            121, 5, HttpAnswer(429, (*REFUSAL, ("access-control-allow-origin", "*")), PAGE), "fail", id="with CORS"
        ),
    ],
)
def test_the_rate_limit(made: int, took_s: int, refused: HttpOutcome, verdict: Verdict) -> None:
    visit = a_visit(watched("live report", []), watched("history", []), Limit(made, took_s * 1000, refused))
    assert [finding.verdict for finding in verify_visit(visit) if finding.clause == "E2"] == [verdict]


def a_long_history(generated_s: int, rows: int = 200) -> bytes:
    """Fourteen days of many rows, written so many seconds after noon."""
    return json.dumps(
        {
            "schemaVersion": 1,
            "generatedAt": f"2026-11-15T12:00:{generated_s:02}.000Z",
            "bucketSeconds": 300,
            "retentionDays": 14,
            "from": "2026-11-01T12:00:00Z",
            "to": "2026-11-15T12:00:00Z",
            "rows": [
                {"service": "indexer", "chainId": number, "buckets": "ckdu" * 1008 + "c"} for number in range(rows)
            ],
        }
    ).encode()


def seen_histories(*bodies: bytes) -> Visit:
    exchanges = [Exchange("watch", HttpRequest("GET", "/", ()), HttpAnswer(200, (), body), 0) for body in bodies]
    return a_visit(watched("live report", []), EndpointVisit("history", "/", tuple(exchanges)))


def test_many_histories_are_compared_in_the_memory_of_two() -> None:
    visit = seen_histories(*map(a_long_history, range(5)))
    tracemalloc.start()
    try:
        findings = verify_visit(visit)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [finding.what for finding in findings if finding.clause == "H16"] == [
        "no ended bucket changed in 5 histories"
    ]
    assert most < 12 * len(a_long_history(0))


def test_one_history_is_compared_with_none() -> None:
    body = a_long_history(0, rows=1)
    findings = verify_visit(seen_histories(body, bytes(bytearray(body))))
    assert [finding.what for finding in findings if finding.clause == "H16"] == ["only one history was seen"]
