"""The Python reader's pollers, on a clock and a network under the test's hand."""

import asyncio
import copy
import pickle
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import pytest

from lookout_reader import (
    Answer,
    AsyncReader,
    Clocks,
    LiveReport,
    Needs,
    NoAnswer,
    Reader,
    Update,
    __version__,
    can_use,
    clock_ahead_ms,
    effective_status,
    instant_now,
    live_feed,
    parse_report,
    poll,
    poll_async,
    roll_up,
)
from tests.contract.pollers import (
    NOON,
    Clock,
    ItsOwnError,
    Network,
    Respond,
    Seen,
    a_reader,
    fresh,
    polled,
    polling,
    ppoi,
    report_text,
    see,
)


@pytest.mark.clause("C10")
def test_the_live_report_is_asked_for_every_30_s_and_the_history_every_120_s_unless_told() -> None:
    _, network = polled(fresh, 241)
    assert network.times("/api/v1/protocol/liveness") == [0, 30, 60, 90, 120, 150, 180, 210, 240]
    assert network.times("/api/v1/protocol/liveness/history") == [0, 120, 240]


@pytest.mark.clause("C10")
def test_nobody_can_ask_faster_than_the_floors() -> None:
    _, network = polled(fresh, 60, live=0.001, history=-5.0)
    assert network.times("/liveness") == [0, 15, 30, 45, 60]
    assert network.times("/history") == [0, 60]


@pytest.mark.clause("C10")
def test_either_endpoint_can_be_left_out() -> None:
    assert polled(fresh, 300, history=None)[1].times("/history") == []
    assert polled(fresh, 300, live=None)[1].times("/liveness") == []


@pytest.mark.clause("C10")
def test_if_none_match_and_a_descriptive_user_agent_are_sent() -> None:
    _, network = polled(fresh, 30, history=None, user_agent="wallet.example (ops@wallet.example)")
    assert [headers.get("If-None-Match") for _, _, headers in network.asked] == [None, '"0"']
    assert {headers["User-Agent"] for _, _, headers in network.asked} == {"wallet.example (ops@wallet.example)"}
    _, network = polled(fresh, 1)
    assert network.asked[0][2]["User-Agent"] == f"lookout-reader-python/{__version__}"


@pytest.mark.clause("C4", "C9")
def test_a_304_renews_no_row_and_its_expiry_is_reported_when_it_comes() -> None:
    updates, _ = polled(lambda *asked: fresh(*asked) if asked[1] == 1 else Answer(304), 160, history=None)
    told = [(seen.at - NOON, seen.worth) for seen in updates]
    # At 150 s before it asks, and after that.
    assert told == [(at_s * 1000, "current" if at_s < 150 else "stale") for at_s in (0, 30, 60, 90, 120, 150, 150)]
    assert all(seen.update.report is updates[0].update.report for seen in updates)
    assert all(seen.update.report_problem is None for seen in updates)


def raising(*_: object) -> Answer:
    raise ConnectionResetError


def raising_its_own(*_: object) -> Answer:
    raise ItsOwnError


@pytest.mark.clause("C9", "C15")
@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(lambda *_: NoAnswer(), id="no answer"),
        pytest.param(raising, id="a fetch that raises"),
        pytest.param(raising_its_own, id="a fetch that raises errors of its own"),
        pytest.param(lambda *_: Answer(429, "error code: 1015", retry_after="60"), id="429"),
        pytest.param(lambda *_: Answer(503), id="503"),
        pytest.param(lambda *_: Answer(200, "<html>Sign in</html>"), id="a captive portal"),
        pytest.param(lambda *_: Answer(200, b"\xff\xfe"), id="bytes that are no text"),
        pytest.param(lambda *_: Answer(200, '{"schemaVersion":2,"checks":[]}'), id="an unknown schemaVersion"),
    ],
)
def test_after_a_failure_the_last_good_report_stays_rows_expire_and_the_wait_grows(failure: Respond) -> None:
    updates, network = polled(lambda *asked: fresh(*asked) if asked[1] == 1 else failure(*asked), 1300, history=None)
    assert all(seen.update.report is updates[0].update.report for seen in updates)
    assert all(seen.update.report_problem for seen in updates[1:])
    assert {seen.worth for seen in updates if seen.at < NOON + 150_000} == {"current"}
    assert {seen.worth for seen in updates if seen.at >= NOON + 150_000} == {"stale"}
    assert NOON + 150_000 in [seen.at for seen in updates]  # expiry is told while it waits
    waits = [later - earlier for earlier, later in pairwise(network.times("/liveness"))]
    asked_s = 60 if updates[-1].update.report_code == "too-many-requests" else 0
    assert waits[:7] == [30, *(max(least_s, asked_s) for least_s in (15, 30, 60, 120, 200, 200))]


@pytest.mark.clause("C15")
def test_readings_while_the_network_is_down_do_not_lengthen_the_polling() -> None:
    stop = Event()

    def sleep(seconds: float) -> None:
        network.clock.sleep(seconds)
        if network.clock.elapsed_s in (62, 64, 66):
            assert reader.read().report_problem == "no answer"
        if network.clock.elapsed_s > 130:
            stop.set()

    network = Network(Clock(), lambda *asked: NoAnswer() if 31 <= asked[2].elapsed_s < 100 else fresh(*asked))
    reader = a_reader(network, sleep=sleep)
    last = [see(update) for update in reader.updates(stop)][-1]
    assert network.times("/liveness") == [0, 30, 60, 62, 64, 66, 75, 105]
    assert (last.update.report_problem, last.worth) == (None, "current")


@pytest.mark.clause("C10")
def test_within_15_s_the_last_answer_counts() -> None:
    network = Network(Clock(), fresh)
    reader = a_reader(network)
    for _ in range(60):
        assert ppoi(reader.read()) == "current"
        network.clock.sleep(1)
    assert network.times("/liveness") == [0, 15, 30, 45]


@pytest.mark.clause("C4")
def test_on_a_network_that_hangs_a_reading_gives_what_is_known_at_its_deadline() -> None:
    released = Event()

    def respond(url: str, times: int, clock: Clock) -> Answer:
        if times > 1:
            released.wait(60)
        return fresh(url, times, clock)

    network = Network(Clock(), respond)
    reader = a_reader(network, deadline_s=0)
    updates = reader.updates()
    assert [ppoi(next(updates)), ppoi(next(updates))] == ["unknown", "current"]
    network.clock.sleep(20)
    try:
        assert [ppoi(reader.read()), ppoi(reader.read())] == [
            "current",
            "current",
        ]  # by a request of its own, and beside it
        assert len(network.asked) == 2
    finally:
        released.set()


@pytest.mark.clause("C9")
def test_one_endpoints_failure_is_not_the_others() -> None:
    updates, _ = polled(lambda *asked: Answer(503) if asked[0].endswith("/history") else fresh(*asked), 300)
    last = updates[-1].update
    assert (last.report_problem, last.history_problem, last.history) == (None, "not available yet", None)
    assert ppoi(last) == "current"


def dated(at: int) -> str:
    return format_datetime(datetime.fromtimestamp(at / 1000, UTC), usegmt=True)


@pytest.mark.clause("C2", "C3")
@pytest.mark.parametrize(("ahead_ms", "expected"), [(-3_600_000, "unknown"), (3_600_000, "stale"), (0, "current")])
def test_a_clock_that_is_wrong_by_an_hour_makes_nothing_healthy(ahead_ms: int, expected: str) -> None:
    def served(_url: str, _times: int, clock: Clock) -> Answer:
        at = clock.now() - ahead_ms
        return Answer(200, report_text(at), date=dated(at))

    updates, _ = polled(served, 1, history=None, clock=Clock(ahead_ms=ahead_ms))
    assert updates[-1].worth == expected
    assert updates[-1].update.clock_ahead_ms == ahead_ms


@pytest.mark.clause("C2")
def test_by_a_clock_that_is_known_to_be_10_minutes_slow_nothing_can_be_used() -> None:
    def served(_url: str, _times: int, clock: Clock) -> Answer:
        return Answer(200, report_text(clock.now()), date=dated(clock.now() + 600_000))

    (((update, *_), *_), _) = polled(served, 1, history=None)
    assert ppoi(update) == "unknown"
    assert not can_use(update.report, Needs(1, ["ppoi"]))


@pytest.mark.clause("C3")
def test_a_clock_that_jumps_is_noticed_within_a_second() -> None:
    clock = Clock()
    network = Network(clock, fresh)
    updates = polling(network)
    assert [ppoi(next(updates)), ppoi(next(updates))] == ["unknown", "current"]
    clock.ahead_ms = 3_600_000
    assert ppoi(next(updates)) == "stale"
    assert clock.elapsed_s <= 1


@pytest.mark.clause("C3")
def test_what_expired_in_an_hour_of_sleep_is_reported_before_anything_is_asked() -> None:
    clock = Clock()
    network = Network(clock, fresh)
    updates = polling(network)
    assert [ppoi(next(updates)), ppoi(next(updates))] == ["unknown", "current"]
    clock.elapsed_s = 3_600
    assert (ppoi(next(updates)), len(network.asked)) == ("stale", 1)
    assert (ppoi(next(updates)), len(network.asked)) == ("current", 2)


@pytest.mark.clause("C3")
@pytest.mark.parametrize(
    "again",
    [
        pytest.param(lambda _: Answer(304), id="a 304"),
        pytest.param(lambda text: Answer(200, text, etag='"one"'), id="the same report"),
        pytest.param(lambda text: Answer(200, text), id="the same report without an ETag"),
        pytest.param(lambda _: NoAnswer(), id="nothing"),
    ],
)
def test_a_clock_that_is_an_hour_slow_makes_no_old_report_current_when_it_gets_there(
    again: Callable[[str], Answer | NoAnswer],
) -> None:
    text = report_text(NOON)

    def served(_url: str, times: int, _clock: Clock) -> Answer | NoAnswer:
        return Answer(200, text, etag='"one"') if times == 1 else again(text)

    updates, _ = polled(served, 4000, history=None, clock=Clock(ahead_ms=-3_600_000))
    assert {seen.worth for seen in updates} == {"unknown"}


@pytest.mark.clause("C3")
def test_how_long_ago_the_report_first_arrived_is_reported() -> None:
    def served(url: str, times: int, clock: Clock) -> Answer:
        return Answer(304) if times == 2 else fresh(url, times, clock)

    updates, _ = polled(served, 60, history=None)
    assert [seen.received_ago_ms for seen in updates] == [0, 30_000, 0]
    assert polled(lambda *_: NoAnswer(), 1, history=None)[0][0].received_ago_ms is None


@pytest.mark.clause("C3", "C9")
def test_a_row_that_expires_while_a_request_hangs_is_reported_and_stop_is_obeyed() -> None:
    clock, stop, released, answered = Clock(), Event(), Event(), Event()

    def fetch(_url: str, _headers: Mapping[str, str]) -> Answer:
        if clock.elapsed_s:
            clock.sleep(200)  # time passes, and no answer comes
            released.wait(60)
            answered.set()
        return Answer(200, report_text(NOON))

    updates = polling(Network(clock, fresh), fetch=fetch, stop=stop)
    try:
        assert [ppoi(next(updates)) for _ in range(3)] == ["unknown", "current", "stale"]
        stop.set()
        assert next(updates, None) is None
        assert not answered.is_set()
    finally:
        released.set()


@pytest.mark.clause("C9", "C15")
def test_without_a_free_thread_nothing_is_asked_and_a_moment_later_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    clock = Clock()
    reader = Reader(
        *("https://liveness.example", "protocol"),
        history=None,
        fetch=Network(clock, fresh).fetch,
        now=clock.now,
        monotonic=clock.monotonic,
    )
    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", refuse)
        assert reader.read().report is None
    clock.sleep(15)
    assert ppoi(reader.read()) == "current"


@pytest.mark.clause("C9")
def test_what_is_no_error_but_an_end_is_not_held_back() -> None:
    def ending(*_: object) -> Answer:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        polled(ending, 1)


def test_the_clocks_offset_is_taken_from_the_live_report_only() -> None:
    def served(url: str, times: int, clock: Clock) -> Answer:
        at = clock.now() - (3_600_000 if url.endswith("/history") else 0)
        return replace(fresh(url, times, clock), date=dated(at))

    updates, _ = polled(served, 1)
    assert [seen.update.clock_ahead_ms for seen in updates] == [0, 0]


@pytest.mark.clause("C4")
@pytest.mark.parametrize("keep", [pytest.param(lambda update: update, id="itself"), copy.copy, replace])
def test_a_kept_update_is_judged_by_its_readers_clocks_at_each_call(keep: Callable[[Update], Update]) -> None:
    network = Network(Clock(), fresh)
    kept, needs = keep(a_reader(network).read()), Needs(1, ["ppoi"])

    def ways() -> list[bool]:
        clocks = (kept.now, kept.received_ago_ms, kept.clock_ahead_ms)
        with pytest.warns(DeprecationWarning, match="clocks"):
            old = can_use(kept.report, *clocks, chain=1, services=["ppoi"])
        with pytest.warns(DeprecationWarning, match="clocks"):
            rolled = roll_up(kept.report, *clocks, chains=[1], services=["ppoi"]).healthy
        rolled_now = roll_up(kept.report, chains=[1], services=["ppoi"]).healthy
        return [can_use(kept.report, needs), ppoi(kept) == "current", rolled_now, old, rolled]

    assert ways() == [True] * 5
    network.clock.elapsed_s += 86_400
    assert ways() == [False] * 5
    network.clock.ahead_ms = -86_400_000  # set back: its reader knows how old it is
    assert ways() == [False] * 5


@pytest.mark.clause("C4")
@pytest.mark.parametrize("keep", [copy.deepcopy, lambda update: pickle.loads(pickle.dumps(update))])  # noqa: S301
def test_a_copy_for_another_process_is_judged_by_the_wall_clock(keep: Callable[[Update], Update]) -> None:
    kept = keep(a_reader(Network(Clock(), fresh)).read())
    assert kept.arrival is None
    assert abs(kept.now - instant_now()) < 60_000
    assert not can_use(kept.report, Needs(1, ["ppoi"]))  # it is of another day


@pytest.mark.clause("C4")
def test_a_reader_says_what_stands_in_the_way_how_bad_that_is_and_why() -> None:
    network = Network(Clock(), lambda *asked: fresh(*asked) if asked[1] == 1 else NoAnswer())
    reader, needs = a_reader(network), Needs(1, ["ppoi"])

    def causes() -> list[tuple[str, str | None]]:
        return [(obstacle.severity, obstacle.cause) for obstacle in reader.obstacles(needs)]

    assert (causes(), reader.can_use(needs)) == ([("unknown", None)], False)
    assert reader.read().report_bytes == report_text(NOON)
    assert (causes(), reader.can_use(needs)) == ([], True)
    network.clock.elapsed_s = 200
    assert causes() == [("unknown", "monitor-silent")]
    reader.read()
    assert (causes(), reader.can_use(needs)) == ([("unknown", "network")], False)
    assert reader.latest().report_bytes == report_text(NOON)


@pytest.mark.clause("C4")
def test_it_waits_until_what_is_needed_can_be_used() -> None:
    network = Network(Clock(), lambda *asked: fresh(*asked) if asked[1] == 3 else NoAnswer())
    assert a_reader(network).when_usable(Needs(1, ["ppoi"]))
    assert network.times("/liveness") == [0, 15, 45]
    stop = Event()
    stop.set()
    assert not a_reader(network).when_usable(Needs(1, ["ppoi"]), stop)


@pytest.mark.clause("C4")
def test_without_a_clock_nothing_is_healthy() -> None:
    report = parse_report(report_text(NOON))
    assert isinstance(report, LiveReport)
    (row,) = report.rows
    for now in (float("nan"), float("inf"), float("-inf"), NOON / 1000):
        assert effective_status(row, Clocks(now)) == "unknown"
    assert effective_status(row, Clocks(NOON)) == "current"


def test_the_clocks_offset_takes_the_age_of_a_cached_answer_into_account() -> None:
    date = "Sun, 15 Nov 2026 11:59:30 GMT"
    assert clock_ahead_ms(Answer(200, date=date, age="30"), NOON) == 0
    assert clock_ahead_ms(Answer(200), NOON) is None
    assert clock_ahead_ms(NoAnswer(), NOON) is None


def test_what_a_caller_got_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError, match="ftp"):
        poll("ftp://liveness.example", "protocol")
    with pytest.raises(ValueError, match="no protocol"):
        poll("https://liveness.example", "")
    with pytest.raises(ValueError, match="not a number"):
        live_feed(float("nan"))


async def sleeping(clock: Clock, seconds: float) -> None:
    clock.sleep(seconds)


@pytest.mark.clause("C3", "C9")
def test_the_async_poller_reports_it_too_and_gives_the_request_up_when_closed() -> None:
    clock, given_up = Clock(), []

    async def fetch(_url: str, _headers: Mapping[str, str]) -> Answer:
        if clock.elapsed_s:
            clock.sleep(200)
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                given_up.append(True)
                raise
        return Answer(200, report_text(NOON))

    async def first_three() -> list[str]:
        clocks: dict[str, Any] = {"now": clock.now, "monotonic": clock.monotonic, "sleep": partial(sleeping, clock)}
        updates = poll_async("https://liveness.example", "protocol", history=None, fetch=fetch, **clocks)
        found = [ppoi(await anext(updates)) for _ in range(3)]
        assert isinstance(updates, AsyncGenerator)
        await updates.aclose()
        return found

    assert asyncio.run(first_three()) == ["unknown", "current", "stale"]
    assert given_up == [True]


@pytest.mark.clause("C4", "C10", "C15")
def test_an_async_reading_is_as_polite_and_as_prompt() -> None:
    async def fetch(url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
        if len(network.asked) == 2:
            await asyncio.Event().wait()
        return network.fetch(url, headers)

    async def read() -> tuple[list[str], int]:
        clock = network.clock
        clocks: dict[str, Any] = {"now": clock.now, "monotonic": clock.monotonic, "sleep": partial(sleeping, clock)}
        reader = AsyncReader("https://liveness.example", "protocol", fetch=fetch, deadline_s=0.1, **clocks)
        found = []
        for seconds in (14, 1, 20, 0):  # the last two find a network that hangs
            found.append(ppoi(await reader.read()))
            clock.sleep(seconds)
        await reader.when_usable(Needs(1, ["ppoi"]))
        return found, len(network.asked)

    network = Network(Clock(), fresh)
    assert asyncio.run(read()) == (["current"] * 4, 2)


@pytest.mark.clause("C10")
def test_a_wait_that_is_given_up_again_and_again_asks_no_faster() -> None:
    async def fetch(_url: str, _headers: Mapping[str, str]) -> Answer:
        asked.append(clock.monotonic())
        return await asyncio.Future()

    async def wait_and_give_up() -> None:
        clocks: dict[str, Any] = {"now": clock.now, "monotonic": clock.monotonic, "sleep": partial(sleeping, clock)}
        reader = AsyncReader("https://liveness.example", "protocol", history=None, fetch=fetch, **clocks)
        for _ in range(40):
            waiting = asyncio.create_task(reader.when_usable(Needs(1, ["ppoi"])))
            await asyncio.sleep(0.001)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            clock.sleep(1)

    clock, asked = Clock(), list[float]()
    asyncio.run(wait_and_give_up())
    assert len(asked) > 1
    assert min(later - earlier for earlier, later in pairwise(asked)) >= 15


@pytest.mark.clause("C9", "C10")
def test_the_async_poller_does_the_same() -> None:
    async def collect(respond: Respond) -> tuple[list[Seen], Network]:
        clock = Clock()
        network = Network(clock, respond)

        async def fetch(url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
            return network.fetch(url, headers)

        clocks: dict[str, Any] = {"now": clock.now, "monotonic": clock.monotonic, "sleep": partial(sleeping, clock)}
        updates = []
        async for update in poll_async(
            "https://liveness.example/", "protocol", fetch=fetch, chance=lambda: 0.0, **clocks
        ):
            if clock.elapsed_s > 600:
                break
            updates.append(see(update))
        return updates, network

    def respond(url: str, times: int, clock: Clock) -> Answer | NoAnswer:
        if 4 <= times <= 6:
            raise TimeoutError if times == 4 else ItsOwnError
        return fresh(url, times, clock)

    updates, network = asyncio.run(collect(respond))
    expected, asked = polled(respond, 600)
    assert updates[1:] == expected
    assert [request for request in network.asked if request[0] <= 600] == asked.asked
