"""What the processes of a server share, and what the admin port shows of it."""

import multiprocessing
import os
import re
import signal
import socket
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

import pytest
from prometheus_client import CollectorRegistry

from lookout.app.admin import ServerInstruments
from lookout.base.admin_port import Readiness, process_registry
from lookout.server.connection import Connection, HttpServer, Limits
from lookout.server.replies import Responder, convenience_resource
from lookout.server.request import Callers, parse_head
from lookout.server.shared import Counts, Limiter
from lookout.server.site import (
    NO_TIMED_REPLIES,
    TimedReplies,
    build_asset_routes,
    build_description_routes,
)
from tests.builders import NOON, SECOND
from tests.descriptions import a_description
from tests.integration.raw import Answer, a_request, parsed
from tests.unit.server.fakes import FakeReader, SetClock, a_poller

PAGE: Final = Path(__file__).parent.parent.parent.parent / "docs" / "operations.md"
CALLERS: Final = Callers(("10.0.0.0/8",))
SPAWN: Final = multiprocessing.get_context("spawn")


def count_and_stay(counts: Counts, process: int, times: int, seen_ms: int, generated_at: int, done: Event) -> None:
    own = counts.attach(process)
    for _ in range(times):
        own.count("live", 200)
    own.mark_present(seen_ms, generated_at)
    own.count_store_error()
    done.set()
    signal.pause()


def test_the_counts_of_all_processes_add_up_also_of_dead_ones_whose_rows_are_taken_over() -> None:
    counts = Counts(2)
    alive = [start(counts, process, times, 1_000, NOON) for process, times in enumerate((3, 4))]
    assert counts.summarize(1_000).requests["live", 200] == 7
    assert counts.summarize(1_000).generated_at == (NOON, NOON)
    kill(alive[0])
    alive[0] = start(counts, 0, 5, 2_000, NOON + 1)
    summary = counts.summarize(2_000)
    assert (summary.requests["live", 200], summary.store_errors) == (12, 3)
    assert summary.generated_at == (NOON + 1, NOON)
    assert sum(summary.requests.values()) == 12
    for process in alive:
        kill(process)
    assert counts.summarize(2_000).requests["live", 200] == 12


def start(
    counts: Counts, process: int, times: int, seen_ms: int, generated_at: int
) -> multiprocessing.process.BaseProcess:
    done = SPAWN.Event()
    arguments = (counts, process, times, seen_ms, generated_at, done)
    started = SPAWN.Process(target=count_and_stay, args=arguments, daemon=True)
    started.start()
    assert done.wait(30)
    return started


def kill(process: multiprocessing.process.BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(10)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  it is not a folder like others


def test_shared_memory_that_nobody_has_any_more_leaves_no_file_open() -> None:
    files = open_files()
    for _ in range(20):
        Limiter(3, 60_000)
        Counts(1)
    assert open_files() <= files


def test_a_process_not_seen_for_five_seconds_is_gone_but_what_it_counted_is_not() -> None:
    counts = Counts(1)
    own = counts.attach()
    own.count("history", 304)
    assert counts.summarize(1_000).generated_at == (), "it has not been seen yet"
    own.mark_present(1_000, None)
    own.count_store_error()
    assert counts.summarize(5_999).generated_at == (None,)
    assert counts.summarize(6_000).generated_at == ()
    assert counts.summarize(6_000).requests["history", 304] == 1
    assert counts.summarize(6_000).store_errors == 1


@pytest.mark.parametrize(
    ("generated_at", "max_age_s", "expected"),
    [
        pytest.param((), None, Readiness(False, "0 of 1 processes are there", None), id="no process"),
        pytest.param((None,), None, Readiness(False, "no live report was loaded yet", None), id="no report"),
        pytest.param((NOON,), None, Readiness(True, "the live report is served", 10.0), id="a report of any age"),
        pytest.param((NOON,), 10, Readiness(True, "the live report is served", 10.0), id="just young enough"),
        pytest.param(
            (NOON, None),
            None,
            Readiness(False, "no live report was loaded yet", None),
            id="a report in one process only",
        ),
        pytest.param(
            (NOON + SECOND, NOON), 9, Readiness(False, "the live report is older than 9 s", 10.0), id="the oldest tells"
        ),
        pytest.param((NOON,), 9, Readiness(False, "the live report is older than 9 s", 10.0), id="too old"),
        pytest.param(
            (NOON + 20 * SECOND,), 1, Readiness(True, "the live report is served", 0.0), id="from a clock set back"
        ),
    ],
)
def test_a_server_is_ready_when_its_processes_have_a_report_that_is_young_enough(
    generated_at: tuple[int | None, ...], max_age_s: float | None, expected: Readiness
) -> None:
    clock, counts = SetClock(), Counts(max(1, len(generated_at)))
    clock.wall = NOON + 10 * SECOND
    for process, at in enumerate(generated_at):
        counts.attach(process).mark_present(clock.elapsed, at)
    assert ServerInstruments(CollectorRegistry(), counts, clock).readiness(max_age_s) == expected


def ask(responder: Responder, method: str, path: str, peer: str = "1.1.1.1", *headers: str) -> Answer:
    with socket.socket() as nobody:
        connection = Connection(HttpServer(nobody, responder, Limits(1), CALLERS), CALLERS.look_up(peer))
    return parsed(b"".join(responder.answer(parse_head(a_request(method, path, *headers)), connection)))


@pytest.mark.clause("E2", "E6")
def test_it_counts_by_route_and_code_and_refuses_a_caller_that_asks_too_often() -> None:
    clock, store, counts = SetClock(), FakeReader(), Counts(1)
    store.put("live", b"live")
    poller = a_poller(store, clock)
    responder = Responder(poller, poller.site.paths, CALLERS, Limiter(3, 60_000), counts.attach(), clock)
    poller.poll()
    live, history = poller.site.paths

    def code(method: str, path: str, peer: str = "1.1.1.1", forwarded: str = "") -> int:
        headers = ["If-None-Match: *"] * (method == "GET") + [f"X-Forwarded-For: {forwarded}"] * bool(forwarded)
        return ask(responder, method, path, peer, *headers).http_code

    assert [code(method, live) for method in ("GET", "HEAD", "OPTIONS", "HEAD", "POST")] == [304, 200, 204, 429, 429]
    assert code("HEAD", history) == 503, "the other path counts for itself"
    assert [code("GET", "/elsewhere") for _ in range(5)] == [404] * 5, "other paths have no limit"
    assert code("HEAD", live, "2.2.2.2") == 200, "another caller"
    assert code("HEAD", live, "1.1.1.1", "3.3.3.3") == 429, "a stranger's header is not believed"
    assert code("HEAD", live, "10.1.1.1", "1.1.1.1") == 429, "a trusted proxy's is"
    assert code("HEAD", live, "10.1.1.1", "3.3.3.3") == 200
    clock.elapsed += 59_001
    assert dict(ask(responder, "HEAD", live).headers)["retry-after"] == "1", (
        "seconds are rounded up: who waits for them is let in"
    )
    clock.elapsed += 999
    assert code("HEAD", live) == 200
    counted = {key: number for key, number in counts.summarize(clock.elapsed).requests.items() if number}
    assert counted == {
        ("live", 200): 4,
        ("live", 204): 1,
        ("live", 304): 1,
        ("live", 429): 5,
        ("history", 503): 1,
        ("other", 404): 5,
    }


@pytest.mark.clause("E1", "E2")
def test_the_operators_own_routes_count_together_and_for_nothing_else() -> None:
    clock, store, counts = SetClock(), FakeReader(), Counts(1)
    store.put("live", b"live")
    own = build_description_routes("protocol", a_description()) | build_asset_routes(
        {f"/assets/{name}.js": ("text/javascript", b"") for name in "ab"}
    )

    def feeds(*_: object) -> TimedReplies:
        return NO_TIMED_REPLIES._replace(ready={"/": convenience_resource("text/html", b"")})

    poller = a_poller(store, clock, others=own, feeds=feeds)
    responder = Responder(poller, poller.site.paths, CALLERS, Limiter(3, 60_000), counts.attach(), clock)
    poller.poll()

    def code(method: str, path: str, peer: str = "1.1.1.1") -> int:
        return ask(responder, method, path, peer).http_code

    asked = (("GET", "/"), ("HEAD", "/openapi.json"), ("OPTIONS", "/schemas/history.json"), ("GET", "/"))
    assert [code(*each) for each in asked] == [200, 200, 204, 429]
    assert code("POST", "/schemas/liveness.json") == 429
    assert code("GET", "/nowhere") == 404
    assert code("GET", "/", "2.2.2.2") == 200
    assert [code("GET", poller.site.paths[0]) for _ in range(4)] == [200, 200, 200, 429], (
        "an endpoint counts for itself"
    )
    assert [code("GET", "/assets/a.js") for _ in range(4)] == [200, 200, 200, 429], "and so does a file of the page"
    assert code("GET", "/assets/b.js") == 200
    assert counts.summarize(clock.elapsed).requests["other", 429] == 3


def test_the_page_has_every_metric_of_the_server_with_its_kind_and_labels_and_no_other() -> None:
    clock, counts, registry = SetClock(), Counts(1), process_registry()
    ServerInstruments(registry, counts, clock)
    own = counts.attach()
    own.count("live", 200)
    own.mark_present(clock.elapsed, NOON)
    measured = {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            {label for sample in family.samples for label in sample.labels},
        )
        for family in registry.collect()
    }
    common = {name for name in measured if not name.startswith("lookout_")}
    section = PAGE.read_text(encoding="utf-8").partition("## Metrics of the server\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|(.*?)\| .+ \|$", section, flags=re.MULTILINE)
    told = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert told == {name: of for name, of in measured.items() if name not in common}
    assert {name.partition("_")[0] for name in common} == {"process", "python"}
