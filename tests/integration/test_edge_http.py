"""HTTP to the last byte through the real edge: forms of requests, conditions, codings, connections. What the server
answers itself is what the edge has to answer."""

import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.cases import cases
from tests.commands import lookout
from tests.integration.edged import (
    Edge,
    Origin,
    a_varnish,
    an_edge,
    an_origin,
    caching,
    fails,
    hangs,
    needs_varnish,
    says,
)
from tests.integration.raw import Answer, RawServer, a_raw_server, a_request, parsed
from tests.integration.served import HISTORY, LIVE, a_ledger, publish
from tests.wait import until

pytestmark = needs_varnish

LONG: Final = caching(fresh=600)
GZIP: Final = "Accept-Encoding: gzip"
PACKED: Final = gzip.compress(b"packed").decode("latin-1")
CORS: Final = {"access-control-allow-origin": "*", "access-control-expose-headers": "ETag"}
OF_A_CACHE: Final = {"age", "cache-status"}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Edge, RawServer]]:
    """A real server with both documents in both forms, and the edge that ``lookout edge-config`` makes for it."""
    folder = tmp_path_factory.mktemp("edge")
    publish(folder, a_ledger())
    with a_raw_server(folder) as server:
        config = folder / "edge.toml"
        config.write_text(f'[server]\nrate_limit_per_minute = 0\n[edge]\norigin = "127.0.0.1:{server.port}"\n')
        printed = lookout(folder, "edge-config", "-c", config)
        assert printed.returncode == 0, printed.stderr
        with a_varnish(folder, printed.stdout) as edge:
            until(lambda: server.ask().http_code == 200, "the server has the report")
            yield edge, server


def are_alike(ours: Answer, theirs: Answer) -> bool:
    """Whether the edge's answer is the server's, but for what a cache adds, and what is for the cache alone."""
    mine = {name: text for name, text in ours.ours.items() if name not in OF_A_CACHE}
    sent = {name: text for name, text in theirs.ours.items() if name != "x-lookout-etags"}
    return (ours.http_code, mine, ours.body) == (theirs.http_code, sent, theirs.body)


def sent_to_both(both: tuple[Edge, RawServer], raw: bytes) -> tuple[Answer, Answer]:
    edge, server = both
    return parsed(edge.exchange(raw)), parsed(server.exchange(raw))


@pytest.mark.clause("E5", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A15", "V3")
@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(a_request("HEAD"), id="the headers of the live report"),
        pytest.param(a_request("GET", HISTORY, "If-None-Match: *", GZIP), id="any form of the history"),
        pytest.param(a_request("DELETE", HISTORY), id="another method"),
        pytest.param(a_request("PURGE", LIVE), id="a method of caches"),
        pytest.param(a_request("OPTIONS", LIVE, "Origin: https://a.example"), id="a preflight"),
        pytest.param(a_request("GET", "/schemas/history.json"), id="a schema"),
        pytest.param(a_request("GET", "/assets/" + "a" * 5_000), id="an asset of a long name"),
        pytest.param(a_request("GET", "/badge.svg"), id="a badge that nobody may keep"),
        pytest.param(b"GET /api/v1/protocol/liveness HTTP/1.0\r\n\r\n", id="no host"),
    ],
)
def test_the_edge_answers_as_the_server_does(both: tuple[Edge, RawServer], request_: bytes) -> None:
    assert are_alike(*sent_to_both(both, request_))


@pytest.mark.clause("A7", "E3", "E2")
def test_preflights_are_answered_whatever_becomes_of_the_server_and_count(tmp_path: Path) -> None:
    with an_origin() as origin, an_edge(tmp_path, origin.port, limit=3, minute_s=3600) as edge:
        origin.script = says("first", cache_control=LONG)
        edge.ask()
        asked = len(origin.asked)
        origin.die()
        for path in (HISTORY, "/openapi.json", "/schemas/history.json"):
            answer = edge.ask("OPTIONS", path, "Origin: https://a.example")
            assert (answer.http_code, answer.body) == (204, b"")
            assert answer.ours == CORS | {
                "allow": "GET, HEAD, OPTIONS",
                "access-control-allow-methods": "GET, HEAD, OPTIONS",
                "access-control-allow-headers": "Accept, Content-Type, If-None-Match",
                "access-control-max-age": "86400",
            }
        assert len(origin.asked) == asked
        assert edge.codes(3, "OPTIONS") == [204, 204, 429]


@pytest.mark.clause("A4", "A5")
@pytest.mark.parametrize(
    ("written", "http_code"),
    [
        pytest.param('"TAG"', 304, id="the tag"),
        pytest.param('"a" , W/"PACKED"', 304, id="another form's, weak, in a list"),
        pytest.param('"a" "TAG"', 200, id="a blank between two"),
        pytest.param('"a, "TAG", "b"', 304, id="a tag that is not closed before it"),
        pytest.param('*, "a"', 200, id="a star is no tag"),
        pytest.param(",".join(f'"{n:016x}"' for n in range(1_500)) + ',"TAG"', 304, id="the last of many"),
        pytest.param('"' + "a" * 25_000 + '", "TAG"', 304, id="after a long one"),
    ],
)
def test_if_none_match_is_read_as_by_the_server(both: tuple[Edge, RawServer], written: str, http_code: int) -> None:
    plain, packed = (both[1].ask("GET", LIVE, *coding).ours["etag"][1:-1] for coding in ((), (GZIP,)))
    for coding in ((), (GZIP,)):
        header = f"If-None-Match: {written.replace('TAG', plain).replace('PACKED', packed)}"
        ours, theirs = sent_to_both(both, a_request("GET", LIVE, header, *coding))
        assert ours.http_code == http_code
        assert are_alike(ours, theirs)


@pytest.mark.clause("A15", "A4", "E4")
def test_a_reader_gets_the_form_that_it_prefers(both: tuple[Edge, RawServer]) -> None:
    for accept_encoding, is_packed in (case.values for case in cases("headers", "accept-encoding")):
        if str(accept_encoding).isascii() and str(accept_encoding).isprintable() and accept_encoding:
            ours, theirs = sent_to_both(both, a_request("GET", LIVE, f"Accept-Encoding: {accept_encoding}"))
            assert ours.ours.get("content-encoding") == ("gzip" if is_packed else None), accept_encoding
            assert are_alike(ours, theirs)


@pytest.mark.clause("A15", "E4")
def test_there_is_one_copy_for_each_form_and_the_server_hears_of_that_form_alone(edge: Edge, origin: Origin) -> None:
    origin.script = says("plain", cache_control=LONG)
    for refusal in (
        "X-Nothing: 1",
        "Accept-Encoding: br",
        "Accept-Encoding: gzip;q=0",
        "Accept-Encoding: identity",
    ):
        assert edge.ask("GET", LIVE, refusal).body == b"plain"
    origin.script = says(PACKED, "Content-Encoding: gzip", cache_control=LONG, etag="packed")
    for wanted in (GZIP, "Accept-Encoding: br, x-gzip", "Accept-Encoding: *", "Accept-Encoding: gzip;q=0.5"):
        answer = edge.ask("GET", LIVE, "Accept-Encoding: br", wanted)
        assert (gzip.decompress(answer.body), answer.ours["etag"]) == (b"packed", '"packed"')
        assert "x-lookout-etags" not in answer.ours
    assert edge.ask().body == b"plain"
    heard = [[line for line in head.lower().split("\r\n") if "accept-encoding" in line] for head in origin.asked]
    assert heard == [[], ["accept-encoding: gzip"]]


@pytest.mark.clause("A1", "E1")
@pytest.mark.parametrize(
    "target",
    [
        pytest.param(f"{LIVE}?a#b?c", id="a query and a fragment"),
        pytest.param(f"{LIVE}%23x", id="a fragment's sign, encoded"),
        pytest.param("/api%2fv1%2fprotocol%2fliveness", id="all slashes but one, encoded"),
        pytest.param("/openapi%2Ejson", id="a point, encoded"),
        pytest.param(f"/{LIVE}", id="two slashes"),
        pytest.param("/assets/%2e%2e/openapi.json", id="a folder up, encoded"),
        pytest.param(f"{LIVE}%zz", id="no byte, encoded"),
        *(
            "/nowhere",
            "/api/v1/other/liveness",
            "/openapi.json/",
            "/metrics",
            f"{LIVE}/",
            f"{LIVE}%00",
            "*",
            "x.example:443",
        ),
        pytest.param(f"http://x{LIVE}?y", id="an address"),
        pytest.param(f"http://x{LIVE}?y#z", id="an address with a fragment"),
        pytest.param(f"HTTPS://x:1{LIVE}?y", id="an address with TLS"),
        pytest.param(f"https://u@x{LIVE}", id="an address with a user"),
        pytest.param(f"https://x?{LIVE}", id="an address without a path"),
        pytest.param(f"ftp://x{LIVE}", id="another scheme"),
        pytest.param("http://x/nowhere", id="an address of nothing"),
        pytest.param(f"{LIVE}?" + "a" * 25_000, id="a long query"),
        pytest.param(f"{LIVE}\xff", id="a byte that is not ASCII"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "OPTIONS", "CONNECT"])
def test_a_target_in_any_form_is_understood_as_by_the_server(
    both: tuple[Edge, RawServer], method: str, target: str
) -> None:
    ours, theirs = sent_to_both(both, a_request(method, target))
    assert ours.http_code == theirs.http_code
    if ours.http_code not in (400, 405):  # for which each has its own words
        assert are_alike(ours, theirs)


def whole(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.clause("A16")
def test_bodies_that_never_come_take_no_threads_from_others(tmp_path: Path) -> None:
    """As with the threads that are shipped, but fewer."""
    with (
        an_origin() as origin,
        an_edge(tmp_path, origin.port, thread_pools="1", thread_pool_max="200") as edge,
        ExitStack() as opened,
    ):
        origin.script = says("live", cache_control=LONG)
        edge.ask()
        senders = []
        for number in range(300):  # each sends at once: Varnish closes what is idle for seconds
            senders.append(opened.enter_context(socket.create_connection(("127.0.0.1", edge.port), 10)))
            framing = ("Content-Length: 1000", "Transfer-Encoding: chunked")[number % 2]
            senders[-1].sendall(a_request("POST", LIVE, framing, close=False))
        began = time.monotonic()
        assert edge.ask("GET", LIVE, peer="127.0.0.2").body == b"live"
        assert time.monotonic() - began < 20
        answers = [parsed(whole(sender)) for sender in senders]
        assert {answer.http_code for answer in answers} == {413}
        assert edge.ask("POST", LIVE, "Content-Length: 0").http_code == 200, "an empty body is none"


@pytest.mark.clause("A6", "A8", "E3")
@pytest.mark.parametrize("trouble", ["gone", "hanging"])
def test_the_edges_own_503_can_be_read_by_scripts_and_says_when_to_try_again(
    edge: Edge, origin: Origin, trouble: str
) -> None:
    origin.script = hangs
    if trouble == "gone":
        origin.die()
    for path in (LIVE, HISTORY, "/openapi.json"):
        answer = edge.ask("GET", path, "Origin: https://a.example")
        assert answer.http_code == 503
        assert isinstance(json.loads(answer.body)["message"], str)
        assert {name: text for name, text in answer.ours.items() if name not in OF_A_CACHE} == CORS | {
            "content-type": "application/json; charset=utf-8",
            "content-length": str(len(answer.body)),
            "cache-control": "no-store",
            "retry-after": "30",
            "x-content-type-options": "nosniff",
        }


def status(answer: Answer) -> str:
    return answer.ours["cache-status"]


@pytest.mark.clause("E3")
def test_cache_status_says_where_an_answer_comes_from(edge: Edge, origin: Origin) -> None:
    origin.script = says("first", cache_control=caching(fresh=2, while_revalidate=2, if_error=60))
    assert status(edge.ask()) in ("lookout-edge; fwd=miss; stored; ttl=2", "lookout-edge; fwd=miss; stored; ttl=1")
    assert status(edge.ask()) in ("lookout-edge; hit; ttl=1", "lookout-edge; hit; ttl=0")
    assert status(edge.ask("GET", LIVE, "If-None-Match: *")).startswith("lookout-edge; hit; ttl=")
    assert status(edge.ask("POST")) == "lookout-edge; fwd=method"
    origin.script = fails(503)
    until(lambda: "; ttl=-" in status(edge.ask()), "it is stale", 30)
    assert status(edge.ask()).startswith("lookout-edge; hit; ttl=-")
    time.sleep(2)
    until(lambda: "; hit" in status(edge.ask()), "nobody waits for the server")
    assert status(edge.ask("GET", HISTORY)) == "lookout-edge; fwd=miss"
    assert "x-cache" not in edge.ask().ours


@pytest.mark.clause("E1")
def test_the_edge_itself_answers_what_is_no_route_or_no_request(edge: Edge, origin: Origin) -> None:
    origin.die()
    lost = edge.ask("GET", "/nowhere")
    assert (lost.http_code, list(json.loads(lost.body))) == (404, ["message"])
    for method in ("\xffGET", "G\xffT", "G(T", "<", "G@T"):
        assert edge.ask(method).http_code == 400


@pytest.mark.clause("E3", "E4")
@pytest.mark.parametrize(
    ("trouble", "lender"),
    [
        pytest.param("gone", (), id="gone, the copy of none"),
        pytest.param("hanging", ("Origin: https://a.example",), id="hanging, the copy of an Origin"),
    ],
)
def test_a_new_origin_gets_the_copy_of_another_one_if_the_server_fails(
    edge: Edge, origin: Origin, trouble: str, lender: tuple[str, ...]
) -> None:
    if_error = 7
    origin.script = says("first", cache_control=caching(fresh=1, while_revalidate=1, if_error=if_error))
    before = time.monotonic()
    edge.ask("GET", LIVE, *lender)
    after = time.monotonic()
    origin.script = hangs
    if trouble == "gone":
        origin.die()
    answer = edge.ask("GET", LIVE, "Origin: https://b.example")
    assert (answer.http_code, answer.body) == (200, b"first")
    assert answer.ours["access-control-allow-origin"] == "*"
    assert "fwd=miss" in status(answer)
    at_once = time.monotonic()
    for number in range(20):
        answer = edge.ask("GET", LIVE, f"Origin: https://{number}.example")
        assert (answer.http_code, answer.body) == (200, b"first")
    assert time.monotonic() - at_once < 5, "nobody waits after a failure"
    served_at = at_once
    while True:
        asked_at = time.monotonic()
        answer = edge.ask("GET", LIVE, f"Origin: https://{asked_at}.example")
        if answer.http_code != 200:
            break
        assert answer.body == b"first"
        served_at = asked_at
        time.sleep(0.1)
    assert answer.http_code == 503
    assert answer.ours["cache-control"] == "no-store"
    assert time.monotonic() - before >= 1 + if_error
    assert served_at - after <= 1.1 + if_error, "no copy is older than it may be"


@pytest.mark.clause("E3", "E4")
def test_the_copy_that_is_given_to_others_is_a_whole_one_of_the_same_path_and_form(edge: Edge, origin: Origin) -> None:
    origin.script = says("live", cache_control=LONG)
    edge.ask("GET", LIVE, "Origin: https://a.example")
    origin.script = says(PACKED, "Content-Encoding: gzip", cache_control=LONG, etag="packed")
    edge.ask("GET", HISTORY, "Origin: https://a.example", GZIP)
    origin.script = says("broken off", cache_control=LONG, cut=3)
    broken = edge.ask("GET", LIVE, "Origin: https://c.example")
    assert (broken.http_code, broken.body) == (200, b"live")
    origin.die()
    for name in ("https://a.example", "https://b.example"):
        assert edge.ask("GET", LIVE, f"Origin: {name}").body == b"live"
        assert edge.ask("GET", HISTORY, f"Origin: {name}").http_code == 503
        assert gzip.decompress(edge.ask("GET", HISTORY, f"Origin: {name}", GZIP).body) == b"packed"
        assert edge.ask("GET", LIVE, f"Origin: {name}", 'If-None-Match: "live"').http_code == 304


@pytest.mark.clause("E3", "A15")
def test_who_takes_gzip_gets_the_plain_copy_if_the_server_fails_and_there_is_no_other(
    edge: Edge, origin: Origin
) -> None:
    origin.script = says("plain", cache_control=LONG)
    edge.ask("GET", LIVE)
    origin.script = fails(503)
    for origin_of_it in ((), ("Origin: https://new.example",)):
        answer = edge.ask("GET", LIVE, "Accept-Encoding: gzip, br", *origin_of_it)
        assert (answer.http_code, answer.body) == (200, b"plain")
        assert "content-encoding" not in answer.ours
    for refusing in ("gzip, identity;q=0", "gzip, *;q=0"):
        assert edge.ask("GET", LIVE, f"Accept-Encoding: {refusing}").http_code == 503
