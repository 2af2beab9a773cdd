"""Hostile bytes to the real server, in short."""

import re
from random import Random

import pytest

from tests.fuzz.cuts import CUTS
from tests.fuzz.hunt import judge, read_kept
from tests.fuzz.web import HTTP, judging

ATTACKS = read_kept("http")
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of a case with a long head


@pytest.mark.clause("A2", "A3", "A4", "A5", "A6", "A7", "A8", "A11", "A15")
def test_every_answer_to_a_known_attack_is_asked_for_and_is_one_that_there_is() -> None:
    assert len(ATTACKS) > 80
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in ATTACKS)
    with judging() as judge_all:
        judge_all(list(ATTACKS.values()))


@pytest.mark.clause("A2", "A3", "A4", "A5", "A6", "A7", "A8", "A11", "A15")
def test_whatever_bytes_come_every_answer_is_asked_for_and_is_one_that_there_is() -> None:
    assert len(judge(HTTP, 8)) > 5


@pytest.mark.clause("A16")
def test_bytes_that_come_in_pieces_are_answered_as_in_one() -> None:
    assert len(judge(CUTS, 200)) > 10


@pytest.mark.clause("A16")
@pytest.mark.parametrize("size", [1, 997])
def test_a_known_attack_that_comes_in_pieces_is_answered_as_in_one(size: int) -> None:
    with CUTS.judging() as judge_one:
        for case in (*ATTACKS.values(), *read_kept("cuts").values()):
            if len(case) < 3_000 or size > 1:
                judge_one((case, [case[at : at + size] for at in range(0, len(case), size)], Random(size)))
