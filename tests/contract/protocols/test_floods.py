"""Floods from upstreams: what comes before, after and besides an answer is left unread, and nobody else waits."""

import asyncio
import base64
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import ClientPayloadError

from lookout.core.model import Found, Members, Nothing
from lookout.protocols.broadcasters.announcements import LONGEST_PAYLOAD
from lookout.protocols.broadcasters.source import (
    LIMIT_BYTES,
    MAX_PAGES,
    MOST_MESSAGES,
    MOST_SIGNATURES,
    PAGE_SIZE,
    SMALL_PAGE_SIZE,
)
from lookout.protocols.client import connector
from lookout.protocols.client.connector import MOST_BESIDES_BODY, MOST_INTERIM, PIECE_BYTES, Connection
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import MIB, Request
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.client.turns import Turns
from tests.builders import HOUR, MINUTE, NOON, SECOND
from tests.contract.protocols.announcers import a_message, a_page, broadcaster, envelope
from tests.contract.protocols.listener import ONE, probes
from tests.contract.protocols.upstreams import Asked, Conversation, Reply, answering, saying, talking
from tests.contract.protocols.waku_store import query_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 \r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
PROBE_S = 5
# A connection's buffers on both sides; a client that goes on reading takes that much in a tenth of a second.
MOST_TAKEN = 16 * 1_048_576


class Flood:
    """Reads the request if it should, begins like this, and goes on with that without end."""

    def __init__(self, start: bytes, drop: bytes, *, reads_first: bool = True) -> None:
        self.taken = 0
        self._start, self._drop, self._reads_first = start, drop * (65_536 // len(drop) + 1), reads_first

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._reads_first:
            await reader.readuntil(b"\r\n\r\n")
        writer.write(self._start)
        while True:
            writer.write(self._drop)
            await writer.drain()
            self.taken += len(self._drop)
            if self.taken % (16 * len(self._drop)) == 0:
                await asyncio.sleep(0)  # of a TLS connection that is lost, drain() of uvloop 0.22 never waits


async def asked(session: Session, url: str) -> bytes | str:
    """The body, or why there is none."""
    try:
        return await session.fetch(Request("GET", url))
    except ProbeFailed as failure:
        return failure.reason


async def asked_amid(flood: Flood) -> bytes | str:
    async with talking(flood) as url, open_session(PROBE_S) as session:
        found = await asked(session, url)
        taken = -1
        while taken != flood.taken:  # until nobody takes any more of it
            taken = flood.taken
            await asyncio.sleep(0.05)
        return found


@pytest.mark.clause("M3", "M6")
@pytest.mark.parametrize(
    ("flood", "found"),
    [
        pytest.param(Flood(b"", CONTINUE), "bad_http: too many interim answers", id="being asked to go on"),
        pytest.param(Flood(b"", HINTS), "bad_http: too many interim answers", id="hints"),
        pytest.param(
            Flood(b"HTTP/1.1 102 Processing\r\n", b"A: %b\r\n" % (b"b" * 8_000)),
            f"bad_http: over {MOST_BESIDES_BODY} bytes besides the body",
            id="an interim answer with a head of long fields",
        ),
        pytest.param(
            Flood(b"HTTP/1.1 200 OK\r\n", b"A: %b\r\n" % (b"b" * 8_000)),
            f"bad_http: over {MOST_BESIDES_BODY} bytes besides the body",
            id="a head of long fields",
        ),
        pytest.param(
            Flood(CHUNKED, b"1\r\n \r\n"),
            f"bad_http: over {MOST_BESIDES_BODY} bytes besides the body",
            id="a body in chunks of one byte",
        ),
        pytest.param(
            Flood(CHUNKED, b"20;%b\r\n%b\r\n" % (b"a" * 32, b" " * 32)),
            f"bad_http: over {MOST_BESIDES_BODY} bytes besides the body",
            id="a body in chunks with more to say of each than is in it",
        ),
        pytest.param(Flood(OK, CONTINUE), b"{}", id="interim answers after the answer"),
        pytest.param(Flood(OK, OK), b"{}", id="the answer again and again"),
    ],
)
async def test_a_flood_around_the_answer_is_left_unread(flood: Flood, found: bytes | str) -> None:
    assert await asked_amid(flood) == found
    assert flood.taken < MOST_TAKEN


@pytest.mark.clause("M6")
async def test_a_flood_before_the_request_is_left_unread() -> None:
    flood = Flood(b"", CONTINUE, reads_first=False)
    # Depending on which of the two is first.
    assert await asked_amid(flood) in ("bad_http: bytes that were not asked for", "bad_http: too many interim answers")
    assert flood.taken < MOST_TAKEN


@pytest.mark.clause("M9")
@pytest.mark.parametrize("interim", [CONTINUE, HINTS, b"HTTP/1.1 102 Processing\r\n\r\n", CONTINUE + HINTS])
async def test_a_few_interim_answers_are_passed_over(interim: bytes) -> None:
    for parts in ((interim, OK), (interim * (MOST_INTERIM // 2) + OK,)):
        async with talking(saying(*parts)) as url, open_session(PROBE_S) as session:
            assert await asked(session, url) == b"{}"


@pytest.mark.clause("M6")
async def test_bytes_on_a_connection_that_is_kept_end_it_and_fail_nobody() -> None:
    flood_begins = asyncio.Event()
    taken: list[int] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await flood_begins.wait()
        while not taken or sum(taken) < 2 * MOST_TAKEN:
            writer.write(CONTINUE * 4_000)
            await writer.drain()
            taken.append(4_000 * len(CONTINUE))

    async with talking(converse) as url, open_session(PROBE_S) as session:
        assert await asked(session, url) == b"{}"
        flood_begins.set()
        await asyncio.sleep(0.3)
        assert sum(taken) < MOST_TAKEN
        flood_begins.clear()
        assert await asked(session, url) == b"{}"


@pytest.mark.clause("M3", "M6")
async def test_floods_from_four_upstreams_fail_no_honest_one() -> None:
    async with AsyncExitStack() as opened:
        session = await opened.enter_async_context(open_session(PROBE_S))
        urls = [await opened.enter_async_context(talking(Flood(b"", drop))) for drop in (CONTINUE, HINTS) * 2]
        honest, _ = await opened.enter_async_context(answering(lambda _: (200, b"{}"), after_s=0.2))
        assert await asyncio.gather(*(asked(session, url) for url in (*urls, honest))) == [
            *["bad_http: too many interim answers"] * 4,
            b"{}",
        ]


@pytest.mark.clause("M6")
@pytest.mark.parametrize(
    "response", [pytest.param(OK, id="the answer again and again"), pytest.param(CONTINUE, id="being asked to go on")]
)
async def test_of_a_flood_no_more_is_parsed_than_a_small_piece(
    response: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much has come: the event loop waits meanwhile."""
    parsed = 0

    class Counting(Connection):
        def feed_data(self, *response: Any) -> None:
            nonlocal parsed
            parsed += 1
            super().feed_data(*response)

    monkeypatch.setattr(connector, "Connection", Counting)
    await asked_amid(Flood(response * 10_000, response))
    assert 1 <= parsed <= PIECE_BYTES // len(response) + 1


@pytest.mark.clause("M9")
@pytest.mark.parametrize("limit_bytes", [MIB, LIMIT_BYTES])
@pytest.mark.parametrize("size", [64, 100, 4_096, MIB])
async def test_a_body_as_long_as_it_may_be_comes_in_small_chunks(size: int, limit_bytes: int) -> None:
    body = b"[%b]" % (b" " * (limit_bytes - 2))
    async with talking(saying(CHUNKED, chunks_of(body, size), b"0\r\n\r\n")) as url, open_session(PROBE_S) as session:
        assert await session.fetch(Request("GET", url, limit_bytes=limit_bytes)) == body


@pytest.mark.clause("M3", "M16")
@pytest.mark.parametrize("size", [100, 20_000, 60_000, 200_000])
@pytest.mark.parametrize(
    "end", [pytest.param(b"no size\r\n", id="a chunk"), pytest.param(b"0\r\nno field\r\n\r\n", id="a trailer")]
)
async def test_what_is_not_http_in_the_middle_of_a_body_is_noticed_at_once(size: int, end: bytes) -> None:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + chunks_of(b" " * size, 4_096) + end)
        await reader.read()

    async with talking(converse) as url, open_session(PROBE_S) as session:
        assert await asked(session, url) == "bad_http"


@pytest.mark.clause("M9", "M16")
@pytest.mark.parametrize(
    ("converse", "expected"),
    [
        pytest.param(Flood(CHUNKED, b"1\r\n \r\n"), ProbeFailed, id="was refused"),
        pytest.param(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"), ClientPayloadError, id="broke off"),
        pytest.param(saying(OK), b"{}", id="was whole"),
    ],
)
async def test_who_reads_a_body_only_after_its_connection_was_closed_learns_that_it(
    converse: Conversation, expected: bytes | type[Exception]
) -> None:
    async with talking(converse) as url, open_session(PROBE_S) as session, session.http.get(url) as response:
        await asyncio.sleep(0.2)
        if isinstance(expected, bytes):
            assert await response.content.read() == expected
        else:
            with pytest.raises(expected):
                await response.content.read()


def chunks_of(body: bytes, size: int) -> bytes:
    parts = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


@pytest.mark.clause("M6")
def test_others_get_their_turn_when_its_time_is_over_and_not_before() -> None:
    class Loop(asyncio.SelectorEventLoop):
        passed_s = 0.0

        def time(self) -> float:
            return self.passed_s

    async def work() -> list[str]:
        done: list[str] = []
        turns = Turns()
        asyncio.get_running_loop().call_soon(done.append, "another")
        for number in range(3):
            await turns.end_if_over()
            done.append(f"part {number}")
            loop.passed_s += 0.003
        return done

    loop = Loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(work()) == ["part 0", "part 1", "another", "part 2"]


@pytest.mark.clause("M6", "S10")
def test_so_many_signatures_are_checked_of_those_who_are_known_first_and_then_of_the_newest() -> None:
    """A store that gives more messages than it was asked for, nearly all of them forged."""
    forged = {**a_message(99), "payload": forged_payload()}
    flood = [{**forged, "timestamp": (NOON - SECOND) * 1_000_000}] * (MOST_SIGNATURES * 2 // 3)
    seen = probes(lambda _: (200, a_page(a_message(1, sent_at=NOON - HOUR))), NOON - HOUR)[2]
    last = a_page(a_message(2, sent_at=NOON - MINUTE), *flood, a_message(1, sent_at=NOON - MINUTE))
    pages = iter([a_page(*flood, a_message(3), cursor="0x1"), last])
    found, _, seen = probes(lambda _: (200, next(pages)), NOON, seen=seen)
    assert found == [{ONE: Members(2, 2)}]
    assert {each.announcement.address for each in seen.sightings} == {broadcaster(n).address for n in (1, 3)}


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
def test_announcements_that_change_nothing_need_no_check() -> None:
    again = [a_message(1, sent_at=NOON - 1 - number) for number in range(MOST_SIGNATURES * 2 // 3)]
    pages = iter([a_page(a_message(1), *again, cursor="0x1"), a_page(*again, a_message(2, sent_at=NOON - MINUTE))])
    assert probes(lambda _: (200, next(pages)), NOON)[0] == [{ONE: Members(2, 2)}]


@pytest.mark.clause("S10")
def test_of_a_relay_every_signature_is_checked_so_that_forged_ones_hide_nobody() -> None:
    """Anybody may name the address of somebody who is known."""
    impostor = broadcaster(1)._replace(key=broadcaster(98).key)
    payload = base64.b64encode(envelope(impostor, {"feeExpiration": NOON + HOUR, "availableWallets": 1})).decode()
    forged = {**a_message(1, sent_at=NOON + SECOND), "payload": payload}
    true = [a_message(1, sent_at=NOON), a_message(2, sent_at=NOON)]
    before = [a_message(n, sent_at=NOON - 5 * MINUTE) for n in (1, 2)]
    caches = iter([before, true + [forged] * (MOST_MESSAGES - len(true))])
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
