"""What a server counts, and what its admin port shows of it."""

import re
from pathlib import Path
from typing import Final

import pytest
from prometheus_client import CollectorRegistry

from lookout.app.admin import ServerInstruments
from lookout.base.admin_port import Readiness, process_registry
from lookout.server.assembly import Server
from lookout.server.request import parse_head
from tests.builders import NOON, SECOND
from tests.integration.raw import Answer, a_request, parsed
from tests.unit.server.fakes import FakeReader, SetClock, a_connection, a_server

PAGE: Final = Path(__file__).parent.parent.parent.parent / "docs" / "operations.md"
PROXIES: Final = ("10.0.0.0/8",)


@pytest.mark.parametrize(
    ("generated_at", "max_age_s", "expected"),
    [
        pytest.param(None, None, Readiness(False, "no live report was loaded yet", None), id="no report"),
        pytest.param(NOON, None, Readiness(True, "the live report is served", 10.0), id="a report of any age"),
        pytest.param(NOON, 10, Readiness(True, "the live report is served", 10.0), id="just young enough"),
        pytest.param(NOON, 9, Readiness(False, "the live report is older than 9 s", 10.0), id="too old"),
        pytest.param(
            NOON + 20 * SECOND, 1, Readiness(True, "the live report is served", 0.0), id="from a clock set back"
        ),
    ],
)
def test_a_server_is_ready_when_it_has_a_report_that_is_young_enough(
    generated_at: int | None, max_age_s: float | None, expected: Readiness
) -> None:
    clock, store = SetClock(), FakeReader()
    clock.wall = NOON + 10 * SECOND
    if generated_at is not None:
        store.put("live", b"live", generated_at)
    assert ServerInstruments(CollectorRegistry(), a_server(store, clock), clock).readiness(max_age_s) == expected


def ask(server: Server, method: str, path: str, peer: str = "1.1.1.1", *headers: str) -> Answer:
    head = parse_head(a_request(method, path, *headers))
    return parsed(b"".join(server.responder.answer(head, a_connection(server, peer))))


@pytest.mark.clause("E2", "E6")
def test_it_counts_by_route_and_code_and_refuses_a_caller_that_asks_too_often() -> None:
    clock, store = SetClock(), FakeReader()
    store.put("live", b"live")
    server = a_server(store, clock, rate_limit_per_minute=3, trusted_proxies=PROXIES)
    live, history = server.poller.site.paths

    def code(method: str, path: str, peer: str = "1.1.1.1", forwarded: str = "") -> int:
        headers = ["If-None-Match: *"] * (method == "GET") + [f"X-Forwarded-For: {forwarded}"] * bool(forwarded)
        return ask(server, method, path, peer, *headers).http_code

    assert [code(method, live) for method in ("GET", "HEAD", "OPTIONS", "HEAD", "POST")] == [304, 200, 204, 429, 429]
    assert code("HEAD", history) == 503, "the other path counts for itself"
    assert [code("GET", "/elsewhere") for _ in range(5)] == [404] * 5, "other paths have no limit"
    assert code("HEAD", live, "2.2.2.2") == 200, "another caller"
    assert code("HEAD", live, "1.1.1.1", "3.3.3.3") == 429, "a stranger's header is not believed"
    assert code("HEAD", live, "10.1.1.1", "1.1.1.1") == 429, "a trusted proxy's is"
    assert code("HEAD", live, "10.1.1.1", "3.3.3.3") == 200
    clock.elapsed += 59_001
    assert dict(ask(server, "HEAD", live).headers)["retry-after"] == "1", (
        "seconds are rounded up: who waits for them is let in"
    )
    clock.elapsed += 999
    assert code("HEAD", live) == 200
    assert {key: number for key, number in server.counts.requests.items() if number} == {
        ("live", 200): 4,
        ("live", 204): 1,
        ("live", 304): 1,
        ("live", 429): 5,
        ("history", 503): 1,
        ("other", 404): 5,
    }


@pytest.mark.clause("E1", "E2")
def test_the_operators_own_routes_count_together_and_for_nothing_else() -> None:
    store = FakeReader()
    store.put("live", b"live")
    server = a_server(store, SetClock(), rate_limit_per_minute=3)

    def code(method: str, path: str, peer: str = "1.1.1.1") -> int:
        return ask(server, method, path, peer).http_code

    asked = (("GET", "/"), ("HEAD", "/openapi.json"), ("OPTIONS", "/schemas/history.json"), ("GET", "/"))
    assert [code(*each) for each in asked] == [200, 200, 204, 429]
    assert code("POST", "/schemas/liveness.json") == 429
    assert code("GET", "/nowhere") == 404
    assert code("GET", "/", "2.2.2.2") == 200
    assert [code("GET", server.poller.site.paths[0]) for _ in range(4)] == [200, 200, 200, 429], (
        "an endpoint counts for itself"
    )
    one, another, *_ = (path for path in server.poller.site.others if path.startswith("/assets/"))
    assert [code("GET", one) for _ in range(4)] == [200, 200, 200, 429], "and so does a file of the page"
    assert code("GET", another) == 200
    assert server.counts.requests["other", 429] == 3


def test_the_page_has_every_metric_of_the_server_with_its_kind_and_labels_and_no_other() -> None:
    clock, store, registry = SetClock(), FakeReader(), process_registry()
    store.put("live", b"live")
    ServerInstruments(registry, a_server(store, clock), clock)
    measured = {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            {label for sample in family.samples for label in sample.labels},
        )
        for family in registry.collect()
    }
    common = {name for name in measured if not name.startswith("lookout_")}
    section = PAGE.read_text(encoding="utf-8").partition("## Metrics of the server\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|(.*?)\| .+ \|$", section, flags=re.MULTILINE)
    told = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert told == {name: of for name, of in measured.items() if name not in common}
    assert {name.partition("_")[0] for name in common} == {"process", "python"}
