"""The history's own ways: the full fortnight, rows that come and go, clocks that jump."""

import pytest
from msgspec.structs import replace

from lookout.core.history import History, HistoryProgress, HistoryState, Tally
from lookout.core.model import Check, Row
from lookout.core.plan import Span
from tests.builders import DAY, HOUR, INDEXER, LAUNCH_SPAN, MESSAGING, MINUTE, NOON, PPOI, SECOND, STATUSES, a_row
from tests.oracles.history import uptime

BUCKET = 5 * MINUTE
BRIEF = replace(LAUNCH_SPAN, retention_days=1)
Step = tuple[int, str] | tuple[int, int, str]


def watch(history: History, from_at: int, until_at: int, *rows: Row) -> None:
    """Publish these rows every 30 s."""
    for at in range(from_at, until_at, 30 * SECOND):
        history.publish(at, rows)


def shown(history: History, check: Check = MESSAGING) -> str:
    return history.view([check]).rows[0].buckets


def history_of(steps: list[Step]) -> History:
    history = History(LAUNCH_SPAN)
    for begin_ms, *end_ms, characters in steps:
        given = zip((MESSAGING, INDEXER), characters, strict=False)
        rows = [a_row(STATUSES[character], check=check) for check, character in given if character != "-"]
        gone = [INDEXER] if characters.endswith("-") else []
        for at in range(NOON + begin_ms, NOON + (end_ms[0] if end_ms else begin_ms + 1), 30 * SECOND):
            history.publish(at, rows, gone)
    return history


def after_leaving(buckets: int) -> History:
    """So many buckets, after the first of which a check has left."""
    history = History(BRIEF)
    history.publish(NOON, [a_row("current"), a_row("current", check=INDEXER)])
    for n in range(1, buckets):
        history.publish(NOON + n * BUCKET, [], gone=[INDEXER] if n == 1 else [])
    return history


def state_of(history: History) -> HistoryState:
    state = history.state()
    assert state is not None
    return state


@pytest.mark.clause("H4", "H5", "H6", "H7", "H8", "H16", "H17")
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [(n * BUCKET, (n + 1) * BUCKET, each) for n, each in enumerate("ckdu?.")],
            "ckdu?.",
            id="each status as its character",
        ),
        pytest.param([(0, "u"), (59_999, "")], "?", id="trouble does not count below a minute"),
        pytest.param([(0, "u"), (59_999, ""), (MINUTE, "")], "u", id="but from a minute on"),
        pytest.param([(0, "c"), (0, "?"), (MINUTE, "")], "?", id="of several of one instant only the last counts"),
        pytest.param([(BUCKET - SECOND, "u"), (2 * BUCKET, "u")], "?-?", id="no data where nothing was published"),
        pytest.param([(0, "c"), (3 * DAY, "c")], f"c{'-' * 863}c", id="no data of days without the monitor"),
        pytest.param([(-12 * HOUR, "c"), (-12 * HOUR + BUCKET, "c")], "cc", id="it may begin at midnight"),
        pytest.param([(12 * HOUR - 1, "c"), (12 * HOUR - 1 + BUCKET, "c")], "cc", id="or just before"),
        pytest.param([(MINUTE, "c"), (0, "?")], "c", id="what is seen just before the clock is set back is seen"),
        pytest.param(
            [(0, "u"), (59_999, ""), (59_998, "c"), (BUCKET, "")],
            "cc",
            id="a clock set back adds no time that nobody measured",
        ),
        pytest.param(
            [(4 * MINUTE, "u"), (0, ""), (MINUTE, "")],
            "u",
            id="a row goes on lasting over a clock set back",
        ),
        pytest.param(
            [(2 * BUCKET, "c"), (0, 2 * MINUTE, "u"), (3 * BUCKET, "c")],
            "u-cc",
            id="buckets over which the clock jumps are recorded as they were",
        ),
        pytest.param(
            [(2 * BUCKET, "c"), (0, 2 * MINUTE, "u"), (3 * BUCKET, "c"), (2 * BUCKET, 3 * BUCKET, "d")],
            "u-c",
            id="and take no more",
        ),
        pytest.param(
            [(0, 3 * BUCKET, "c"), (BUCKET + MINUTE, "u"), (MINUTE, ""), (2 * MINUTE, 2 * BUCKET, "u")],
            "cc",
            id="nor after a second step back",
        ),
        pytest.param([(0, 2 * BUCKET, "c"), (-HOUR, "")], "c", id="set back before the beginning it begins there"),
        pytest.param(
            [(0, 2 * BUCKET, "c"), (-HOUR, -2 * BUCKET, "u"), (2 * BUCKET, "c")],
            "uuuuuuuuuu--ccc",
            id="and what was seen later is there when the clock is",
        ),
    ],
)
def test_publications_at_these_times_after_noon_show(steps: list[Step], expected: str) -> None:
    """A step is one publication of a status, or of nothing new; or, with an end, one every 30 s."""
    assert shown(history_of(steps)) == expected


@pytest.mark.clause("H3", "H4", "H13")
def test_the_string_grows_to_a_fortnight_and_then_slides() -> None:
    history = History(LAUNCH_SPAN)
    for n in range(4033):
        history.publish(NOON + n * BUCKET, [a_row("current" if n else "unknown")])
    view = history.view([MESSAGING])
    assert (view.from_at, view.to_at) == (NOON, NOON + 14 * DAY)
    assert (len(view.rows[0].buckets), view.rows[0].buckets[0]) == (4033, "?")
    history.publish(NOON + 4033 * BUCKET, [a_row("current")])
    view = history.view([MESSAGING])
    assert (view.from_at, view.to_at) == (NOON + BUCKET, NOON + 14 * DAY + BUCKET)
    assert view.rows[0].buckets == "c" * 4033


@pytest.mark.clause("H9", "H11", "H12", "H16")
@pytest.mark.parametrize("span", [LAUNCH_SPAN, BRIEF], ids=["a fortnight", "a day, which cuts every window"])
def test_each_window_counts_its_own_buckets_as_they_slide_by_and_after_a_clock_set_back(span: Span) -> None:
    history = History(span)
    buckets_after_noon = range(0, 16 * 288 * BUCKET, BUCKET)
    for after_noon in (*buckets_after_noon, 2 * DAY):
        history.publish(NOON + after_noon, [a_row("unavailable" if after_noon < 2 * HOUR else "current")])
        history.publish(NOON + after_noon + MINUTE, [])
        if after_noon % HOUR == 0:
            row = history.view([MESSAGING]).rows[0]
            expected = [uptime(row.buckets[-days * 288 - 1 :]) for days in (1, 7, 14)]
            assert [row.uptime.day, row.uptime.week, row.uptime.fortnight] == expected


@pytest.mark.clause("H7", "H8", "H15", "H16")
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([(0, 3 * BUCKET, "c"), (3 * BUCKET, 5 * BUCKET, "cc")], "---cc", id="added later, nothing before"),
        pytest.param(
            [(0, 2 * BUCKET, "c"), (MINUTE, "cc")], "-", id="added while the clock stands in a recorded bucket, nothing"
        ),
        pytest.param(
            [(0, 2 * BUCKET, "c"), (MINUTE, "cc"), (2 * MINUTE, ""), (BUCKET + MINUTE, "")],
            "-c",
            id="but something in the next one, which had begun",
        ),
        pytest.param(
            [(0, BUCKET + 2 * MINUTE, "cu"), (BUCKET + 2 * MINUTE, "c-"), (4 * BUCKET, 5 * BUCKET, "cu")],
            "uu--u",
            id="taken out and back, what it had before",
        ),
        pytest.param(
            [(0, "cc"), (BUCKET, "c-"), (BUCKET + MINUTE, ""), (BUCKET, ""), (2 * BUCKET, "c?")],
            "c-?",
            id="taken out, nothing by a clock set back",
        ),
        pytest.param(
            [(BUCKET - 10 * SECOND, "cc"), (BUCKET + 10 * SECOND, "c-"), (2 * BUCKET, "c?")],
            "c-?",
            id="taken out, no data in a bucket that only its hold reaches into",
        ),
        pytest.param(
            [(BUCKET, "cc"), (4 * MINUTE, "cc"), (BUCKET + SECOND, "c-"), (2 * BUCKET, "cc")],
            "ccc",
            id="taken out as its bucket goes on after a clock set back, what it had there",
        ),
    ],
)
def test_a_check_that_comes_and_goes_shows(steps: list[Step], expected: str) -> None:
    """As above, with the second character for another check, which leaves with ``-``."""
    history = history_of(steps)
    assert shown(history, INDEXER) == expected
    assert set(shown(history)) <= {"c", "-"}


@pytest.mark.clause("H15")
def test_a_check_that_is_gone_for_good_ages_out() -> None:
    history = after_leaving(600)
    for n in range(600, 7 * 288):
        history.publish(NOON + n * BUCKET, [a_row("current", check=PPOI)] if n == 600 else [])
    assert list(history.checks) == [MESSAGING, PPOI]  # which came too late to have anything of the first days
    assert len(state_of(history).days[MESSAGING]) == 5  # what is shown, at most two days, and three to spare


@pytest.mark.clause("H8", "H17")
@pytest.mark.parametrize(
    ("expiries", "expected"),
    [
        pytest.param([(3, 5)], "c?", id="it has expired at the publication's very instant"),
        pytest.param([(3, 5 + 1 / MINUTE)], "cc", id="it expires a millisecond later"),
        pytest.param([(5, 5)], "-?", id="it had expired when it was published"),
        pytest.param([(0, 4), (1, 2)], "c?", id="its new expiry is earlier"),
        pytest.param([(0, 9), (1, 2)], "c?", id="its new expiry is earlier, and the first one still to come"),
        pytest.param([(0, 4), (1, 9)], "cc", id="its new expiry is later"),
    ],
)
def test_from_its_expiry_on_a_row_counts_as_unknown(expiries: list[tuple[int, float]], expected: str) -> None:
    """Published at these minutes, each until such a minute; at the fifth there is nothing new."""
    history = History(LAUNCH_SPAN)
    other = a_row("current", check=INDEXER, expires_at=NOON + 5 * MINUTE)
    history.publish(NOON, [other])
    for minute, expires in expiries:
        history.publish(NOON + minute * MINUTE, [a_row("current", expires_at=NOON + round(expires * MINUTE))])
    history.publish(NOON + 5 * MINUTE, [])
    assert (shown(history), shown(history, INDEXER)) == (expected, "c?")  # whatever the other row does


def test_there_is_nothing_to_see_before_the_first_publication() -> None:
    history = History(LAUNCH_SPAN)
    assert history.state() is None
    with pytest.raises(ValueError, match="before the first publication"):
        history.view([])


def test_a_history_in_buckets_of_another_length_is_refused() -> None:
    history = History(LAUNCH_SPAN)
    history.publish(NOON, [a_row("current")])
    with pytest.raises(ValueError, match=r"buckets of 300 s, the configuration of 600 s"):
        History(replace(LAUNCH_SPAN, bucket_ms=10 * MINUTE), history.state())


@pytest.mark.clause("H16", "M7")
def test_what_an_earlier_version_stored_after_a_clock_was_set_back_goes_on_in_its_bucket() -> None:
    newest = NOON // BUCKET + 3
    tally = Tally(MESSAGING, "u", 40_000, {"c": 40_000})
    day, place = divmod(NOON // BUCKET, 288)
    days = {day: "-" * place + "d"}
    progress = HistoryProgress(BUCKET, NOON // BUCKET, newest, NOON + MINUTE, 50_000)
    history = History(LAUNCH_SPAN, HistoryState(progress, {tally.check: tally}, {tally.check: days}))
    history.publish(NOON + 2 * MINUTE, [a_row("current")])
    assert shown(history) == "d"
    history.publish(NOON + 3 * BUCKET, [a_row("unavailable")])
    history.publish(NOON + 3 * BUCKET + 49_999, [])
    assert shown(history) == "d--c"
    history.publish(NOON + 3 * BUCKET + 50_000, [])
    assert shown(history) == "d--u"


@pytest.mark.clause("H16", "H13")
def test_a_clock_that_jumps_ahead_again_and_again_costs_nothing_of_what_is_shown_at_the_right_time() -> None:
    history = History(LAUNCH_SPAN)
    for n in range(4033):
        history.publish(NOON + n * BUCKET, [a_row("current")])
    at = NOON + 4032 * BUCKET
    for days in range(10, 90):
        history.publish(at + days * DAY, [])
        history.publish(at + days * DAY + BUCKET, [])
        history.publish(at + SECOND * days, [])
    assert shown(history) == "c" * 4033
    state = state_of(history)
    assert len(state.days[MESSAGING]) == 4 * 17


@pytest.mark.clause("H16")
def test_a_day_that_is_shown_is_kept_though_less_was_recorded_on_it_than_on_older_ones() -> None:
    """A monitor that runs for an hour a day never has enough of later days."""
    history = History(LAUNCH_SPAN)
    for day in range(80):
        for n in range(12 if day != 75 else 8):
            history.publish(NOON + day * DAY + n * BUCKET, [a_row("current")])
    assert shown(history).count("c") == 1 + 13 * 12 - 4 + 12  # the end of the first day, and the last one


@pytest.mark.clause("H16")
def test_of_a_clock_that_is_set_back_again_and_again_only_a_few_buckets_are_kept_open() -> None:
    history = History(LAUNCH_SPAN)
    history.publish(NOON, [a_row("current")])
    for n in range(100):
        history.publish(NOON + (200 - n) * BUCKET, [])
        history.publish(NOON + SECOND * n, [])
    state = state_of(history)
    assert len(state.tallies[MESSAGING].later) == 16
    assert max(state.tallies[MESSAGING].later) == NOON // BUCKET + 200  # the latest ever begun goes on filling


@pytest.mark.clause("H8")
def test_a_status_is_held_for_a_minute_and_no_longer() -> None:
    history = History(LAUNCH_SPAN)
    history.publish(NOON, [a_row("unavailable")])
    history.publish(NOON + 4 * MINUTE, [a_row("current")])
    state = state_of(history)
    assert (state.tallies[MESSAGING].lasted_ms, state.progress.watched_ms) == ({"u": MINUTE}, MINUTE)


@pytest.mark.clause("M7", "H16")
def test_what_is_kept_of_buckets_that_a_clock_left_survives_a_restart() -> None:
    history = History(LAUNCH_SPAN)
    watch(history, NOON, NOON + 2 * BUCKET + 2 * MINUTE, a_row("unavailable"))
    history.publish(NOON + BUCKET, [])  # the clock was set back
    resumed = History(LAUNCH_SPAN, state_of(history))
    for each in (history, resumed):
        each.publish(NOON + 3 * BUCKET, [])
    assert state_of(resumed) == state_of(history)
    assert shown(resumed)[:3] == "uuu"  # the third was left after two minutes of trouble


@pytest.mark.clause("H15", "M7")
def test_a_check_may_leave_or_return_in_the_very_publication_with_which_it_ages_out() -> None:
    new_days = range(145, 7 * 288, 288)  # those that follow the first bucket of a day
    ages_out = next(n for n in new_days if INDEXER not in after_leaving(n + 1).checks)
    assert INDEXER in after_leaving(ages_out).checks
    resumed = History(BRIEF, after_leaving(ages_out).state())
    resumed.publish(NOON + ages_out * BUCKET, [], gone=[INDEXER])
    assert INDEXER not in resumed.checks
    returned = after_leaving(ages_out)
    returned.publish(NOON + ages_out * BUCKET, [a_row("unavailable", check=INDEXER)])
    assert INDEXER in returned.checks
