"""The worst day in a minute, and that its judgement finds out what is wrong."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from lookout.core.model import Check
from lookout.documents.document import etag
from lookout.documents.reports import history_document, live_document
from tests.builders import MINUTE, NOON, SECOND
from tests.integration.served import HISTORY, LIVE, Answer, a_ledger
from tests.system.day import run
from tests.system.day.diary import Diary, Gap, Life, Mishap, Standing
from tests.system.day.histories import compare
from tests.system.day.scale import LAUNCH, SHORT
from tests.system.day.verdict import EDGE, Judge

Taken = tuple[str, str, str | None, Answer]  # as a judge takes it

CHECK = Check("indexer", 1)
REFUSED = Mishap("squid/1", "refuse", (CHECK,), "u")
MISSING = Mishap("ppoi/1", "missing-list", (CHECK,), "?", between="")
SILENT = Mishap("broadcasters/1", "silent", (CHECK,), "d", slow_s=120, recovers_s=22)


def standing(mishap: Mishap, from_s: int, until_s: int) -> Standing:
    at, ending_at = NOON + from_s * SECOND, NOON + until_s * SECOND
    return Standing(mishap, at, at, ending_at, ending_at)


def lost(from_s: int, until_s: int) -> Gap:
    return Gap(NOON + from_s * SECOND, NOON + until_s * SECOND, lost=True)


def a_diary(*standings: Standing, gap: Gap | None = None, until_s: int = 1_200) -> Diary:
    life = Life(NOON - 10 * MINUTE, NOON - 9 * MINUTE, NOON + until_s * SECOND)
    return Diary(LAUNCH, [life], list(standings), [] if gap is None else [gap])


# What may be shown in the bucket from noon on, and in the next.
BUCKETS = {
    "a row to which nothing happens is current": (a_diary(), ["c", "c"]),
    "a fault of two minutes is shown": (a_diary(standing(REFUSED, 5, 125)), ["u", "c"]),
    "one of ten seconds is not": (a_diary(standing(REFUSED, 5, 15)), ["c", "c"]),
    "one of a minute may be shown or not": (a_diary(standing(REFUSED, 5, 65)), ["cu", "c"]),
    "a border leaves the bucket before open": (a_diary(standing(REFUSED, 220, 400)), ["cu", "u"]),
    "a bucket without any comparison is unknown": (a_diary(standing(MISSING, -60, 400)), ["?", "c"]),
    "what is noticed slowly may not be shown": (a_diary(standing(SILENT, 5, 60)), ["cd", "c"]),
    "what is noticed slowly is shown for less long": (a_diary(standing(SILENT, 5, 260)), ["d", "c"]),
    "a takeover leaves no trace": (a_diary(gap=lost(0, 10)), ["c", "c"]),
    "a bucket in which nobody wrote may be empty": (a_diary(gap=lost(-60, 300)), ["-c", "c"]),
    "what happened while nobody wrote may be lost": (
        a_diary(standing(REFUSED, 5, 125), gap=lost(0, 100)),
        ["cu", "c"],
    ),
    "a takeover in the midst of a fault does not end it": (
        a_diary(standing(REFUSED, 5, 290), gap=lost(60, 80)),
        ["u", "c"],
    ),
    "where no monitor lived there is nothing": (a_diary(until_s=-5), ["-", "-"]),
    "a clock that was set counts as before until it is noticed": (
        a_diary(standing(REFUSED, -120, 400), until_s=58),
        ["?u", "-"],
    ),
}


@pytest.mark.parametrize(("diary", "possible"), BUCKETS.values(), ids=BUCKETS)
def test_the_diary_says_what_a_bucket_may_show(diary: Diary, possible: list[str]) -> None:
    pieces = diary.pieces(CHECK, NOON + 20 * MINUTE)
    found = [diary.characters(pieces, NOON + number * 5 * MINUTE) for number in (0, 1)]
    assert ["".join(sorted(characters)) for characters in found] == possible


def documents() -> dict[str, Any]:
    ledger = a_ledger()
    return {
        LIVE: json.loads(live_document(ledger.report()).body),
        HISTORY: json.loads(history_document(ledger.view()).body),
    }


def answer(document: Any, http_code: int = 200, tag: str | None = None) -> Answer:
    body = json.dumps(document).encode()
    return Answer(http_code, [("etag", tag or etag(body))], body)


def judge(*answers: Taken, diary: Diary | None = None) -> list[str]:
    judging = Judge(diary or a_diary(), "a chapter")
    for each in answers:
        judging.take(*each)
    return judging.failures


def taken(path: str, answer: Answer, place: str = "one") -> Taken:
    return place, path, None, answer


def altered(path: str, alter: Callable[[Any], object], place: str = "one") -> Taken:
    document = documents()[path]
    alter(document)
    return taken(path, answer(document), place)


GOOD = {path: answer(document) for path, document in documents().items()}
TAG = GOOD[LIVE].header("etag") or ""
NO_LIVE = answer({"error": "the liveness report is unavailable"}, 503)


def at(generated_at: str) -> Callable[[Any], object]:
    return lambda document: document.update(generatedAt=generated_at)


def rewrite(document: Any) -> None:
    """The first bucket of the first row, a minute later."""
    document["generatedAt"] = "2026-11-05T13:11:00.000Z"
    buckets = document["rows"][0]["buckets"]
    document["rows"][0]["buckets"] = ("u" if buckets[0] == "c" else "c") + buckets[1:]


RIGHT: dict[str, list[Taken]] = {
    "good documents": [taken(path, GOOD[path]) for path in (LIVE, HISTORY)],
    "503 before the first report": [taken(LIVE, NO_LIVE), taken(LIVE, GOOD[LIVE])],
    "an edge without its server": [taken(LIVE, answer({"message": "the server does not answer"}, 503), EDGE)],
    "304": [taken(LIVE, GOOD[LIVE]), ("one", LIVE, TAG, Answer(304, [("etag", TAG)], b""))],
}


@pytest.mark.parametrize("answers", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_not_complained_of(answers: list[Taken]) -> None:
    assert judge(*answers) == []


# What one place answers, or two do, and what is found of it.
WRONG: dict[str, tuple[list[Taken], str]] = {
    "an error": ([taken(LIVE, answer({}, 500))], "HTTP 500"),
    "an ordinary reader that is refused": ([taken(LIVE, answer({}, 429))], "HTTP 429"),
    "a report that is gone": ([taken(LIVE, GOOD[LIVE]), taken(LIVE, NO_LIVE)], "503 after a document was served"),
    "another 503": ([taken(LIVE, answer({"error": "no"}, 503))], "503 with other words"),
    "304 to one who has another report": (
        [taken(LIVE, GOOD[LIVE]), ("one", LIVE, '"x"', Answer(304, [("etag", TAG)], b""))],
        "304 with the ETag",
    ),
    "an ETag that is none of the body's": (
        [taken(LIVE, answer(documents()[LIVE], tag='"0123456789abcdef"'))],
        "is not that of the body",
    ),
    "two servers with other bytes under one ETag": (
        [taken(LIVE, GOOD[LIVE]), taken(LIVE, answer({"a": 1}, tag=TAG), "other")],
        "other bytes under the ETag",
    ),
    "a document that is not valid": (
        [altered(LIVE, lambda d: d["checks"][0].pop("metrics"))],
        "'metrics' is a required property",
    ),
    "half a document": ([taken(LIVE, Answer(200, [("etag", etag(b"{"))], b"{"))], "no JSON"),
    "time that goes back": (
        [taken(LIVE, GOOD[LIVE]), altered(LIVE, at("2026-11-05T12:59:00.000Z"))],
        "generatedAt went back",
    ),
    "rows in disorder": ([altered(LIVE, lambda d: d["checks"].reverse())], "out of order"),
    "an ended bucket that changes": (
        [taken(HISTORY, GOOD[HISTORY]), altered(HISTORY, rewrite, "other")],
        ": the ended bucket ",
    ),
    "a string of another length": (
        [altered(HISTORY, lambda d: d["rows"][0].update(buckets="c"))],
        "has 1 buckets",
    ),
    "another length of buckets": ([altered(HISTORY, lambda d: d.update(bucketSeconds=60))], "buckets of 60 s"),
}


@pytest.mark.parametrize(("answers", "found"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_found_out(answers: list[Taken], found: str) -> None:
    failures = judge(*answers)
    assert failures
    assert found in failures[0]
    assert failures[0].startswith("a chapter: ")


def test_a_row_that_is_current_in_the_midst_of_a_fault_is_found_out() -> None:
    """The messaging row of this ledger was seen at 12:00:01, in the minute after a fault that began at 11:59."""
    refused = REFUSED._replace(checks=(Check("messaging", None),))
    good = taken(LIVE, GOOD[LIVE])
    (failure,) = judge(good, diary=a_diary(standing(refused, -60, 120)))
    assert "is current, observed at 2026-11-05T12:00:01.000Z under refuse of squid/1" in failure
    assert judge(good, diary=a_diary(standing(refused, -60, 0))) == []
    assert judge(good, diary=a_diary(standing(refused, -20, 120))) == []


def a_history(buckets: str, uptime: float | None) -> bytes:
    """From noon on, of a single row."""
    uptimes = {"24h": uptime, "7d": uptime, "14d": uptime}
    row = {"service": "indexer", "chainId": 1, "buckets": buckets, "uptime": uptimes}
    return json.dumps(
        {"generatedAt": "2026-11-05T12:15:00.000Z", "from": "2026-11-05T12:00:00Z", "rows": [row]}
    ).encode()


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        pytest.param(a_history("ucccc", None), (), id="what happened"),
        pytest.param(a_history("ccccc", None), ("bucket 0 of ccccc has to be u",), id="a fault that is not shown"),
        pytest.param(a_history("uuccc", None), ("bucket 1 of uuccc has to be c",), id="one that was none"),
        pytest.param(a_history("ucccc", 0.8), ("the uptime of ucccc is said to be",), id="another uptime"),
    ],
)
def test_a_history_is_held_against_the_diary(body: bytes, wrong: tuple[str, ...]) -> None:
    comparison = compare(a_diary(standing(REFUSED, 5, 125)), body)
    assert len(comparison.wrong) == len(wrong)
    assert all(each in found for each, found in zip(wrong, comparison.wrong, strict=True))
    assert len(comparison.exact) + comparison.open + len([each for each in wrong if "bucket" in each]) == 4


def test_the_clock_may_go_back_once() -> None:
    judge = Judge(a_diary())
    earlier = [altered(LIVE, at(f"2026-11-05T12:{minute}:00.000Z")) for minute in (20, 10)]
    judge.take(*taken(LIVE, GOOD[LIVE]))
    judge.clock_goes_back()
    judge.take(*earlier[0])
    assert judge.failures == []
    judge.take(*earlier[1])
    assert len(judge.failures) == 1


@pytest.mark.long
@pytest.mark.clause("M7", "M8", "M12", "A11", "H6", "H7", "H16", "E2", "S2")
def test_a_short_day_of_everything_that_can_go_wrong(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)  # how far it came is printed if it fails
    outcome = run(0, SHORT)
    if outcome.left_out:
        pytest.skip(outcome.left_out)
    assert outcome.failures == (), "\n".join(outcome.failures)
    assert outcome.tried["answers 200"] > 100
    assert outcome.tried["buckets that could be nothing else"] > 50
    assert outcome.tried["epochs"] >= 3
