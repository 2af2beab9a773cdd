"""What the processes of a server hold: their memory, their environment and their arguments have no secret of the
monitor's."""

import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.commands import LOOKOUT, a_command, living, meanwhile, said
from tests.integration.fast import POLICY
from tests.integration.planted import a_listener
from tests.integration.served import LIVE, a_free_port
from tests.wait import until, until_async

WORKERS: Final = 2
CHUNK: Final = 1 << 16
UNTOUCHED: Final = bytes(CHUNK)  # most of a stack or an arena
MARK: Final = "-7q5"  # at the end of everything that is searched for
# Wherever a monitor can have one; half of them are written out, half come from the environment.
SECRETS: Final = {
    place: f"canary-{place}{MARK}"
    for place in ("url", "rpc", "query", "written", "header", "target", "ping", "unused", "libpq")
}
VARIABLES: Final = {f"CANARY_{place.upper()}": secret for place, secret in SECRETS.items()} | {
    "PGPASSWORD": SECRETS["libpq"]
}
# What a server does hold: the scan finds what is there.
CHAIN: Final = f"canary-chain{MARK}"


def a_config(upstream: str, port: int) -> str:
    url = f"{upstream}/${{CANARY_URL}}?key=${{CANARY_QUERY}}&other={SECRETS['written']}"
    return (
        '[store]\nurl = "sqlite:lookout.db"\n[log]\nformat = "json"\nlevel = "debug"\n'
        '[admin]\nmonitor = ""\nserver = ""\n'
        f'[server]\nlisten = "127.0.0.1:{port}"\nworkers = {WORKERS}\n'
        f'[[chains]]\nid = 1\nname = "{CHAIN}"\nblock_time_s = 12\nrpc = ["{upstream}/${{CANARY_RPC}}"]\n'
        f'[messaging]\nurl = "{url}"\nheaders = {{Authorization = "Bearer ${{CANARY_HEADER}}"}}\n'
        '[alerts]\ntargets = {ops = "json://127.0.0.1:1/${CANARY_TARGET}"}\n[[alerts.rules]]\n'
        f'[ping]\nurl = "{upstream}/${{CANARY_PING}}"\n'
        "[policy]\n" + "".join(f"{key} = {value}\n" for key, value in POLICY.items())
    )


def held_by(pid: int, searched: Mapping[str, str]) -> set[str]:
    """Which of these texts a process holds, by their names: in its memory, however Python or anybody else keeps a text
    there, in the environment and the arguments that it was started with, or in what it has open."""
    assert all(text.endswith(MARK) for text in searched.values())
    marks, forms = forms_of(MARK), {name: forms_of(text) for name, text in searched.items()}
    longest = max(len(form) for each in forms.values() for form in each)
    found: set[str] = set()
    for piece in pieces_of(pid, longest):
        if any(mark in piece for mark in marks):  # seldom: a search for each of them would take long
            found |= {name for name, each in forms.items() if any(form in piece for form in each)}
    return found


def forms_of(text: str) -> set[bytes]:
    return {text.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-32-le")}


def pieces_of(pid: int, overlap: int) -> Iterator[bytes]:
    for name in ("environ", "cmdline"):
        yield Path(f"/proc/{pid}/{name}").read_bytes()
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            fields = line.split()
            if not fields[1].startswith("r") or fields[-1] in ("[vvar]", "[vsyscall]"):
                continue
            begin, end = (int(address, 16) for address in fields[0].split("-"))
            rest = b""
            with suppress(OSError):  # unmapped meanwhile
                for at in range(begin, end, CHUNK):
                    memory.seek(at)
                    piece = memory.read(min(CHUNK, end - at))
                    if piece != UNTOUCHED:
                        yield rest + piece
                    rest = piece[-overlap:]


@asynccontextmanager
async def serving(folder: Path, command: str, upstream: str) -> AsyncIterator["subprocess.Popen[bytes]"]:
    """A command that was started with all secrets, once every worker has a report, and all processes are there."""
    port = a_free_port()
    (folder / f"{command}.toml").write_text(a_config(upstream, port))
    async with aiohttp.ClientSession() as http:
        with a_command(folder, command, "-c", f"{command}.toml", **VARIABLES) as process:

            async def all_is_there() -> bool:
                assert process.poll() is None, said(folder)
                with suppress(aiohttp.ClientConnectionError):
                    async with http.get(f"http://127.0.0.1:{port}{LIVE}") as got:
                        return got.status == 200 and len(workers_of(process.pid)) == WORKERS
                return False

            await until_async(all_is_there, "the report is served", 80)
            yield process


def workers_of(group: int) -> list[int]:
    return [pid for pid, command in living(group).items() if "spawn_main" in command]


def an_ordinary(*program: str | Path) -> tuple[str | Path, ...]:
    """A program without the capabilities of root, one of which is to look into every process."""
    return ("setpriv", "--bounding-set=-all", *program) if os.geteuid() == 0 else program


def can_be_read(pid: int, name: str) -> bool:
    """Whether another process of the same user may look there."""
    read = subprocess.run(
        an_ordinary("dd", f"if=/proc/{pid}/{name}", "of=/dev/null", "count=0"), capture_output=True, check=False
    )
    return read.returncode == 0


def check_that_none_holds_a_secret(pids: Collection[int]) -> None:
    """Though each worker holds what it has to serve."""
    assert len(pids) >= WORKERS + 1
    held = {pid: held_by(pid, SECRETS | {"chain": CHAIN}) for pid in pids}
    assert {pid: found - {"chain"} for pid, found in held.items()} == {pid: set() for pid in pids}
    assert sum("chain" in found for found in held.values()) >= WORKERS


@pytest.mark.first
async def test_of_all_processes_the_monitor_alone_holds_secrets(tmp_path: Path) -> None:
    with a_listener(lambda _: b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") as upstream:
        async with serving(tmp_path, "run", upstream) as process:
            check_that_none_holds_a_secret(living(process.pid).keys() - {process.pid})
            assert held_by(process.pid, SECRETS) == set(SECRETS)  # found where it is
            async with serving(tmp_path, "serve", upstream) as server:  # even if it was started with all of them
                check_that_none_holds_a_secret(living(server.pid))


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv, of util-linux")
def test_a_worker_that_is_taken_over_cannot_look_into_a_command(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # an upstream that never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        (tmp_path / "lookout.toml").write_text(a_config(url, a_free_port()))
        with (
            meanwhile(tmp_path, *an_ordinary(LOOKOUT, "run", "-c", "lookout.toml"), **VARIABLES) as running,
            meanwhile(tmp_path, *an_ordinary("sleep", "600")) as other,
        ):
            until(lambda: not can_be_read(running.pid, "environ"), "its environment is closed")
            assert not can_be_read(running.pid, "mem")
            assert all(can_be_read(other.pid, name) for name in ("environ", "mem"))
            assert running.poll() is None  # it was there to be read
