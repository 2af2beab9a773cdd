"""The admin port's replies, what the monitor measures of itself, and the page about both."""

import http.client
import json
import re
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Counter

from lookout.base.admin_port import (
    CHANGE_HEADER,
    RELOAD_HEADER,
    AdminReply,
    AdminRoutes,
    Change,
    Readiness,
    answer_request,
    process_registry,
)
from lookout.base.url import host_and_port
from lookout.config.settings import Upstreams
from lookout.core.heads import ChainProgress, Reading
from lookout.core.history import Uptime
from lookout.core.model import Blocks, Failed, Metrics, MissingList, Nothing
from lookout.features.alerts.alerts import Alerts
from lookout.features.lists.entries import CoverageNote, LinksNote, NodeGapNote
from lookout.features.lists.rules.coverage import Coverage
from lookout.features.lists.rules.links import Links
from lookout.features.lists.rules.node_gap import NodeGap
from lookout.features.outcome import EntryKey, end
from lookout.features.witnesses.reading import Reading as WitnessReading
from lookout.features.witnesses.shown import WitnessNote
from lookout.features.witnesses.views import Standing
from lookout.monitor.metrics import Instruments
from lookout.public.about import ChainDescription
from tests.builders import HOSTED_INDEXER, INDEXER, MESSAGING, NOON, PPOI, TWELVE_SECONDS, a_row
from tests.integration.admin import always, open_port
from tests.unit.server.fakes import SetClock

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "operations.md"
RPC: Final = EntryKey("endpoint", "rpc 1 of Ethereum", 1)
SOMETHING_WRONG: Final = {"error": "maxAge: has to be one positive number of seconds"}


def ready_up_to_ten_seconds(max_age_s: float | None) -> Readiness:
    """Something that was done ten seconds ago."""
    return Readiness(max_age_s is None or max_age_s >= 10, "as was asked", 10.0)


READY: Final = {"ready": True, "reason": "as was asked", "ageSeconds": 10.0}


@pytest.mark.parametrize(
    ("path", "query", "http_code", "document"),
    [
        pytest.param("/healthz", "", 200, {"status": "ok"}, id="who answers is healthy"),
        pytest.param("/readyz", "", 200, READY, id="without a greatest age any age will do"),
        pytest.param("/readyz", "maxAge=10", 200, READY, id="as old as allowed is ready"),
        pytest.param("/readyz", "maxAge=10.25", 200, READY, id="fractions are allowed"),
        pytest.param("/readyz", "other=1&maxAge=11", 200, READY, id="other parameters are ignored"),
        pytest.param("/readyz", "maxAge=9.999", 503, READY | {"ready": False}, id="older than allowed is not ready"),
        *(
            pytest.param("/readyz", f"maxAge={text}", 400, SOMETHING_WRONG, id=f"not a positive number: {text!r}")
            for text in (
                "",
                "0",
                "0.0",
                "-1",
                "+1",
                "1e3",
                "inf",
                "nan",
                "ten",
                "1.",
                "1&maxAge=1",
                "%D9%A1",
                "9" * 400,
            )
        ),
        *(
            pytest.param(path, "", 404, {"error": "there are /metrics, /healthz and /readyz"}, id=f"no path: {path!r}")
            for path in ("", "/", "/metrics/", "/Healthz", "/../metrics", "//metrics", "*")
        ),
    ],
)
def test_a_reply(path: str, query: str, http_code: int, document: Any) -> None:
    reply = answer_request(path, query, AdminRoutes(CollectorRegistry(), ready_up_to_ten_seconds))
    assert (reply.http_code, reply.content_type) == (http_code, "application/json")
    assert json.loads(reply.body) == document


def test_metrics_are_those_of_the_registry() -> None:
    registry = CollectorRegistry()
    Counter("seen_total", "how many were seen", registry=registry).inc(3)
    reply = answer_request("/metrics", "any=thing", AdminRoutes(registry, ready_up_to_ten_seconds))
    assert (reply.http_code, reply.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b"\nseen_total 3.0\n" in reply.body


def ask(address: str, method: str, path: str, headers: Mapping[str, str], body: bytes = b"{}") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(address, timeout=30)
    with closing(connection):
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.mark.parametrize(
    ("path", "header", "other"),
    [("/reload", "Lookout-Reload", "Lookout-Change"), ("/notices", "Lookout-Change", "Lookout-Reload")],
)
def test_a_change_is_posted_with_its_header_and_never_by_a_browser(path: str, header: str, other: str) -> None:
    changed: list[tuple[bytes, str | None]] = []

    async def change(body: bytes, meant: str | None) -> AdminReply:
        changed.append((body, meant))
        return AdminReply(422, "application/json", b"{}")

    def no_list() -> AdminReply:
        return AdminReply(200, "application/json", b"[]")

    lists = {"/notices": no_list}
    changes = {"/notices": Change(CHANGE_HEADER, change), "/reload": Change(RELOAD_HEADER, change)}
    with open_port("127.0.0.1:0", AdminRoutes(CollectorRegistry(), always, lists, changes)) as address:
        refused = {"error": f"needs the header {header}: 1, and is not for browsers"}
        cases: list[dict[str, str]] = [{}, {header: "0"}, {other: "1"}, {header: "1", "Origin": "null"}]
        for headers in cases:
            assert ask(address, "POST", path, headers) == (403, refused)
        for method, elsewhere, http_code in (
            ("POST", "/metrics", 405),
            ("OPTIONS", path, 405),
            ("POST", "/relaod", 404),
        ):
            assert ask(address, method, elsewhere, {header: "1"})[0] == http_code
        assert ask(address, "GET", "/reload", {}) == (405, {"error": "/reload takes POST"})
        assert changed == []
        assert ask(address, "POST", path, {header: "1", "Lookout-Config": "a"}) == (422, {})
        assert changed == [(b"{}", "a")]
        there = "there are /metrics, /healthz and /readyz"
    with open_port("127.0.0.1:0", AdminRoutes(CollectorRegistry(), always)) as address:
        assert ask(address, "POST", path, {header: "1"}) == (404, {"error": there})


@pytest.mark.parametrize(
    ("head", "body", "code"),
    [
        pytest.param(b"Content-Length: 65537\r\n", b"x" * 65_537, b"413", id="a long one"),
        pytest.param(b"Content-Length: 9\r\n", b"{}", b"400", id="one that is cut off"),
        pytest.param(b"Content-Length: 9\r\nExpect: 100-Continue\r\n", b"", b"100", id="one that is asked for"),
        pytest.param(b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"411", id="one of unknown length"),
    ],
)
def test_a_body_that_is_not_whole_or_too_long_changes_nothing(head: bytes, body: bytes, code: bytes) -> None:
    async def change(_body: bytes, _meant: str | None) -> AdminReply:
        raise AssertionError("it changes something")

    routes = AdminRoutes(CollectorRegistry(), always, changes={"/notices": Change(CHANGE_HEADER, change)})
    with (
        open_port("127.0.0.1:0", routes) as address,
        socket.create_connection(host_and_port(address), timeout=30) as connection,
    ):
        connection.sendall(b"POST /notices HTTP/1.1\r\nHost: a\r\nLookout-Change: 1\r\n" + head + b"\r\n" + body)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"HTTP/1.1 " + code)


def test_the_monitor_is_ready_once_it_stored_something_and_while_that_is_young_enough() -> None:
    clock = SetClock()
    instruments = Instruments(CollectorRegistry(), clock)
    nothing = Readiness(False, "nothing was stored yet", None)
    assert instruments.readiness(None) == nothing
    instruments.published(NOON, (), {})
    instruments.not_stored(3)
    assert instruments.readiness(None) == instruments.readiness(60) == nothing
    written = instruments.published(NOON, (), {})
    clock.elapsed += 2_000  # the write took so long, and the publication is older by as much
    instruments.published(NOON, (), {})  # meanwhile
    instruments.stored(written, 2_000)
    assert instruments.readiness(2) == Readiness(True, "a publication was stored", 2.0)
    instruments.published(NOON, (), {})
    instruments.not_stored(3)
    clock.elapsed += 500
    assert instruments.readiness(None) == Readiness(True, "a publication was stored", 2.5)
    assert instruments.readiness(2.4) == Readiness(False, "the last stored publication is older than 2.4 s", 2.5)


def test_what_is_not_known_yet_has_no_sample_and_every_status_has_one() -> None:
    registry = CollectorRegistry()
    Instruments(registry, SetClock())
    for name in ("publication_timestamp_seconds", "stored_publication_timestamp_seconds", "publication_age_seconds"):
        assert registry.get_sample_value(f"lookout_{name}") is None
    for status in ("current", "catching-up", "degraded", "unavailable", "unknown", "unmonitored"):
        assert registry.get_sample_value("lookout_rows", {"status": status}) == 0
    assert registry.get_sample_value("lookout_probes_total", {"service": "messaging", "outcome": "failed"}) == 0


def test_probes_and_readings_are_counted_by_what_came_of_them() -> None:
    registry = CollectorRegistry()
    instruments = Instruments(registry, SetClock())
    instruments.count_probe([INDEXER], 250, {INDEXER: Blocks(7)})
    instruments.count_probe([INDEXER], 10_001, {INDEXER: Failed("timeout")})
    instruments.count_probe([HOSTED_INDEXER], 1, {HOSTED_INDEXER: Nothing()})
    on_both = {PPOI: MissingList(), PPOI._replace(chain_id=56): MissingList()}
    instruments.count_probe(tuple(on_both), 1, on_both)
    instruments.count_reading(1, "rpc 1 of Ethereum", 250, None)
    instruments.count_reading(1, "rpc 1 of Ethereum", 500, "timeout")
    instruments.measure("lookout_scheduler_delay_seconds", -1)
    told = {
        (sample.name, *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.value
    }
    assert {key[1:]: count for key, count in told.items() if key[0] == "lookout_probes_total"} == {
        ("indexer", "answered"): 1,
        ("indexer", "failed"): 1,
        ("hosted-indexer", "nothing"): 1,
        ("ppoi", "missing-list"): 2,
    }
    assert told["lookout_probe_duration_seconds_sum", "indexer", "1"] == 10.251
    assert told["lookout_probe_duration_seconds_count", "ppoi", ""] == 1
    for outcome in ("answered", "failed"):
        assert told["lookout_head_reads_total", "1", outcome] == 1
        assert told["lookout_endpoint_reads_total", "1", "rpc 1 of Ethereum", outcome] == 1
    assert told["lookout_endpoint_failures_total", "1", "rpc 1 of Ethereum", "timeout"] == 1
    assert told["lookout_endpoint_read_duration_seconds_sum", "1", "rpc 1 of Ethereum"] == 0.75
    assert registry.get_sample_value("lookout_scheduler_delay_seconds_sum") == 0


def test_the_page_has_every_metric_with_its_kind_and_labels_and_no_other() -> None:
    registry = process_registry()
    instruments = Instruments(registry, SetClock())
    instruments.describe_watched((ChainDescription(1, "Ethereum"),), [], Upstreams((), ()))
    instruments.count_probe([MESSAGING], 1, {MESSAGING: Nothing()})
    instruments.count("lookout_probe_failures_total", "messaging", "", "timeout")
    instruments.count_reading(1, "rpc 1 of Ethereum", 1, "timeout")
    instruments.board.note_reading(RPC, NOON, 1, Reading(NOON, 14, NOON), Reading(NOON, 14, NOON))
    instruments.board.note_standings(1, {RPC.name: "agrees"})
    instruments.board.note_source("indexer 1", NOON, 1, [a_row("current")], {})
    instruments.board.note_doubts("indexer 1", ("indexing_errors",))
    instruments.board.certificates_end_at["indexer 1"] = NOON
    instruments.count("lookout_coverage_requests_total", "1", RPC.name, "answered")
    answered, coverage = end(NOON, 1, None), Coverage(subject="", began_at=NOON)
    for note in (
        CoverageNote(EntryKey("coverage", "1"), answered, check=INDEXER, coverage=coverage, first_block=0, outcomes={}),
        LinksNote(EntryKey("links", "1"), answered, check=INDEXER, links=Links(subject="")),
        NodeGapNote(EntryKey("agreement", "1"), answered, node=PPOI, indexer=INDEXER, known=NodeGap("")),
        WitnessNote(
            EntryKey("witness", "Lima"),
            answered,
            reading=WitnessReading(NOON),
            standing=Standing("Lima", "", False, (), None),
            views=(),
        ),
    ):
        instruments.board.note(note)
    compared = (
        replace(a_row("current", check=check), metrics=Metrics(position=7, head=9)) for check in (PPOI, INDEXER)
    )
    published = (a_row("current", expires_at=NOON + 1), *compared)
    publication = instruments.published(NOON, published, {1: ChainProgress(Reading(NOON, 14, NOON), TWELVE_SECONDS)})
    instruments.set_uptimes({MESSAGING: Uptime(1.0, None, None)})
    instruments.set_config_loaded(NOON, last_reload_successful=True)
    instruments.stored(publication, 1)
    instruments.set_samples(Alerts, (("lookout_alerts_firing", [], 0), ("lookout_alert_queue", ["ops"], 0)))
    instruments.count("lookout_alert_messages_total", "ops", "sent")
    instruments.count("lookout_alert_sender_failures_total", "ops")
    instruments.count_ping("answered")
    measured = {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            {label for sample in family.samples for label in sample.labels} - {"le"},
        )
        for family in registry.collect()
        if family.name.startswith("lookout_")
    }
    section = PAGE.read_text(encoding="utf-8").partition("## Metrics of the monitor\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|(.*?)\| .+ \|$", section, flags=re.MULTILINE)
    assert len(rows) == len(measured)
    assert {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows} == measured
