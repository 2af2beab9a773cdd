"""Hostile bytes in what Lookout reads: configurations and logs; and in its readers. What the
parsers of answers make of them is in tests/contract/protocols/test_garbage.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.protocols.hostile import check_ends_cleanly
from tests.contract.protocols.recorded import PARSERS
from tests.fuzz import KINDS, config
from tests.fuzz.hunt import Found, judge, read_kept
from tests.fuzz.readers import compare_readers, read_with_python


@pytest.mark.clause("R10", "C4", "C6", "C7", "M7")
@pytest.mark.parametrize(("name", "cases"), [("config", 120), ("logs", 200), ("readers", 400)])
def test_whatever_is_read_is_understood_or_refused_in_words(name: str, cases: int) -> None:
    assert len(judge(KINDS[name], cases)) > 10


@pytest.mark.clause("R10")
@pytest.mark.parametrize("case", read_kept("sources").values(), ids=read_kept("sources"))
def test_an_answer_that_was_too_much_once_ends_cleanly(case: bytes) -> None:
    parser, _, body = case.partition(b"\n")
    check_ends_cleanly(PARSERS[parser.decode().replace("-", " ")][0], body)


@pytest.mark.parametrize("case", read_kept("config").values(), ids=read_kept("config"))
def test_a_configuration_that_was_too_much_once_is_refused(case: bytes, tmp_path: Path) -> None:
    config.judge(tmp_path, case)


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind in ("logs", "readers") for case in read_kept(kind).values()]
)
def test_a_log_or_document_that_was_too_much_once_is_judged_well(kind: str, case: bytes) -> None:
    with KINDS[kind].judging() as judge_one:
        judge_one(case)


def fresh(status: str) -> dict[str, Any]:
    row = {"observedAt": "2026-11-15T12:00:00.000Z", "expiresAt": "2026-11-15T12:02:30.000Z", "status": status}
    return {"schemaVersion": 1, "checks": [{"service": "messaging", "chainId": None, **row}]}


def test_a_reader_that_makes_a_row_healthier_or_differs_is_found_out() -> None:
    current, unknown = (json.dumps(fresh(status)).encode() for status in ("current", "unknown"))
    read = read_with_python(current)
    compare_readers(current, read, json.loads(json.dumps(read)))
    for other in (unknown, current.replace(b"2026-11-15", b"2026-11-14")):
        with pytest.raises(Found, match="does not say so"):
            compare_readers(other, read, None)
    for javascript in (json.loads(json.dumps(read).replace("current", "degraded")), {"died": "TypeError"}):
        with pytest.raises(Found, match="differ"):
            compare_readers(current, read, javascript)
