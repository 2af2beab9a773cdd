"""The rate limit with two workers, and what the server's admin port tells of both."""

import json
import socket
import time
from pathlib import Path
from typing import Final

import pytest

from lookout.base.instants import format_instant
from tests.integration.raw import RawServer, a_raw_server, admin, metrics, store
from tests.integration.served import HISTORY, LIVE
from tests.wait import until

TWO: Final = "workers = 2\n"


def filled(folder: Path, at: int | None = None) -> Path:
    at = time.time_ns() // 1_000_000 if at is None else at
    live = json.dumps({"generatedAt": format_instant(at)}).encode()
    store(folder, at=at, live=live, history=b'{"history":1}')
    return folder


def until_both_work(server: RawServer) -> None:
    until(lambda: metrics(server)["lookout_workers",] == 2, "both workers look at the store")


@pytest.mark.clause("E2")
def test_120_requests_pass_and_the_121st_is_refused_whichever_worker_it_meets(tmp_path: Path) -> None:
    with a_raw_server(filled(tmp_path), server=f"{TWO}rate_limit_per_minute = 120\n", with_admin=True) as server:
        until_both_work(server)
        tag = server.ask().ours["etag"]
        codes = server.codes(60) + server.codes(20, "HEAD") + server.codes(20, "OPTIONS")
        codes += server.codes(19, "GET", f"{LIVE}?x", f"If-None-Match: {tag}")
        assert codes == [200] * 80 + [204] * 20 + [304] * 19
        refused = server.ask()
        assert refused.line == b"HTTP/1.1 429 Too Many Requests"
        assert refused.ours == {
            "content-type": "text/plain; charset=utf-8",
            "cache-control": "no-store",
            "retry-after": "60",
            "content-length": str(len(refused.body)),
            "x-content-type-options": "nosniff",
        }
        assert b"error code: 1015" in refused.body
        for method in ("HEAD", "OPTIONS", "POST"):
            assert server.ask(method).http_code == 429
        assert server.ask("HEAD").body == b""
        assert server.codes(120, "GET", HISTORY) == [200] * 120, "the other path counts for itself"
        assert server.codes(130, "GET", "/nowhere") == [404] * 130, "and paths that are none count for nothing"


@pytest.mark.clause("E2")
def test_after_the_ban_requests_pass_again(tmp_path: Path) -> None:
    with a_raw_server(filled(tmp_path), server=f"{TWO}rate_limit_per_minute = 3\nban_s = 5\n") as server:
        assert server.codes(4) == [200, 200, 200, 429]
        assert 1 <= int(server.ask().ours["retry-after"]) <= 5
        banned_at = time.monotonic()
        until(lambda: server.ask().http_code == 200, "it passes again")
        assert 1 < time.monotonic() - banned_at < 15, "asking on neither shortens nor prolongs it"
        assert server.codes(3) == [200, 200, 429], "a new minute has begun"


@pytest.mark.clause("E2")
def test_requests_with_a_wrong_host_count_like_any_other(tmp_path: Path) -> None:
    with a_raw_server(filled(tmp_path), server="rate_limit_per_minute = 3\n") as server:
        assert server.codes(2, "GET", LIVE, "Host: another.example") == [400, 400]
        assert server.codes(2) == [200, 429]
        assert server.codes(1, "GET", LIVE, "Host: another.example") == [429]


@pytest.mark.clause("E6")
def test_a_trusted_proxys_callers_are_counted_apart_and_a_strangers_are_not(tmp_path: Path) -> None:
    limit = "rate_limit_per_minute = 2\n"
    for trusted, expected in (("", [200, 200, 429, 429]), ('trusted_proxies = ["127.0.0.0/8"]\n', [200] * 4)):
        folder = tmp_path / str(len(trusted))
        folder.mkdir()
        with a_raw_server(filled(folder), server=TWO + limit + trusted) as server:
            callers = ("1.1.1.1", "6.6.6.6, 1.1.1.1", "2001:db8::1", "[2001:db8::2]:80")
            assert [server.ask("GET", LIVE, f"X-Forwarded-For: {c}").http_code for c in callers] == expected
            if trusted:
                assert server.ask("GET", LIVE, "X-Forwarded-For: 1.1.1.1:99").http_code == 429
                assert server.ask("GET", LIVE, "X-Forwarded-For: 2001:db8::3").http_code == 429
                two_lines = ("X-Forwarded-For: 7.7.7.7", "X-Forwarded-For: 1.1.1.1")
                assert server.ask("GET", LIVE, *two_lines).http_code == 429
                not_ascii = ("X-Forwarded-For: \xff", "X-Forwarded-For: 1.1.1.1")
                assert server.ask("GET", LIVE, *not_ascii).http_code == 429
                # A proxy that appends to the caller's own line: it has the address, in bytes that Granian keeps back.
                merged = "X-Forwarded-For: \xff, 1.1.1.1"
                assert server.codes(3, "GET", LIVE, merged) == [400] * 3, "neither the banned caller nor the proxy"
                assert server.codes(3, "GET", LIVE, "X-Forwarded-For: garbage") == [200, 200, 429]
            else:
                not_believed = "X-Forwarded-For: \xff, 1.1.1.1"
                assert server.ask("GET", LIVE, not_believed).http_code == 429


@pytest.mark.clause("E2", "E6")
def test_peers_of_ipv6_are_known_by_their_addresses(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    settings = 'rate_limit_per_minute = 1\ntrusted_proxies = ["::1"]\n'
    with a_raw_server(filled(tmp_path), server=settings, host="::1") as server:
        assert server.codes(2) == [200, 429]
        assert server.codes(2, "GET", LIVE, "X-Forwarded-For: 1.1.1.1") == [200, 429]


def test_the_admin_port_sums_over_both_workers_and_knows_when_they_are_ready(tmp_path: Path) -> None:
    with a_raw_server(tmp_path, server=TWO, top='protocol = "other"\n', with_admin=True) as server:
        live = "/api/v1/other/liveness"
        assert admin(server, "/healthz")[0] == 200
        until_both_work(server)
        http_code, body = admin(server, "/readyz")
        assert (http_code, json.loads(body)["reason"]) == (503, "no live report was loaded yet")
        assert ("lookout_report_age_seconds",) not in metrics(server)
        assert server.codes(10, "GET", live) == [503] * 10
        filled(tmp_path)
        until(lambda: admin(server, "/readyz")[0] == 200, "it is ready")
        assert server.codes(40, "GET", live) == [200] * 40
        assert server.codes(5, "HEAD", f"{live}/history", "If-None-Match: *") == [304] * 5
        assert server.codes(3, "PUT", "/nowhere") == [404] * 3
        assert [server.ask("GET", path).http_code for path in ("/metrics", "/healthz", "/readyz")] == [404] * 3
        counted = metrics(server)
        assert counted["lookout_requests_total", "503", "live"] == 10
        assert counted["lookout_requests_total", "200", "live"] == 40
        assert counted["lookout_requests_total", "304", "history"] == 5
        assert counted["lookout_requests_total", "404", "other"] == 6
        assert counted["lookout_requests_total", "429", "live"] == 0
        assert counted["lookout_store_read_errors_total",] == 0
        assert 0 < counted["lookout_report_age_seconds",] < 60
        assert admin(server, "/readyz?maxAge=60")[0] == 200
        http_code, body = admin(server, "/readyz?maxAge=0.001")
        assert (http_code, json.loads(body)["reason"]) == (503, "the live report is older than 0.001 s")
