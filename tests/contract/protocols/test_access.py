"""How third parties are reached: authorities and proxies of one source, over real sockets, TLS and proxies."""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import uvloop
from msgspec.structs import asdict, fields

from lookout.base.setting_types import extract_certificates, trust_only
from lookout.config.settings import Settings, upstreams_of
from lookout.config.tables import ChainTable, RpcEndpoint
from lookout.protocols.broadcasters.source import BROADCASTERS
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import DIRECT, AccessTable, Request
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.source import AnyProtocol
from tests.builders import NOON
from tests.contract.protocols.proxies import a_proxy, basic
from tests.contract.protocols.upstreams import (
    Asked,
    Conversation,
    Reply,
    answering,
    dripping,
    resetting,
    saying,
    silence,
    talking,
)
from tests.integration.authority import Authority

NOWHERE: Final = "192.0.2.1"  # an address of documentation, to which nothing leads from anywhere
PASSED: Final = b"HTTP/1.1 200 Go on\r\n\r\n"
LOOPS: Final = [
    pytest.param(asyncio.new_event_loop, id="the standard library's loop"),
    pytest.param(uvloop.new_event_loop, id="uvloop"),
]
NewLoop = Callable[[], asyncio.AbstractEventLoop]


class Trust(NamedTuple):
    """A server's TLS for an address, and the certificates of the authority behind it."""

    tls: ssl.SSLContext
    ca_file: str
    own: str


@pytest.fixture
def trust(tmp_path: Path) -> Callable[[str], Trust]:
    def vouch(address: str = "127.0.0.1") -> Trust:
        authority = Authority(tmp_path)
        certificate = authority.vouch(address, days=1)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        return Trust(tls, *(extract_certificates(file.read_bytes()) for file in (authority.path, certificate)))

    return vouch


def run(coroutine: Coroutine[Any, Any, Any], new_loop: NewLoop) -> Any:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(coroutine)


async def ask(session: Session, url: str, access: AccessTable = DIRECT) -> bytes | str:
    """The body, or why there is none."""
    try:
        return await session.fetch(Request("POST", url, access, b"{}"))
    except ProbeFailed as failure:
        return failure.reason


async def ask_once(url: str, timeout_s: float = 5, **access: Any) -> bytes | str:
    async with open_session(timeout_s) as session:
        return await ask(session, url, AccessTable(**access))


def well(_: Asked) -> Reply:
    return 200, b"well"


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_private_authority_is_trusted_where_it_is_named_and_nowhere_else(
    trust: Callable[[], Trust], new_loop: NewLoop
) -> None:
    trusted, stranger = trust(), trust()

    async def converse() -> None:
        async with answering(well, tls=trusted.tls) as (url, asked), open_session(20) as session:
            for _ in range(2):  # one connection that is trusted is none for those who do not trust it
                assert await ask(session, url, AccessTable(ca_file=trusted.ca_file)) == b"well"
                assert await ask(session, url, AccessTable(ca_file=stranger.ca_file)) == "tls: unknown authority"
                assert await ask(session, url) == "tls: unknown authority"
            both = f"{stranger.ca_file}\n{trusted.ca_file}"
            assert await ask(session, url, AccessTable(ca_file=both)) == b"well"
            ends: list[int] = []
            listening = replace(session, hear_certificate=ends.append)
            assert await ask(listening, url, AccessTable(ca_file=trusted.own)) == b"well"
            assert len(asked) == 4
            (ends_at,) = ends  # it was vouched for one day
            assert abs(ends_at / 1000 - time.time() - 86_400) < 600

    run(converse(), new_loop)


def test_what_is_trusted_is_made_once_of_a_file(trust: Callable[[], Trust]) -> None:
    one, other = trust().ca_file, trust().ca_file
    assert trust_only(one) is trust_only(str(one.encode(), "ascii"))
    assert trust_only(one) is not trust_only(other)


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("is_tls", [True, False], ids=["through TLS", "plainly"])
@pytest.mark.parametrize(
    ("user", "credentials"),
    [
        pytest.param("", None, id="of anybody"),
        pytest.param("user:word@", "user:word", id="with a password"),
        pytest.param("a%40b:p%3A%2Fw%C3%B6rd%25@", "a@b:p:/wörd%", id="with a password that is percent-encoded"),
        pytest.param("user@", "user:", id="with a user alone"),
    ],
)
def test_a_proxy_passes_requests_on(
    user: str, credentials: str | None, is_tls: bool, trust: Callable[[], Trust], new_loop: NewLoop
) -> None:
    async def converse() -> None:
        tls, ca_file, _ = trust() if is_tls else (None, "", "")
        async with answering(well, tls=tls) as (url, asked), a_proxy(credentials=credentials) as (proxy, passed):
            access = AccessTable(headers={"X-Key": "k"}, ca_file=ca_file, proxy=proxy.replace("//", f"//{user}"))
            async with open_session(20) as session:
                for _ in range(2):
                    assert await ask(session, f"{url}/path?q=%C3%B6", access) == b"well"
            assert [(each.method, each.target, each.headers["x-key"]) for each in asked] == [
                ("POST", "/path?q=%C3%B6", "k")
            ] * 2
            assert not any("proxy-authorization" in each.headers for each in asked)
            method, target, headers, _ = passed[0].request
            host = url.partition("//")[2]
            assert (method, target) == (("CONNECT", host) if is_tls else ("POST", f"{url}/path?q=%C3%B6"))
            assert headers.get("cache-control") == (None if is_tls else "no-cache")
            assert ("x-key" in headers) is not is_tls  # what goes through a tunnel is not shown to the proxy
            assert headers.get("proxy-authorization") == (credentials and basic(credentials))

    run(converse(), new_loop)


def ask_source(
    protocol: AnyProtocol, session: Session, url: str, access: AccessTable, **more: Any
) -> Awaitable[object]:
    """Probe a source whose table has the required keys, and those that say how its third party is reached."""
    values: dict[str, Any] = {"chain": 1, "kind": protocol.name, "url": url, "chains": (1,)}
    required = {each.name: values.get(each.name, "x") for each in fields(protocol.settings) if each.required}
    table = protocol.settings(**required, **more, **asdict(access))
    (source,) = protocol.sources("service", table)
    return source.probe(session, lambda: NOON)


def ask_endpoint(session: Session, url: str, access: AccessTable) -> Awaitable[object]:
    chain = ChainTable(id=1, name="Ethereum", block_time_s=12, rpc=(RpcEndpoint(url, **asdict(access)),))
    (endpoint,) = upstreams_of(Settings(chains=(chain,))).endpoints
    return endpoint.read(session, lambda: NOON)


EVERY_WAY_TO_ASK: Final = {
    **{protocol.name: partial(ask_source, protocol) for protocol in PROTOCOLS},
    "broadcasters by relay": partial(ask_source, BROADCASTERS, via="relay"),
    "rpc": ask_endpoint,
}


def answer_so_that_all_is_asked(asked: Asked) -> Reply:
    """The last request of a source fails like this, and so does what leads to another one."""
    if b"eth_chainId" in asked.body:
        return 200, b'{"jsonrpc":"2.0","id":1,"result":"0x1"}'
    return (200, b"OK") if "subscriptions" in asked.target else (404, b"")


@pytest.mark.parametrize(
    ("start", "requests"),
    [
        pytest.param(each, {"messaging": 2, "broadcasters by relay": 3, "rpc": 2, "evm": 2}.get(name, 1), id=name)
        for name, each in EVERY_WAY_TO_ASK.items()
    ],
)
async def test_every_request_of_every_source_is_sent_as_its_table_says(
    start: Callable[[Session, str, AccessTable], Awaitable[object]], requests: int, trust: Callable[[str], Trust]
) -> None:
    """To an address that only the proxy can reach, and that nobody vouches for but an authority of one's own."""
    tls, ca_file, _ = trust(NOWHERE)
    async with (
        answering(answer_so_that_all_is_asked, tls=tls) as (url, asked),
        a_proxy(leads_to=url, credentials="user:word") as (proxy, passed),
        open_session(20) as session,
    ):
        access = AccessTable(headers={"X-Key": "k"}, ca_file=ca_file, proxy=proxy.replace("//", "//user:word@"))
        with pytest.raises(ProbeFailed, match=r"^http_status: 404$"):
            await start(session, f"https://{NOWHERE}", access)
        assert [each.headers.get("x-key") for each in asked] == ["k"] * requests
        assert {each.request.target for each in passed} == {f"{NOWHERE}:443"}


@pytest.mark.clause("M3")
@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize(
    ("conversation", "reason"),
    [
        pytest.param(saying(b"HTTP/1.1 407 No\r\n\r\n"), "proxy: refused with 407", id="wants a password"),
        pytest.param(saying(b"HTTP/1.1 502 No\r\n\r\n"), "proxy: refused with 502", id="does not get there"),
        pytest.param(saying(b"HTTP/1.1 302 \r\nLocation: /\r\n\r\n"), "proxy: refused with 302", id="redirects"),
        pytest.param(saying(b"HTTP/1.1 204 \r\n\r\n"), "proxy: refused with 204", id="agrees in another way"),
        pytest.param(saying(b"HTTP/1.1 101 \r\n\r\n"), "proxy: refused with 101", id="changes the protocol"),
        pytest.param(saying(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "proxy: bad_http", id="is no proxy"),
        pytest.param(saying(), "proxy: closed", id="says nothing and closes"),
        pytest.param(resetting(b"HTTP/1.1"), "proxy: reset", id="resets"),
        pytest.param(saying(PASSED), "tls: handshake failed", id="agrees and closes"),
        pytest.param(resetting(PASSED), "tls: handshake failed", id="agrees and resets"),
        pytest.param(dripping(PASSED, b"HTTP/1.1 200 OK\r\n\r\n"), "tls: not TLS", id="agrees and answers itself"),
        pytest.param(silence, "timeout: connect", id="is silent"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"), "timeout: connect", id="never ends its answer"),
        pytest.param(dripping(PASSED, b""), "timeout: connect", id="agrees and is silent"),
    ],
)
def test_a_tunnel_that_is_not_there_fails_the_probe_in_our_own_words(
    conversation: Conversation, reason: str, new_loop: NewLoop
) -> None:
    async def converse() -> bytes | str:
        async with talking(conversation) as proxy:
            return await ask_once(f"https://{NOWHERE}", 1, proxy=proxy)

    assert run(converse(), new_loop) == reason


@pytest.mark.parametrize(
    ("http_code", "reason"),
    [
        pytest.param(407, "proxy: refused with 407", id="which only a proxy says"),
        pytest.param(502, "http_status: 502", id="which anybody may have said"),
        pytest.param(302, "http_status: 302", id="to somewhere else"),
    ],
)
async def test_a_proxy_that_is_asked_for_a_plain_answer_may_refuse_it(http_code: int, reason: str) -> None:
    async with answering(lambda _: (http_code, b"")) as (proxy, _):
        assert await ask_once(f"http://{NOWHERE}", proxy=proxy) == reason


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("proxy", "reason"),
    [
        pytest.param("http://127.0.0.1:1", "proxy: refused", id="down"),
        pytest.param("http://nobody.invalid", "proxy: dns", id="unknown"),
    ],
)
async def test_a_proxy_that_cannot_be_reached_is_named_as_the_cause(proxy: str, reason: str, scheme: str) -> None:
    assert await ask_once(f"{scheme}://{NOWHERE}", proxy=proxy) == reason
