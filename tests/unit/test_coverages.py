"""What is known of lists: as it is kept while positions change and the clock is set, and as it is stored."""

import pytest
from msgspec.structs import replace

from lookout.core.model import NO_GAPS, Blocks, Check, Failed, Gaps
from lookout.features.lists.known import COVERAGE, Known, decode_known
from lookout.features.lists.rules.coverage import (
    Coverage,
    Finding,
    Stretch,
    Waiting,
    describe_gaps,
)
from lookout.state.errors import StateError
from tests.builders import NOON

INDEXER = Check("indexer", 1)
OTHER = Check("hosted-indexer", 137)
NAME = "coverage/indexer/1"


def a_hash(number: int) -> str:
    return f"0x{number:064x}"


def a_finding(number: int, listed: int, block: int = 150) -> Finding:
    return Finding(
        hash=a_hash(number),
        first=block,
        last=block,
        listed=listed,
        logged=1 - listed,
        is_confirmed=True,
        looked_at=NOON,
    )


FULL = Coverage(
    subject="a",
    began_at=NOON,
    stretches=(Stretch(100, 199, 7, b"\x01" * 16, NOON), Stretch(300, 399, 0, b"\x00" * 16, NOON)),
    findings={a_hash(1): a_finding(1, listed=0), a_hash(2): a_finding(2, listed=1)},
    batch=50,
    refused_at=100,
    newest_at=NOON,
    waiting=(Waiting(400, 499, NOON + 60_000, "logs_failed"),),
    has_passed=True,
    trial_at=NOON,
    sample=(100, 199),
)
# As 1.0.0 stored it.
OLD = b"""{"subject":"a","began_at":1,"stretches":[[100,199,7,"AQEBAQEBAQEBAQEBAQEBAQ==",5,9,null,true]],
 "missing":{"0x01":{"hash":"0x01","first":100,"last":199,"block":150,"stage":"confirmed","seen_at":2,"looked_at":3,
 "proved_at":4},"0x02":{"hash":"0x02","first":100,"last":199,"block":151,"stage":"elsewhere","seen_at":2,"looked_at":3,
 "proved_at":4}},"extra":{"0x03":{"hash":"0x03","first":100,"last":199,"block":100,"seen_at":2,"looked_at":3,
 "proved_at":4}},"controls":[[199,"0x04"]],"reaches":{"one":[50,100]},"list_reach":[7,9],
 "put_off":[[400,499,6,1,"logs_failed"]]}"""


@pytest.mark.clause("M7", "S19")
def test_what_1_0_0_stored_is_read_without_loss() -> None:
    (coverage,) = decode_known({NAME: OLD}).values()
    assert coverage.stretches == (Stretch(100, 199, 7, b"\x01" * 16, 5),)
    missing, extra = coverage.findings.values()
    assert (missing.hash, missing.first, missing.last, missing.is_confirmed) == ("0x01", 150, 150, True)
    assert (extra.hash, extra.first, extra.last, extra.is_confirmed) == ("0x03", 100, 199, False)


@pytest.mark.clause("M7", "S19")
def test_what_is_stored_comes_back() -> None:
    documents = Known({(COVERAGE, INDEXER): FULL}).documents()
    assert [*documents] == [NAME]
    assert decode_known({**documents, "progress": b"somebody else's"}) == {(COVERAGE, INDEXER): FULL}


@pytest.mark.parametrize("harm", [b"", b"{}", b"[]", b"\xff"], ids=["nothing", "an empty one", "a list", "no text"])
def test_a_piece_that_is_none_is_not_read(harm: bytes) -> None:
    with pytest.raises(StateError, match="coverage/indexer/1"):
        decode_known({NAME: harm})


def followed() -> Known:
    lists = Known({(COVERAGE, INDEXER): FULL})
    lists.follow({(COVERAGE, INDEXER): "a"}, NOON)
    return lists


@pytest.mark.clause("S18")
def test_nothing_is_held_against_an_indexer_above_the_position_that_it_says() -> None:
    lists = followed()
    assert lists.gaps(INDEXER) == Gaps(1, 1)
    lists.hear(INDEXER, Blocks(160))
    assert (lists.gaps(INDEXER), lists.position(INDEXER)) == (Gaps(1, 1), 160)
    lists.hear(INDEXER, Blocks(140))
    assert lists.gaps(INDEXER) == NO_GAPS
    lists.hear(INDEXER, Failed("timeout"))
    assert lists.position(INDEXER) is None


@pytest.mark.clause("S18")
def test_what_a_look_found_holds_only_below_the_position_that_was_said_meanwhile() -> None:
    lists = followed()
    lists.hear(INDEXER, Blocks(140))
    lists.end_look(INDEXER, FULL)
    assert lists.gaps(INDEXER) == NO_GAPS


@pytest.mark.clause("S18")
def test_of_another_subject_nothing_is_known_and_what_left_is_forgotten() -> None:
    lists = followed()
    lists.follow({(COVERAGE, INDEXER): "b", (COVERAGE, OTHER): "a"}, NOON)
    assert lists.get(COVERAGE, INDEXER) == Coverage(subject="b", began_at=NOON)
    assert [*lists.documents()] == ["coverage/indexer/1", "coverage/hosted-indexer/137"]
    lists.follow({(COVERAGE, OTHER): "a"}, NOON)
    assert INDEXER not in lists
    assert lists.gaps(INDEXER) == NO_GAPS


def test_of_many_transactions_the_first_five_are_named() -> None:
    many = replace(FULL, findings={a_hash(number): a_finding(number, 0, 150 + number) for number in range(7)})
    named = ", ".join(a_hash(number) for number in range(5))
    assert describe_gaps(many) == f"7 missing in blocks 150 to 156: {named} and 2 more"
    assert describe_gaps(FULL) == (
        f"1 missing in blocks 150 to 150: {a_hash(1)}; 1 extra in blocks 150 to 150: {a_hash(2)}"
    )
    assert describe_gaps(Coverage(subject="", began_at=0)) == ""
