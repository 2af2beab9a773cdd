"""What other tools read of a real server, directly and through the edge."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from lookout.base.clock import SystemClock
from lookout.base.instants import parse_instant
from lookout.public.about import ServiceDescription
from tests.builders import SECOND
from tests.commands import said
from tests.descriptions import a_description
from tests.integration.edged import Edge, an_edge, needs_varnish
from tests.integration.raw import Answer, RawServer, a_raw_server, store
from tests.unit.feeds import BUCKET, a_check, a_history, a_report, all_current
from tests.wait import until

TYPES: Final = {
    "/feed.atom": "application/atom+xml; charset=utf-8",
    "/summary.json": "application/json; charset=utf-8",
    "/badge.svg": "image/svg+xml; charset=utf-8",
    "/badge/messaging.json": "application/json; charset=utf-8",
    "/badge/indexer/1.svg": "image/svg+xml; charset=utf-8",
}
SHORT: Final = 10 * SECOND
NO_ROW: Final = ("/badge/", "/badge/nothing.svg", "/badge/indexer/2.svg", "/badge/indexer/1.png", "/badge/indexer/1")
CHAINS: Final = """
[[chains]]
id = 1
name = "<Ether> & \\"eum\\""
block_time_s = 12
rpc = ["http://127.0.0.1:1"]
"""
PAGE: Final = """
title = "Our wallet"
operator = "us"
contact = "a@b.example"
show_unmonitored = false
run_by_others = ["indexer"]
"""


def current_for(lifetime: int) -> bytes:
    """All rows of the mainnets, seen now and to expire so much later."""
    now = SystemClock().now()
    checks = (a_check("current", c["service"], c["chainId"], seen_at=now, lifetime=lifetime) for c in all_current())
    return a_report(*checks, at=now)


def message(asked: Edge | RawServer, stem: str = "/badge") -> str:
    answer = asked.ask("GET", f"{stem}.json")
    return str(json.loads(answer.body)["message"]) if answer.http_code == 200 else f"{answer.http_code}"


def about(server: RawServer) -> Any:
    return json.loads(server.ask("GET", "/about.json").body)


def max_age_s(answer: Answer) -> int:
    return int(dict(answer.headers)["cache-control"].removeprefix("public, max-age=").removesuffix(", must-revalidate"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    folder = tmp_path_factory.mktemp("feeds")
    to_at = SystemClock().now() // BUCKET * BUCKET
    history = a_history({("indexer", 1): "cuucc"}, to_at)
    store(folder, at=SystemClock().now(), live=current_for(280 * SECOND), history=history)
    with a_raw_server(folder, more=CHAINS) as served:
        until(lambda: message(served) == "no problem seen", "the report was loaded")
        yield served


@pytest.mark.clause("E1")
@pytest.mark.parametrize("path", TYPES)
def test_they_are_answered_as_the_endpoints_are(server: RawServer, path: str) -> None:
    got = server.ask("GET", path, "Origin: https://a.example")
    assert (got.http_code, got.ours["content-type"]) == (200, TYPES[path])
    assert got.ours["access-control-allow-origin"] == "*"
    assert got.ours["access-control-expose-headers"] == "ETag"
    assert got.ours["content-security-policy"] == "default-src 'none'"
    assert got.ours["x-content-type-options"] == "nosniff"
    assert 1 <= max_age_s(got) <= 30
    head = server.ask("HEAD", f"{path}?a=query")
    assert (head.http_code, head.body, head.ours) == (200, b"", got.ours)
    unchanged = server.ask("GET", path, f"If-None-Match: W/{got.ours['etag']}")
    assert (unchanged.http_code, unchanged.body) == (304, b"")
    assert unchanged.ours["etag"] == got.ours["etag"]
    assert unchanged.ours["cache-control"] == got.ours["cache-control"]
    assert server.ask("GET", path, 'If-None-Match: "another"').body == got.body
    options = server.ask("OPTIONS", path)
    assert (options.http_code, options.ours["access-control-allow-methods"]) == (204, "GET, HEAD, OPTIONS")
    refused = server.ask("POST", path)
    assert (refused.http_code, refused.ours["allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.first
@pytest.mark.clause("C3", "C4", "M14")
def test_a_badge_turns_grey_by_itself_and_no_copy_of_it_lives_longer(tmp_path: Path) -> None:
    with a_raw_server(tmp_path) as server:
        store(tmp_path, live=(live := current_for(SHORT)))
        expires_s = parse_instant(json.loads(live)["checks"][0]["expiresAt"]) / 1000
        until(lambda: message(server) == "no problem seen", "the report was loaded", 20)
        while (asked_s := time.time()) < expires_s:
            answer = server.ask("GET", "/badge.svg")
            assert b">no problem seen</text>" not in answer.body or asked_s + max_age_s(answer) < expires_s
            time.sleep(0.05)
        until(lambda: message(server) == "too old to say", "the rows have expired", 20)
        assert message(server, "/badge/indexer/1") == "too old to say"
        assert json.loads(server.ask("GET", "/status.json").body)["status"]["indicator"] == "minor"
        summary = json.loads(server.ask("GET", "/summary.json").body)
        assert {component["status"] for component in summary["components"]} == {"degraded_performance"}
        assert server.ask("GET").body == live  # the report itself stays as it was
        store(tmp_path, live=current_for(200 * SECOND))
        until(lambda: message(server) == "no problem seen", "rows that are fresh again", 20)


@pytest.mark.long
@needs_varnish
@pytest.mark.clause("E1", "C4")
def test_through_the_edge_no_badge_is_served_past_its_truth(tmp_path: Path) -> None:
    with a_raw_server(tmp_path) as server, an_edge(tmp_path, server.port) as edge:
        store(tmp_path, live=current_for(SHORT))
        until(lambda: message(edge) == message(server) == "no problem seen", "both say so", 20)
        until(lambda: message(server) == "too old to say", "the server says so", 20)
        assert message(edge) == message(edge, "/badge/indexer/1") == "too old to say"
        for path in (*TYPES, *NO_ROW):
            ours, theirs = edge.ask("GET", path), server.ask("GET", path)
            assert (ours.http_code, ours.body) == (theirs.http_code, theirs.body), path
            assert dict(ours.headers)["cache-control"] == theirs.ours["cache-control"]
            if ours.http_code == 200:
                assert edge.ask("GET", path, f"If-None-Match: {theirs.ours['etag']}").http_code == 304
        assert edge.ask("GET", "/badge").http_code == edge.ask("GET", "/feed.atom/").http_code == 404


@pytest.mark.clause("C11")
def test_a_server_shows_chains_and_services_as_the_monitor_stored_them(tmp_path: Path) -> None:
    with a_raw_server(tmp_path, more=f"{CHAINS}[page]\n{PAGE}", top='protocol = "ours"\n') as server:
        history = a_history({("indexer", 1): "c"}, SystemClock().now() // BUCKET * BUCKET)
        store(tmp_path, live=current_for(280 * SECOND), history=history)
        until(lambda: message(server) == "no problem seen", "the report was loaded")
        described = a_description({1: "Renamed", 56: "BNB"}, test_networks=(56,), title="Their wallet")
        described = replace(
            described, services=(*described.services, ServiceDescription("bundler", "Bundlers", run_by_others=True))
        )
        store(tmp_path, about=described.encode())
        until(lambda: about(server)["chains"][0]["name"] == "Renamed", "the description was loaded")
        until(lambda: message(server, "/badge/bundler") == "unknown", "the new service has its badge")
        names = [each["name"] for each in json.loads(server.ask("GET", "/summary.json").body)["components"]]
        assert "indexer on Renamed" in names
        page = server.ask("GET", "/").body
        assert b"BNB (test network)" in page
        assert b"Status of what Our wallet depends on" in page
        ours = {key: about(server)[key] for key in ("protocol", "title", "operator", "contact", "showUnmonitored")}
        assert list(ours.values()) == ["ours", "Our wallet", "us", "a@b.example", False]
        run_by_others = {each["name"] for each in about(server)["services"] if each["runByOthers"]}
        assert run_by_others == {"indexer", "bundler"}, "as the server's file says of those that it knows"
        store(tmp_path, about=b"no description")
        until(lambda: "the stored description of the deployment cannot be read" in said(tmp_path), "it was looked at")
        until(lambda: about(server)["chains"][0]["name"] != "Renamed", "the server's own file is used again")
        store(tmp_path, about=described.encode())
        until(lambda: about(server)["chains"][0]["name"] == "Renamed", "the description was loaded")
