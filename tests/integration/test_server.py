"""The two endpoints over raw sockets."""

import gzip
import json
import re
import socket
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final

import pytest

from lookout.core.model import Failed, Observation
from lookout.documents.document import etag, with_compressed
from lookout.documents.reports import history_document, live_document
from lookout.replay.replay import Replay
from lookout.state.log import Started
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, MINUTE, NOON, PPOI, a_plan
from tests.integration.raw import RawServer, a_raw_server, a_request, parsed
from tests.integration.served import HISTORY, LIVE, a_ledger, publish
from tests.wait import until

BOTH: Final = pytest.mark.parametrize("path", [LIVE, HISTORY], ids=["live", "history"])
JSON: Final = "application/json; charset=utf-8"
CORS: Final = {"access-control-allow-origin": "*", "access-control-expose-headers": "ETag"}
CACHING: Final = {
    LIVE: "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300",
    HISTORY: "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300",
}
LEDGER: Final = a_ledger()
DOCUMENTS: Final = {LIVE: live_document(LEDGER.report()), HISTORY: history_document(LEDGER.view())}
STORED: Final = with_compressed({"live": DOCUMENTS[LIVE], "history": DOCUMENTS[HISTORY]})
PACKED: Final = {LIVE: STORED["live.gzip"], HISTORY: STORED["history.gzip"]}
NOSNIFF: Final = {"x-content-type-options": "nosniff"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    folder = tmp_path_factory.mktemp("served")
    publish(folder, LEDGER)
    with a_raw_server(folder) as running:
        yield running


def validators(path: str, tag: str) -> dict[str, str]:
    etags = f"{DOCUMENTS[path].etag}, {PACKED[path].etag}"
    return CORS | {"cache-control": CACHING[path], "etag": tag, "vary": "Accept-Encoding", "x-lookout-etags": etags}


def found(path: str) -> dict[str, str]:
    document = DOCUMENTS[path]
    content = {"content-type": JSON, "content-length": str(len(document.body))}
    return validators(path, document.etag) | NOSNIFF | content


@BOTH
@pytest.mark.clause("A1", "A2", "A3", "A4", "A6", "A9", "A10", "A14")
def test_get_has_the_stored_bytes_and_exactly_these_headers(server: RawServer, path: str) -> None:
    answer = server.ask("GET", path)
    assert answer.line == b"HTTP/1.1 200 OK"
    assert answer.ours == found(path)
    assert answer.body == DOCUMENTS[path].body
    assert answer.ours["etag"] == etag(answer.body)
    assert re.fullmatch('"[0-9a-f]{16}"', answer.ours["etag"])


@BOTH
@pytest.mark.parametrize("headers", [(), ("If-None-Match: *",)], ids=["200", "304"])
@pytest.mark.clause("A2")
def test_head_has_the_headers_of_get_and_no_body(server: RawServer, path: str, headers: tuple[str, ...]) -> None:
    get, head = server.ask("GET", path, *headers), server.ask("HEAD", path, *headers)
    assert head.line == get.line
    assert [h for h in head.headers if h[0] != "date"] == [h for h in get.headers if h[0] != "date"]
    assert head.body == b""


@BOTH
@pytest.mark.clause("A6", "A7")
def test_options_is_a_preflight(server: RawServer, path: str) -> None:
    answer = server.ask("OPTIONS", path, "Origin: https://wallet.example", "Access-Control-Request-Method: GET")
    assert answer.http_code == 204
    assert answer.body == b""
    assert answer.ours == CORS | {
        "allow": "GET, HEAD, OPTIONS",
        "access-control-allow-methods": "GET, HEAD, OPTIONS",
        "access-control-allow-headers": "Accept, Content-Type, If-None-Match",
        "access-control-max-age": "86400",
    }


@BOTH
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "FOO"])
@pytest.mark.clause("A2", "A6", "A8")
def test_other_methods_are_not_allowed(server: RawServer, path: str, method: str) -> None:
    answer = server.ask(method, path)
    assert answer.http_code == 405
    assert answer.ours == CORS | NOSNIFF | {
        "content-type": JSON,
        "cache-control": "no-store",
        "allow": "GET, HEAD, OPTIONS",
        "content-length": str(len(answer.body)),
    }
    assert list(json.loads(answer.body)) == ["error"]


@pytest.mark.parametrize(
    "query",
    [
        *("?", "?x=1", "?x=%00%ff", "?" + "a" * 4_000, "??/../", f"?{LIVE}", "?a&b=c;d", "?%22%3C%3E"),
        *('?"', "?<", "?>", '?a="b"&c=<d>', "?{x}|^`\\", "?'();:@&=+$,[]"),
    ],
    ids=lambda query: query[:20],
)  # fmt: skip
@pytest.mark.clause("A1")
def test_a_query_of_any_kind_is_ignored(server: RawServer, query: str) -> None:
    answer = server.ask("GET", LIVE + query)
    assert (answer.http_code, answer.ours, answer.body) == (200, found(LIVE), DOCUMENTS[LIVE].body)


@BOTH
@pytest.mark.parametrize(
    "header",
    [
        *("Range: bytes=0-9", "Range: bytes=99999999-", "Accept: text/html", "Accept: nonsense", "Accept-Encoding: br"),
        *("Accept-Encoding: gzip;q=0, *", "Accept-Language: de", "Origin: https://wallet.example", "Cookie: a=b"),
        *("Authorization: Basic YTpi", "If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT", "Cache-Control: no-cache"),
        *("If-Match: \"x\"", "If-Range: \"x\"", "X-HTTP-Method-Override: DELETE", "X-Original-URL: /admin"),
        "X-Long: " + "a" * 4_000,
    ],
    ids=lambda header: header[:30],
)  # fmt: skip
@pytest.mark.clause("A14", "A15")
def test_no_other_header_makes_a_difference(server: RawServer, path: str, header: str) -> None:
    answer = server.ask("GET", path, header)
    assert (answer.http_code, answer.ours, answer.body) == (200, found(path), DOCUMENTS[path].body)


@pytest.mark.parametrize(
    "path",
    [
        *("//", "/..", "/%2e%2e", f"/{LIVE}", LIVE.replace("/", "//"), f"{LIVE}/", f"{HISTORY}/"),
        *("/api/v1/./protocol/liveness", "/api/v1/%2e/protocol/liveness", "/api/v1/x/../protocol/liveness"),
        *("/api/v1/protocol%2fliveness/", LIVE.upper(), "/api/v1/other/liveness", "/metrics", "/healthz", "/readyz"),
        *("/%ff%fe", "/favicon.ico", "/" + "a" * 8_000, "/%", "/%zz", f"{LIVE};x", f"{LIVE}%00"),
    ],
    ids=lambda path: path[:40],
)  # fmt: skip
@pytest.mark.clause("E1")
def test_any_other_path_is_not_found(server: RawServer, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        answer = server.ask(method, path)
        assert answer.http_code == 404
        assert answer.ours == NOSNIFF | {"content-type": JSON, "cache-control": "no-store", "content-length": "27"}
        assert answer.body == (b"" if method == "HEAD" else b'{"message":"no such route"}')


@BOTH
@pytest.mark.parametrize(
    "accept_encoding",
    [
        pytest.param(("gzip",), id="gzip"),
        pytest.param(("gzip, deflate, br, zstd",), id="as a browser asks"),
        pytest.param(("br;q=1", "X-GZip;Q=0.8 , identity;q=0.1"), id="on two lines"),
        pytest.param(("identity;q=0, *",), id="anything but plain"),
    ],
)
@pytest.mark.clause("A2", "A3", "A4", "A15")
def test_who_understands_gzip_gets_the_stored_form(
    server: RawServer, path: str, accept_encoding: tuple[str, ...]
) -> None:
    headers = tuple(f"Accept-Encoding: {line}" for line in accept_encoding)
    packed = PACKED[path]
    content = {"content-type": JSON, "content-encoding": "gzip", "content-length": str(len(packed.body))}
    for method, body in (("GET", packed.body), ("HEAD", b"")):
        answer = server.ask(method, path, *headers)
        assert (answer.http_code, answer.body) == (200, body)
        assert answer.ours == validators(path, packed.etag) | NOSNIFF | content
    assert gzip.decompress(packed.body) == DOCUMENTS[path].body


@BOTH
@pytest.mark.clause("A4", "A5", "A15")
def test_a_304_is_for_either_form_and_carries_the_etag_that_matched(server: RawServer, path: str) -> None:
    plain, packed = DOCUMENTS[path].etag, PACKED[path].etag
    for if_none_match, coding, matched in (
        (plain, "gzip", plain),
        (packed, "identity", packed),
        (packed, "gzip", packed),
        (f'"x", W/{packed}', "gzip", packed),
        (f"{packed}, {plain}", "identity", plain),
        (f"{plain}, {packed}", "gzip", packed),
        ("*", "identity", plain),
        ("*", "gzip;q=0", plain),
        ("*", "gzip", packed),
    ):
        for method in ("GET", "HEAD"):
            headers = (f"If-None-Match: {if_none_match}", f"Accept-Encoding: {coding}")
            answer = server.ask(method, path, *headers)
            assert (answer.http_code, answer.body) == (304, b"")
            assert answer.ours == validators(path, matched), (if_none_match, coding)


@pytest.mark.parametrize("path", ["/", "/assets/page.js", "/openapi.json", "/schemas/history.json", "/feed.atom"])
@pytest.mark.clause("E1")
def test_the_operators_own_routes_are_sent_as_gzip_too(server: RawServer, path: str) -> None:
    plain, packed = server.ask("GET", path), server.ask("GET", path, "Accept-Encoding: gzip")
    assert gzip.decompress(packed.body) == plain.body
    assert {answer.ours["etag"] for answer in (plain, packed)} == {etag(plain.body), etag(packed.body)}
    for answer in (plain, packed):
        assert answer.ours["vary"] == "Accept-Encoding"
        assert server.ask("GET", path, f"If-None-Match: {answer.ours['etag']}").http_code == 304


@pytest.mark.clause("A6", "A8")
def test_a_wrong_host_is_an_error_like_others(server: RawServer) -> None:
    answer = server.ask("GET", LIVE, "Host: b")  # beside the one that every request has
    assert answer.ours == CORS | NOSNIFF | {
        "content-type": JSON,
        "cache-control": "no-store",
        "content-length": str(len(answer.body)),
    }
    assert list(json.loads(answer.body)) == ["error"]


def test_requests_in_one_packet_are_answered_in_their_order(server: RawServer) -> None:
    three = a_request("GET", LIVE, close=False) + a_request("HEAD", HISTORY, close=False) + a_request("GET", HISTORY)
    first = server.exchange(three)
    for path, body in ((LIVE, DOCUMENTS[LIVE].body), (HISTORY, b""), (HISTORY, DOCUMENTS[HISTORY].body)):
        answer = parsed(first)
        assert answer.ours == found(path)
        assert answer.body.startswith(body)
        first = answer.body[len(body) :]
    assert first == b""


@pytest.mark.parametrize(
    ("method", "headers", "body", "http_code"),
    [
        pytest.param("POST", ("Content-Length: 1000000",), b"x" * 1_000_000, 405, id="a megabyte that nobody reads"),
        pytest.param("POST", ("Content-Length: 1000000",), b"", 405, id="a megabyte that never comes"),
        pytest.param("GET", ("Content-Length: 5", "Expect: 100-continue"), b"", 200, id="a client that waits to go on"),
    ],
)  # fmt: skip
def test_what_a_client_sends_besides_is_not_waited_for(
    server: RawServer, method: str, headers: tuple[str, ...], body: bytes, http_code: int
) -> None:
    with server.connect() as connection:
        connection.sendall(a_request(method, LIVE, *headers) + body)
        assert int(connection.recv(65_536).split(b" ")[1]) == http_code


@pytest.mark.parametrize(
    ("headers", "body", "answers"),
    [pytest.param((), b"", 2, id="no body"), pytest.param(("Content-Length: 5",), b"hello", 1, id="a body")],
)
def test_after_what_is_no_request_nothing_is_answered_that_nobody_asked_for(
    server: RawServer, headers: tuple[str, ...], body: bytes, answers: int
) -> None:
    said = server.exchange(b"\r\n" + a_request("GET", LIVE, *headers, close=False) + body + a_request())
    assert said.count(b"HTTP/1.1 200 OK") == said.count(DOCUMENTS[LIVE].body) == answers
    assert said.count(b"connection: close") == 1


def test_an_answer_says_when_it_was_sent(server: RawServer) -> None:
    for _ in range(2):
        date = parsedate_to_datetime(dict(server.ask().headers)["date"])
        assert abs(date.timestamp() - time.time()) < 5
        time.sleep(1.1)  # of the server's own clock


@pytest.mark.clause("M4", "A13")
def test_what_is_stored_is_served_within_a_second_and_nothing_is_ever_probed(tmp_path: Path) -> None:
    """The sources of the configuration are a socket that nobody connects to."""
    publish(tmp_path, LEDGER)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        sources = f'[messaging]\nurl = "http://127.0.0.1:{port}"\n'
        sources += f'[[chains]]\nid = 1\nname = "c1"\nblock_time_s = 12\nrpc = ["http://127.0.0.1:{port}"]\n'
        with a_raw_server(tmp_path, more=sources) as server:
            assert server.ask().body == DOCUMENTS[LIVE].body
            assert json.loads(server.ask().body)["generatedAt"] == "2026-11-05T13:10:00.000Z", "assembled, not served"
            bad = all_bad()
            publish(tmp_path, bad)
            stored_at = time.monotonic()
            until(lambda: server.ask().ours["etag"] == live_document(bad.report()).etag, "the new report")
            until(
                lambda: server.ask("GET", HISTORY).ours["etag"] == history_document(bad.view()).etag, "the new history"
            )
            assert time.monotonic() - stored_at < 30
            answer = server.ask()
            assert (answer.http_code, answer.body) == (200, live_document(bad.report()).body)
            assert {row["status"] for row in json.loads(answer.body)["checks"]} <= {"unavailable", "unmonitored"}
            assert len(set(server.codes(100))) == 1
            with pytest.raises(BlockingIOError):
                listener.accept()


def all_bad() -> Any:
    checks = (MESSAGING, INDEXER, BROADCASTERS, PPOI)
    replay = Replay(a_plan(*checks))
    replay.feed(Started(NOON))
    for minute in range(1, 4):
        for n, check in enumerate(checks):
            replay.feed(Observation(check, NOON + minute * MINUTE + n, Failed("timeout")))
    replay.finish(NOON + 4 * MINUTE)
    return replay.ledger
