"""The Python reader's poller, on a clock and a network under the test's hand, and once over real HTTP."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from threading import Event
from typing import Any

import pytest

from lookout_reader import (
    Answer,
    LiveReport,
    NoAnswer,
    Row,
    Update,
    clock_ahead_ms,
    effective_status,
    fetch_with_urllib,
    find_row,
    live_feed,
    parse_report,
    poll,
    poll_async,
)

NOON = 1_794_744_000_000


@dataclass
class Clock:
    """Moves only by sleeping; the wall clock can be set."""

    elapsed_s: float = 0.0
    ahead_ms: int = 0

    def now(self) -> int:
        return NOON + round(self.elapsed_s * 1000) + self.ahead_ms

    def monotonic(self) -> float:
        return self.elapsed_s

    def sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds


Respond = Callable[[str, int, Clock], Answer | NoAnswer]


@dataclass
class Network:
    """Answers as told, and remembers what it was asked."""

    clock: Clock
    respond: Respond
    asked: list[tuple[float, str, Mapping[str, str]]] = field(default_factory=list)

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
        self.asked.append((self.clock.elapsed_s, url, headers))
        return self.respond(url, len(self.asked), self.clock)

    def times(self, end: str) -> list[float]:
        return [at for at, url, _ in self.asked if url.endswith(end)]


def instant(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def report_text(at: int) -> str:
    row = {"service": "ppoi", "chainId": 1, "status": "current", "reason": "synced", "metrics": {}}
    row |= {"observedAt": instant(at), "lastSuccessAt": instant(at), "expiresAt": instant(at + 150_000)}
    return json.dumps({"schemaVersion": 1, "generatedAt": instant(at), "checks": [row]})


def history_text(at: int) -> str:
    to = instant(at // 300_000 * 300_000)
    fields = {"schemaVersion": 1, "generatedAt": instant(at), "bucketSeconds": 300, "from": to, "to": to, "rows": []}
    return json.dumps(fields)


def fresh(url: str, _times: int, clock: Clock) -> Answer:
    body = history_text(clock.now()) if url.endswith("/history") else report_text(clock.now())
    return Answer(200, body, etag=f'"{clock.elapsed_s:g}"')


def polled(respond: Respond, for_s: float, **options: Any) -> tuple[list[Update], Network]:
    """All updates of so many seconds."""
    clock = options.pop("clock", Clock())
    network = Network(clock, respond)
    stop = Event()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.elapsed_s > for_s:
            stop.set()

    updates = poll(
        "https://liveness.example/",
        "protocol",
        **{"fetch": network.fetch, "stop": stop, "now": clock.now, "monotonic": clock.monotonic, **options},
        chance=lambda: 0.0,
        sleep=sleep,
    )
    return list(updates), network


def ppoi(update: Update) -> str:
    return effective_status(find_row(update.report, "ppoi", 1), update.now, update.received_ago_ms)


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
    assert network.asked[0][2]["User-Agent"].startswith("lookout-reader-python/")


@pytest.mark.clause("C4", "C9")
def test_a_304_renews_no_row_and_its_expiry_is_told_when_it_comes() -> None:
    updates, _ = polled(lambda *asked: fresh(*asked) if asked[1] == 1 else Answer(304), 160, history=None)
    told = [(update.now - NOON, ppoi(update)) for update in updates]
    assert told == [(at_s * 1000, "current" if at_s < 150 else "stale") for at_s in (0, 30, 60, 90, 120, 150)]
    assert all(update.report is updates[0].report and update.report_problem is None for update in updates)


def raising(*_: object) -> Answer:
    raise ConnectionResetError


class ItsOwnError(Exception):
    """As httpx has them: no OSError."""


def raising_its_own(*_: object) -> Answer:
    raise ItsOwnError


@pytest.mark.clause("C9")
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
    assert all(update.report is updates[0].report for update in updates)
    assert all(update.report_problem for update in updates[1:])
    assert [ppoi(update) for update in updates if update.now < NOON + 150_000] == ["current"] * 3
    assert {ppoi(update) for update in updates if update.now >= NOON + 150_000} == {"stale"}
    assert updates[3].now == NOON + 150_000  # expiry is told while it waits
    waits = [later - earlier for earlier, later in pairwise(network.times("/liveness"))]
    assert waits == [30, 60, 120, 200, 200, 200, 200, 200]


@pytest.mark.clause("C9")
def test_one_endpoints_failure_is_not_the_others() -> None:
    updates, _ = polled(lambda *asked: Answer(503) if asked[0].endswith("/history") else fresh(*asked), 300)
    last = updates[-1]
    assert (last.report_problem, last.history_problem, last.history) == (None, "not available yet", None)
    assert ppoi(last) == "current"


@pytest.mark.clause("C2", "C3")
@pytest.mark.parametrize(("ahead_ms", "expected"), [(-3_600_000, "unknown"), (3_600_000, "stale"), (0, "current")])
def test_a_clock_that_is_wrong_by_an_hour_makes_nothing_healthy(ahead_ms: int, expected: str) -> None:
    def served(_url: str, _times: int, clock: Clock) -> Answer:
        at = clock.now() - ahead_ms
        date = format_datetime(datetime.fromtimestamp(at / 1000, UTC), usegmt=True)
        return Answer(200, report_text(at), date=date)

    updates, _ = polled(served, 1, history=None, clock=Clock(ahead_ms=ahead_ms))
    assert ppoi(updates[-1]) == expected
    assert updates[-1].clock_ahead_ms == ahead_ms  # told, and not used


@pytest.mark.clause("C3")
def test_a_clock_that_jumps_is_noticed_within_a_second() -> None:
    clock = Clock()
    network = Network(clock, fresh)
    updates = poll(
        "https://liveness.example",
        "protocol",
        history=None,
        fetch=network.fetch,
        now=clock.now,
        monotonic=clock.monotonic,
        sleep=clock.sleep,
    )
    assert ppoi(next(updates)) == "current"
    clock.ahead_ms = 3_600_000
    assert ppoi(next(updates)) == "stale"
    assert clock.elapsed_s <= 1


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
    assert list(dict.fromkeys(map(ppoi, updates))) == ["unknown", "stale"]


@pytest.mark.clause("C3")
def test_how_long_ago_the_report_first_arrived_is_told() -> None:
    def served(url: str, times: int, clock: Clock) -> Answer:
        return Answer(304) if times == 2 else fresh(url, times, clock)

    updates, _ = polled(served, 60, history=None)
    assert [update.received_ago_ms for update in updates] == [0, 30_000, 0]
    assert polled(lambda *_: NoAnswer(), 1, history=None)[0][0].received_ago_ms is None


@pytest.mark.clause("C3", "C9")
def test_a_row_that_expires_while_a_request_hangs_is_told_and_stop_is_heeded() -> None:
    clock, stop, released = Clock(), Event(), Event()

    def fetch(_url: str, _headers: Mapping[str, str]) -> Answer:
        if clock.elapsed_s:
            clock.sleep(200)  # time passes, and no answer comes
            released.wait(30)
        return Answer(200, report_text(NOON))

    updates = poll(
        "https://liveness.example",
        "protocol",
        history=None,
        fetch=fetch,
        stop=stop,
        now=clock.now,
        monotonic=clock.monotonic,
        sleep=clock.sleep,
    )
    began = time.monotonic()
    try:
        assert [ppoi(next(updates)), ppoi(next(updates))] == ["current", "stale"]
        stop.set()
        assert next(updates, None) is None
        assert time.monotonic() - began < 10
    finally:
        released.set()


@pytest.mark.clause("C3", "C9")
def test_the_async_poller_tells_it_too_and_gives_the_request_up_when_closed() -> None:
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

    async def sleep(seconds: float) -> None:
        clock.sleep(seconds)

    async def first_two() -> list[str]:
        updates = poll_async(
            "https://liveness.example",
            "protocol",
            history=None,
            fetch=fetch,
            now=clock.now,
            monotonic=clock.monotonic,
            sleep=sleep,
        )
        found = [ppoi(await anext(updates)), ppoi(await anext(updates))]
        assert isinstance(updates, AsyncGenerator)
        await updates.aclose()
        return found

    assert asyncio.run(first_two()) == ["current", "stale"]
    assert given_up == [True]


@pytest.mark.clause("C9")
def test_what_is_no_error_but_an_end_is_not_held_back() -> None:
    def ending(*_: object) -> Answer:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        polled(ending, 1)


def test_the_clocks_offset_is_taken_from_the_live_report_only() -> None:
    def served(url: str, times: int, clock: Clock) -> Answer:
        at = clock.now() - (3_600_000 if url.endswith("/history") else 0)
        date = format_datetime(datetime.fromtimestamp(at / 1000, UTC), usegmt=True)
        return replace(fresh(url, times, clock), date=date)

    updates, _ = polled(served, 1)
    assert [update.clock_ahead_ms for update in updates] == [0, 0]


@pytest.mark.clause("C4")
def test_without_a_clock_nothing_is_healthy() -> None:
    report = parse_report(report_text(NOON))
    assert isinstance(report, LiveReport)
    (row,) = report.rows
    for now in (float("nan"), float("inf"), float("-inf"), NOON / 1000):
        assert effective_status(row, now) == "unknown"
    assert effective_status(row, NOON) == "current"


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


@pytest.mark.clause("C9", "C10")
def test_the_async_poller_does_the_same() -> None:
    async def collect(respond: Respond) -> tuple[list[Update], Network]:
        clock = Clock()
        network = Network(clock, respond)

        async def fetch(url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
            return network.fetch(url, headers)

        async def sleep(seconds: float) -> None:
            clock.sleep(seconds)

        updates = []
        polling = poll_async(
            "https://liveness.example/",
            "protocol",
            fetch=fetch,
            now=clock.now,
            monotonic=clock.monotonic,
            chance=lambda: 0.0,
            sleep=sleep,
        )
        async for update in polling:
            if clock.elapsed_s > 600:
                break
            updates.append(update)
        return updates, network

    def respond(url: str, times: int, clock: Clock) -> Answer | NoAnswer:
        if 4 <= times <= 6:
            raise TimeoutError if times == 4 else ItsOwnError
        return fresh(url, times, clock)

    updates, network = asyncio.run(collect(respond))
    expected, asked = polled(respond, 600)
    assert updates == expected
    assert [request for request in network.asked if request[0] <= 600] == asked.asked


class Handler(BaseHTTPRequestHandler):
    """Answers by path."""

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if name == "hangs-up":
            self.close_connection = True
        elif name == "breaks-off":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"{")
        elif name == "elsewhere":
            self.send_response(302)
            self.send_header("Location", "http://:x/" if self.path.startswith("/nowhere") else "/portal")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.headers["If-None-Match"] == '"one"':
            self.send_response(304)
            self.end_headers()
        elif name == "busy":
            self._answer(503, b'{"error":"unavailable"}', "Retry-After", "30")
        else:
            self._answer(200, report_text(NOON).encode() if name == "liveness" else b"<html>", "ETag", '"one"')

    def _answer(self, http_code: int, body: bytes, *header: str) -> None:
        self.send_response(http_code)
        self.send_header(*header)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silence."""


@contextlib.contextmanager
def a_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.clause("C9", "C10")
def test_over_real_http_a_304_a_503_and_whatever_else_happens_are_answers_or_none() -> None:
    with a_server() as base:
        first = fetch_with_urllib(f"{base}/liveness", {"User-Agent": "a test"})
        assert isinstance(first, Answer)
        assert (first.http_code, first.etag, first.body) == (200, '"one"', report_text(NOON).encode())
        assert first.date is not None
        again = fetch_with_urllib(f"{base}/liveness", {"If-None-Match": '"one"'})
        assert isinstance(again, Answer)
        assert (again.http_code, again.body) == (304, b"")
        busy = fetch_with_urllib(f"{base}/busy", {})
        assert isinstance(busy, Answer)
        assert (busy.http_code, busy.retry_after) == (503, "30")
        portal = fetch_with_urllib(f"{base}/elsewhere", {})
        assert isinstance(portal, Answer)
        assert (portal.http_code, portal.body) == (200, b"<html>")
        for path in ("hangs-up", "breaks-off", "nowhere/elsewhere"):
            assert fetch_with_urllib(f"{base}/{path}", {}) == NoAnswer()
    assert fetch_with_urllib(f"{base}/liveness", {}) == NoAnswer()


@pytest.mark.clause("C9", "C10")
def test_a_real_poll_gives_an_update_and_stops() -> None:
    stop = Event()
    with a_server() as base:
        for update in poll(base, "protocol", history=None, stop=stop):
            assert update.report is not None
            assert isinstance(find_row(update.report, "ppoi", 1), Row)
            stop.set()

        async def first() -> Update:
            return await anext(poll_async(base, "protocol", history=None))

        assert asyncio.run(first()).report is not None


@contextlib.contextmanager
def a_dripping_server(*parts: bytes) -> Iterator[tuple[str, Event]]:
    """Sends the last part again and again, ten times a second; tells when its reader has gone."""
    gone = Event()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            for part in parts[:-1]:
                connection.sendall(part)
            for _ in range(200):
                connection.sendall(parts[-1])
                time.sleep(0.1)
            return
        gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", gone
        thread.join(30)


@pytest.mark.clause("C9")
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), id="headers"),
        pytest.param((b"H", b"T"), id="a status line"),
        pytest.param((b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"{"), id="a body"),
        pytest.param((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n"), id="chunks"),
    ],
)
def test_an_answer_that_drips_is_given_up_in_time_and_its_connection_closed(
    parts: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookout_reader.fetching._TIMEOUT_S", 0.5)
    with a_dripping_server(*parts) as (base, gone):
        began = time.monotonic()
        assert fetch_with_urllib(f"{base}/liveness", {}) == NoAnswer("no answer in time")
        assert time.monotonic() - began < 5
        assert gone.wait(10)


@pytest.mark.clause("C9")
def test_a_request_under_way_keeps_no_program_from_ending() -> None:
    code = """
import asyncio, sys
from lookout_reader import poll_async

async def main():
    try:
        await asyncio.wait_for(anext(poll_async(sys.argv[1], "protocol")), 0.5)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        began = time.monotonic()
        ran = subprocess.run(
            [sys.executable, "-c", code, base], capture_output=True, text=True, check=False, timeout=60
        )
        took_s = time.monotonic() - began
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "given up\n", "")
    assert took_s < 8  # the request itself would take ten seconds
