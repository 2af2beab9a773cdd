"""Floods from upstreams and from strangers: a probe ends in time, and nobody else waits."""

import asyncio
import base64
import json
import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from lookout.core.model import Found, Members, Nothing
from lookout.protocols.broadcasters.announcements import LONGEST_PAYLOAD
from lookout.protocols.broadcasters.source import LIMIT_BYTES, MAX_PAGES, PAGE_SIZE, SMALL_PAGE_SIZE
from lookout.protocols.client.connection import MOST_BESIDES_BODY
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import DIRECT, MIB, AccessTable, Request
from lookout.protocols.client.session import Session, open_session
from tests.builders import HOUR, MINUTE, NOON, SECOND
from tests.contract.protocols.announcers import a_message, a_page, broadcaster, envelope
from tests.contract.protocols.listener import ONE, probes
from tests.contract.protocols.proxies import a_proxy
from tests.contract.protocols.upstreams import Asked, Reply, answering, saying, talking
from tests.contract.protocols.waku_store import query_of
from tests.fuzz.floods import BEFORE, BESIDES, CONTINUE, FLOODS, HINTS, Flood
from tests.integration.authority import Authority

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# A connection's buffers: the sender's, and the receiver's as large as Linux makes it.
MOST_BUFFERED = 12 * MIB


async def asked(session: Session, url: str, access: AccessTable = DIRECT) -> bytes | str:
    """The body, or why there is none."""
    try:
        return await session.fetch(Request("GET", url, access))
    except ProbeFailed as failure:
        return failure.reason


class Flooding:
    """Floods every connection, at once or once it was asked, and counts the bytes that were taken."""

    def __init__(self, flood: Flood, *, is_asked_first: bool = True) -> None:
        self.taken = 0
        self._flood, self._is_asked_first = flood, is_asked_first

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_asked_first:
            await reader.readuntil(b"\r\n\r\n")
        writer.write(self._flood.start)
        drops = self._flood.drop * max(1, 65_536 // len(self._flood.drop))
        while True:
            writer.write(drops)
            await writer.drain()
            self.taken += len(drops)
            await asyncio.sleep(0)  # of a TLS connection that is lost, uvloop's drain() never waits


async def ask_amid(flooding: Flooding, tls: ssl.SSLContext | None = None, access: AccessTable = DIRECT) -> bytes | str:
    """What two requests to the flood find, while an honest upstream is asked as well."""
    async with AsyncExitStack() as opened:
        session = await opened.enter_async_context(open_session(60))
        flood = await opened.enter_async_context(talking(flooding, tls))
        honest, _ = await opened.enter_async_context(answering(lambda _: (200, b"{}"), after_s=0.2))
        one, other, answer = await asyncio.gather(
            asked(session, flood, access), asked(session, flood, access), asked(session, honest)
        )
        assert answer == b"{}"
        assert flooding.taken < 2 * MOST_BUFFERED
        assert one == other
        return one


@pytest.mark.clause("M3", "M6", "M17")
@pytest.mark.parametrize("kind", FLOODS)
async def test_of_a_flood_little_is_read_and_no_honest_upstream_fails(kind: str) -> None:
    assert await ask_amid(Flooding(FLOODS[kind])) == FLOODS[kind].found


@pytest.mark.clause("M3", "M6", "M17")
@pytest.mark.parametrize("kind", ["being asked to go on", "a body in chunks of one byte"])
@pytest.mark.parametrize("is_asked_first", [True, False], ids=["once asked", "before it is asked"])
@pytest.mark.parametrize("is_tunnelled", [True, False], ids=["through a proxy", "directly"])
async def test_of_a_flood_within_tls_little_is_read(
    kind: str, is_asked_first: bool, is_tunnelled: bool, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.vouch("127.0.0.1", days=1))
    flooding = Flooding(FLOODS[kind], is_asked_first=is_asked_first)
    async with a_proxy() as (proxy, _):
        access = AccessTable(ca_file=authority.path.read_text(), proxy=proxy if is_tunnelled else "")
        assert await ask_amid(flooding, tls, access) == FLOODS[kind].found


@pytest.mark.clause("M3", "M6")
async def test_of_a_flood_that_nobody_asked_for_little_is_read() -> None:
    assert await ask_amid(Flooding(FLOODS["hints"], is_asked_first=False)) == FLOODS["hints"].found


@pytest.mark.clause("M3", "M6")
async def test_of_a_flood_of_a_proxy_little_is_read() -> None:
    flooding = Flooding(FLOODS["hints"])
    async with talking(flooding) as proxy, open_session(60) as session:
        found = await asked(session, "https://192.0.2.1", AccessTable(proxy=proxy))
    assert found == f"proxy: {BEFORE}"
    assert flooding.taken < MOST_BUFFERED


def padded_to(size: int, begin: bytes, end: bytes) -> bytes:
    return begin + b"a" * (size - len(begin) - len(end)) + end


@pytest.mark.clause("M3", "M9")
@pytest.mark.parametrize("more", [0, 1], ids=["as long as it may be", "a byte longer"])
@pytest.mark.parametrize("piece", [997, 2 * MIB], ids=["in pieces", "at once"])
@pytest.mark.parametrize(
    ("begin", "end", "limit", "found"),
    [
        pytest.param(b"HTTP/1.1 100 ", b"\r\n\r\n", MOST_BESIDES_BODY - len(OK) + 2, BEFORE, id="an interim answer"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nX: ", b"\r\nContent-Length: 2\r\n\r\n", MOST_BESIDES_BODY, BEFORE, id="a head"
        ),
        pytest.param(
            CHUNKED + b"2;", b"\r\n{}\r\n0\r\n\r\n", MOST_BESIDES_BODY + MIB, BESIDES, id="what is besides the body"
        ),
    ],
)
async def test_an_answer_has_so_many_bytes_and_no_more(
    begin: bytes, end: bytes, limit: int, found: str, piece: int, more: int
) -> None:
    said = padded_to(limit + more, begin, end)
    said += b"" if begin.startswith(CHUNKED) else b"{}" if b"200" in begin else OK
    parts = [said[start : start + piece] for start in range(0, len(said), piece)]
    async with talking(saying(*parts)) as url, open_session(60) as session:
        assert await asked(session, url) == (found if more else b"{}")


@pytest.mark.clause("M9")
@pytest.mark.parametrize("interim", [CONTINUE, HINTS, b"HTTP/1.1 102 Processing\r\n\r\n", CONTINUE + HINTS])
async def test_interim_answers_are_passed_over(interim: bytes) -> None:
    for parts in ((interim, OK), (interim * 4 + OK,)):
        async with talking(saying(*parts)) as url, open_session(20) as session:
            assert await asked(session, url) == b"{}"


@pytest.mark.clause("M9")
@pytest.mark.parametrize("limit_bytes", [MIB, LIMIT_BYTES])
@pytest.mark.parametrize("size", [512, 4_096, MIB])
async def test_a_body_as_long_as_it_may_be_comes_in_chunks(size: int, limit_bytes: int) -> None:
    body = b"[%b]" % (b" " * (limit_bytes - 2))
    async with talking(saying(CHUNKED, chunks_of(body, size), b"0\r\n\r\n")) as url, open_session(20) as session:
        assert await session.fetch(Request("GET", url, limit_bytes=limit_bytes)) == body


def chunks_of(body: bytes, size: int) -> bytes:
    parts = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def forged_payload() -> str:
    impostor = broadcaster(99)._replace(key=broadcaster(98).key)
    fees = {"feeExpiration": NOON + HOUR, "availableWallets": 2}
    return base64.b64encode(envelope(impostor, fees)).decode()


@pytest.mark.clause("S10")
def test_a_true_announcement_is_found_among_as_many_forged_ones_as_a_store_can_give() -> None:
    forged = [{**a_message(99, sent_at=NOON + SECOND), "payload": forged_payload()}] * PAGE_SIZE
    pages = [a_page(*forged, cursor=f"0x{number}") for number in range(1, MAX_PAGES)]
    pages.append(a_page(*forged[1:], a_message(1)))
    answers = iter(pages)
    assert probes(lambda _: (200, next(answers)), NOON)[0] == [{ONE: Members(1, 1)}]


@pytest.mark.parametrize(
    ("size", "found"),
    [
        pytest.param(LONGEST_PAYLOAD, Members(1, 1), id="as long as it may be"),
        pytest.param(LONGEST_PAYLOAD + 4, Members(0, 0), id="longer than any real one"),
    ],
)
def test_a_payload_is_not_decoded_if_it_is_longer_than_any_real_one(size: int, found: Members) -> None:
    padded = envelope(broadcaster(1), {"feeExpiration": NOON + HOUR, "availableWallets": 2})
    padded += b" " * (size // 4 * 3 - len(padded))
    message = {**a_message(1), "payload": base64.b64encode(padded).decode()}
    assert len(message["payload"]) == size
    assert probes(lambda _: (200, a_page(message)), NOON)[0] == [{ONE: found}]


@pytest.mark.clause("S10")
def test_of_a_relay_every_signature_is_checked_so_that_forged_ones_hide_nobody() -> None:
    """Anybody may name the address of somebody who is known."""
    impostor = broadcaster(1)._replace(key=broadcaster(98).key)
    payload = base64.b64encode(envelope(impostor, {"feeExpiration": NOON + HOUR, "availableWallets": 1})).decode()
    forged = {**a_message(1, sent_at=NOON + SECOND), "payload": payload}
    true = [a_message(1, sent_at=NOON), a_message(2, sent_at=NOON)]
    before = [a_message(n, sent_at=NOON - 5 * MINUTE) for n in (1, 2)]
    caches = iter([before, true + [forged] * 1_000])
    found, _, _ = probes(lambda _: (200, json.dumps(next(caches)).encode()), NOON - 5 * MINUTE, NOON, via="relay")
    assert found[1] == {ONE: Members(2, 2)}


@pytest.mark.clause("S10", "M9")
@pytest.mark.parametrize(
    ("strangers", "size"),
    [
        pytest.param(99, 32_000, id="many long ones"),
        pytest.param(23, 140_000, id="some as long as a network passes on"),
    ],
)
def test_long_messages_of_strangers_fail_no_store(strangers: int, size: int) -> None:
    """Strangers choose how long a page is: one that is too long is asked for again as a small one."""
    messages = [{**a_message(99), "payload": "A" * size}] * strangers
    messages.insert(5, a_message(1))
    asked_for: list[int] = []

    def answer(asked: Asked) -> Reply:
        query = query_of(asked)
        size, start = int(query["pageSize"]), int(query.get("cursor", "0"))
        asked_for.append(size)
        end = start + size
        return 200, a_page(*messages[start:end], cursor=str(end) if end < len(messages) else None)

    assert probes(answer, NOON)[0] == [{ONE: Members(1, 1)}]
    assert asked_for[:3] == [PAGE_SIZE, SMALL_PAGE_SIZE, SMALL_PAGE_SIZE]


@pytest.mark.clause("S10")
@pytest.mark.parametrize(
    ("oldest_at", "found"),
    [
        pytest.param(NOON - MINUTE, Nothing("still_reading"), id="the fresh ones were not all read"),
        pytest.param(NOON - 2 * MINUTE, Members(1, 2), id="all that is not read is too old to count"),
    ],
)
def test_who_may_have_announced_itself_in_what_was_not_read_is_not_called_silent(oldest_at: int, found: Found) -> None:
    seen = probes(lambda _: (200, a_page(*(a_message(n, sent_at=NOON - HOUR) for n in (1, 2)))), NOON - HOUR)[2]
    page = a_page(a_message(1), {**a_message(99, sent_at=oldest_at), "payload": forged_payload()}, cursor="0x1")
    answers = iter([(200, page)])
    assert probes(lambda _: next(answers, (500, b"")), NOON, seen=seen)[0] == [{ONE: found}]
