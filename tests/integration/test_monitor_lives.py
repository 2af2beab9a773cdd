"""The monitor's hard days: everything hangs, kill -9, a full disk, a clock that jumps."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lookout.app.process import configure_log
from lookout.base.instants import parse_instant
from lookout.base.logger import get_logger, set_sink
from lookout.config.file import read_config
from lookout.config.tables import LogTable
from lookout.core.ledger import Ledger, State
from lookout.core.model import Check
from lookout.documents.reports import live_document
from lookout.monitor.recorder import Recorder
from lookout.replay.replay import Replay, read_log, run_log
from lookout.state.codec import decode_state, encode_state
from lookout.store.sqlite import SqliteReader, open_writer
from tests.builders import INDEXER, MESSAGING, NOON, a_plan
from tests.commands import a_command, lookout, meanwhile, said
from tests.integration.fast import World, a_config, a_world, watched
from tests.stores import once_free
from tests.wait import until


@pytest.mark.first
@pytest.mark.clause("M3", "M5", "M6", "S1", "S2")
async def test_with_everything_hanging_the_report_goes_on_and_nothing_piles_up(tmp_path: Path) -> None:
    def in_use() -> Counter[str]:
        return Counter(
            tasks=len(asyncio.all_tasks()),
            files=len(os.listdir("/proc/self/fd")),  # noqa: PTH208  it is not a folder like others
            threads=threading.active_count(),
        )

    async with a_world(tmp_path) as world, watched(world, a_config(world.base, probe_timeout_s=1.5)):
        await world.until_healthy()
        await world.order("*", "hang")
        statuses, instants = set(), []
        until = time.monotonic() + 8
        early, late = Counter[str](), Counter[str]()  # the most there were of each, in either half
        while time.monotonic() < until or world.status_of("messaging", None) != "unavailable/unreachable":
            document = world.document()
            instants.append(parse_instant(document["generatedAt"]))
            statuses.add(world.status_of("messaging", None))
            if time.monotonic() < until - 4:
                early |= in_use()
            else:
                late |= in_use()
            await asyncio.sleep(0.1)
        statuses.add(world.status_of("messaging", None))
        assert {"unknown/unreachable", "unavailable/unreachable"} <= statuses
        all_fail = {"unavailable", "unmonitored"}
        await world.until(lambda: {row["status"] for row in world.document()["checks"]} == all_fail, "all fail")
        # A heartbeat a second, on a machine that may be busy with other tests.
        assert max(later - earlier for earlier, later in pairwise(instants)) <= 10_000
        # About fifty probes begin in a half: if each left something behind, there would be as many more.
        assert {what for what in late if late[what] > early[what] + 15} == set(), (early, late)
        await world.order("*", None)
        await world.until_healthy()


@pytest.mark.first
@pytest.mark.clause("M7", "M14", "H16")
async def test_kill_minus_nine_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        config = a_config(world.base, failures_for_unavailable=1000, ppoi_behind_s=0.5)
        (tmp_path / "lookout.toml").write_text(config)
        await world.order("ppoi/56", "lag", by=5)
        states: list[State] = []
        for life in range(30):
            with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
                if not states:
                    await world.until(lambda: world.status_of("ppoi", 56) == "catching-up/behind", "trails")
                    await world.until(lambda: world.status_of("indexer", 1) == "current/synced", "it succeeded once")
                    await world.order("squid/1", "status")
                    await world.order("waku/peers", "hang")
                else:
                    await until_published_again(world)
                await asyncio.sleep(0.4 + 0.37 * (life % 4))
                process.kill()
                process.wait()
            states.append(stored_state(tmp_path))
            # On a busy machine a life may be too short for one failed probe.
            if life >= 4 and states[-1].checks[INDEXER].memory.failures > 3:
                break
        for before, after in pairwise(states):
            check_that_nothing_was_lost(before, after)
        assert states[-1].checks[INDEXER].memory.failures > 3
        assert world.row("indexer", 1)["lastSuccessAt"] is not None
        assert world.status_of("indexer", 1) == "unknown/unreachable"


async def until_published_again(world: World) -> None:
    before = world.document()["generatedAt"]
    await world.until(lambda: bool(world.document()["generatedAt"] > before), "it goes on")


def stored_state(folder: Path) -> State:
    with closing(once_free(lambda: open_writer(folder / "lookout.db"))) as writer:
        state, _ = decode_state(writer.load())
    assert state is not None
    return state


def check_that_nothing_was_lost(before: State, after: State) -> None:
    for check, was in before.checks.items():
        now = after.checks[check]
        assert (now.row.last_success_at or 0) >= (was.row.last_success_at or 0)
        if check in (INDEXER, MESSAGING):
            assert now.memory.failures >= was.memory.failures
        if check == Check("ppoi", 56):
            assert now.memory.trailing_since_at == was.memory.trailing_since_at
    assert before.history is not None
    assert after.history is not None
    assert after.history.progress.first == before.history.progress.first
    for check, days in before.history.days.items():
        assert after.history.days[check].items() >= days.items()


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_shows_no_local_variables(form: Any, capfd: pytest.CaptureFixture[str]) -> None:
    before = set_sink(lambda _: None)
    configure_log(LogTable(format=form))
    planted = "zebra-in-the-" + "cellar"
    try:
        _ = len(planted) / 0
    except ZeroDivisionError:
        get_logger().exception("a bug")
    finally:
        set_sink(before)
    output = capfd.readouterr().err
    assert "ZeroDivisionError" in output
    assert planted not in output


def test_a_state_that_the_monitor_cannot_continue_from_is_reported_in_a_sentence(tmp_path: Path) -> None:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    with closing(open_writer(tmp_path / "lookout.db")) as writer:
        writer.write({}, encode_state(ledger.state()).documents)
    (tmp_path / "lookout.toml").write_text(
        '[admin]\nmonitor = ""\n[history]\nbucket_s = 600\n[messaging]\nurl = "http://127.0.0.1:9"\n'
    )
    assert refusal_of(tmp_path) == (
        "lookout: the stored history has buckets of 300 s, the configuration of 600 s;"
        " set history.bucket_s back, or choose another file in store.url"
    )
    with closing(sqlite3.connect(tmp_path / "lookout.db", isolation_level=None)) as store:
        store.execute("UPDATE pieces SET piece = zeroblob(length(piece)) WHERE name = 'days'")
    assert refusal_of(tmp_path) == (
        "lookout: the store is damaged: the stored document days is not what was stored;"
        " restore a backup, or begin a new store"
    )


def refusal_of(folder: Path) -> str:
    outcome = lookout(folder, "monitor", "-c", "lookout.toml")
    assert outcome.returncode == 2
    return outcome.stderr.splitlines()[-1]


def test_a_store_that_hangs_does_not_keep_the_process_from_ending(tmp_path: Path) -> None:
    program = Path(__file__).with_name("hanging_store.py")
    with meanwhile(tmp_path, sys.executable, program, tmp_path) as process:
        until((tmp_path / "hangs").exists, "the store hangs")
        process.send_signal(signal.SIGTERM)
        assert process.wait(5 + 2 + 8) == 0  # for the last write, for closing; and a slow machine
    assert [json.loads(line)["event"] for line in said(tmp_path).splitlines()] == [
        "started",
        "the last publication was not stored: the store hangs",
        "stopped",
        "the store was not closed: it hangs",
    ]


@pytest.mark.clause("M5")
async def test_a_recording_replays_to_what_was_stored(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        recorder = Recorder(tmp_path)
        recorder.record_to("log.jsonl")
        async with watched(world, a_config(world.base), recorder=recorder):
            await world.until_healthy()
            await world.order("squid/1", "lag", by=100)
            await world.until(lambda: world.status_of("indexer", 1) == "catching-up/behind", "behind")
        recorder.close()
        replay = Replay(read_config(tmp_path / "lookout.toml").plan())
        with (tmp_path / "log.jsonl").open("rb") as lines:
            run_log(read_log(lines, []), replay)
        reader = SqliteReader(tmp_path / "lookout.db")
        live = reader.read("live")
        reader.close()
        assert live is not None
        replayed = json.loads(live_document(replay.ledger.report()).body)
        assert replayed["checks"] == json.loads(live.body)["checks"]
