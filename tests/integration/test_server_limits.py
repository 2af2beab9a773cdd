"""The rate limit, and what the server's admin port says."""

import json
import time
from pathlib import Path
from typing import Final

import pytest

from lookout.base.instants import format_instant
from tests.integration.raw import a_raw_server, admin, metrics, store
from tests.integration.served import HISTORY, LIVE, has_ipv6
from tests.wait import until

STRANGER, PROXY = "127.0.0.1", "127.0.0.2"
NOT_ASCII: Final = "\xff, 1.1.1.1"


def filled(folder: Path, at: int | None = None) -> Path:
    at = time.time_ns() // 1_000_000 if at is None else at
    live = json.dumps({"generatedAt": format_instant(at)}).encode()
    store(folder, at=at, live=live, history=b'{"history":1}')
    return folder


@pytest.mark.clause("E2")
def test_120_requests_pass_and_the_121st_is_refused(tmp_path: Path) -> None:
    with a_raw_server(filled(tmp_path), server="rate_limit_per_minute = 120\n") as server:
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


@pytest.mark.clause("E2", "E6")
def test_a_trusted_proxys_callers_are_counted_apart_and_a_strangers_are_not(tmp_path: Path) -> None:
    settings = f'rate_limit_per_minute = 2\ntrusted_proxies = ["{PROXY}"]\n'
    with a_raw_server(filled(tmp_path), server=settings) as server:

        def codes(peer: str, *forwarded: str) -> list[int]:
            return [server.ask("GET", LIVE, f"X-Forwarded-For: {each}", peer=peer).http_code for each in forwarded]

        callers = ("1.1.1.1", "6.6.6.6, 1.1.1.1", "2001:db8::1", "[2001:db8::2]:80")
        assert codes(STRANGER, *callers, NOT_ASCII) == [200, 200, 429, 429, 429]
        assert codes(PROXY, *callers) == [200] * 4
        assert codes(PROXY, "1.1.1.1:99", "2001:db8::3") == [429, 429]
        for first in ("7.7.7.7", "\xff"):
            lines = (f"X-Forwarded-For: {first}", "X-Forwarded-For: 1.1.1.1")
            assert server.ask("GET", LIVE, *lines, peer=PROXY).http_code == 429
        assert codes(PROXY, *[NOT_ASCII] * 3) == [429] * 3, "a proxy appended the address to the caller's own line"
        assert codes(PROXY, *["garbage"] * 3) == [200, 200, 429]
        wrong_host = [server.ask("GET", HISTORY, "Host: another.example").http_code for _ in range(3)]
        assert wrong_host == [400, 400, 429], "it counts like any other request"


@pytest.mark.clause("E2", "E6")
def test_peers_of_ipv6_are_known_by_their_addresses(tmp_path: Path) -> None:
    if not has_ipv6():
        pytest.skip("this machine has no IPv6")
    settings = 'rate_limit_per_minute = 1\ntrusted_proxies = ["::1"]\n'
    with a_raw_server(filled(tmp_path), server=settings, host="::1") as server:
        assert server.codes(2) == [200, 429]
        assert server.codes(2, "GET", LIVE, "X-Forwarded-For: 1.1.1.1") == [200, 429]


def test_the_admin_port_counts_and_knows_when_the_server_is_ready(tmp_path: Path) -> None:
    with a_raw_server(tmp_path, top='protocol = "other"\n', with_admin=True) as server:
        live = "/api/v1/other/liveness"
        assert admin(server, "/healthz")[0] == 200
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
