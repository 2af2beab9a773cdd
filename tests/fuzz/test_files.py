"""Hostile bytes in what Lookout reads: answers, configurations, logs, stored state and documents; and its readers."""

import json
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lookout.core.model import Blocks
from lookout.protocols.client.failure import ProbeFailed
from tests.campaign.shrink import shrink
from tests.fuzz import documents, sources
from tests.fuzz.fuzzer import Judge, Until, Verdict, fuzz, read_kept
from tests.fuzz.kinds import KINDS
from tests.fuzz.logs import judge_by_command
from tests.fuzz.mutation import change_json
from tests.fuzz.readers import READERS, compare_readers, read_with_python


@pytest.mark.clause("R10", "C4", "C6", "C7", "M7")
@pytest.mark.parametrize(("name", "cases"), [("sources", 1_500), ("config", 120), ("logs", 200), ("readers", 400)])
def test_whatever_is_read_is_understood_or_refused_in_words(name: str, cases: int) -> None:
    tried = fuzz(name, KINDS[name], 1, Until(cases=cases), keep_failures=False)
    assert tried.failures == ()
    assert tried.cases == cases
    assert tried.outcomes > 10


@pytest.mark.clause("M3", "M6")
def test_floods_from_upstreams_stall_nobody_and_fail_no_honest_one() -> None:
    tried = fuzz("floods", KINDS["floods"], 1, Until(cases=12), keep_failures=False)
    assert tried.failures == ()
    assert tried.outcomes > 8


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ("config", "documents") for name in read_kept(kind)]
)
def test_what_was_too_much_once_is_refused(kind: str, name: str) -> None:
    with KINDS[kind].judging() as judge:
        (verdict,) = judge.each([read_kept(kind)[name]])
    assert verdict.problem == ""


@pytest.mark.parametrize("name", read_kept("logs"))
def test_a_log_that_was_too_much_once_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    assert judge_by_command(tmp_path, read_kept("logs")[name]).problem == ""


@pytest.mark.clause("A11", "A12")
def test_documents_of_every_wrong_type_leave_the_last_good_ones_served(tmp_path: Path) -> None:
    cases = documents.DOCUMENTS.seeds()
    assert len(cases) > 100
    assert [found for case in cases if (found := documents.judge_case(tmp_path, case)).problem] == []


FILE = documents.good_store()


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize("at", [*(len(FILE) * tenth // 10 for tenth in (3, 5, 7, 9)), FILE.index(b"NOT NULL")])
def test_a_flipped_bit_in_the_stores_file_or_schema_leaves_the_last_good_documents_served(
    tmp_path: Path, at: int
) -> None:
    assert documents.judge_case(tmp_path, json.dumps({"flips": [8 * at + 7]}).encode()).problem == ""


# ---- That the judges can find something out


def give_a_float(_body: bytes) -> object:
    return Blocks(1.5)  # type: ignore[arg-type]


def recurse(_body: bytes) -> object:
    raise RecursionError


def quote_the_body(body: bytes) -> object:
    raise ProbeFailed(body.decode("latin-1"))


@pytest.mark.parametrize(
    ("parse", "problem"),
    [(give_a_float, "gave"), (recurse, "died of RecursionError"), (quote_the_body, "gave"), (json.loads, "gave")],
)
def test_a_parser_that_lets_something_through_is_found_out(parse: sources.Parser, problem: str) -> None:
    assert problem in sources.judge_case({"weak": parse}, b'weak\n{"a":"' + b"x" * 100 + b'"}').problem


def fresh(status: str) -> dict[str, Any]:
    row = {"observedAt": "2026-11-15T12:00:00.000Z", "expiresAt": "2026-11-15T12:02:30.000Z", "status": status}
    return {"schemaVersion": 1, "checks": [{"service": "messaging", "chainId": None, **row}]}


def test_a_reader_that_makes_a_row_healthier_is_found_out() -> None:
    current, unknown = (json.dumps(fresh(status)).encode() for status in ("current", "unknown"))
    assert compare_readers(current, read_with_python(current), None).problem == ""
    assert "does not say so" in compare_readers(unknown, read_with_python(current), None).problem
    late = current.replace(b"2026-11-15", b"2026-11-14")
    assert "does not say so" in compare_readers(late, read_with_python(current), None).problem


def test_readers_that_differ_are_found_out() -> None:
    body = json.dumps(fresh("degraded")).encode()
    read = read_with_python(body)
    assert read["report"]["rows"][0][3] == "degraded"
    assert compare_readers(body, read, json.loads(json.dumps(read))).problem == ""
    assert "differ" in compare_readers(body, read, json.loads(json.dumps(read).replace("degraded", "current"))).problem
    assert "differ" in compare_readers(body, read, {"died": "TypeError"}).problem


def test_the_smallest_part_that_fails_is_found() -> None:
    case = b"a" * 50 + b"X" + b"b" * 50 + b"Y" + b"c" * 50
    assert shrink(case, lambda case: b"X" in case and b"Y" in case, lambda: True) == b"XY"


def test_a_case_that_fails_is_shrunk_kept_and_tried_ever_after(tmp_path: Path) -> None:
    weak = Judge(lambda cases: [Verdict("", "it has a Z" if b"Z" in case else "") for case in cases])
    kind = READERS._replace(seeds=lambda: [b"{}"], change=lambda *_: b"abcZdef", judging=lambda: nullcontext(weak))
    first = fuzz("weak", kind, 1, Until(cases=2), corpus=tmp_path)
    assert len(first.failures) == 1
    assert list(read_kept("weak", tmp_path).values()) == [b"Z"]
    again = fuzz("weak", kind._replace(change=lambda *_: b"fine"), 1, Until(cases=5), corpus=tmp_path)
    assert len(again.failures) == 1


def test_the_same_seed_makes_the_same_cases() -> None:
    case, other = b'{"a":[1,2,{"b":"c"}]}', b'{"d":null}'
    made = [[change_json(Random(seed), case, other) for seed in range(50)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 30
