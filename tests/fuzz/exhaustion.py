"""A real monitor from which something is taken: nothing is published of anybody that was not seen (M17).

A case is the name of what is taken, and how much of it is left, or how many take it.
"""

import asyncio
import resource
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from lookout.base.clock import parse_instant
from lookout.base.sockets import a_free_port
from tests.commands import a_command
from tests.fuzz.fuzzer import Judge, Kind, Verdict
from tests.integration.exhausted import Closing, dripping, leaving, limit
from tests.integration.fast import World, a_config, a_world
from tests.wait import until

_TAKEN_S: Final = 2.0
_SPARE: Final = 60
_LATEST_ROW_MS: Final = 2_000  # after what was taken is back


@contextmanager
def _without_descriptors(pid: int, _address: str, left: int) -> Iterator[None]:
    limit(pid, leaving(pid, left) if left else 3)
    try:
        yield
    finally:
        limit(pid, 4_096)


@contextmanager
def _without_memory(pid: int, _address: str, left_mib: int) -> Iterator[None]:
    """Nor threads, which need some for their stacks."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    soft = pages * resource.getpagesize() + left_mib * 1_048_576
    resource.prlimit(pid, resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextmanager
def _flooded(pid: int, address: str, connections: int) -> Iterator[None]:
    limit(pid, leaving(pid, _SPARE))
    try:
        with dripping(address, connections) as all_opened:
            all_opened.wait()
            yield
    finally:
        limit(pid, 4_096)


_TAKING: Final[dict[bytes, Callable[[int, str, int], AbstractContextManager[None]]]] = {
    b"descriptors": _without_descriptors,
    b"memory": _without_memory,
    b"admin": _flooded,
}
_AMOUNTS: Final = {b"admin": (70, 150), b"descriptors": (0, 1, 8), b"memory": (0, 4, 16)}


def _cases() -> list[bytes]:
    """The first of each first: every day, only these are tried."""
    cases = [(place, b"%b %d" % (name, amount)) for name, of in _AMOUNTS.items() for place, amount in enumerate(of)]
    return [case for _, case in sorted(cases)]


def _change(chance: Random, _case: bytes, _other: bytes) -> bytes:
    return chance.choice(_cases())


def _published(world: World) -> tuple[set[str], int]:
    """The statuses of the report, with whose they are unless that is current, and how old its latest row is."""
    document = world.document()
    rows = [row for row in document["checks"] if row["status"] != "unmonitored"]
    made_at = parse_instant(document["generatedAt"])
    ages_ms = (made_at - parse_instant(row["observedAt"]) for row in rows if row["observedAt"])
    return {row["status"] if row["status"] == "current" else _words(row) for row in rows}, max(ages_ms, default=0)


def _words(row: dict[str, Any]) -> str:
    return f"{row['service']} {row['chainId']} {row['status']}/{row['reason']}"


def _verdict(world: World, process: "subprocess.Popen[bytes]", address: str, case: bytes) -> Verdict:
    name, _, amount = case.partition(b" ")
    ends_at = time.monotonic() + _TAKEN_S
    seen: set[str] = set()
    latest_ms = 0
    with _TAKING[name](process.pid, address, int(amount)):
        while time.monotonic() < ends_at:
            statuses, age_ms = _published(world)
            seen, latest_ms = seen | statuses, max(latest_ms, age_ms)
            time.sleep(0.1)
    if process.poll() is not None:
        return Verdict("ended", f"{case.decode()}: the monitor ended with {process.returncode}")
    if seen - {"current"}:
        return Verdict("untrue", f"{case.decode()}: published {sorted(seen)} of upstreams that were all well")
    try:
        until(lambda: _published(world)[0] == {"current"} and _published(world)[1] < _LATEST_ROW_MS, "it is over", 60)
    except AssertionError:
        return Verdict("stuck", f"{case.decode()}: afterwards {_published(world)}")
    return Verdict(f"{name.decode()}: only current, the latest row of {latest_ms // 1000} s ago")


@contextmanager
def _a_watched_world() -> Iterator[tuple[World, "subprocess.Popen[bytes]", str]]:
    """Upstreams that are all well, and a monitor that has seen it."""
    ready, ended = threading.Event(), threading.Event()
    worlds: list[World] = []

    async def live(folder: Path) -> None:
        async with a_world(folder, front=Closing()) as world:
            worlds.append(world)
            ready.set()
            await asyncio.to_thread(ended.wait)

    with tempfile.TemporaryDirectory(prefix="lookout-hostile-") as name:
        folder, address = Path(name), f"127.0.0.1:{a_free_port()}"
        thread = threading.Thread(target=lambda: asyncio.run(live(folder)))
        thread.start()
        try:
            ready.wait()
            # A probe has time: what a busy machine makes late is not what is judged here.
            config = a_config(worlds[0].base, probe_timeout_s=8).replace('monitor = ""', f'monitor = "{address}"', 1)
            (folder / "lookout.toml").write_text(config)
            with a_command(folder, "monitor", "-c", "lookout.toml") as process:
                until(
                    lambda: worlds[0].document() is not None and _published(worlds[0])[0] == {"current"}, "all is well"
                )
                yield worlds[0], process, address
        finally:
            ended.set()
            thread.join()


@contextmanager
def _judging() -> Iterator[Judge]:
    with _a_watched_world() as (world, process, address):

        def each(cases: Sequence[bytes]) -> list[Verdict]:
            """Each of a batch once: they take seconds, and there are few."""
            verdicts = {case: _verdict(world, process, address, case) for case in dict.fromkeys(cases)}
            return [verdicts[case] for case in cases]

        yield Judge(each)


EXHAUSTION: Final = Kind(
    "floods of the admin port, and a monitor without descriptors, memory and threads",
    _cases,
    _change,
    _judging,
    is_steady=False,
)
