"""Instants as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.base.instants import END_AT, format_instant, format_second, move, parse_instant, parse_second
from tests.builders import HOUR, NOON
from tests.cases import cases


@pytest.mark.clause("R4")
def test_an_instant_is_written_to_the_millisecond_in_utc() -> None:
    assert parse_instant("2026-11-05T12:00:00.007Z") == 1793880000007
    assert format_instant(1793880000007) == "2026-11-05T12:00:00.007Z"
    assert format_instant(0) == "1970-01-01T00:00:00.000Z"


@pytest.mark.clause("H1", "H4")
def test_a_border_is_written_to_the_second() -> None:
    assert parse_second("2026-11-05T12:00:00Z") == 1793880000000
    assert format_second(1793880000000) == "2026-11-05T12:00:00Z"


@given(st.integers(0, END_AT - 1))
def test_every_instant_survives_the_round_trip(at: int) -> None:
    assert parse_instant(format_instant(at)) == at
    assert parse_second(format_second(at)) == at // 1000 * 1000


@pytest.mark.parametrize("text", cases("instants", "nothing else is an instant"))
def test_nothing_else_is_an_instant(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse_instant(text)


@pytest.mark.parametrize("text", cases("instants", "nothing else is a border"))
def test_nothing_else_is_a_border(text: str) -> None:
    with pytest.raises(ValueError, match="is not an instant like 2026-11-01T00:00:00Z"):
        parse_second(text)


def test_the_last_year_that_is_read_leaves_room_to_add_to() -> None:
    assert format_instant(parse_instant("9998-12-31T23:59:59.999Z") + 150_000) == "9999-01-01T00:02:29.999Z"


@pytest.mark.clause("M7")
def test_a_clock_that_is_set_moves_no_instant_so_far_that_it_could_not_be_stored() -> None:
    assert move(NOON, -HOUR) == NOON - HOUR
    assert move(NOON, HOUR) == NOON + HOUR
    assert move(move(NOON, -END_AT), -END_AT) == 1 - END_AT
    assert move(NOON, END_AT) == END_AT - 1
