"""The configuration read again by a real service: under load, from files that are bad, on standby, at the start."""

import asyncio
import json
import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lookout.base.instants import parse_instant
from tests.commands import a_command
from tests.integration.fast import World, a_world
from tests.integration.reloads import reload, running, without
from tests.integration.served import HISTORY, LIVE, a_free_port
from tests.integration.whole_service import a_service, answer
from tests.wait import until_async

RELOADS = 6
GAP_MS = 8_000  # a heartbeat is a second; the machine may be busy with other tests


@pytest.mark.long
@pytest.mark.clause("M1", "M5", "M6", "M7", "A4", "A11", "H15", "H16")
async def test_reloads_under_load_delay_no_probe_and_lose_no_bucket(tmp_path: Path) -> None:
    bodies: dict[str, dict[str, bytes]] = {LIVE: {}, HISTORY: {}}  # by their ETags

    async def read_all_the_time(path: str) -> None:
        while True:
            async with service.world.http.get(service.service.base + path) as got:
                assert got.status == 200
                body = await got.read()
            assert bodies[path].setdefault(got.headers["ETag"], body) == body
            await asyncio.sleep(0)

    def documents(path: str) -> list[Any]:
        return sorted(map(json.loads, bodies[path].values()), key=lambda each: str(each["generatedAt"]))

    async with running(tmp_path) as service:
        readers = [asyncio.create_task(read_all_the_time(path)) for path in (LIVE, LIVE, HISTORY)]
        for number in range(RELOADS):
            has_it = number % 2 == 1
            service.write(service.whole if has_it else without(service.whole, 56))
            if number % 5 == 0:  # two at once
                service.process.send_signal(signal.SIGHUP)
                done = await service.command()
                assert done.exit_code == 0, done.output
            else:
                await service.hang_up()

            async def shows_in_both(there: bool = has_it) -> bool:
                newest = [documents(path)[-1] for path in (LIVE, HISTORY)]
                rows = newest[0]["checks"], newest[1]["rows"]
                return all(any(row["chainId"] == 56 for row in each) == there for each in rows)

            await until_async(shows_in_both, f"chain 56 {'returns' if has_it else 'leaves'}")
        samples = await service.samples()
        assert not any(reader.done() for reader in readers), "a reader met what must never be"
        for reader in readers:
            reader.cancel()
    delays = "lookout_scheduler_delay_seconds"
    assert samples[f"{delays}_bucket", "5.0"] == samples[f"{delays}_count",] > 20
    assert samples["lookout_probe_bugs_total",] == 0
    live = documents(LIVE)
    instants = [parse_instant(each["generatedAt"]) for each in live]
    assert max(later - earlier for earlier, later in pairwise(instants)) < GAP_MS
    assert {len(each["checks"]) for each in live} == {17, 21}
    succeeded: dict[tuple[str, int], str] = {}
    for row in (row for document in live for row in document["checks"]):
        if row["chainId"] != 56 and row["status"] != "unmonitored":
            assert row["status"] == "current"
            assert row["lastSuccessAt"] >= succeeded.get((row["service"], row["chainId"]), "")
            succeeded[row["service"], row["chainId"]] = row["lastSuccessAt"]
    for document in documents(HISTORY):
        if document["generatedAt"] >= live[0]["generatedAt"]:  # before, not every row was current
            assert len({len(row["buckets"]) for row in document["rows"]}) == 1
            for row in document["rows"]:
                assert row["chainId"] == 56 or row["buckets"].strip("c.") == "", row


async def test_a_bad_file_or_another_monitor_changes_nothing_and_everything_wrong_is_said(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        path, admin, port = tmp_path / "lookout.toml", service.service.monitor_admin, a_free_port()
        bad = {
            "[policy]\nrecheck = 30\njitter_s = -1\n": (2, ("policy.recheck: unknown key", "policy.jitter_s")),
            service.whole.replace("[history]\n", "[history]\nbucket_s = 100\n"): (
                1,
                ("history.bucket_s: the stored history has buckets of 300 s",),
            ),
            # Emptied, but for where to ask the monitor.
            f'[admin]\nmonitor = "{admin}"\n': (1, ("names nothing to watch; restart the monitor if that is meant",)),
            "": (2, ("cannot be read: No such file or directory",)),
        }
        for text, (exit_code, complaints) in bad.items():
            path.unlink()
            if text:
                path.write_text(text)
            done = await service.command()
            assert done.exit_code == exit_code, done.output
            await service.hang_up("refused")
            problems = str([line["problem"] for line in service.events("not reloaded; everything is as it was")])
            for complaint in complaints:
                assert complaint in done.stderr
                assert complaint in problems
        # The command asks no monitor to read what it cannot read itself.
        assert (await service.count("refused"), await service.count("applied")) == (6, 0)
        live = await answer(service.world.http, service.service.base + LIVE)
        assert {row["status"] for row in live["checks"]} == {"current", "unmonitored"}

        service.write(service.whole)
        other = tmp_path / "other.toml"
        cases = {
            '"127.0.0.1:0"': (2, "admin.monitor: names no port to ask; send the monitor SIGHUP instead"),
            f'"127.0.0.1:{port}"': (1, f"no monitor answers at 127.0.0.1:{port}, which admin.monitor names"),
            f'"{service.service.server_admin}"': (1, "did not reload: there are /metrics, /healthz and /readyz"),
            f'"127.0.0.1:{service.service.port}"': (1, "is not a monitor"),
            f'"{admin}"': (1, f"has another configuration, {tmp_path}/lookout.toml; nothing was read again"),
        }
        for address, (exit_code, said) in cases.items():
            text = service.whole.replace(f'monitor = "{admin}"', f"monitor = {address}")
            other.write_text(text.replace(f'server = "{service.service.server_admin}"', 'server = ""'))
            done = await asyncio.to_thread(reload, other)
            assert (done.exit_code, said in done.stderr) == (exit_code, True), (address, done.output)
            assert "Traceback" not in done.output
        assert await service.count("applied") == 0
        done = await service.command()
        assert (done.exit_code, done.output) == (0, f"reloaded {path}: nothing changed\n")


def chains_of(world: World) -> set[int | None]:
    return {row["chainId"] for row in world.document()["checks"]}


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
