"""What a head means, and which heads are kept for a moment, with their answers."""

import gzip

import pytest

from lookout.base.sockets import open_listener
from lookout.server.request import HttpRequest, RefusedError, parse_head
from tests.cases import cases
from tests.integration.raw import a_request
from tests.integration.served import LIVE
from tests.unit.server.fakes import FakeReader, SetClock, a_connection, a_server
from tests.wait import until_async


def parse(*lines: str) -> HttpRequest:
    return parse_head("\r\n".join((*(lines or ("GET / HTTP/1.1",)), "", "")).encode("latin-1"))


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET / HTTP/1.1\nHost: a\r\n\r\n", id="a line that ends with LF"),
        pytest.param(b"GET / HTTP/0.9\r\nX: a\nHost: b\r\n\r\n", id="a line that ends with LF, of another version"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: a\n\r\n\r\n", id="a head that could end earlier"),
        pytest.param(b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", id="two spaces"),
        pytest.param(b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", id="a CR before it"),
        pytest.param(b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", id="what is no method"),
        pytest.param(b"GET /\r\n\r\n", id="no version"),
        pytest.param(b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", id="an address without a host"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", id="a folded line"),
        pytest.param(b"FOO / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", id="two framings"),
    ],
)
def test_what_is_no_head_is_refused(head: bytes) -> None:
    with pytest.raises(RefusedError) as refused:
        parse_head(head)
    assert refused.value.http_code == 400


@pytest.mark.parametrize(
    ("version", "headers", "names_one_host", "keeps_open"),
    cases("request", "a connection stays open after one whole request of one host"),
)
@pytest.mark.parametrize("target", ["/", "http://a/"], ids=["a path", "a proxy's form"])
def test_a_connection_stays_open_after_one_whole_request_of_one_host(
    version: str, headers: list[str], names_one_host: bool, keeps_open: bool, target: str
) -> None:
    request = parse(f"GET {target} HTTP/{version}", *headers)
    assert (request.names_one_host, request.keeps_open) == (names_one_host, keeps_open)


@pytest.mark.clause("A1")
@pytest.mark.parametrize(("line", "path", "query"), cases("request", "a target has a path and a query"))
def test_a_target_has_a_path_and_a_query(line: str, path: str, query: str) -> None:
    request = parse(line, "Host: a")
    assert (request.method, request.path, request.query) == (line.split(" ")[0], path, query)


@pytest.mark.clause("A7", "A15")
def test_headers_on_several_lines_are_one_list() -> None:
    assert (parse().prefers_gzip, parse().if_none_match) == (False, None)
    request = parse("GET / HTTP/1.1", "ACCEPT-encoding: br", "If-None-Match: \t\xff ", "Accept-Encoding: gzip", "X: a ")
    assert (request.prefers_gzip, request.if_none_match, request.join("x")) == (True, "\xff", "a")


@pytest.mark.clause("A14")
@pytest.mark.parametrize(
    ("header", "is_kept"),
    [
        pytest.param("Accept-Encoding: gzip", True, id="what many ask alike"),
        pytest.param("X-Forwarded-For: 1.1.1.1", False, id="whom a proxy heard"),
        pytest.param("CF-Connecting-IP: 1.1.1.1", False, id="a header that nobody here knows"),
        pytest.param("User-Agent: " + "a" * 1_000, False, id="a long one"),
    ],
)
async def test_heads_are_kept_for_a_second_if_they_say_nothing_of_their_sender(header: str, is_kept: bool) -> None:
    async with a_server(FakeReader(), SetClock()).listen(open_listener("127.0.0.1:0")) as server:
        server.parse(a_request("GET", LIVE, header))
        assert bool(server.heads) is is_kept
        await until_async(lambda: not server.heads, "nothing is kept", 5)


@pytest.mark.clause("A14", "A15")
def test_a_kept_request_has_its_answer_ready_until_another_document_is_published() -> None:
    store = FakeReader()
    server = a_server(store, SetClock())
    responder, connection = server.responder, a_connection(server)
    get = parse_head(a_request("GET", LIVE, "Accept-Encoding: gzip", close=False))
    for body in (b"a" * 99, b"b" * 99):
        store.publish("live", body)
        server.poller.poll()
        answer = responder.answer(get, connection)
        head, _, packed = answer[0].partition(b"\r\n\r\n")
        assert (gzip.decompress(packed), b"connection" in head) == (body, False)
        assert responder.answer(get, connection) is answer
        (head_alone,) = responder.answer(parse_head(a_request("HEAD", LIVE)), connection)
        assert head_alone.endswith(b"\r\nconnection: close\r\n\r\n")
