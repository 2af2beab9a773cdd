"""How many requests reach the server behind the edge when 10,000 readers of 50 origins ask, each from an address of its
own and under the launch's rate limit."""

import asyncio
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import NamedTuple

from bench.edge import an_edge, missing_varnish
from bench.figures import Figure
from bench.processes import a_folder, children, cpu_by_process
from bench.serve import GZIP, HISTORY, LIVE, a_server, fill_a_store, first_answer
from lookout.app.process import allow_many_connections, run
from lookout.base.sockets import a_free_port

READERS = 10_000
ORIGINS = 50
LIMIT = 120
WATCH_S = 120  # as long as a copy of the history is fresh, which is the longest
NAME = f"{READERS:,} readers of {ORIGINS} origins"


class Habit(NamedTuple):
    """How often a reader asks for a document, and for how long the edge's copy of it is fresh."""

    path: str
    every_s: int
    fresh_s: int


HABITS = (Habit(LIVE, 15, 30), Habit(HISTORY, 60, 120))


def measure() -> Iterator[Figure]:
    missing = missing_varnish()
    if missing:
        yield Figure(NAME, "not measured", f"apt-get install {' '.join(missing)}")
        return
    allow_many_connections()
    admin = f"127.0.0.1:{a_free_port()}"
    with a_folder() as folder:
        fill_a_store(folder)
        with a_server(folder, 0, admin) as (_, origin):
            first_answer(origin)
            with an_edge(folder, origin, LIMIT) as (process, port):
                varnish = children(process.pid)
                reached, used_s = requests_answered(admin), sum(cpu_by_process(varnish).values())
                codes = run(ask(port))
                reached, used_s = requests_answered(admin) - reached, sum(cpu_by_process(varnish).values()) - used_s
    if codes.keys() - {200, 304}:
        raise RuntimeError(f"the edge answered {dict(codes)}")
    expected = sum(ORIGINS * 60 / habit.fresh_s for habit in HABITS)
    a_minute = reached * 60 / WATCH_S
    yield Figure(
        f"{NAME}: what reaches the server",
        f"{a_minute:,.0f} requests a minute",
        f"one per origin, document and lifetime of a copy: {expected:,.0f}",
        a_minute / expected,
    )
    planned = sum(READERS / habit.every_s for habit in HABITS)
    answered = codes.total() / WATCH_S
    yield Figure(
        f"{NAME}: what the edge answers",
        f"{answered:,.0f}/s with {used_s / WATCH_S:.0%} of a core, {codes[304] / codes.total():.0%} of them 304",
        f"live every 15 s, history every 60 s: {planned:,.0f}/s",
        answered / planned,
    )


async def ask(port: int) -> Counter[int]:
    """How many answers of which kind all readers got."""
    codes: Counter[int] = Counter()
    chance = Random(7)
    with suppress(TimeoutError):
        async with asyncio.timeout(WATCH_S), asyncio.TaskGroup() as readers:
            for n in range(READERS):
                for habit in HABITS:
                    readers.create_task(_read(port, n, habit, chance.uniform(0, habit.every_s), codes))
    return codes


async def _read(port: int, n: int, habit: Habit, first_s: float, codes: Counter[int]) -> None:
    """What one reader's browser does: it asks again for what it has, on a connection of its own."""
    at_s, etag = time.monotonic() + first_s, ""
    peer = f"127.{1 + n // 65_536}.{n // 256 % 256}.{n % 256}"
    while True:
        await asyncio.sleep(at_s - time.monotonic())
        at_s += habit.every_s
        reading, writing = await asyncio.open_connection("127.0.0.1", port, local_addr=(peer, 0))
        writing.write(
            f"GET {habit.path} HTTP/1.1\r\nHost: localhost\r\nOrigin: https://wallet{n % ORIGINS}.example\r\n"
            f"{GZIP}\r\nIf-None-Match: {etag}\r\nConnection: close\r\n\r\n".encode()
        )
        head, _, _ = (await reading.read()).partition(b"\r\n\r\n")
        writing.close()
        codes[int(head.split(b" ", 2)[1])] += 1
        etag = head.partition(b"ETag: ")[2].partition(b"\r\n")[0].decode()


def requests_answered(admin: str) -> int:
    with urllib.request.urlopen(f"http://{admin}/metrics") as answer:
        return count_requests(answer.read().decode())


def count_requests(metrics: str) -> int:
    """Those of both endpoints, by a server's own count."""
    found = re.findall(r'^lookout_requests_total\{[^}]*route="(?:live|history)"[^}]*\} (\S+)$', metrics, re.MULTILINE)
    return round(sum(map(float, found)))
