"""What shows only in several answers: documents that move on, and the rate limit."""

import json

import pytest

from lookout.verify.clauses import verify_visit
from lookout.verify.documents import Verdict
from lookout.verify.visit import EndpointVisit, Exchange, HttpAnswer, Visit

PAGE = b"error code: 1015"
REFUSAL = (("content-type", "text/plain; charset=utf-8"), ("retry-after", "60"))


def watched(noun: str, looks: list[tuple[int, int]], headers: tuple[tuple[str, str], ...] = ()) -> EndpointVisit:
    """An endpoint seen so many seconds after the beginning, with a generatedAt so many seconds after noon."""
    exchanges = []
    for at_s, generated_s in looks:
        minute, second = divmod(generated_s, 60)
        body = json.dumps({"generatedAt": f"2026-11-05T12:{minute:02}:{second:02}.000Z"}).encode()
        exchanges.append(Exchange("watch", "GET", "/", {}, HttpAnswer(200, headers, body), at_s * 1000))
    return EndpointVisit(noun, "/", tuple(exchanges))


def judge(clause: str, live: EndpointVisit, history: EndpointVisit, at: int = 0) -> tuple[Verdict, str]:
    (found,) = (finding for finding in verify_visit(Visit(at, live, history)) if finding.clause == clause)
    return found.verdict, found.what


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
    assert judge(clause, live, history)[0] == verdict


@pytest.mark.parametrize(("age_s", "is_stopped"), [(150, False), (151, True)])
def test_a_report_older_than_its_rows_may_be_is_taken_for_a_stopped_monitor(age_s: int, is_stopped: bool) -> None:
    noon = 1_793_880_000_000
    verdict, what = judge("M5", watched("live report", [(0, 0)]), watched("history", []), noon + age_s * 1000)
    assert verdict == "could not tell"
    assert ("the monitor seems to have stopped" in what) == is_stopped


def test_a_copy_in_a_cache_may_stand_still_longer() -> None:
    for headers, verdict in (((), "fail"), ((("age", "20"),), "could not tell")):
        live = watched("live report", [(0, 0), (90, 0)], headers)
        assert judge("M5", live, watched("history", []))[0] == verdict


@pytest.mark.parametrize(
    ("made", "took_s", "refused", "verdict"),
    [
        pytest.param(121, 5, HttpAnswer(429, REFUSAL, PAGE), "pass", id="refused the 121st"),
        pytest.param(200, 30, HttpAnswer(429, REFUSAL, PAGE), "pass", id="refused later, by calendar minute"),
        pytest.param(60, 5, HttpAnswer(429, REFUSAL, PAGE), "could not tell", id="refused early: others ask too"),
        pytest.param(266, 20, HttpAnswer(200, (), b""), "fail", id="never refused"),
        pytest.param(266, 70, HttpAnswer(200, (), b""), "could not tell", id="too slow to be refused"),
        pytest.param(50, 5, HttpAnswer(None, (), b"", "no answer"), "could not tell", id="no answer"),
        pytest.param(121, 5, HttpAnswer(429, REFUSAL[:1], PAGE), "fail", id="without Retry-After"),
        pytest.param(121, 5, HttpAnswer(429, (("retry-after", "3600"), REFUSAL[0]), PAGE), "fail", id="for an hour"),
        pytest.param(121, 5, HttpAnswer(429, REFUSAL[1:], PAGE), "fail", id="not plain text"),
        pytest.param(121, 5, HttpAnswer(429, REFUSAL, b"no"), "fail", id="without its error code"),
        pytest.param(
            121, 5, HttpAnswer(429, (*REFUSAL, ("access-control-allow-origin", "*")), PAGE), "fail", id="with CORS"
        ),
    ],
)
def test_the_rate_limit(made: int, took_s: int, refused: HttpAnswer, verdict: Verdict) -> None:
    answers = [HttpAnswer(200, (), b"")] * (made - 1) + [refused]
    exchanges = [Exchange("limit", "GET", "/", {}, answer, took_s * 1000) for answer in answers]
    live = EndpointVisit("live report", "/", (exchanges[0]._replace(at=0), *exchanges[1:]))
    assert judge("E2", live, watched("history", []))[0] == verdict
