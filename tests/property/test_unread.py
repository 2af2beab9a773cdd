"""Any course of probes of a store, some of which end early or fail: what was kept is read in the end."""

from typing import Final, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from lookout.protocols.broadcasters.seen import MOST_STRETCHES, Unread, after_page, begin, begin_again

WINDOW: Final = 500
PAGE: Final = 3


class Probe(NamedTuple):
    after: int  # the one before it
    sent: tuple[int, ...]  # meanwhile, each so long before the probe
    pages: int  # that there is time for
    fails: bool  # at the page after them
    restarted: bool  # and the store knows no cursor of before


probes = st.builds(
    Probe,
    st.integers(1, 120),
    st.lists(st.integers(0, 119), max_size=30).map(tuple),
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
)


def page_of(kept: list[int], unread: Unread) -> tuple[list[int], str | None]:
    """As a store answers: a cursor is the number of the oldest message given so far, counted from the oldest."""
    first = unread[0]
    below = len(kept) if first.cursor is None else int(first.cursor)
    until_at = first.until_at if first.cursor is None and first.until_at is not None else max(kept, default=0)
    matching = [number for number in range(below) if first.since_at <= kept[number] <= until_at]
    page = matching[-PAGE:]
    return [kept[number] for number in page], str(page[0]) if len(matching) > len(page) else None


@given(st.lists(probes, max_size=25))
def test_nothing_that_a_store_keeps_is_forgotten(course: list[Probe]) -> None:
    at, asked_at, unread = 10_000, 10_000 - WINDOW, Unread()
    kept: list[int] = []
    read: set[int] = set()
    quiet = [Probe(1, (), 6, fails=False, restarted=False)] * 200
    for probe in (*course, *quiet):
        began_at, at = at, at + probe.after
        kept = sorted([*kept, *(max(began_at, at - ago) for ago in probe.sent)])
        if probe.restarted and unread:
            unread = tuple(type(each)(each.since_at, each.until_at) for each in unread)
        if probe.pages == 0:
            continue  # its newest page fails
        unread = begin(unread, max(asked_at, at - WINDOW), at - WINDOW)
        asked_at = at
        for _ in range(probe.pages):
            if unread:
                page, cursor = page_of(kept, unread)
                read.update(page)
                unread = after_page(unread, min(page, default=None), cursor)
        if probe.fails and unread:
            unread = begin_again(unread)
        assert len(unread) <= MOST_STRETCHES
    assert unread == ()
    assert {sent_at for sent_at in kept if sent_at >= at - WINDOW} <= read
