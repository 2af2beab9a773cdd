"""Floods from upstreams, while nobody else waits: costly answers, interim responses, tiny chunks, announcements.

A case is the name of a flood. The longest stall of the event loop, the growth of memory and the latest probe are
measured for each, and the worst of all are reported.
"""

import asyncio
import base64
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random
from typing import Final, NamedTuple

from lookout.app.process import run
from lookout.core.model import Check, Failed, Found
from lookout.protocols.broadcasters.seen import BroadcastersTable
from lookout.protocols.broadcasters.source import PAGE_SIZE, StoreBroadcasters
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import open_session
from lookout.protocols.conformance import SHAPES, listed
from lookout.protocols.source import OneRequest, Source, observe
from tests.builders import NOON
from tests.contract.protocols.announcers import a_message, a_page, broadcaster, envelope
from tests.contract.protocols.costly import limit_of
from tests.contract.protocols.recorded import PARSERS
from tests.contract.protocols.upstreams import Conversation, answering, pouring, saying, talking
from tests.fuzz.fuzzer import Judge, Kind, Verdict

_PROBE_S: Final = 3.0
_HONEST_PROBE_S: Final = 10.0  # as in the contract (M3)
_LATE_S: Final = 1.0
_MOST_STALL_S: Final = 0.25  # the campaign shares its machine
_MOST_KB: Final = 60_000
_AT_ONCE: Final = 4
_CHECK: Final = Check("indexer", 1)

_HEAD: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# How each begins, and what it goes on with.
_ENDLESS: Final[dict[str, tuple[bytes, bytes]]] = {
    **{f"interim {code}": (b"", b"HTTP/1.1 %d X\r\n\r\n" % code * 4_000) for code in (100, 102, 103)},
    **{f"chunks of {size}": (_HEAD, b"%x\r\n%b\r\n" % (size, b" " * size) * 4_000) for size in (1, 5, 20)},
}


def _answer(body: bytes) -> Conversation:
    return saying(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def _forged() -> bytes:
    impostor = broadcaster(99)._replace(key=broadcaster(98).key)
    payload = base64.b64encode(envelope(impostor, {"feeExpiration": NOON + 60_000, "availableWallets": 1})).decode()
    return a_page(*[{**a_message(99), "payload": payload}] * PAGE_SIZE, cursor="0xa")


def _names() -> list[str]:
    return [*_ENDLESS, "announcements", *(f"{parser}: {shape}" for parser in PARSERS for shape in SHAPES)]


def _conversation(name: str) -> Conversation:
    if name in _ENDLESS:
        return pouring(*_ENDLESS[name])
    if name == "announcements":
        return _answer(_forged())
    parser, _, shape = name.partition(": ")
    return _answer(listed(shape, limit_of(parser)))


def _source(name: str, url: str) -> Source:
    if name == "announcements":
        return StoreBroadcasters("broadcasters", BroadcastersTable(url, (1,)))
    parser = name.partition(": ")[0]
    parse = PARSERS[parser][0] if parser in PARSERS else PARSERS["squid"][0]

    def found(body: bytes) -> dict[Check, Found]:
        parse(body)
        return {_CHECK: Failed("nothing is judged here")}

    return OneRequest(name, (_CHECK,), Request("GET", url, limit_bytes=limit_of(parser)), found)


class _Figures(NamedTuple):
    """What was measured while several upstreams did something."""

    stall_s: float = 0
    grown_kb: int = 0
    latest_s: float = 0
    honest_failed: bool = False

    def __str__(self) -> str:
        return (
            f"the loop stalled for {self.stall_s * 1000:.0f} ms, {self.grown_kb} kB more,"
            f" the latest probe after {self.latest_s:.1f} s, an honest upstream"
            f" {'failed' if self.honest_failed else 'answered'}"
        )

    @property
    def is_too_much(self) -> bool:
        return (
            self.honest_failed
            or self.stall_s > _MOST_STALL_S * _AT_ONCE
            or self.latest_s > _HONEST_PROBE_S + _LATE_S
            or self.grown_kb > _MOST_KB
        )


async def _flood(name: str) -> _Figures:
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
        open_session(_HONEST_PROBE_S) as other_session,
    ):
        ticking = asyncio.create_task(tick())
        began_s = time.monotonic()
        floods = [observe(_source(name, url), session, lambda: NOON) for _ in range(_AT_ONCE)]
        *_, answer = await asyncio.gather(*floods, other_session.fetch(Request("GET", honest)), return_exceptions=True)
        latest_s = time.monotonic() - began_s
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    return _Figures(longest_s, grown_kb, latest_s, isinstance(answer, BaseException))


def _judge(case: bytes) -> tuple[Verdict, _Figures]:
    name = case.decode("latin-1")
    if name not in _names():
        return Verdict("no flood"), _Figures()
    figures = run(_flood(name))
    return Verdict(name, f"{name}: {figures}" if figures.is_too_much else ""), figures


def _change(chance: Random, _case: bytes, _other: bytes) -> bytes:
    return chance.choice(_names()).encode()


@contextmanager
def _judging() -> Iterator[Judge]:
    worst = _Figures()

    def each(cases: Sequence[bytes]) -> list[Verdict]:
        nonlocal worst
        found = [_judge(case) for case in cases]
        worst = _Figures(*map(max, zip(worst, *(figures for _, figures in found), strict=True)))
        return [verdict for verdict, _ in found]

    yield Judge(each, figures=lambda: f"at worst {worst}")


def _seeds() -> list[bytes]:
    return [name.encode() for name in (*_ENDLESS, "announcements")]


FLOODS: Final = Kind("floods from upstreams", _seeds, _change, _judging, is_steady=False)
