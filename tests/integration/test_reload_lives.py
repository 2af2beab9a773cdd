"""The configuration read again at bad moments: at the start, on standby, before a crash, while the store hangs."""

import asyncio
import fcntl
import os
import signal
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lookout.documents.document import DocumentName
from tests.commands import LOOKOUT, a_command, living
from tests.integration.fast import World, a_world
from tests.integration.metrics import scrape
from tests.integration.reloads import running, without
from tests.integration.served import LIVE
from tests.integration.whole_service import a_service, answer
from tests.wait import until_async


def chains_of(world: World, document: DocumentName = "live") -> set[int | None]:
    rows = world.document(document)["checks" if document == "live" else "rows"]
    return {row["chainId"] for row in rows}


def buckets_of(world: World, chain_id: int) -> str:
    """Of a chain's indexer, those that have ended."""
    (buckets,) = (
        row["buckets"][:-1]
        for row in world.document("history")["rows"]
        if (row["service"], row["chainId"]) == ("indexer", chain_id)
    )
    return str(buckets)


@pytest.mark.long
@pytest.mark.clause("H15", "H16", "M7")
@pytest.mark.parametrize("after_s", [0.3, *(pytest.param(each, marks=pytest.mark.long) for each in (0, 0.6))])
async def test_a_monitor_killed_right_after_a_reload_has_stored_one_state_or_the_other(
    tmp_path: Path, after_s: float
) -> None:
    async with running(tmp_path, "monitor", "bucket_s = 1\ncounts_from_s = 0.5\n") as service:
        world = service.world
        await world.until(lambda: buckets_of(world, 56).count("c") > 2, "some buckets ended")
        before = world.document("history")["from"], buckets_of(world, 56)
        succeeded = {(row["service"], row["chainId"]): row["lastSuccessAt"] for row in world.document()["checks"]}
        service.write(without(service.whole, 56))
        await service.hang_up()
        await asyncio.sleep(after_s)
        service.process.kill()
        service.process.wait()
        assert chains_of(world) in ({None, 1, 42161, 137, 11155111}, {None, 1, 42161, 137, 56, 11155111})
        killed_at = world.document()["generatedAt"]
        with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
            await world.until(lambda: world.document()["generatedAt"] > killed_at, "it runs again")
            await world.until(lambda: 56 not in chains_of(world) | chains_of(world, "history"), "it is gone")
            for row in world.document()["checks"]:
                assert (row["lastSuccessAt"] or "") >= (succeeded[row["service"], row["chainId"]] or "")
            ended = len(buckets_of(world, 1))
            await world.until(lambda: len(buckets_of(world, 1)) > ended + 2, "buckets end without it")
            service.write(service.whole)
            process.send_signal(signal.SIGHUP)
            await world.until(
                lambda: 56 in chains_of(world) and world.status_of("indexer", 56) == "current/synced", "it is back"
            )
            await world.until(lambda: 56 in chains_of(world, "history"), "there too")
        assert world.document("history")["from"] == before[0]
        assert buckets_of(world, 56).startswith(before[1])
        assert "-" in buckets_of(world, 56)[len(before[1]) :]


async def test_a_standby_that_reloads_takes_over_with_the_new_file(tmp_path: Path) -> None:
    async with running(tmp_path, "monitor") as service:
        with a_command(tmp_path, "monitor", "-c", "lookout.toml") as standby:
            await until_async(lambda: bool(service.events("waiting for the other monitor to end")), "one stands by")
            service.write(without(service.whole, 56))
            standby.send_signal(signal.SIGHUP)
            await until_async(lambda: bool(service.events("reloaded")), "it has read the file")
            service.write(service.whole)  # without a signal to read it
            assert 56 in chains_of(service.world)
            service.process.kill()
            service.process.wait()
            await service.world.until(lambda: 56 not in chains_of(service.world), "it took over")


def hang_ups_are(pid: int, *kinds: str) -> bool:
    """Whether SIGHUP is blocked, caught or ignored by a process."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return any(int(status[kind], 16) & 1 for kind in kinds)


async def test_hang_ups_while_it_starts_end_nothing_and_the_last_file_counts(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        service = a_service(tmp_path, world.base)
        path = tmp_path / "lookout.toml"
        whole = path.read_text().replace("chains = [1, 42161, 137, 56, 11155111]", "chains = [1]")
        path.unlink()
        os.mkfifo(path)
        with a_command(tmp_path, "run", "-c", "lookout.toml") as process:
            await until_async(lambda: hang_ups_are(process.pid, "SigBlk", "SigCgt"), "SIGHUP can come")
            process.send_signal(signal.SIGHUP)
            await asyncio.to_thread(path.write_text, whole)  # which it waits for
            path.unlink()
            for number in range(200):
                path.write_text(without(whole, 137) if number % 2 else whole)
                process.send_signal(signal.SIGHUP)
                if world.document() is not None:
                    break
                await asyncio.sleep(0.02)
            path.write_text(without(whole, 56))
            process.send_signal(signal.SIGHUP)
            await world.until(lambda: chains_of(world) == {None, 1, 42161, 137, 11155111}, "the last file counts")
            assert process.poll() is None
            assert "Traceback" not in service.said


@contextmanager
def in_a_terminal(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """``lookout run`` as the first process of a terminal, and the terminal's other end."""
    outer, inner = os.openpty()
    process = subprocess.Popen(
        [LOOKOUT, "run", "-c", "lookout.toml"],
        cwd=folder,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(inner)
    try:
        yield process, outer
    finally:
        for pid in living(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()


@pytest.mark.long
async def test_run_outlives_its_terminal_and_so_does_its_server(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        service = a_service(tmp_path, world.base)
        with in_a_terminal(tmp_path) as (process, terminal):

            async def answers() -> bool:
                return await answer(world.http, service.base + LIVE) is not None

            await until_async(answers, "it answers", 60)
            os.set_blocking(terminal, False)
            before = living(process.pid)
            path = tmp_path / "lookout.toml"
            path.write_text(path.read_text().replace("[messaging]", '[messaging]\nheaders = {a = "b"}'))
            os.close(terminal)

            async def reloaded() -> bool:
                samples = await scrape(world.http, service.monitor_admin)
                return samples["lookout_reloads_total", "applied"] >= 1

            await until_async(reloaded, "the closed terminal is a reload")
            os.killpg(process.pid, signal.SIGHUP)  # as a shell does with its jobs
            assert [pid for pid in before if pid != process.pid and not hang_ups_are(pid, "SigIgn")] == []
            report = await answer(world.http, service.base + LIVE)
            await world.until(lambda: world.document()["generatedAt"] > report["generatedAt"], "it goes on")
            assert await answers()
            assert living(process.pid) == before
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 30) == 0
