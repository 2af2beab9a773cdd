"""What is still to be read of a store: nothing is forgotten, and nothing is read for ever."""

import pytest

from lookout.protocols.broadcasters.seen import MOST_STRETCHES, Unread, UnreadStretch, after_page, begin, begin_again
from tests.builders import DAY, HOUR, MINUTE, NOON

OLDEST = NOON - DAY
LEFT = UnreadStretch(NOON - 9 * HOUR, NOON - 3 * HOUR, "0xc")  # by an earlier probe


@pytest.mark.parametrize(
    ("unread", "expected"),
    [
        pytest.param((), (UnreadStretch(NOON - MINUTE),), id="all is read but the newest"),
        pytest.param((LEFT,), (UnreadStretch(NOON - MINUTE), LEFT), id="what was left comes after the newest"),
        pytest.param(
            (UnreadStretch(OLDEST - HOUR, OLDEST - 1, "0xc"),),
            (UnreadStretch(NOON - MINUTE),),
            id="too old for anybody",
        ),
        pytest.param(
            (UnreadStretch(OLDEST - HOUR, OLDEST, "0xc"),),
            (UnreadStretch(NOON - MINUTE), UnreadStretch(OLDEST - HOUR, OLDEST, "0xc")),
            id="not quite too old",
        ),
        pytest.param(
            (UnreadStretch(OLDEST - HOUR, None, "0xc"),),
            (UnreadStretch(NOON - MINUTE), UnreadStretch(OLDEST - HOUR, None, "0xc")),
            id="nobody knows how far it was read",
        ),
    ],
)
def test_a_probe_begins_with_the_newest(unread: Unread, expected: Unread) -> None:
    assert begin(unread, NOON - MINUTE, OLDEST) == expected


def test_a_store_that_always_leaves_something_takes_no_memory_and_nothing_is_forgotten() -> None:
    many = tuple(UnreadStretch(at, at + MINUTE, f"0x{at}") for at in range(NOON - HOUR, OLDEST, -HOUR))
    unread = begin(many[:MOST_STRETCHES], NOON - MINUTE, OLDEST)
    assert len(unread) == MOST_STRETCHES
    *others, newer, older = many[:MOST_STRETCHES]
    assert unread == (
        UnreadStretch(NOON - MINUTE),
        *others,
        UnreadStretch(older.since_at, newer.until_at, newer.cursor),
    )


@pytest.mark.parametrize(
    ("stretch", "sent_from_at", "cursor", "expected"),
    [
        pytest.param(UnreadStretch(OLDEST), NOON - HOUR, None, (), id="the last page"),
        pytest.param(
            UnreadStretch(OLDEST),
            NOON - HOUR,
            "0xa",
            (UnreadStretch(OLDEST, NOON - HOUR, "0xa"),),
            id="the first page of many",
        ),
        pytest.param(
            UnreadStretch(OLDEST, NOON - HOUR, "0xa"),
            NOON - 2 * HOUR,
            "0xb",
            (UnreadStretch(OLDEST, NOON - 2 * HOUR, "0xb"),),
            id="a page further on",
        ),
        pytest.param(UnreadStretch(OLDEST, NOON, "0xa"), NOON - HOUR, "0xa", (), id="a cursor that leads nowhere"),
        pytest.param(UnreadStretch(NOON - HOUR), NOON - HOUR - 1, "0xa", (), id="it reached what was read before"),
        pytest.param(
            UnreadStretch(NOON - HOUR),
            NOON - HOUR,
            "0xa",
            (UnreadStretch(NOON - HOUR, NOON - HOUR, "0xa"),),
            id="it hardly did",
        ),
        pytest.param(
            UnreadStretch(OLDEST), None, "0xa", (UnreadStretch(OLDEST, None, "0xa"),), id="a page that says no instant"
        ),
        pytest.param(
            UnreadStretch(OLDEST, NOON - HOUR, "0xa"),
            NOON,
            "0xb",
            (UnreadStretch(OLDEST, NOON - HOUR, "0xb"),),
            id="a page that goes forward",
        ),
    ],
)
def test_a_page_leaves_what_is_older(
    stretch: UnreadStretch, sent_from_at: int | None, cursor: str | None, expected: Unread
) -> None:
    assert after_page((stretch, LEFT), sent_from_at, cursor) == (*expected, LEFT)


def test_a_stretch_is_begun_again_where_it_was_left() -> None:
    assert begin_again((LEFT, UnreadStretch(OLDEST))) == (
        UnreadStretch(LEFT.since_at, LEFT.until_at),
        UnreadStretch(OLDEST),
    )
