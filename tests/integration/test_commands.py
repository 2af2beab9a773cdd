"""``lookout run``, ``lookout demo`` and the help, as people meet them."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest

from lookout.core.instants import parse_instant
from lookout.core.pieces import decode_state
from lookout.store.sqlite import open_writer
from tests.integration.fast import LOOKOUT, World, a_world, run
from tests.integration.served import HISTORY, LIVE, a_free_port
from tests.integration.together import Service, a_group, a_service, answer, living, until

COMMANDS = (
    "init",
    "demo",
    "run",
    "monitor",
    "serve",
    "reload",
    "probe",
    "check-config",
    "replay",
    "sim",
    "edge-config",
    "watch",
    "verify",
    "alerts",
    "backup",
    "restore",
    "completion",
)
ROWS = 21


@asynccontextmanager
async def a_running_service(folder: Path) -> AsyncIterator[tuple[World, Service, "subprocess.Popen[bytes]"]]:
    """``lookout run`` on a simulated world, once both endpoints answer."""
    async with a_world(folder) as world:
        service = a_service(folder, world.base)
        with a_group(folder, "run", "-c", "lookout.toml") as process:

            async def both_answer() -> bool:
                assert process.poll() is None, service.said
                return all([await answer(world.http, service.base + path) for path in (LIVE, HISTORY)])

            await until(both_answer, "both endpoints answer")
            yield world, service, process


async def ended(process: "subprocess.Popen[bytes]", within_s: float) -> int:
    """The exit code, once no process of the group is left."""

    async def nobody_lives() -> bool:
        return process.poll() is not None and not living(process.pid)

    await until(nobody_lives, f"all have ended: {living(process.pid)}", within_s)
    return process.wait()


def of_the_server(process: "subprocess.Popen[bytes]") -> int:
    """The process that ``run`` started to serve."""
    (pid,) = (pid for pid, command in living(process.pid).items() if "lookout.wiring.child" in command)
    return pid


def test_run_serves_every_row_and_answers_on_both_admin_ports(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_running_service(tmp_path) as (world, service, _):
            await world.until_healthy()
            live, history = [await answer(world.http, service.base + path) for path in (LIVE, HISTORY)]
            assert len(live["checks"]) == len(history["rows"]) == ROWS
            for admin in (service.monitor_admin, service.server_admin):
                assert await answer(world.http, f"http://{admin}/healthz") == {"status": "ok"}
                assert (await answer(world.http, f"http://{admin}/readyz?maxAge=10"))["ready"]

    run(scenario())


@pytest.mark.parametrize("way", ["SIGINT to the group", "SIGTERM to the parent"])
def test_run_ends_whole_and_leaves_the_store_intact(tmp_path: Path, way: str) -> None:
    async def scenario() -> None:
        async with a_running_service(tmp_path) as (world, service, process):
            if way.endswith("group"):
                os.killpg(process.pid, signal.Signals[way.split()[0]])
            else:
                process.send_signal(signal.SIGTERM)
            assert await ended(process, within_s=15) == 0, service.said
            assert len(world.document("live")["checks"]) == len(world.document("history")["rows"]) == ROWS
            with closing(open_writer(tmp_path / "lookout.db")) as writer:  # nobody holds it any more
                assert decode_state(writer.load()) is not None
            assert "Traceback" not in service.said

    run(scenario())


def test_a_killed_run_takes_its_server_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_running_service(tmp_path) as (world, service, process):
            process.kill()
            assert await ended(process, within_s=15) == -signal.SIGKILL
            assert await answer(world.http, service.base + LIVE) is None
            assert len(world.document("live")["checks"]) == ROWS

    run(scenario())


def test_run_starts_a_server_that_was_killed_again_and_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_running_service(tmp_path) as (world, service, process):
            killed = of_the_server(process)
            os.kill(killed, signal.SIGKILL)

            async def answers_again() -> bool:
                others = [pid for pid, command in living(process.pid).items() if "lookout.wiring.child" in command]
                return others not in ([], [killed]) and await answer(world.http, service.base + LIVE) is not None

            await until(answers_again, "another server answers")
            assert "the server ended; starting it again" in service.said
            process.send_signal(signal.SIGTERM)
            assert await ended(process, within_s=15) == 0, service.said
            assert "Traceback" not in service.said

    run(scenario())


def test_run_reads_its_configuration_once_also_from_a_pipe(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            service = a_service(tmp_path, world.base)
            text = (tmp_path / "lookout.toml").read_bytes()
            os.mkfifo(tmp_path / "pipe.toml")
            with a_group(tmp_path, "run", "-c", "pipe.toml") as process:
                (tmp_path / "pipe.toml").write_bytes(text)

                async def answers() -> bool:
                    assert process.poll() is None, service.said
                    return await answer(world.http, service.base + LIVE) is not None

                await until(answers, "the server listens where the file says")
                process.send_signal(signal.SIGTERM)
                assert await ended(process, within_s=15) == 0, service.said

    run(scenario())


def test_run_says_in_a_sentence_that_its_port_is_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            service = a_service(tmp_path, world.base)
            with socket.create_server(("127.0.0.1", service.port)), a_group(tmp_path, "run", "-c", "lookout.toml") as p:
                assert await ended(p, within_s=10) == 2
            lines = [line for line in service.said.splitlines() if line.startswith("lookout: ")]
            assert lines == [f"lookout: server.listen: 127.0.0.1:{service.port}: Address already in use"]
            assert "Traceback" not in service.said

    run(scenario())


def test_run_says_everything_that_is_wrong_with_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text('[server]\nlisten = "nowhere"\nworkers = 0\n[log]\nlevel = "loud"\n')
    ran = told("run", "-c", "lookout.toml", folder=tmp_path)
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) >= 3
    for line, key in zip(
        sorted(ran.stderr.splitlines()), ("log.level", "server.listen", "server.workers"), strict=True
    ):
        assert line.startswith("lookout: ")
        assert key in line


def told(*arguments: str, folder: Path, within_s: float = 10) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [LOOKOUT, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=within_s
    )


def test_demo_shows_a_fortnight_goes_on_and_leaves_nothing(tmp_path: Path) -> None:
    """The only test that lives through the whole fortnight: about half a minute of CPU."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    base = f"http://127.0.0.1:{a_free_port()}"

    async def scenario() -> None:
        async with aiohttp.ClientSession() as http:
            with a_group(tmp_path, "demo", "--listen", base.partition("//")[2], TMPDIR=str(temporary)) as process:
                said = tmp_path / "said.log"

                async def answers() -> bool:
                    assert process.poll() is None, said.read_text()
                    return f"{base}{LIVE}" in said.read_text() and await answer(http, base + LIVE) is not None

                await until(answers, "it answers, and says where", within_s=150)  # alone, a third of a minute
                live, history = await answer(http, base + LIVE), await answer(http, base + HISTORY)
                assert len(live["checks"]) == len(history["rows"]) == ROWS
                assert {len(row["buckets"]) for row in history["rows"]} == {4033}
                begin, end = (parse_instant(history[key].replace("Z", ".000Z")) for key in ("from", "to"))
                assert end - begin == 14 * 86_400_000
                assert sum(bool(set(row["buckets"]) & set("kdu")) for row in history["rows"]) >= 5
                for admin in re.findall(r"http://[0-9.:]+/metrics", said.read_text()):
                    async with http.get(admin) as metrics:
                        assert metrics.status == 200

                async def goes_on() -> bool:
                    return bool((await answer(http, base + LIVE))["generatedAt"] > live["generatedAt"])

                await until(goes_on, "generatedAt advances", within_s=40)
                assert [path.name.startswith("lookout-demo-") for path in temporary.iterdir()] == [True]
                os.killpg(process.pid, signal.SIGINT)
                assert await ended(process, within_s=15) == 0, said.read_text()
                assert list(temporary.iterdir()) == []
                assert "Traceback" not in said.read_text()

    run(scenario())


def test_demo_says_at_once_that_its_address_cannot_be_used(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = told("demo", "--listen", address, folder=tmp_path)
        assert (ran.returncode, ran.stderr) == (2, f"lookout: --listen: {address}: Address already in use\n")
    for garbage in ("nonsense", "127.0.0.1", "127.0.0.1:99999", ""):
        ran = told("demo", "--listen", garbage, folder=tmp_path)
        assert (ran.returncode, ran.stderr) == (2, f"lookout: --listen: {garbage!r} is not HOST:PORT\n")


def test_help_has_a_line_for_each_command_and_each_has_help_of_its_own(tmp_path: Path) -> None:
    ran = told("--help", folder=tmp_path)
    _, _, commands = ran.stdout.partition("Commands:\n")
    lines = [line.split(maxsplit=1) for line in commands.splitlines()]
    assert tuple(line[0] for line in lines) == COMMANDS
    assert all(len(line) == 2 and not line[1].endswith("...") for line in lines), commands
    for command in COMMANDS:
        own = told(command, "-h", folder=tmp_path)
        assert (own.returncode, own.stderr) == (0, "")
        assert own.stdout.startswith(f"Usage: lookout {command} ")
