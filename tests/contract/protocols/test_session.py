"""Whatever an upstream does on the wire ends in time, as bytes or as a short reason; over real sockets."""

import asyncio
import base64
import gzip
import shutil
import socket
import time
from collections.abc import Callable

import pytest

from lookout.core.model import Blocks, Check, Failed
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import MIB, AccessTable, Request, below
from lookout.protocols.client.session import open_session
from lookout.protocols.source import OneRequest, observe
from tests.builders import INDEXER, NOON
from tests.contract.protocols.upstreams import (
    Conversation,
    answering,
    dripping,
    pouring,
    resetting,
    saying,
    silence,
    silence_before_reading,
    talking,
)

TIMEOUT_S = 0.3
OK = b"HTTP/1.1 200 OK\r\n"


async def ask(url: str, *, timeout_s: float = 5, limit_bytes: int = MIB, **headers: str) -> bytes:
    async with open_session(timeout_s) as session:
        return await session.fetch(Request("POST", url, AccessTable(headers=headers), b"{}", limit_bytes))


async def reason(conversation: Conversation, *, timeout_s: float = 5, scheme: str = "http") -> str:
    """Why asking an upstream that talks like this fails."""
    async with talking(conversation) as url:
        with pytest.raises(ProbeFailed) as caught:
            await ask(url.replace("http", scheme, 1), timeout_s=timeout_s)
        return caught.value.reason


def sized(content: bytes, *headers: bytes) -> bytes:
    return (
        OK + b"".join(header + b"\r\n" for header in headers) + b"Content-Length: %d\r\n\r\n" % len(content) + content
    )


@pytest.mark.clause("M3")
@pytest.mark.parametrize(
    ("conversation", "scheme", "stage"),
    [
        pytest.param(silence, "http", "first byte", id="silence after the request"),
        pytest.param(silence_before_reading, "http", "first byte", id="silence after accepting"),
        pytest.param(silence_before_reading, "https", "connect", id="silence in the TLS handshake"),
        pytest.param(dripping(b"HTTP/1.1 200 ", b"O"), "http", "first byte", id="a status line that drips"),
        pytest.param(dripping(OK, b"X-A: b\r\n"), "http", "first byte", id="headers that drip"),
        pytest.param(dripping(OK + b"Content-Length: 1000000\r\n\r\n", b"1"), "http", "body", id="a body that drips"),
        pytest.param(
            dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n1\r\n"), "http", "body", id="chunks that drip"
        ),
    ],
)
async def test_a_probe_ends_in_time_whatever_the_upstream_does(
    conversation: Conversation, scheme: str, stage: str
) -> None:
    began = time.monotonic()
    why = await reason(conversation, timeout_s=TIMEOUT_S, scheme=scheme)
    assert time.monotonic() - began < TIMEOUT_S + 10
    assert why == f"timeout: {stage}"


BROKEN = {
    "a compressed bomb": (
        saying(sized(gzip.compress(bytes(20 * MIB)), b"Content-Encoding: gzip")),
        "too_large: over 1048576 bytes",
    ),
    "endless bytes after a small compressed body": (
        pouring(OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}"), bytes(65_536)),
        "too_large: over 1048576 bytes",
    ),
    "a compressed body that is cut": (
        saying(sized(gzip.compress(b"{}")[:-4], b"Content-Encoding: gzip")),
        "broken_off",
    ),
    "gzip that is none": (saying(sized(b"{}", b"Content-Encoding: gzip")), "bad_encoding"),
    "an encoding nobody asked for": (saying(sized(b"{}", b"Content-Encoding: br")), "bad_encoding"),
    "a reset instead of an answer": (resetting(b""), "reset"),
    "a reset in the middle of the body": (resetting(OK + b"Content-Length: 100\r\n\r\n{"), "broken_off"),
    "a body shorter than its length": (saying(OK + b"Content-Length: 100\r\n\r\n{"), "broken_off"),
    "chunks that break off": (saying(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n12"), "broken_off"),
    "a chunk size that is no number": (
        saying(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
        "bad_http",
    ),
    "closing instead of an answer": (saying(b""), "closed"),
    "another protocol": (saying(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "bad_http"),
    "a length that is no number": (saying(OK + b"Content-Length: nine\r\n\r\n{}"), "bad_http"),
    "bytes that are no HTTP": (saying(bytes(100)), "bad_http"),
    "a redirect is not followed": (
        saying(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
        "redirect: 302",
    ),
    "a rate limit": (
        saying(b"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n{}"),
        "rate_limited: 429",
    ),
    "a server error": (saying(b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}"), "http_status: 500"),
    "unavailable, told without end": (pouring(b"HTTP/1.1 503 Busy\r\n\r\n", b"x" * 65_536), "http_status: 503"),
    "success without an answer": (saying(b"HTTP/1.1 204 None\r\n\r\n"), "http_status: 204"),
}


@pytest.mark.clause("M3")
@pytest.mark.parametrize(("conversation", "expected"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_is_a_failed_probe(conversation: Conversation, expected: str) -> None:
    assert await reason(conversation) == expected


def unused_address() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}/"


@pytest.mark.clause("M3")
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param(unused_address, "refused", id="nobody listens"),
        pytest.param(lambda: "http://nobody.invalid/", "dns", id="a name that does not exist"),
        pytest.param(lambda: f"http://{'a' * 64}.invalid/", "dns", id="a name that cannot exist"),
        pytest.param(lambda: "http://[::1/", "bad_address", id="no address"),
        pytest.param(lambda: "http:///path", "bad_address", id="an address without a host"),
    ],
)
async def test_an_upstream_that_is_not_there_is_a_failed_probe(address: Callable[[], str], expected: str) -> None:
    with pytest.raises(ProbeFailed) as caught:
        await ask(address(), timeout_s=8)
    assert caught.value.reason == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param((sized(b'{"a":1}', b"Content-Type: application/json"),), b'{"a":1}', id="as it was sent"),
        pytest.param((sized(b'{"a":1}', b"Content-Type: text/html"),), b'{"a":1}', id="with a wrong content type"),
        pytest.param((sized(b"<html>blocked</html>"),), b"<html>blocked</html>", id="HTML, which a parser refuses"),
        pytest.param((sized(gzip.compress(b"[]"), b"Content-Encoding: gzip"),), b"[]", id="decompressed"),
        pytest.param(
            (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n", b"1\r\n]\r\n0\r\n\r\n"), b"[]", id="put together"
        ),
        pytest.param((OK + b"\r\n", b"{", b"}"), b"{}", id="until the connection closes"),
        pytest.param((b"HTTP/1.0 200\r\n\r\n[]",), b"[]", id="in the oldest form"),
        pytest.param((b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",), b"{}", id="after lines that end with LF alone"),
        pytest.param(
            (OK + b"X: \x01\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",),
            b"{}",
            id="after a control character, and a chunk size with a space",
        ),
        pytest.param(
            (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\nContent-Encoding: gzip\r\n\r\n",),
            b"[]",
            id="whatever its trailers say",
        ),
        pytest.param(
            (b"HTTP/1.1 103 Hints\r\nContent-Encoding: br\r\n\r\n", sized(b"{}")),
            b"{}",
            id="whatever an interim answer says",
        ),
        pytest.param((sized(b"x" * MIB),), b"x" * MIB, id="as long as it may be"),
    ],
)
async def test_the_body_of_a_200_comes(parts: tuple[bytes, ...], expected: bytes) -> None:
    async with talking(saying(*parts)) as url:
        assert await ask(url) == expected


async def test_credentials_are_sent_and_cookies_are_not_kept() -> None:
    async with answering(lambda _: (200, b"{}")) as (url, asked), open_session(20) as session:
        with_user = url.replace("http://", "http://user:word@")
        await session.fetch(Request("GET", with_user))
        await session.fetch(Request("GET", with_user, AccessTable(headers={"authorization": "Bearer key\n"})))
    first, second = asked
    assert first.headers["authorization"] == "Basic dXNlcjp3b3Jk"
    assert second.headers["authorization"] == "Bearer key"
    assert first.headers["accept-encoding"] == "gzip"


CREDENTIALS = {
    "plain": ("user:word", b"user:word"),
    "a password of UTF-8 as it is": ("user:pä", "user:pä".encode()),
    "a password of UTF-8 percent-encoded": ("user:p%C3%A4", "user:pä".encode()),
    "a password of Latin-1": ("user:p%E4", b"user:p\xe4"),
    "a user outside of Latin-1": ("ж:€", "ж:€".encode()),
    "what separates the parts of an address": ("us%40er:p%3Aa%2Fb%25c", b"us@er:p:a/b%c"),
    "a user alone": ("token", b"token:"),
    "a password alone": (":word", b":word"),
}


@pytest.mark.parametrize(("written", "sent"), CREDENTIALS.values(), ids=CREDENTIALS)
async def test_credentials_in_an_address_are_sent_as_curl_sends_them(written: str, sent: bytes) -> None:
    async with answering(lambda _: (200, b"{}")) as (url, asked):
        address = url.replace("http://", f"http://{written}@")
        await ask(address)
        if curl := shutil.which("curl"):
            process = await asyncio.create_subprocess_exec(curl, "-s", address, stdout=asyncio.subprocess.DEVNULL)
            assert await process.wait() == 0
    for each in asked:
        assert each.headers["authorization"] == f"Basic {base64.b64encode(sent).decode()}"


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("http://h:1", "http://h:1/a/b?c=d"),
        ("http://h:1/", "http://h:1/a/b?c=d"),
        ("http://h:1/waku/", "http://h:1/waku/a/b?c=d"),
        ("http://h:1/waku?key=K", "http://h:1/waku/a/b?key=K&c=d"),
    ],
)
def test_an_address_below_another_keeps_its_path_and_its_key(base: str, expected: str) -> None:
    assert below(base, "/a/b", "c=d") == expected


def source_at(url: str) -> OneRequest:
    return OneRequest("indexer 1", (INDEXER, Check("indexer", 5)), Request("GET", url), parse)


def parse(answer: bytes) -> dict[Check, Blocks]:
    return {INDEXER: Blocks(int(answer))}


async def test_a_failure_is_found_for_every_check() -> None:
    async with open_session(20) as session:
        found = await observe(source_at(unused_address()), session, lambda: NOON)
    assert found == dict.fromkeys((INDEXER, Check("indexer", 5)), Failed("refused"))


@pytest.mark.clause("M11")
async def test_a_bug_is_not_a_failed_probe() -> None:
    async with answering(lambda _: (200, b"seven")) as (url, _), open_session(20) as session:
        with pytest.raises(ValueError, match="seven"):
            await observe(source_at(url), session, lambda: NOON)
