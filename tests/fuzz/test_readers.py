"""Hostile documents to the readers, and answers that were once too much for a source. Whatever the parsers of answers
make of others is in tests/contract/protocols/test_garbage.py."""

import pytest

from tests.contract.protocols.hostile import check_ends_cleanly
from tests.contract.protocols.recorded import PARSERS
from tests.fuzz import KINDS
from tests.fuzz.hunt import judge, read_kept


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
