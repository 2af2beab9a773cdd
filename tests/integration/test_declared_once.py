"""A service and a protocol that are declared here, and nowhere else, are found wherever those of the contract are."""

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

from lookout.app.probe import probe_once
from lookout.base.clock import SystemClock
from lookout.cli import main
from lookout.config.file import read_config
from lookout.config.settings import Settings, around_of
from lookout.core.ledger import Ledger
from lookout.core.model import Check, Failed, Observation, Responding
from lookout.core.services import SERVICES, Service
from lookout.demo.sim.server import serving, wall_clock
from lookout.demo.sim.world import launch_world
from lookout.documents.reports import documents_of
from lookout.features.alerts.alerts import Alerts
from lookout.features.alerts.messages import write_message
from lookout.features.alerts.rules import News
from lookout.features.alerts.settings import build_policy
from lookout.monitor.metrics import Instruments
from lookout.protocols.answers import decode, open_value, table
from lookout.protocols.client.failure import not_understood
from lookout.protocols.client.request import KindTable, Request
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.source import Protocol
from lookout.public.feeds import make_feed_files
from lookout.public.page.html import render
from lookout.public.picture import Names
from lookout.public.terminal import Shown, draw_screen
from lookout.replay.replay import Replay
from lookout.state.log import Event, Started, format_event, parse_line
from lookout.verify.clauses import verify_visit
from lookout_reader import (
    Clocks,
    History,
    LiveReport,
    Update,
    effective_status,
    parse_history,
    parse_report,
    rows_by_check,
)
from tests.alerting import THE_FIVE
from tests.builders import HOUR, MINUTE
from tests.cases import text_of
from tests.declared import including
from tests.descriptions import a_description, an_about
from tests.integration.planted import a_deployment, resources
from tests.integration.visits import visited
from tests.nodejs import READER, find_node
from tools import schemas


class HelloTable(KindTable, frozen=True, kw_only=True):
    word: str


def parse_hello(body: bytes, settings: HelloTable) -> Responding:
    status = table(table(decode(body), "no greeting").get("status"), "no greeting")
    if str(open_value(status.get("chainId"))) != settings.word:
        raise not_understood("no greeting")
    return Responding()


FAUCET: Final = Service("faucet", Responding)
HELLO: Final = Protocol(
    "hello", Responding, HelloTable, lambda settings: Request("GET", settings.url, settings), parse_hello
)
CHECK: Final = Check("faucet", 1)
CONFIG: Final = text_of("settings/declared-once.toml")


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with including(SERVICES, FAUCET), including(PROTOCOLS, HELLO):
        yield


class Past(NamedTuple):
    """Two hours in which the faucet failed for a while."""

    settings: Settings
    events: list[Event]
    ledger: Ledger
    now: int

    @property
    def live(self) -> bytes:
        return documents_of(self.ledger)["live"].body

    @property
    def history(self) -> bytes:
        return documents_of(self.ledger)["history"].body


@pytest.fixture
def past(tmp_path: Path) -> Past:
    now = time.time_ns() // 1_000_000
    settings = configured(tmp_path)
    events: list[Event] = [Started(now - 2 * HOUR)]
    for at in range(now - 2 * HOUR, now, 30_000):
        fails = now - HOUR <= at < now - HOUR + 20 * MINUTE
        events.append(Observation(CHECK, at, Failed("refused") if fails else Responding()))
    replay = Replay(settings.plan())
    for event in events:
        replay.feed(parse_line(format_event(event)))
    replay.finish(now)
    return Past(settings, events, replay.ledger, now)


def configured(folder: Path, base: str = "http://127.0.0.1:1", text: str = CONFIG) -> Settings:
    path = folder / "lookout.toml"
    path.write_text(text.format(base=base))
    return read_config(path, {})


def row_in(live: bytes) -> dict[str, object]:
    (row,) = (row for row in json.loads(live)["checks"] if row["service"] == "faucet")
    return dict(row)


@pytest.mark.parametrize(
    ("written", "instead", "problem"),
    [
        (
            'kind = "hello"',
            'kind = "squid"',
            'faucet[0].kind: "squid" is not allowed; it has to be one of http, jsonrpc, hello',
        ),
        ('word = "1"', 'word = ""\nwrod = "ok"', "faucet[0].wrod: unknown key; did you mean word?"),
        (
            'services = ["faucet"]',
            'services = ["fawcett"]',
            "services[0]: there is no such service; there are",
        ),
        ("[[faucet]]", "[[fauset]]", "fauset: unknown key; did you mean faucet?"),
    ],
)
def test_the_configuration_is_checked(written: str, instead: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "lookout.toml"
    path.write_text(CONFIG.format(base="http://127.0.0.1:1"))
    assert CliRunner().invoke(main, ["check-config", "-c", str(path)]).output == "ok\n"
    path.write_text(CONFIG.format(base="http://127.0.0.1:1").replace(written, instead))
    assert problem in CliRunner().invoke(main, ["check-config", "-c", str(path)]).output


def test_it_is_probed_in_the_simulated_world(past: Past, tmp_path: Path) -> None:
    async def converse() -> dict[Check, tuple[str, str]]:
        async with serving("127.0.0.1", 0, launch_world(None, past.now), wall_clock) as (host, port):
            probed = await probe_once(configured(tmp_path, f"http://{host}:{port}"), SystemClock())
        return {each.row.check: (each.row.status, each.row.reason) for each in probed.rows}

    rows = asyncio.run(converse())
    assert rows[Check("faucet", 1)] == ("current", "responding")


def test_log_and_documents_have_it(past: Past) -> None:
    row = row_in(past.live)
    assert (row["chainId"], row["status"], row["reason"], row["metrics"]) == (1, "current", "responding", {})
    assert json.loads(past.live)["checks"][-1] == row  # after those that were declared before it (R12)
    (of_past,) = (row for row in json.loads(past.history)["rows"] if row["service"] == "faucet")
    assert "u" in of_past["buckets"]
    assert any(b'"service":"faucet"' in format_event(event) for event in past.events)


def test_metrics_and_alerts_name_it(past: Past) -> None:
    registry = CollectorRegistry()
    Instruments(registry, SystemClock())
    assert b'lookout_probes_total{outcome="answered",service="faucet"}' in generate_latest(registry)
    rule = build_policy(past.settings.table_of(Alerts), around_of(past.settings)).rules.rules[0]
    assert rule.checks == {CHECK}
    news = News("began", CHECK, "unavailable", "unreachable", "unavailable", past.now, past.now, 0, ("ops",))
    assert "faucet" in str(write_message([news], THE_FIVE))


def test_page_feeds_terminal_and_both_readers_show_it(past: Past) -> None:
    assert b"faucet" in render(past.live, "/live", "/history", a_description(), past.now)
    made = make_feed_files(Names("protocol", an_about()), past.live, past.history, past.now, 0)
    texts = {path: file.body for path, file in made.files.items() if file is not None}
    assert all(any(b"faucet" in text for path, text in texts.items() if end in path) for end in ("atom", "summary"))
    assert any("faucet/1" in stem for stem in made.rows)
    report = parse_report(past.live)
    history = parse_history(past.history)
    assert isinstance(report, LiveReport)
    assert isinstance(history, History)
    row = rows_by_check(report)[CHECK]
    assert effective_status(row, Clocks(past.now)) == "current"
    console = Console(file=StringIO(), width=120)
    shown = Shown("", an_about(), Update(report, None, history, None, None))
    console.print(draw_screen(shown, past.now, 120))
    assert isinstance(console.file, StringIO)
    assert "faucet Ethereum" in console.file.getvalue()
    program = (
        f'import {{ parseReport, findRow, effectiveStatus }} from "{(READER / "src" / "page.js").as_uri()}";'
        'import { readFileSync } from "node:fs";'
        'const row = findRow(parseReport(readFileSync(0, "utf8")), "faucet", 1);'
        f"console.log(effectiveStatus(row, {past.now}));"
    )
    ran = subprocess.run(
        [find_node(), "--input-type=module", "-e", program],
        input=past.live,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout == b"current\n"


def test_verify_finds_nothing_wrong_with_it(past: Past) -> None:
    real = resources(past.live, past.history)
    with a_deployment(lambda _: real) as deployment:
        assert [each for each in verify_visit(visited(deployment.base)) if each.verdict == "fail"] == []


def test_the_generated_documents_name_it(tmp_path: Path) -> None:
    assert schemas.main(tmp_path) == 0
    for name in (
        "docs/schemas/liveness.json",
        "docs/schemas/history.json",
        "docs/openapi.json",
        "src/lookout/server/openapi.json",
    ):
        assert "hosted-indexer, faucet; or" in (tmp_path / name).read_text()
