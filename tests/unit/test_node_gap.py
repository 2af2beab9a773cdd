"""A ppoi node beside an indexer's list: when the two are known not to hold the same transactions (S21)."""

import msgspec
import pytest

from lookout.features.lists.rules.node_gap import NodeGap, confirmed_gap, describe_gap, doubt, read_gap
from tests.builders import NOON

pytestmark = pytest.mark.clause("S21")

MINUTE_MS = 60_000
NEW = NodeGap("a")


def read(known: NodeGap, minutes: range, gap: int, *, are_current: bool = True) -> NodeGap:
    for minute in minutes:
        known = read_gap(known, 61_173, 61_172 - gap, NOON + minute * MINUTE_MS, are_current=are_current)
    return known


def test_a_gap_at_every_reading_for_an_hour_is_confirmed_and_a_reading_without_one_ends_it() -> None:
    known = read(NEW, range(60), 4)
    assert (confirmed_gap(known), describe_gap(known)) == (0, "")
    known = read(known, range(60, 61), 4)
    assert confirmed_gap(known) == 4
    assert describe_gap(known) == "61173 entries in the list, 61169 in the node, 4 apart"
    known = read(known, range(500, 501), 5, are_current=False)  # neither silence nor another row ends it
    assert confirmed_gap(known) == 5
    assert doubt(known) == known
    known = read(known, range(501, 502), 0)
    assert (confirmed_gap(known), known.since_at) == (0, None)


@pytest.mark.parametrize(
    ("at_minute_30", "confirmed_at"),
    [
        pytest.param(lambda known: read(known, range(30, 31), 0), 91, id="a reading without a gap"),
        pytest.param(lambda known: read(known, range(30, 31), -3), 91, id="a node that is ahead"),
        pytest.param(
            lambda known: read(known, range(30, 31), 4, are_current=False), 91, id="a row that is not current"
        ),
        pytest.param(doubt, 91, id="a row that is not current between two readings"),
        pytest.param(lambda known: known, 60, id="nothing"),
    ],
)
def test_what_begins_the_hour_again(at_minute_30: object, confirmed_at: int) -> None:
    assert callable(at_minute_30)
    known = at_minute_30(read(NEW, range(30), 4))
    known = read(known, range(31, confirmed_at), 4)
    assert confirmed_gap(known) == 0
    assert confirmed_gap(read(known, range(confirmed_at, confirmed_at + 1), 4)) == 4


@pytest.mark.parametrize(
    ("silent_minutes", "is_confirmed"), [(5, True), (6, False)], ids=["five minutes at most", "longer"]
)
@pytest.mark.clause("M7")
def test_time_without_a_reading_begins_it_again_also_over_a_restart(silent_minutes: int, is_confirmed: bool) -> None:
    known = msgspec.json.decode(msgspec.json.encode(read(NEW, range(59), 4)), type=NodeGap)
    again = 58 + silent_minutes
    assert bool(confirmed_gap(read(known, range(again, again + 1), 4))) == is_confirmed


def test_a_clock_that_was_set_back_begins_it_again() -> None:
    known = read(read(NEW, range(59), 4), range(-30, -29), 4)
    assert known.since_at == NOON - 30 * MINUTE_MS


def test_while_one_entry_is_lacking_it_goes_on_and_after_its_end_another_gap_takes_an_hour_again() -> None:
    known = read(read(NEW, range(61), 4), range(61, 62), 1)
    assert confirmed_gap(known) == 1
    known = read(read(NEW, range(61), 4), range(61, 62), 0)
    assert confirmed_gap(read(known, range(62, 63), 4)) == 0
