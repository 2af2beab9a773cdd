"""``lookout run``, ``lookout demo`` and the help, as people meet them."""

import os
import resource
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from lookout.base.url import host_and_port
from lookout.cli import main
from lookout.config.file import read_config
from tests.commands import LOOKOUT, a_command, is_alive, living, lookout, said
from tests.integration.fast import World, a_world
from tests.integration.served import HISTORY, LIVE, a_free_port
from tests.integration.whole_service import Service, a_service, answer
from tests.wait import until_async

COMMANDS = (
    "init",
    "demo",
    "run",
    "monitor",
    "serve",
    "reload",
    "recheck",
    "probe",
    "coverage",
    "check-config",
    "replay",
    "sim",
    "edge-config",
    "watch",
    "verify",
    "alerts",
    "silence",
    "note",
    "backup",
    "restore",
    "completion",
)
ROWS = 21


@asynccontextmanager
async def a_running_service(
    folder: Path,
) -> AsyncIterator[tuple[World, Service, "subprocess.Popen[bytes]"]]:
    """``lookout run`` on a simulated world, once both endpoints answer."""
    async with a_world(folder) as world:
        service = a_service(folder, world.base)
        with a_command(folder, "run", "-c", "lookout.toml") as process:

            async def both_answer() -> bool:
                assert process.poll() is None, service.said
                return all([await answer(world.http, service.base + path) for path in (LIVE, HISTORY)])

            await until_async(both_answer, "both endpoints answer")
            yield world, service, process


async def wait_for_end(process: "subprocess.Popen[bytes]", within_s: float) -> int:
    """The exit code, once neither it nor a process that it started is left."""
    started = living(process.pid)

    def all_ended() -> bool:
        return process.poll() is not None and not any(map(is_alive, started))

    await until_async(all_ended, f"all have ended: {started}", within_s)
    return process.wait()


def servers_of(process: "subprocess.Popen[bytes]") -> list[int]:
    """The processes that ``run`` started to serve."""
    return [pid for pid, command in living(process.pid).items() if " serve " in command]


async def test_run_serves_every_row_also_in_a_folder_of_strangers(tmp_path: Path) -> None:
    for name in ("lookout.py", "signal.py", "msgspec.py"):
        (tmp_path / name).write_text("raise SystemExit('a stranger was imported')\n")
    async with a_running_service(tmp_path) as (world, service, process):
        await world.until_healthy()

        async def both_are_ready() -> bool:
            admins = (service.monitor_admin, service.server_admin)
            return all([await answer(world.http, f"http://{admin}/readyz?maxAge=10") for admin in admins])

        await until_async(both_are_ready, "monitor and server are ready")
        live, history = [await answer(world.http, service.base + path) for path in (LIVE, HISTORY)]
        assert len(live["checks"]) == len(history["rows"]) == ROWS
        for admin in (service.monitor_admin, service.server_admin):
            assert await answer(world.http, f"http://{admin}/healthz") == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        assert await wait_for_end(process, within_s=60) == 0, service.said
        assert "a stranger" not in service.said


def test_an_interrupted_command_ends_without_a_word(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lookout.toml")
    command = (LOOKOUT, "check-config", "-c", "lookout.toml")
    with (
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
        (tmp_path / "lookout.toml").open("wb"),  # opens once the command has begun to read
    ):
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"")


async def test_run_starts_a_server_that_was_killed_again_and_takes_it_along_when_it_is_killed(tmp_path: Path) -> None:
    config = tmp_path / "lookout.toml"
    async with a_running_service(tmp_path) as (world, service, process):
        (first,) = servers_of(process)
        text = config.read_text()
        limit, most = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(
            process.pid, resource.RLIMIT_NOFILE, (3, most)
        )  # what killed the server, the monitor lacks too
        os.kill(first, signal.SIGKILL)
        await until_async(lambda: "the server cannot be started" in service.said, "no server can be started")
        config.write_text(f"{text}[server")  # half edited
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (limit, most))
        await until_async(lambda: "exit code 2" in service.said, "it cannot start")
        assert await answer(world.http, f"http://{service.monitor_admin}/readyz") is not None
        config.write_text(text)

        async def another_answers() -> bool:
            is_another = servers_of(process) not in ([], [first])
            return is_another and await answer(world.http, service.base + LIVE) is not None

        await until_async(another_answers, "another server answers")
        started = servers_of(process)
        process.kill()
        assert await wait_for_end(process, within_s=60) == -signal.SIGKILL
        await until_async(lambda: not any(map(is_alive, started)), "its server has ended too")
        assert await answer(world.http, service.base + LIVE) is None
        assert len(world.document("live")["checks"]) == ROWS
        assert "Traceback" not in service.said


def test_run_says_that_its_configuration_has_to_be_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lookout.toml")
    ran = lookout(tmp_path, "run", "-c", "lookout.toml")
    why = "is not a file, and run reads it several times; start lookout monitor and lookout serve"
    assert (ran.returncode, ran.stderr) == (2, f"lookout: lookout.toml: {why}\n")


@pytest.mark.parametrize("key", ["server.listen", "admin.monitor"])
async def test_run_says_in_a_sentence_that_a_port_is_taken(key: str, tmp_path: Path) -> None:
    service = a_service(tmp_path, "http://127.0.0.1:9")
    config = tmp_path / "lookout.toml"
    settings = read_config(config)
    addresses = {
        "server.listen": settings.server.listen,
        "admin.server": settings.admin.server,
        "admin.monitor": settings.admin.monitor,
    }
    host, port = host_and_port(addresses[key])
    with socket.create_server((host, port)), a_command(tmp_path, "run", "-c", "lookout.toml") as process:
        assert await wait_for_end(process, within_s=60) == 2
    lines = [line for line in service.said.splitlines() if line.startswith("lookout: ")]
    assert lines == [f"lookout: {key}: {addresses[key]}: Address already in use"]
    assert "Traceback" not in service.said


@pytest.mark.long
async def test_demo_shows_a_fortnight_and_leaves_nothing_when_it_is_interrupted(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    base = f"http://127.0.0.1:{a_free_port()}"
    async with aiohttp.ClientSession() as http:
        with a_command(tmp_path, "demo", "--listen", base.partition("//")[2], TMPDIR=str(temporary)) as process:

            async def answers() -> bool:
                assert process.poll() is None, said(tmp_path)
                return f"{base}{LIVE}" in said(tmp_path) and await answer(http, base + LIVE) is not None

            await until_async(answers, "it answers, and says where", within_s=150)  # alone, a few seconds
            history = await answer(http, base + HISTORY)
            assert (len(history["rows"]), {len(row["buckets"]) for row in history["rows"]}) == (ROWS, {4033})
            assert [path.name.startswith("lookout-demo-") for path in temporary.iterdir()] == [True]
            os.killpg(process.pid, signal.SIGINT)
            assert await wait_for_end(process, within_s=60) == 0, said(tmp_path)
    assert list(temporary.iterdir()) == []
    assert "Traceback" not in said(tmp_path)


def test_demo_says_at_once_that_its_address_cannot_be_used(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = lookout(tmp_path, "demo", "--listen", address, within_s=60)
        assert (ran.returncode, ran.stderr) == (2, f"lookout: --listen: {address}: Address already in use\n")
    for garbage in ("nonsense", "127.0.0.1", "127.0.0.1:99999", ""):
        own = CliRunner().invoke(main, ["demo", "--listen", garbage])
        assert (own.exit_code, own.stderr) == (2, f"lookout: --listen: {garbage!r} is not HOST:PORT\n")


def test_help_has_a_line_for_each_command_and_each_has_help_of_its_own(tmp_path: Path) -> None:
    ran = lookout(tmp_path, "--help", within_s=60)
    _, _, commands = ran.stdout.partition("Commands:\n")
    lines = [line.split(maxsplit=1) for line in commands.splitlines()]
    assert tuple(line[0] for line in lines) == COMMANDS
    assert all(len(line) == 2 and not line[1].endswith("...") for line in lines), commands
    for command in COMMANDS:
        own = CliRunner().invoke(main, [command, "-h"], prog_name="lookout")
        assert (own.exit_code, own.stderr) == (0, "")
        assert own.stdout.startswith(f"Usage: lookout {command} ")
