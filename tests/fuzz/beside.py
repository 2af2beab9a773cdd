"""Attacking indexers beside honest sources, as real processes, each for a minute: how long the monitor's loop was
held, its memory, its store, how old honest rows became, and what was said.

``python -m tests.fuzz.beside FOLDER BASE SECONDS`` is the monitor's process.
"""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from lookout.app import process
from lookout.base.instants import parse_instant
from lookout.store.sqlite import SqliteReader, read_snapshot
from tests.commands import LOOKOUT, lookout, meanwhile, said
from tests.fuzz.attackers import ATTACKS, CONFIRMED
from tests.integration.fast import World, a_config, watched
from tests.integration.receivers import Receiver, a_hook
from tests.stores import read_texts

_log: Final = logging.getLogger("campaign.hostile")
_ROOT: Final = Path(__file__).parents[2]
_LONGEST_HOLD_S: Final = 0.25
_MOST_MEMORY_KB: Final = 120 * 1024
_LARGEST_GROWTH: Final = 10_000_000
_LONGEST_BODY: Final = 4_096
_OLDER_MS: Final = 2_000
"""How much older honest rows may become than without the attacks: an odd moment of the machine."""
_SECONDS: Final = 80
"""A break is confirmed when it was found again after a minute."""
_WARM_UP_S: Final = 15
_SAMPLE_S: Final = 0.2
_HOLD_SAMPLE_S: Final = 0.005
# What no attacker's words may bring anywhere: a control character, however it is written, or a line of its own.
_STRANGE: Final = re.compile(r"\x1b|\\u001b|\\x1b|curl|z{300}")


class Seen(NamedTuple):
    """What came of a monitor's minute."""

    held_s: float
    """The longest time for which the loop did nothing else."""
    computed_s: float
    """The longest time for which it computed meanwhile: nothing that others do on the machine is in it."""
    memory_kb: int
    store_bytes: int
    oldest_ms: dict[str, int]
    """How old each honest row was at most, by service and chain."""
    texts: dict[str, str]
    """What was logged, alerted, shown and stored, by where."""
    longest_alert: int
    shared_by: float
    """How many times slower others made the machine."""


def try_all() -> tuple[int, list[str]]:
    """How many attacks were tried, and what went wrong."""
    rest, failures = live_beside(None), []
    for name in ATTACKS:
        attacked = live_beside(name)
        _log.info(
            f"{name}: held for {attacked.held_s:.2f} s ({rest.held_s:.2f} at rest), {attacked.memory_kb:,} KB"
            f" ({rest.memory_kb:,}), store {attacked.store_bytes:,} bytes, longest alert {attacked.longest_alert:,}"
        )
        failures += [f"{name}: {failure}" for failure in find_failures(rest, attacked)]
        if name in CONFIRMED and not attacked.longest_alert:
            failures.append(f"{name}: no alert came, so nothing is known of its words")
    return len(ATTACKS), failures


def find_failures(rest: Seen, attacked: Seen) -> Iterator[str]:
    longest_s = _LONGEST_HOLD_S * attacked.shared_by
    if attacked.computed_s > _LONGEST_HOLD_S or attacked.held_s > longest_s:
        yield f"the loop was held for {attacked.held_s:.2f} s, of which it computed {attacked.computed_s:.2f} s"
    if attacked.memory_kb - rest.memory_kb > _MOST_MEMORY_KB:
        yield f"the monitor took {attacked.memory_kb:,} KB, and {rest.memory_kb:,} KB without"
    if attacked.store_bytes - rest.store_bytes > _LARGEST_GROWTH:
        yield f"the store has {attacked.store_bytes:,} bytes, and {rest.store_bytes:,} without"
    if attacked.longest_alert > _LONGEST_BODY:
        yield f"an alert has {attacked.longest_alert:,} bytes"
    for row, oldest_ms in attacked.oldest_ms.items():
        if oldest_ms > rest.oldest_ms[row] + _OLDER_MS * attacked.shared_by:
            yield f"{row} was {oldest_ms:,} ms old, and {rest.oldest_ms[row]:,} ms without"
    for where, text in attacked.texts.items():
        if found := _STRANGE.search(text):
            yield f"{where} has an attacker's words: {text[max(0, found.start() - 80) : found.end() + 80]!r}"


def live_beside(attack: str | None, seconds: float = _SECONDS) -> Seen:
    """Let a monitor watch the simulated upstreams, of which one indexer attacks."""
    with tempfile.TemporaryDirectory() as made, a_hook() as hook:
        folder = Path(made)
        with _printing(LOOKOUT, "sim", "--listen", "127.0.0.1:0") as line:
            base = line.split()[3].rstrip("/")
            with _printing(sys.executable, "-m", "tests.fuzz.attackers", base) as attackers:
                config = _configure(base, None if attack is None else f"{attackers}/{attack}/1", hook)
                (folder / "lookout.toml").write_text(config)
                return _watch(folder, base, seconds, hook)


def _configure(base: str, attacker: str | None, hook: Receiver) -> str:
    honest = f'url = "{base}/squid/1/graphql"\nconfirmations = 5\n'
    asked = honest if attacker is None else honest.replace(f"{base}/squid/1/graphql", attacker)
    alerts = f'[alerts]\ngroup_s = 0\ntargets = {{ops = "{hook.address}"}}\n'
    alerts += '[[alerts.rules]]\nfrom = "degraded"\nfor_s = 0\n'
    return a_config(base).replace(honest, f"{asked}links = {{}}\n") + alerts


def _watch(folder: Path, base: str, seconds: float, hook: Receiver) -> Seen:
    memory_kb, oldest_ms, ends_at = 0, dict[str, int](), time.monotonic() + seconds
    warm_at = time.monotonic() + _WARM_UP_S
    command = (sys.executable, "-m", "tests.fuzz.beside", str(folder), base, str(seconds))
    with meanwhile(folder, *command, PYTHONPATH=str(_ROOT)) as monitor:
        while monitor.poll() is None and time.monotonic() < ends_at:
            memory_kb = max(memory_kb, _memory_kb(monitor.pid))
            if time.monotonic() > warm_at:
                for row, age_ms in _ages_ms(folder).items():
                    oldest_ms[row] = max(age_ms, oldest_ms.get(row, 0))
            time.sleep(_SAMPLE_S)
        probed = lookout(folder, "probe", "-c", "lookout.toml", within_s=60)
        store_bytes = sum(file.stat().st_size for file in folder.glob("lookout.db*"))
        assert monitor.wait(60) == 0, said(folder)
    found = json.loads((folder / "found.json").read_text())
    alerts = [f"{message.title}\n{message.body}" for message in hook.accepted]
    snapshot = read_snapshot(folder / "lookout.db")
    published = (snapshot.documents[name].body.decode() for name in ("live", "history", "about"))
    texts = {
        "the log": said(folder),
        "an alert": "\n".join(alerts),
        "/sources": found["sources"],
        "lookout probe": probed.stdout + probed.stderr,
        "the store": "\n".join((*read_texts(snapshot.state), *published)),
    }
    longest = max((len(message.body.encode()) for message in hook.accepted), default=0)
    shared_by = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return Seen(found["held_s"], found["computed_s"], memory_kb, store_bytes, oldest_ms, texts, longest, shared_by)


def _memory_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) if found else 0


def _ages_ms(folder: Path) -> dict[str, int]:
    """Of the rows of honest sources."""
    reader = SqliteReader(folder / "lookout.db")
    try:
        live = reader.read("live")
    finally:
        reader.close()
    rows = [] if live is None else json.loads(live.body)["checks"]
    now = time.time_ns() // 1_000_000
    return {
        f"{row['service']} {row['chainId']}": now - parse_instant(row["observedAt"])
        for row in rows
        if (row["service"], row["chainId"]) != ("indexer", 1) and row["observedAt"] is not None
    }


@contextmanager
def _printing(*command: str | Path) -> Iterator[str]:
    """A process meanwhile, and the first line that it prints."""
    process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


async def _monitor(folder: Path, base: str, seconds: float) -> None:
    held, computed = list[float](), list[float]()

    async def sample() -> None:
        while True:
            began_s, computed_s = time.monotonic(), time.thread_time()
            await asyncio.sleep(_HOLD_SAMPLE_S)
            held.append(time.monotonic() - began_s - _HOLD_SAMPLE_S)
            computed.append(time.thread_time() - computed_s)

    async with aiohttp.ClientSession() as http:
        async with watched(World(folder, base, http), (folder / "lookout.toml").read_text()) as monitor:
            await asyncio.sleep(_WARM_UP_S / 5)  # imports, and the first of everything
            sampling = asyncio.create_task(sample())
            await asyncio.sleep(seconds)
            sampling.cancel()
            found: dict[str, Any] = {
                "held_s": max(held),
                "computed_s": max(computed),
                "sources": msgspec.json.encode(monitor.board.list_entries()).decode(),
            }
        (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    process.run(_monitor(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
