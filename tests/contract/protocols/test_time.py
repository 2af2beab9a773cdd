"""A probe of several requests, or one that stalls before its first byte, ends in time as well."""

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from lookout.core.model import Check, Failed
from lookout.protocols.broadcasters.seen import NOTHING_SEEN, BroadcastersTable
from lookout.protocols.broadcasters.source import RelayBroadcasters, StoreBroadcasters
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import KindTable, Request
from lookout.protocols.client.session import open_session
from lookout.protocols.evm import EVM, EvmEndpoint
from lookout.protocols.messaging import MessagingSource, MessagingTable
from lookout.protocols.source import Source, observe
from tests.builders import NOON
from tests.contract.protocols.announcers import a_message, a_page
from tests.contract.protocols.recorded import recorded
from tests.contract.protocols.upstreams import Answer, answering

TIMEOUT_S = 0.3
STEP_S = 0.2  # one request is in time, two are not


@contextmanager
def in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < TIMEOUT_S + 10


def endless_pages() -> Answer:
    cursors = itertools.count()
    return lambda _: (200, a_page(a_message(1), cursor=f"0x{next(cursors)}"))


SEVERAL_REQUESTS = {
    "one path and then another": (lambda url: MessagingSource("messaging", MessagingTable(url)), lambda _: (404, b"")),
    "subscribing and then reading": (
        lambda url: RelayBroadcasters("broadcasters", BroadcastersTable(url, (1, 137), "relay")),
        lambda asked: (200, b"OK") if asked.method == "POST" else (404, b""),
    ),
    "a chain id and then a block number": (
        lambda url: EVM.sources("provider", KindTable(42161, "evm", url))[0],
        lambda _: (200, recorded("evm-chain-id.json")),
    ),
}


@pytest.mark.clause("M3")
@pytest.mark.parametrize(("source_at", "answer"), SEVERAL_REQUESTS.values(), ids=SEVERAL_REQUESTS)
async def test_requests_that_are_each_in_time_are_not_together(
    source_at: Callable[[str], Source], answer: Answer
) -> None:
    async with answering(answer, after_s=STEP_S) as (url, _), open_session(TIMEOUT_S) as session:
        source = source_at(url)
        with in_time():
            found = await observe(source, session, lambda: NOON)
        # On a busy machine the second connection is not there yet.
        assert found in [dict.fromkeys(source.checks, Failed(f"timeout: {what}")) for what in ("first byte", "connect")]


@pytest.mark.clause("M3")
async def test_a_newest_page_that_takes_too_long_is_a_failed_probe() -> None:
    async with answering(endless_pages(), after_s=60) as (url, _), open_session(TIMEOUT_S) as session:
        source = StoreBroadcasters("broadcasters", BroadcastersTable(url, (1,)))
        with in_time():
            found = await observe(source, session, lambda: NOON)
        assert found == {Check("broadcasters", 1): Failed("timeout: first byte")}
        assert source.seen == NOTHING_SEEN


@pytest.mark.clause("M3", "M8")
async def test_a_chain_id_and_a_block_come_in_time_together_or_not_at_all() -> None:
    answer = recorded("evm-chain-id.json")
    async with answering(lambda _: (200, answer), after_s=STEP_S) as (url, _), open_session(TIMEOUT_S) as session:
        with in_time(), pytest.raises(ProbeFailed, match="timeout"):
            await EvmEndpoint("rpc 1 of Arbitrum", 42161, url).read(session, lambda: NOON)


@pytest.mark.clause("M3", "M6")
async def test_a_name_server_that_stays_silent_is_a_timeout_and_holds_up_no_other_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered, look_up = threading.Event(), socket.getaddrinfo

    def wait(host: bytes, port: int, *, flags: int, **options: Any) -> object:
        if host == b"stalls.invalid" and not flags & socket.AI_NUMERICHOST:
            answered.wait(60)
        return look_up(host, port, flags=flags, **options)

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    async with answering(lambda _: (200, b"{}")) as (url, _), open_session(TIMEOUT_S) as session:
        try:
            with in_time():
                stalled = [session.fetch(Request("GET", "http://stalls.invalid/")) for _ in range(40)]
                named = replace(session, timeout_s=20).fetch(Request("GET", url.replace("127.0.0.1", "localhost")))
                *failed, body = await asyncio.gather(*stalled, named, return_exceptions=True)
            assert {str(failure) for failure in failed} == {"timeout: connect"}
            assert body == b"{}"
        finally:
            answered.set()
