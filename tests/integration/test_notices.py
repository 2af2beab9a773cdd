"""Notes and silences of a real service: what the commands say, what the public sees, and what outlives what."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import feedparser  # type: ignore[import-untyped]
import pytest

from tests.commands import a_command, lookout, lookout_here, said
from tests.integration.fast import CHAINS, a_world
from tests.integration.whole_service import a_service, answer
from tests.wait import until_async

TEXT = "Planned maintenance <b>of</b> the squid"


async def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Beside the event loop, which the simulated world needs."""
    return await asyncio.to_thread(lookout, folder, *arguments)


async def succeed(folder: Path, *arguments: str) -> list[str]:
    """The lines that the command prints."""
    done = await asyncio.to_thread(lookout_here, folder, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


async def fail(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """The exit code, and what the command complains of."""
    done = await asyncio.to_thread(lookout_here, folder, *arguments)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()


@pytest.mark.first
async def test_a_note_is_public_until_it_is_ended_and_outlives_a_restart_and_a_restore(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        service = a_service(tmp_path, world.base)

        async def public_notes() -> list[Any] | None:
            about = await answer(world.http, f"{service.base}/about.json")
            status = await answer(world.http, f"{service.base}/status.json")
            if about is None or status is None or len(about["notes"]) != len(status["scheduled_maintenances"]):
                return None  # not yet, or one was asked for before it changed and one after
            return [(note["id"], note["text"], note["services"], note["chains"]) for note in about["notes"]]

        async def is_public(*notes: tuple[str, str, list[str], list[int]]) -> None:
            async def it_is() -> bool:
                return await public_notes() == list(notes)

            await until_async(it_is, f"the public reads {notes}")

        async def runs() -> bool:
            return await answer(world.http, f"http://{service.monitor_admin}/readyz") is not None

        # The shell of the operator has no variable of the file: only the monitor knows them.
        secret = {"HOOK": "token"}
        with (tmp_path / "lookout.toml").open("a") as config:
            config.write('[alerts.targets]\nhook = "json://127.0.0.1:9/${HOOK}"\n[[alerts.rules]]\nfor_s = 86400\n')
        nobody = f"no monitor answers at {service.monitor_admin}, which admin.monitor names: Connection refused"
        where = "a standby cannot do this: ask on the machine of the monitor that has the store"
        assert await fail(tmp_path, "note", "list") == (1, [f"lookout: {nobody}; {where}"])
        with a_command(tmp_path, "run", "-c", "lookout.toml", **secret) as process:
            await until_async(runs, "it runs")
            await world.until(lambda: world.status_of("messaging", None) == "current/responding", "messaging was asked")
            assert await succeed(tmp_path, "note", "list") == ["there is no note"]
            assert await succeed(tmp_path, "recheck", "messaging") == ["messaging: current (asked less than 10 s ago)"]
            assert await succeed(tmp_path, "recheck", "indexer", "C137") == [
                "indexer on c137: current (asked less than 10 s ago)"
            ]
            assert await succeed(tmp_path, "reload") == [
                "reloaded lookout.toml: nothing changed",
                "  needs a restart if it was changed: $HOOK",
            ]
            no_chain = f"chain: there is no chain 'x'; there are {', '.join(f'c{each} ({each})' for each in CHAINS)}"
            assert await fail(tmp_path, "recheck", "indexer", "x") == (2, [f"lookout: {no_chain}"])
            nothing = "lookout: no source is configured for this service and chain"
            assert await fail(tmp_path, "recheck", "hosted-indexer", "11155111") == (1, [nothing])
            exit_code, (complaint,) = await fail(tmp_path, "recheck", "index")
            no_service = "lookout: service: there is no service 'index'; there are messaging, ppoi, "
            assert (exit_code, complaint.startswith(no_service)) == (2, True)
            scope = ("--service", "indexer", "--chain", "C137")
            said_of_note = [f"  {TEXT}", "  indexer on c137, from 2026-11-16 14:00 to 2027-01-01 00:00 UTC"]
            times = ("--from", "2026-11-16T14:00Z", "--until", "2027-01-01T00:00:00Z")
            assert await succeed(tmp_path, "note", "add", TEXT, *scope, *times) == ["added note 1", *said_of_note]
            first, *_ = await succeed(tmp_path, "silence", "add", "--for", "2h", "--why", "moving")
            assert first == "added silence 2"
            assert await succeed(tmp_path, "note", "list") == ["note 1", *said_of_note]
            assert (await succeed(tmp_path, "silence", "list"))[:2] == ["silence 2", "  moving"]
            await is_public(("1", TEXT, ["indexer"], [137]))
            async with world.http.get(f"{service.base}/feed.atom") as got:
                (entry,) = (each for each in feedparser.parse(await got.read()).entries if "Note: " in each.title)
            assert entry.title == f"Note: {TEXT}"
            screen = (await run(tmp_path, "watch", service.base, "--once")).stdout
            assert f"Note: {TEXT} (indexer on c137, from 2026-11-16 14:00 to 2027-01-01 00:00 UTC)" in screen
            assert "moving" not in screen
            for wrong, problems in {
                ("note", "add", "a\tb"): ["text: has to be one line that can be printed, without control characters"],
                ("silence", "add"): ["until: missing; alerts are never silenced without an end: give until or for"],
                ("silence", "add", "--for", "1h", "--chain", "7"): [
                    f"chain: there is no chain '7'; there are {', '.join(f'c{each} ({each})' for each in CHAINS)}"
                ],
                ("note", "add", "\udcff"): ["the arguments are not valid UTF-8"],
                ("silence", "end", "1"): ["id: there is no silence '1'; it is a note: lookout note end 1"],
            }.items():
                assert await fail(tmp_path, *wrong) == (2, [f"lookout: {problem}" for problem in problems])
            (tmp_path / "other.toml").write_text((tmp_path / "lookout.toml").read_text())
            exit_code, (complaint,) = await fail(tmp_path, "note", "end", "-c", "other.toml", "1")
            assert (exit_code, complaint.partition(": ")[2].partition(": ")[2]) == (
                1,
                f"the monitor has another configuration, {tmp_path}/lookout.toml; nothing was changed",
            )
            process.kill()
            process.wait()
        (tmp_path / "other.toml").unlink()
        # Killed, and then from a backup: both have it.
        for command in ("backup", "restore --force"):
            arguments = (*command.split(), "-c", "lookout.toml", "out.db")
            done = await asyncio.to_thread(lookout, tmp_path, *arguments, environment=secret)
            assert done.returncode == 0, done.stderr
        with a_command(tmp_path, "run", "-c", "lookout.toml", **secret) as process:
            await until_async(runs, "it runs again")
            await is_public(("1", TEXT, ["indexer"], [137]))
            assert (await succeed(tmp_path, "silence", "list"))[:2] == ["silence 2", "  moving"]
            ended = await succeed(tmp_path, "note", "end", "1")
            assert ended[:2] == ["ended note 1", said_of_note[0]]
            assert re.fullmatch(r"  indexer on c137, ended now, at \d\d:\d\d:\d\d UTC", ended[2])
            await is_public()
            assert (await succeed(tmp_path, "note", "add", "Slow"))[0] == "added note 3"
            await is_public(("3", "Slow", [], []))
            process.terminate()
            assert process.wait(20) == 0
    assert "Traceback" not in said(tmp_path)
