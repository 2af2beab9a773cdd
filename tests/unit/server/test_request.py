"""What a head means, and which heads are kept for a moment."""

import pytest

from lookout.base.sockets import open_listener
from lookout.server.connection import HttpServer, Limits
from lookout.server.replies import Responder
from lookout.server.request import Callers, RefusedError, parse_head
from lookout.server.shared import Counts
from tests.integration.raw import a_request
from tests.integration.served import LIVE
from tests.unit.server.fakes import FakeReader, SetClock, a_poller
from tests.wait import until_async


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET / HTTP/1.1\nHost: a\r\n\r\n", id="a line that ends with LF"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: a\n\r\n\r\n", id="a head that could end earlier"),
        pytest.param(b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", id="two spaces"),
        pytest.param(b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", id="a CR before it"),
        pytest.param(b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", id="what is no method"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", id="another version"),
        pytest.param(b"GET /\r\n\r\n", id="no version"),
        pytest.param(b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", id="an address without a host"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", id="a folded line"),
        pytest.param(b"FOO / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", id="two framings"),
    ],
)
def test_what_is_no_head_is_refused(head: bytes) -> None:
    with pytest.raises(RefusedError):
        parse_head(head)


@pytest.mark.clause("A14")
@pytest.mark.parametrize(
    ("header", "is_kept"),
    [
        pytest.param("Accept-Encoding: gzip", True, id="what many ask alike"),
        pytest.param("Cookie: a=b", False, id="a cookie"),
        pytest.param("X-Forwarded-For: 1.1.1.1", False, id="whom a proxy heard"),
        pytest.param("Forwarded: for=1.1.1.1", False, id="the same by RFC 7239"),
        pytest.param("CF-Connecting-IP: 1.1.1.1", False, id="a header that nobody here knows"),
        pytest.param("User-Agent: " + "a" * 1_000, False, id="a long one"),
    ],
)
async def test_heads_are_kept_for_a_second_if_they_say_nothing_of_their_sender(header: str, is_kept: bool) -> None:
    clock = SetClock()
    poller = a_poller(FakeReader(), clock)
    responder = Responder(poller, poller.site.paths, Callers(()), None, Counts(1).attach(), clock)
    async with HttpServer(open_listener("127.0.0.1:0"), responder, Limits(1), Callers(())) as server:
        server.parse(a_request("GET", LIVE, header))
        assert bool(server.heads) is is_kept
        await until_async(lambda: not server.heads, "nothing is kept", 5)
