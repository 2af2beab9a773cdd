"""Upstreams that flood the monitor as fast as the line carries it, beside honest ones."""

import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from bench import processes
from lookout.base.instants import parse_instant
from lookout.base.sockets import a_free_port
from tests.campaign.part import Outcome
from tests.integration.admin import with_admin
from tests.integration.fast import CHAINS, World, a_config
from tests.integration.served import Server
from tests.wait import until

_OK: Final = b"HTTP/1.1 200 OK\r\n"
_CHUNKED: Final = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS: Final = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
BEFORE: Final = "bad_http: over 65536 bytes before the answer"
BESIDES: Final = "too_large: over 1048576 bytes"


class Flood(NamedTuple):
    start: bytes
    drop: bytes
    """What comes after the start, again and again."""
    found: str | bytes
    """The cause of the probe's failure, or the body."""


FLOODS: Final = {
    "being asked to go on": Flood(b"", CONTINUE, BEFORE),
    "hints": Flood(b"", HINTS, BEFORE),
    "hints with huge heads": Flood(b"", b"HTTP/1.1 103 \r\n%b\r\n" % (b"Link: <%b>\r\n" % (b"a" * 4_000) * 7), BEFORE),
    "one interim head without end": Flood(b"HTTP/1.1 102 Processing\r\n", b"A: b\r\n", BEFORE),
    "empty lines": Flood(b"", b"\r\n", BEFORE),
    "a status line without end": Flood(b"HTTP/1.1 200 ", b"O", BEFORE),
    "a head of short fields": Flood(_OK, b"A: b\r\n", BEFORE),
    "a field without end": Flood(_OK + b"A: ", b"b", BEFORE),
    "a body": Flood(_OK + b"\r\n", b" ", BESIDES),
    "a body in chunks of one byte": Flood(_CHUNKED, b"1\r\n \r\n", BESIDES),
    "a chunk's extension": Flood(_CHUNKED + b"1;", b"a", BESIDES),
    "chunks with long extensions": Flood(_CHUNKED, b"1;%b\r\n \r\n" % (b"a" * 4_000), BESIDES),
    "trailers": Flood(_CHUNKED + b"2\r\n{}\r\n0\r\n", b"A: b\r\n", BESIDES),
    "interim answers after the answer": Flood(_OK + b"Content-Length: 2\r\n\r\n{}", CONTINUE, b"{}"),
    "the answer again and again": Flood(b"", _OK + b"Content-Length: 2\r\n\r\n{}", b"{}"),
}
_ANSWER: Final = FLOODS["the answer again and again"].drop
_AT_ONCE: Final = 262_144
_HOSTILE: Final = ("hosted-indexer", 11155111)  # is the attacker, and no simulated one is asked

# What a flood may cost the monitor.
_LONGEST_HOLD_S: Final = 0.25
_UNDER_LOAD: Final = 2  # times as long
_MOST_MEMORY_MB: Final = 120
_MOST_STORED_MB: Final = 10
_MORE_AGE_S: Final = 1.0

_log: Final = logging.getLogger("campaign.hostile")


def try_floods(seconds: float) -> Outcome:
    """Every kind for as long, from a third of each chain's endpoints and one indexer; and first none."""
    hold_s, each_s, failures = longest_hold_s(), seconds / (len(FLOODS) + 1), list[str]()
    base = f"http://127.0.0.1:{a_free_port()}"
    with (
        tempfile.TemporaryDirectory() as name,
        _an_attacker() as (attacker, choose),
        a_monitor(Path(name), base, _configure(base, attacker), _HOSTILE) as monitor,
    ):
        without = monitor.observe(each_s)
        _log.info(f"without a flood: {without}")
        for kind in FLOODS:
            choose(kind)
            during = monitor.observe(each_s)
            _log.info(f"{kind}: {during}")
            failures += (f"{kind}: {problem}" for problem in judge(during, without, hold_s))
    return Outcome({"floods": len(FLOODS)}, tuple(failures))


def longest_hold_s() -> float:
    """For how long the loop may be held, on a machine as busy as this one."""
    return _LONGEST_HOLD_S * (_UNDER_LOAD if os.getloadavg()[0] > (os.cpu_count() or 1) / 2 else 1)


class Seen(NamedTuple):
    """The worst of a while."""

    held_s: float
    """How long the admin port did not answer."""
    memory_mb: float
    stored_mb: float
    age_s: float
    """Of the oldest honest row."""
    statuses: frozenset[str]


def judge(during: Seen, without: Seen, hold_s: float) -> Iterator[str]:
    if during.held_s > hold_s:
        yield f"held the loop for {during.held_s:.2f} s, and may for {hold_s:.2f} s"
    if during.memory_mb > without.memory_mb + _MOST_MEMORY_MB:
        yield f"took {during.memory_mb:.0f} MB, {without.memory_mb:.0f} MB at rest"
    if during.stored_mb > without.stored_mb + _MOST_STORED_MB:
        yield f"filled the store: {during.stored_mb:.0f} MB, {without.stored_mb:.0f} MB before"
    if during.age_s > without.age_s + _MORE_AGE_S:
        yield f"an honest row was {during.age_s:.1f} s old, at most {without.age_s:.1f} s without a flood"
    if during.statuses != {"current"}:
        yield f"honest rows were {', '.join(sorted(during.statuses))}"


class Monitor(NamedTuple):
    world: World
    pid: int
    admin: int
    hostile: tuple[str, int]
    """Service and chain of the row whose source attacks."""

    def observe(self, seconds: float) -> Seen:
        seen = self._look()
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            time.sleep(0.02)
            now = self._look()
            held_s, memory_mb, stored_mb, age_s = map(max, seen[:4], now[:4])
            seen = Seen(held_s, memory_mb, stored_mb, age_s, seen.statuses | now.statuses)
        return seen

    def ask(self, path: str) -> bytes:
        """The admin port."""
        return Server("127.0.0.1", self.admin).ask("GET", path).body

    def _look(self) -> Seen:
        began = time.monotonic()
        self.ask("/healthz")
        held_s = time.monotonic() - began
        rows = [row for row in self._honest_rows() if row["observedAt"]]
        oldest_at = min(parse_instant(row["observedAt"]) for row in rows)
        stored = sum(file.stat().st_size for file in self.world.folder.glob("lookout.db*"))
        age_s = time.time() - oldest_at / 1000
        return Seen(
            held_s, processes.memory_mb(self.pid), stored / 1e6, age_s, frozenset(row["status"] for row in rows)
        )

    def is_settled(self) -> bool:
        return self.world.document() is not None and {"current"} == {
            row["status"] for row in self._honest_rows() if row["status"] != "unmonitored"
        }

    def _honest_rows(self) -> list[Any]:
        return [row for row in self.world.document()["checks"] if (row["service"], row["chainId"]) != self.hostile]


@contextmanager
def a_monitor(folder: Path, base: str, config: str, hostile: tuple[str, int]) -> Iterator[Monitor]:
    """A monitor meanwhile, once it is settled on the simulated upstreams at this address."""
    admin = a_free_port()
    (folder / "lookout.toml").write_text(with_admin(config, f"127.0.0.1:{admin}"))
    with (
        processes.a_process(folder, "sim", "--listen", base.removeprefix("http://")),
        processes.a_process(folder, "monitor", "-c", "lookout.toml") as process,
    ):
        monitor = Monitor(World(folder, base, cast("Any", None)), process.pid, admin, hostile)
        until(monitor.is_settled, "all honest rows are current", 120)
        yield monitor


def _configure(base: str, attacker: str) -> str:
    config = a_config(base, recheck_s=3, backoff_cap_s=3.6)
    for chain_id in CHAINS:
        config = config.replace(f'"{base}/rpc/{chain_id}/c"', f'"{attacker}/{chain_id}"')
    service, chain_id = _HOSTILE
    return config + f'[[{service}]]\nchain = {chain_id}\nkind = "squid"\nurl = "{attacker}"\nconfirmations = 5\n'


@contextmanager
def _an_attacker() -> Iterator[tuple[str, Callable[[str], None]]]:
    """A process of its own; its address, and what chooses the kind of its flood."""
    command = [sys.executable, "-c", "from tests.fuzz.floods import attack; attack()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def choose(kind: str) -> None:
            print(kind, file=process.stdin, flush=True)

        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}", choose
        finally:
            process.kill()


def attack() -> None:
    """Say where, then answer, and once a line of the input names a kind, flood."""
    kind = ""
    listener = socket.create_server(("127.0.0.1", 0))

    def converse(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            if not kind:
                connection.sendall(_ANSWER)
                return
            start, drop, _ = FLOODS[kind]
            connection.sendall(start)
            while True:
                connection.sendall(drop * (_AT_ONCE // len(drop)))

    def accept() -> None:
        while True:
            threading.Thread(target=converse, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        kind = line.strip()
