"""Hostile documents to the readers, and answers that were once too much for a source. Whatever the parsers of answers
make of others is in tests/contract/protocols/test_garbage.py."""

import json
from typing import Any

import pytest

from tests.contract.protocols.hostile import check_ends_cleanly
from tests.contract.protocols.recorded import PARSERS
from tests.fuzz import KINDS
from tests.fuzz.hunt import Found, judge, read_kept
from tests.fuzz.readers import compare_readers, read_with_python


@pytest.mark.clause("R10", "C4", "C6", "C7")
def test_whatever_document_comes_both_readers_make_the_same_of_it() -> None:
    assert len(judge(KINDS["readers"], 400)) > 10


@pytest.mark.clause("R10")
@pytest.mark.parametrize("case", read_kept("sources").values(), ids=read_kept("sources"))
def test_an_answer_that_was_too_much_once_ends_cleanly(case: bytes) -> None:
    parser, _, body = case.partition(b"\n")
    check_ends_cleanly(PARSERS[parser.decode().replace("-", " ")][0], body)


@pytest.mark.parametrize("case", read_kept("readers").values(), ids=read_kept("readers"))
def test_a_document_that_was_too_much_once_is_read_alike(case: bytes) -> None:
    with KINDS["readers"].judging() as judge_one:
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
