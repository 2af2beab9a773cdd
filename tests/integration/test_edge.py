"""Varnish with the configuration that Lookout prints: paths, the rate limit, callers (E1, E2, E6)."""

import time
from pathlib import Path

import pytest

from tests.integration.edged import (
    an_edge,
    an_origin,
    caching,
    needs_varnish,
    says,
)
from tests.integration.raw import a_request
from tests.integration.served import HISTORY, LIVE
from tests.wait import until

pytestmark = needs_varnish

A_MINUTE_S = 60


@pytest.mark.clause("E2")
def test_of_one_caller_120_requests_in_a_minute_pass_and_the_121st_is_refused_path_by_path(tmp_path: Path) -> None:
    with an_origin() as origin, an_edge(tmp_path, origin.port, limit=120) as edge:
        origin.script = says("first", cache_control=caching(fresh=600))
        into_s = time.time() % A_MINUTE_S  # the edge counts by the minutes of the clock
        if into_s > A_MINUTE_S - 10:
            time.sleep(A_MINUTE_S - into_s)
        assert edge.codes(60) == [200] * 60
        assert edge.codes(20, "HEAD", LIVE + "?x=1") == [200] * 20
        assert edge.codes(20, "GET", "/api/v1/protocol/%6civeness") == [200] * 20
        assert edge.codes(10, "OPTIONS") == [204] * 10
        assert edge.codes(10, "POST") == [200] * 10
        refused = edge.ask()
        assert refused.http_code == 429
        headers = dict(refused.headers)
        assert headers["retry-after"] == "60"
        assert headers["content-type"] == "text/plain; charset=utf-8"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert b"1015" in refused.body
        assert {edge.ask(method).http_code for method in ("GET", "HEAD", "OPTIONS", "POST")} == {429}
        assert edge.ask("GET", HISTORY).http_code == 200
        assert edge.ask("GET", LIVE, peer="127.0.0.2").http_code == 200
        assert edge.ask("GET", "/openapi.json").http_code == 200


@pytest.mark.clause("E1", "E2")
def test_the_operators_own_routes_are_counted_together_and_for_nothing_else(tmp_path: Path) -> None:
    with an_origin() as origin, an_edge(tmp_path, origin.port, limit=8, minute_s=3600) as edge:
        origin.script = says("first", cache_control=caching(fresh=600))
        got = ("/", "/?x=1", "/summary.json", "/feed.atom", "/badge/indexer/1.svg", "/status.json")
        asked = [*(("GET", path) for path in got), ("OPTIONS", "/openapi.json"), ("POST", "/schemas/history.json")]
        assert [edge.ask(*each).http_code for each in asked] == [200] * 6 + [204, 200]
        refused = edge.ask("GET", "/badge.svg")
        assert refused.http_code == 429
        assert b"1015" in refused.body
        assert [edge.ask(*each).http_code for each in asked] == [429] * 8
        assert edge.ask("GET", "/badge.svg", peer="127.0.0.2").http_code == 200
        assert edge.ask("GET", "/nowhere").http_code == 404
        assert edge.codes(9) == [200] * 8 + [429]
        # A view of the page asks for all of its files: they count apart, made-up names or folders do not.
        files = ["/assets/page.js", "/assets/page.css", *(f"/assets/{number}/p" for number in range(7))]
        assert [edge.ask("GET", file).http_code for file in files] == [200] * 8 + [429]
        assert edge.ask("GET", "/assets/language.js").http_code == 200


@pytest.mark.clause("E2")
def test_a_ban_is_not_prolonged_by_asking_and_ends(tmp_path: Path) -> None:
    with (
        an_origin() as origin,
        an_edge(tmp_path, origin.port, limit=2, ban_s=2, minute_s=1) as edge,  # so a new minute has begun by its end
    ):
        origin.script = says("first", cache_control=caching(fresh=600))
        until(lambda: edge.ask().http_code == 429, "a ban")
        began = time.monotonic()
        refusals: list[str] = []
        while (answer := edge.ask()).http_code == 429:
            refusals.append(dict(answer.headers)["retry-after"])
            time.sleep(0.05)
        assert 1.8 < time.monotonic() - began < 30
        assert refusals[0] == "2"
        assert refusals[-1] == "1"


def forwarded(*lists: str) -> tuple[str, ...]:
    return tuple(f"X-Forwarded-For: {text}" for text in lists)


@pytest.mark.clause("E6", "E2")
def test_callers_behind_a_trusted_proxy_are_counted_apart_and_others_by_their_own_address(tmp_path: Path) -> None:
    with (
        an_origin() as origin,
        an_edge(tmp_path, origin.port, limit=1, trusted=("127.0.0.1", "10.1.2.3/8"), minute_s=3600) as edge,
    ):
        origin.script = says("first", cache_control=caching(fresh=600))

        def code(*headers: str, peer: str = "127.0.0.1") -> int:
            return edge.ask("GET", LIVE, *headers, peer=peer).http_code

        assert [code(*forwarded("192.0.2.1")) for _ in range(2)] == [200, 429]
        assert code(*forwarded("192.0.2.2")) == 200
        # Each of these is one of the two above, however it is written and whatever stands before it.
        for text in ("9.9.9.9, 192.0.2.1", "192.0.2.2:4711", " 192.0.2.1 ,, 10.0.0.1 ,10.0.0.2,", "::ffff:192.0.2.1"):
            assert code(*forwarded(text)) == 429, text
        assert code(*forwarded("9.9.9.9", "192.0.2.1")) == 429
        # A /64 is one caller.
        assert code(*forwarded("2001:db8::1")) == 200
        for text in ("2001:db8::2", "[2001:db8:0:0:1::]:443", "2001:DB8:0:0:1:2:3:4", "2001:db8::1:2:3:4%eth0"):
            assert code(*forwarded(text)) == 429, text
        for text, same in (
            ("1:0:0:2:3:4:5:6", "1:0:0:2::"),
            ("::1:2:3:4:5", "0:0:0:1::9"),
            ("::1:2:3:4:5:6", "0:0:1:2::9"),
            ("::5:6:7:8", "::1"),
            ("1:2:3:4:5:6:7:8", "1:2:3:4::"),
            ("1:2:3::", "1:2:3:0:8::"),
            ("7::", "7::1:2:3:4"),
        ):
            assert [code(*forwarded(each)) for each in (text, same)] == [200, 429], text
        # What cannot be read ends the list: the proxy that wrote it is counted.
        assert [code(*forwarded("nonsense, 10.0.0.1")) for _ in range(2)] == [200, 429]
        assert code(*forwarded("localhost,10.0.0.1")) == 429
        # Nobody else is believed.
        assert code(*forwarded("192.0.2.77"), peer="127.0.0.2") == 200
        assert code(*forwarded("192.0.2.78"), peer="127.0.0.2") == 429


@pytest.mark.clause("E6")
def test_the_server_hears_of_the_caller_alone_and_of_no_body(tmp_path: Path) -> None:
    with an_origin() as origin, an_edge(tmp_path, origin.port, trusted=("127.0.0.1",)) as edge:
        names = "Caller Coding Codings Forward Grace Hop Hops Minute Network Tag Tags Try"
        spoofed = [f"X-Edge-{name}: 1" for name in names.split()]
        for peer, caller in (("127.0.0.1", "192.0.2.1"), ("127.0.0.2", "127.0.0.2")):
            edge.ask("POST", LIVE, *forwarded("9.9.9.9, 192.0.2.1"), *spoofed, peer=peer)
            heard = origin.asked[-1].lower().split("\r\n")
            assert [line for line in heard if line.startswith("x-forwarded-for")] == [f"x-forwarded-for: {caller}"]
            assert not [line for line in heard if line.startswith("x-edge")]
        edge.exchange(a_request("POST", LIVE, "Content-Length: 5") + b"hello")
        assert "hello" not in origin.asked[-1]
        assert "content-length: 5" not in origin.asked[-1].lower()
