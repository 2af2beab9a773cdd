"""How long the costliest answers that fit the limits hold the event loop: nobody else goes on meanwhile."""

import asyncio
import base64
import gzip
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from bench.figures import Figure
from lookout.app.process import run
from lookout.core.model import Check, Members
from lookout.protocols.broadcasters.announcements import LONGEST_PAYLOAD
from lookout.protocols.broadcasters.seen import BroadcastersTable
from lookout.protocols.broadcasters.source import LIMIT_BYTES, StoreBroadcasters
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.session import open_session
from lookout.protocols.source import observe
from tests.contract.protocols.announcers import a_message, a_page
from tests.contract.protocols.costly import SHAPES, costly_answers, listed
from tests.contract.protocols.recorded import PARSERS
from tests.contract.protocols.upstreams import saying, talking

MOST_MS = 100
TRIES = 3


def measure() -> Iterator[Figure]:
    for parser, (parse, _) in PARSERS.items():
        longest_ms, shape = max((longest(parse, parser, shape), shape) for shape in SHAPES)
        yield _figure(f"the costliest answer, {parser}", longest_ms, shape)
    stall_ms = min(run(longest_stall_ms(bomb(costly_page()))) for _ in range(TRIES))
    yield _figure("a page of costly announcements, as a bomb", stall_ms, "the longest stall of the loop")


def longest(parse: Callable[[bytes], object], parser: str, shape: str) -> float:
    return max(cpu_ms(parse, body) for body in costly_answers(parser, shape))


def cpu_ms(parse: Callable[[bytes], object], body: bytes) -> float:
    """The shortest of some tries, for what else the machine does can only make one longer."""
    shortest_ms = float("inf")
    for _ in range(TRIES):
        began_s = time.thread_time()
        with suppress(ProbeFailed):
            parse(body)
        shortest_ms = min(shortest_ms, (time.thread_time() - began_s) * 1000)
        if shortest_ms < MOST_MS / 2:
            break
    return shortest_ms


def costly_page() -> bytes:
    """As many announcements as a page holds, each as long as it may be, and of nothing but floats."""
    size = LONGEST_PAYLOAD * 3 // 8 - 32
    content = b'{"data":"' + listed("largest floats", size).hex().encode() + b'","signature":""}'
    message = {**a_message(1), "payload": base64.b64encode(content).decode()}
    return a_page(*[message] * (LIMIT_BYTES // (len(message["payload"]) + 500)))


def bomb(page: bytes) -> bytes:
    body = gzip.compress(page)
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def longest_stall_ms(answer: bytes) -> float:
    """How long a probe that is answered so keeps a task waiting that only wants to go on."""
    stalls_s: list[float] = []

    async def tick() -> None:
        while True:
            began_s = time.perf_counter()
            await asyncio.sleep(0)
            stalls_s.append(time.perf_counter() - began_s)

    async with talking(saying(answer)) as url, open_session(10) as session:
        ticking = asyncio.create_task(tick())
        source = StoreBroadcasters("broadcasters", BroadcastersTable(url, (1,)))
        found = await observe(source, session, lambda: time.time_ns() // 1_000_000)
        await asyncio.sleep(0)  # the last stall is counted, too
        ticking.cancel()
    if not isinstance(found[Check("broadcasters", 1)], Members):
        raise TypeError(f"{found} was found")
    return max(stalls_s) * 1000


def _figure(measured: str, found_ms: float, of: str) -> Figure:
    return Figure(measured, f"{found_ms:.0f} ms", of, None, f"at most {MOST_MS} ms", found_ms > MOST_MS)
