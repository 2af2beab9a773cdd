"""Logs made by Hypothesis: what may happen, at instants that hurt."""

from collections.abc import Sequence

from hypothesis import strategies as st

from lookout.core.heads import Reading
from lookout.core.model import (
    LARGEST_METRIC,
    Blocks,
    Check,
    Failed,
    Found,
    Indexes,
    Members,
    MissingList,
    Nothing,
    Observation,
    Peers,
)
from lookout.state.log import Event, HeadRead, Started, Stopped
from tests.builders import BROADCASTERS, DAY, HOSTED_INDEXER, HOUR, INDEXER, MESSAGING, MINUTE, NOON, PPOI, SECOND

COUNTS = st.integers(0, 40) | st.integers(0, LARGEST_METRIC)
HEIGHTS = st.integers(9_700, 10_300) | COUNTS
FAILED = st.just(Failed("timeout"))
NOTHING = st.just(Nothing())

# Around a heartbeat, a hold, a minute, a lifetime, a bucket, an hour and a day.
STEPS = st.sampled_from(
    [
        *(0, 0, 1, 999, 5 * SECOND, 20 * SECOND, 29_999, 30 * SECOND, 30_001, 45 * SECOND),
        *(59_999, MINUTE, 60_001, 2 * MINUTE, 149_999, 150 * SECOND, 150_001, 299_999, 5 * MINUTE, 300_001),
        *(10 * MINUTE, 30 * MINUTE, HOUR),
    ]
)
LONG_STEPS = STEPS | st.sampled_from([6 * HOUR, DAY, DAY + 1, 5 * DAY])
ANYTHING = (MESSAGING, MESSAGING, PPOI, BROADCASTERS, INDEXER, HOSTED_INDEXER, None)  # None is a head
TURNS = st.integers(0, 19)  # most are an event; 0 is a start and 1 a stop
READ_AGES = st.just(0) | st.integers(0, MINUTE)
BLOCK_AGES = st.integers(-MINUTE, HOUR)
STARTS = st.sampled_from([NOON, NOON + 1, NOON + 150 * SECOND, NOON + 299_999])


def members_of(monitored: int) -> st.SearchStrategy[Found]:
    return st.builds(Members, st.integers(0, min(monitored, 5)), st.just(monitored))


FOUND: dict[Check, st.SearchStrategy[Found]] = {
    MESSAGING: st.builds(Peers, st.integers(0, 3) | COUNTS) | FAILED | NOTHING,
    PPOI: st.builds(Indexes, COUNTS, COUNTS) | FAILED | NOTHING | st.just(MissingList()),
    BROADCASTERS: (st.integers(0, 5) | COUNTS).flatmap(members_of) | FAILED | NOTHING,
    INDEXER: st.builds(Blocks, HEIGHTS) | FAILED | NOTHING,
    HOSTED_INDEXER: st.builds(Blocks, HEIGHTS) | FAILED | NOTHING,
}


@st.composite
def logs(
    draw: st.DrawFn,
    steps: st.SearchStrategy[int] = STEPS,
    set_back: st.SearchStrategy[int] | None = None,
    most: int = 60,
    checks: Sequence[Check | None] = ANYTHING,
) -> list[Event]:
    """A log that is as it should be: starts, stops, crashes and, where asked for, clocks that were set back."""
    at = draw(STARTS)
    events: list[Event] = [Started(at)]
    read_from_at = 0  # within one run no head is read before the one before it
    running = True
    some_check = st.sampled_from(checks)
    for _ in range(draw(st.integers(1, most))):
        at += draw(steps)
        turn = draw(TURNS)
        if not running or turn == 0:
            if set_back is not None and draw(st.booleans()):
                at -= draw(set_back)
            events.append(Started(at))
            read_from_at, running = 0, True
        elif turn == 1:
            events.append(Stopped(at))
            running = False
        elif (check := draw(some_check)) is not None:
            events.append(Observation(check, at, draw(FOUND[check])))
        else:
            read_from_at = max(read_from_at, at - draw(READ_AGES))
            reading = Reading(read_from_at, draw(HEIGHTS), read_from_at - draw(BLOCK_AGES))
            events.append(HeadRead(at, 1, reading))
    return events
