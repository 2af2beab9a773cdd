"""Floods from upstreams: costly answers, interim responses, forged announcements. Nobody else waits for them.

A case is the name of a flood. For each, the longest stall of the event loop, the growth of memory and the latest probe
are part of what is reported if one of them is too much.
"""

import asyncio
import base64
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random
from typing import Final

from campaign.hostile.fuzzing import Judge, Kind, Verdict
from lookout.core.model import Check, Failed, Found
from lookout.settings import Broadcasters
from lookout.sources.broadcasters import PAGE_SIZE, StoreBroadcasters
from lookout.sources.failure import ProbeFailed
from lookout.sources.fetching import Request, fetch, open_session
from lookout.sources.source import OneRequest, Source, observe
from tests.builders import NOON
from tests.contract.sources.broadcasting import a_message, a_page, broadcaster, envelope
from tests.contract.sources.costly import SHAPES, limit_of, listed
from tests.contract.sources.recorded import PARSERS
from tests.contract.sources.upstreams import Conversation, answering, pouring, saying, talking

_PROBE_S: Final = 3.0
_LATE_S: Final = 1.0
_MOST_STALL_S: Final = 0.25  # five times what is promised: the campaign shares its machine
_MOST_KB: Final = 60_000
_AT_ONCE: Final = 4
_CHECK: Final = Check("indexer", 1)

_INTERIM: Final[dict[str, bytes]] = {
    f"interim {code}": b"HTTP/1.1 %d X\r\n\r\n" % code * 4_000 for code in (100, 102, 103)
}


def _answer(body: bytes) -> Conversation:
    return saying(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def _forged() -> bytes:
    impostor = broadcaster(99)._replace(key=broadcaster(98).key)
    payload = base64.b64encode(envelope(impostor, {"feeExpiration": NOON + 60_000, "availableWallets": 1})).decode()
    return a_page(*[{**a_message(99), "payload": payload}] * PAGE_SIZE, cursor="0xa")


def _names() -> list[str]:
    return [*_INTERIM, "announcements", *(f"{parser}: {shape}" for parser in PARSERS for shape in SHAPES)]


def _conversation(name: str) -> Conversation:
    if name in _INTERIM:
        return pouring(b"", _INTERIM[name])
    if name == "announcements":
        return _answer(_forged())
    parser, _, shape = name.partition(": ")
    return _answer(listed(shape, limit_of(parser)))


def _source(name: str, url: str) -> Source:
    if name == "announcements":
        return StoreBroadcasters(Broadcasters(url, (1,)))
    parser = name.partition(": ")[0]
    parse = PARSERS[parser][0] if parser in PARSERS else PARSERS["squid"][0]

    def found(body: bytes) -> dict[Check, Found]:
        parse(body)
        return {_CHECK: Failed("nothing is judged here")}

    return OneRequest(name, (_CHECK,), Request("GET", url, limit_bytes=limit_of(parser)), found)


async def _flooded(name: str) -> str:
    """What was wrong while several upstreams did this, if anything."""
    longest_s = 0.0

    async def tick() -> None:
        nonlocal longest_s
        while True:
            began_s = time.perf_counter()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.perf_counter() - began_s)

    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with (
        talking(_conversation(name)) as url,
        answering(lambda _: (200, b"{}")) as (honest, _),
        open_session(_PROBE_S) as session,
    ):
        ticking = asyncio.create_task(tick())
        began_s = time.monotonic()
        floods = [observe(_source(name, url), session, lambda: NOON) for _ in range(_AT_ONCE)]
        *_, answer = await asyncio.gather(*floods, fetch(session, Request("GET", honest)), return_exceptions=True)
        latest_s = time.monotonic() - began_s
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    is_wrong = (
        isinstance(answer, ProbeFailed)
        or longest_s > _MOST_STALL_S * _AT_ONCE
        or latest_s > _PROBE_S + _LATE_S
        or grown_kb > _MOST_KB
    )
    told = (
        f"the loop stalled for {longest_s * 1000:.0f} ms, {grown_kb} kB more, the latest probe after {latest_s:.1f} s"
    )
    return f"{name}: {told}, an honest upstream gave {answer!r}" if is_wrong else ""


def judged(case: bytes) -> Verdict:
    name = case.decode("latin-1")
    if name not in _names():
        return Verdict("no flood")
    return Verdict(name, asyncio.run(_flooded(name)))


def _changed(chance: Random, _case: bytes, _other: bytes) -> bytes:
    return chance.choice(_names()).encode()


@contextmanager
def _judging() -> Iterator[Judge]:
    def each(cases: Sequence[bytes]) -> list[Verdict]:
        return [judged(case) for case in cases]

    yield Judge(each)


def _seeds() -> list[bytes]:
    return [name.encode() for name in (*_INTERIM, "announcements")]


FLOODS: Final = Kind("floods from upstreams", _seeds, _changed, _judging, is_steady=False)
