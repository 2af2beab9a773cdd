"""The monitor's hard days: everything hangs, kill -9, a full disk, a clock that jumps, secrets."""

import asyncio
import json
import os
import resource
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
import structlog

from lookout.app.log import configure_log
from lookout.base.clock import SystemClock
from lookout.base.instants import parse_instant
from lookout.config.file import read_config
from lookout.config.tables import Log
from lookout.documents.reports import live_document
from lookout.monitor.recorder import LogFile, Recorder
from lookout.replay.replay import Replay, read_log, run_log
from lookout.state.codec import decode_state
from lookout.store.sqlite.writer import SqliteReader, open_writer
from tests.commands import LOOKOUT, SAID, a_command, lookout, meanwhile, said
from tests.integration.fast import World, a_config, a_world, run, watched
from tests.stores import once_free
from tests.wait import until, until_async


class JumpingClock(SystemClock):
    """The system's clocks, but the wall clock can be set."""

    set_by_ms = 0

    def now(self) -> int:
        return super().now() + self.set_by_ms


@pytest.mark.clause("M3", "M5", "M6", "S1", "S2")
def test_with_everything_hanging_the_report_goes_on_and_nothing_piles_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world, watched(world, a_config(world.base)):
            await world.until_healthy()
            await world.order("*", "hang")
            statuses, instants = set(), []
            until = time.monotonic() + 8
            early, late = Counter[str](), Counter[str]()  # the most there were of each, in either half
            while time.monotonic() < until:
                document = world.document()
                instants.append(parse_instant(document["generatedAt"]))
                statuses.add(world.told("messaging", None))
                if time.monotonic() < until - 4:
                    early |= in_use()
                else:
                    late |= in_use()
                await asyncio.sleep(0.1)
            assert {"unknown/unreachable", "unavailable/unreachable"} <= statuses
            assert {row["status"] for row in world.document()["checks"]} == {"unavailable", "unmonitored"}
            # A heartbeat a second, on a machine that may be busy with other tests.
            assert max(later - earlier for earlier, later in pairwise(instants)) <= 3_000
            # About fifty probes begin in a half: if each left something behind, there would be as many more.
            assert {what for what in late if late[what] > early[what] + 15} == set(), (early, late)
            await world.order("*", None)
            await world.until_healthy()

    def in_use() -> Counter[str]:
        return Counter(
            tasks=len(asyncio.all_tasks()),
            files=len(os.listdir("/proc/self/fd")),  # noqa: PTH208  it is not a folder like others
            threads=threading.active_count(),
        )

    run(scenario())


@pytest.mark.first
@pytest.mark.clause("M7", "M14", "H16")
def test_kill_minus_nine_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            config = a_config(world.base, failures_for_unavailable=1000, ppoi_behind_s=0.5)
            (tmp_path / "lookout.toml").write_text(config)
            await world.order("ppoi/56", "lag", by=5)
            success: dict[tuple[str, int | None], str] = {}
            after: dict[str, Any] = {}
            for life in range(20):
                with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
                    if life == 0:
                        await world.until(lambda: world.told("ppoi", 56) == "catching-up/behind", "trails", 20)
                        await world.order("squid/1", "status")
                        await world.order("waku/peers", "hang")
                    await asyncio.sleep(1.2 + 0.37 * (life % 4))
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                before = stored(tmp_path)
                report = world.document()
                with a_command(tmp_path, "monitor", "-c", "lookout.toml"):
                    await until_later(world, report["generatedAt"])
                    await asyncio.sleep(0.3)
                after = stored(tmp_path)
                for check, memory in before["memories"].items():
                    assert after["memories"][check].failures >= memory.failures or check[0] not in (
                        "indexer",
                        "messaging",
                    )
                    assert after["memories"][check].trailing_since_at == memory.trailing_since_at or check != (
                        "ppoi",
                        56,
                    )
                assert after["first"] == before["first"]
                assert after["days"].items() >= before["days"].items()
                for row in world.document()["checks"]:
                    known = success.get((row["service"], row["chainId"]))
                    assert known is None or row["lastSuccessAt"] >= known
                    if row["lastSuccessAt"] is not None:
                        success[row["service"], row["chainId"]] = row["lastSuccessAt"]
                # On a busy machine a life may be too short for one failed probe.
                if life >= 3 and after["memories"]["indexer", 1].failures > 3:
                    break
                await asyncio.sleep(0.1)
            assert world.row("indexer", 1)["lastSuccessAt"] is not None
            assert world.told("indexer", 1) == "unknown/unreachable"
            assert after["memories"]["indexer", 1].failures > 3

    run(scenario())


async def until_later(world: World, at: str) -> None:
    await world.until(lambda: bool(world.document()["generatedAt"] > at), f"a report after {at}", 20)


def stored(folder: Path) -> dict[str, Any]:
    writer = once_free(lambda: open_writer(folder / "lookout.db"))
    state = decode_state(writer.load())
    writer.close()
    assert state is not None
    assert state.history is not None
    return {
        "memories": {tuple(entry.row.check): entry.memory for entry in state.checks.values()},
        "first": state.history.progress.first,
        "days": {
            (check, day): characters for check, days in state.history.days.items() for day, characters in days.items()
        },
    }


@pytest.mark.clause("M12", "H16")
@pytest.mark.parametrize("hours", [1, -1])
def test_after_a_jump_of_the_clock_the_report_is_soon_right_again(hours: int, tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = JumpingClock()
        async with a_world(tmp_path, clock.now) as world:
            # Slow enough that nothing would be probed again in time but for the jump.
            config = a_config(world.base, recheck_s=60, backoff_cap_s=60)
            async with watched(world, config, clock):
                await world.until_healthy()
                clock.set_by_ms = hours * 3_600_000
                now = clock.now()
                await world.until(
                    lambda: all(
                        row["observedAt"] is None or abs(parse_instant(row["observedAt"]) - now) < 60_000
                        for row in world.document()["checks"]
                    ),
                    "everything probed again",
                    within_s=0.5 + 0.1 + 1.5 + 1 + 2,  # to be noticed, jitter, probe, publication; and a slow machine
                )
                await world.until_healthy()
                history = world.document("history")
                lengths = {len(row["buckets"]) for row in history["rows"]}
                assert len(lengths) == 1

    run(scenario())


def test_a_full_disk_stops_neither_the_probes_nor_the_store_for_good(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            (tmp_path / "lookout.toml").write_text(a_config(world.base))
            with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
                await world.until_healthy()
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (8_192, resource.RLIM_INFINITY))
                stuck = await until_stuck(world)
                assert process.poll() is None
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                await world.until(lambda: world.document()["generatedAt"] > stuck, "stored again")
                await world.until_healthy()
                process.send_signal(signal.SIGTERM)
                assert process.wait(10) == 0
            log = said(tmp_path)
            assert "not stored; trying again with every publication" in log
            assert "stored again" in log
            assert "Traceback" not in log

    async def until_stuck(world: World) -> str:
        while True:
            before = world.document()["generatedAt"]
            await asyncio.sleep(2.5)
            if world.document()["generatedAt"] == before:
                return str(before)

    run(scenario())


def test_secrets_show_nowhere(tmp_path: Path) -> None:
    secret = "zebra-in-the-cellar"  # noqa: S105  the very thing to look for

    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            config = a_config(world.base.replace("http://", "http://user:${KEY}@"))
            config = config.replace("/graphql", "/graphql?key=${KEY}").replace(
                "[messaging]", "[messaging]\nheaders = {Authorization = 'Bearer ${KEY}'}"
            )
            config += "[monitor]\nrecord = 'log.jsonl'\n"
            (tmp_path / "lookout.toml").write_text(config.replace("[log]\n", '[log]\nlevel = "debug"\n'))
            await world.order("*", "status", code=403)
            environment = os.environ | {"KEY": secret}
            told, record = b"", tmp_path / "log.jsonl"
            for command in ("check-config", "probe", "monitor"):
                process = await asyncio.create_subprocess_exec(
                    *(LOOKOUT, command, "-c", "lookout.toml"),
                    cwd=tmp_path,
                    env=environment,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
                if command == "monitor":
                    await until_async(lambda: record.exists() and b"HTTP 403" in record.read_bytes(), "it is recorded")
                    process.send_signal(signal.SIGTERM)
                output, _ = await process.communicate()
                told += output
            assert b"HTTP 403" in told
            outputs.append(told)

    outputs: list[bytes] = []
    run(scenario())
    outputs += [path.read_bytes() for path in tmp_path.iterdir() if path.name != "lookout.toml"]
    assert len(outputs) > 3
    assert not any(secret.encode() in output for output in outputs)


@pytest.mark.parametrize("where", ["log", "record"])
def test_neither_a_log_nor_a_record_that_cannot_be_written_ends_the_monitor(where: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            record = '[monitor]\nrecord = "/dev/full"\n' if where == "record" else ""
            (tmp_path / "lookout.toml").write_text(a_config(world.base) + record)
            if where == "log":
                (tmp_path / SAID).symlink_to("/dev/full")
            with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
                await world.until_healthy()
                await world.order("squid/1", "lag", by=100)
                await world.until(lambda: world.told("indexer", 1) == "catching-up/behind", "it goes on")
                process.send_signal(signal.SIGTERM)
                assert process.wait(10) == 0

    run(scenario())
    if where == "record":
        log = said(tmp_path)
        assert log.count("not recorded") == 1
        assert "Traceback" not in log


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_shows_no_local_variables(form: Any, capfd: pytest.CaptureFixture[str]) -> None:
    configure_log(Log(format=form))
    planted = "zebra-in-the-" + "cellar"
    try:
        _ = len(planted) / 0
    except ZeroDivisionError:
        structlog.get_logger().exception("a bug")
    finally:
        structlog.reset_defaults()
    told = capfd.readouterr().err
    assert "ZeroDivisionError" in told
    assert planted not in told


def test_a_second_monitor_waits_for_the_first_to_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            (tmp_path / "lookout.toml").write_text(a_config(world.base))
            with a_command(tmp_path, "monitor", "-c", "lookout.toml") as first:
                await world.until_healthy()
                with a_command(tmp_path, "monitor", "-c", "lookout.toml") as second:
                    await world.until(lambda: "waiting for the other monitor to end" in said(tmp_path), "it waits")
                    first.kill()
                    at = world.document()["generatedAt"]
                    await world.until(lambda: world.document()["generatedAt"] > at, "the second goes on")
                    second.send_signal(signal.SIGINT)
                    assert second.wait(10) == 0

    run(scenario())


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(lambda path: path.write_bytes(b"no database" * 200), "file is not a database", id="no database"),
        pytest.param(lambda path: path.mkdir(), "is not a file", id="a folder"),
    ],
)
def test_a_store_that_cannot_be_used_is_told_in_a_sentence(spoil: Any, reason: str, tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text("")
    spoil(tmp_path / "lookout.db")
    outcome = lookout(tmp_path, "monitor", "-c", "lookout.toml")
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("lookout: ")
    assert reason in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_state_that_cannot_be_gone_on_from_is_told_in_a_sentence(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world, watched(world, a_config(world.base)):
            await world.until_healthy()

    run(scenario())
    path = tmp_path / "lookout.toml"
    path.write_text(path.read_text().replace("[history]", "[history]\nbucket_s = 600"))
    assert told_at_the_start(path) == (
        "lookout: the stored history has buckets of 300 s, the configuration of 600 s;"
        " set history.bucket_s back, or choose another file in store.url\n"
    )
    with closing(sqlite3.connect(tmp_path / "lookout.db", isolation_level=None)) as store:
        store.execute("UPDATE pieces SET piece = CAST(replace(piece, 'current', 'unknown') AS BLOB)")
    assert told_at_the_start(path) == (
        "lookout: the store is damaged: the stored pieces are not what was stored; restore a backup, or begin a new"
        " store\n"
    )


def told_at_the_start(config: Path) -> str:
    outcome = lookout(config.parent, "monitor", "-c", config)
    assert outcome.returncode == 2
    return outcome.stderr


def test_a_store_that_hangs_does_not_keep_the_process_from_ending(tmp_path: Path) -> None:
    program = Path(__file__).with_name("hanging_store.py")
    with meanwhile(tmp_path, sys.executable, program, tmp_path) as process:
        until((tmp_path / "hangs").exists, "the store hangs")
        process.send_signal(signal.SIGTERM)
        assert process.wait(5 + 2 + 8) == 0  # for the last write, for closing; and a slow machine
    told = [json.loads(line) for line in said(tmp_path).splitlines()]
    assert [line["event"] for line in told] == [
        "started",
        "the last publication was not stored: the store hangs",
        "stopped",
        "the store was not closed: it hangs",
    ]


@pytest.mark.clause("M5")
def test_a_recording_replays_to_what_was_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            recorder = Recorder(LogFile(tmp_path / "log.jsonl", 10_000_000))
            async with watched(world, a_config(world.base), recorder=recorder):
                await world.until_healthy()
                await world.order("squid/1", "lag", by=100)
                await world.until(lambda: world.told("indexer", 1) == "catching-up/behind", "behind")
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

    run(scenario())
