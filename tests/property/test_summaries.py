"""Whatever is configured and whatever its rows are: no summary is better than the worst row that it counts (C11)."""

import json
from io import StringIO
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from lookout.base.instants import format_instant, format_second
from lookout.base.known_chains import KNOWN_CHAINS
from lookout.config.services import OwnService
from lookout.config.settings import Settings
from lookout.config.tables import ChainTable, RpcEndpoint
from lookout.core.services import all_checks
from lookout.protocols.generic import HttpTable
from lookout.public.feeds import FeedFiles, make_feed_files
from lookout.public.picture import Names
from lookout.public.terminal import Shown, draw_screen
from lookout_reader import (
    EFFECTIVE_STATUSES,
    Clocks,
    EffectiveStatus,
    LiveReport,
    Update,
    effective_status,
    parse_report,
)
from lookout_reader.statuses import BY_WORD
from tests.builders import NOON, SECOND
from tests.unit.feeds import a_check

Json = dict[str, Any]

STATUSES = st.sampled_from(["current", "catching-up", "degraded", "unavailable", "unknown", "unmonitored"])
INDICATORS = {"current": "none", "degraded": "major", "unavailable": "critical"}


class Deployment(NamedTuple):
    """A configuration, and what its monitor reported."""

    settings: Settings
    rows: list[Json]

    @property
    def live(self) -> bytes:
        report = {"schemaVersion": 1, "generatedAt": format_instant(NOON), "checks": self.rows}
        return json.dumps(report).encode()

    def report(self) -> LiveReport:
        report = parse_report(self.live)
        assert isinstance(report, LiveReport)
        return report

    def test_networks(self) -> set[int]:
        return {chain.id for chain in self.settings.chains if chain.test_network} | {11155111}

    def status(self) -> EffectiveStatus:
        """What a summary says: shared rows only worsen it."""
        worst = min(self.counted(), key=EFFECTIVE_STATUSES.index)
        on_chains = (row for row in self.report().rows if row.chain_id not in {None, *self.test_networks()})
        is_seen = any(effective_status(row, Clocks(NOON)) == "current" for row in on_chains)
        return "unmonitored" if worst == "current" and not is_seen else worst

    def counted(self) -> list[EffectiveStatus]:
        """What the rows that count are worth, and those that are missing; written beside the code that is tested."""
        report, tests = self.report(), self.test_networks()
        rows = [effective_status(row, Clocks(NOON)) for row in report.rows if row.chain_id not in tests]
        there = {(row.service, row.chain_id) for row in report.rows}
        # A chain that only the report has is expected to be whole, too.
        chains = {chain.id for chain in self.settings.chains} | {row.chain_id for row in report.rows if row.chain_id}
        expected = {(check.service, check.chain_id) for check in all_checks(chains - tests)}
        missing: list[EffectiveStatus] = ["unknown"] * len(expected - there)
        return [*rows, *missing]

    def badge_of(self, service: str) -> str:
        """The worst of a service's rows that count, and of those that are missing; if none does, of all it has."""
        tests = self.test_networks()
        every = [row for row in self.report().rows if row.service == service]
        rows = [row for row in every if row.chain_id not in tests]
        chains = {row["chainId"] for row in self.rows} | {chain.id for chain in self.settings.chains}
        known = {chain_id for chain_id in chains if chain_id is not None} - tests
        expected = {check.chain_id for check in all_checks(known) if check.service == service}
        is_counted = bool(rows or expected)
        statuses = [effective_status(row, Clocks(NOON)) for row in (rows if is_counted else every)]
        statuses += ["unknown"] * bool(expected - {row.chain_id for row in rows} or not every)
        worst = min(statuses, key=EFFECTIVE_STATUSES.index)
        return BY_WORD[worst].name


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    chain_ids = draw(st.lists(st.sampled_from([*KNOWN_CHAINS, 31337, 424242]), unique=True, max_size=5))
    chains = [
        ChainTable(
            id=chain_id,
            name=f"chain number {chain_id}",
            block_time_s=1,
            rpc=(RpcEndpoint("http://127.0.0.1"),),
            test_network=draw(st.booleans()) or chain_id == 11155111,
        )
        for chain_id in chain_ids
    ]
    settings = Settings(chains=tuple(chains), services=tuple(draw(own_services(chain_ids))))
    seen_at = st.integers(NOON - 200 * SECOND, NOON)
    named = [(check.service, check.chain_id) for check in settings.plan().checks()]
    odd = st.tuples(st.sampled_from(["bundler", "indexer", "messaging"]), st.sampled_from([None, 1, 777, 11155111]))
    checks = [check for check in named if draw(st.integers(0, 9))] if draw(st.booleans()) else named
    others = draw(st.lists(odd, max_size=3))
    rows = [a_check(draw(STATUSES), *check, seen_at=draw(seen_at)) for check in dict.fromkeys([*checks, *others])]
    return Deployment(settings, rows)


@st.composite
def own_services(draw: st.DrawFn, chain_ids: list[int]) -> list[OwnService]:
    """The operator's own, each on some of the chains, or shared."""
    names = draw(st.lists(st.sampled_from(["bundler", "relayer", "x"]), unique=True))
    on: dict[str, list[int | None]] = {
        name: [*draw(st.sets(st.sampled_from(chain_ids)))] if chain_ids else [] for name in names
    }
    return [
        OwnService(name=name, checks=tuple(HttpTable(each, "http", "http://127.0.0.1") for each in chains or [None]))
        for name, chains in on.items()
    ]


@pytest.mark.clause("C4", "C11")
@given(deployments())
def test_every_summary_agrees_with_the_rows_that_it_counts(deployment: Deployment) -> None:
    worst = deployment.status()
    about = deployment.settings.description().read()
    made = make_feed_files(Names("protocol", about), deployment.live, None, NOON, 0)
    assert message(made, "/badge.json") == BY_WORD[worst].name
    for service in deployment.settings.all_services():
        assert message(made, f"/badge/{service.name}.json") == deployment.badge_of(service.name)
    status = document(made, "/status.json")["status"]
    assert status["indicator"] == INDICATORS.get(worst, "minor")
    assert first_line(deployment) == status["description"].partition(". As of ")[0]


def first_line(deployment: Deployment) -> str:
    update = Update(deployment.report(), None, None, None, None)
    shown = Shown("here", deployment.settings.description().read(), update)
    console = Console(file=StringIO(), width=600)
    console.print(draw_screen(shown, NOON, 600))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()[1][2:].rstrip(".")


OWN_NAMES = st.from_regex(r"[a-z]{1,2}(-[0-9]{1,2}|-[a-z]|[0-9]|-){0,3}", fullmatch=True)
CHECKS = st.tuples(OWN_NAMES, st.none() | st.integers(1, 30))


@pytest.mark.clause("R14")
@example([("indexer", 1), ("indexer-1", None)])
@given(st.lists(CHECKS, unique=True))
def test_two_rows_never_have_one_id(checks: list[tuple[str, int | None]]) -> None:
    rows = [a_check("degraded", *check) for check in checks]
    bucket = {"from": format_second(NOON), "to": format_second(NOON), "bucketSeconds": 300, "retentionDays": 14}
    troubles: list[Json] = [
        {"service": service, "chainId": chain, "buckets": "d", "uptime": {}} for service, chain in checks
    ]
    history = json.dumps({"schemaVersion": 1, "generatedAt": format_instant(NOON), **bucket, "rows": troubles})
    names = Names("protocol", Settings().description().read())
    made = make_feed_files(names, Deployment(Settings(), rows).live, history.encode(), NOON, 0)
    summary = document(made, "/summary.json")
    for key in ("components", "incidents"):
        assert len({each["id"] for each in summary[key]}) == len(summary[key]) == len(checks)


def file(made: FeedFiles, path: str) -> bytes:
    found = made.files[path]
    assert found is not None
    return found.body


def document(made: FeedFiles, path: str) -> Json:
    found: Json = json.loads(file(made, path))
    return found


def message(made: FeedFiles, path: str) -> object:
    return document(made, path)["message"]


@pytest.mark.clause("C7", "C11")
def test_a_row_of_nobody_knows_what_leaves_no_summary_green() -> None:
    row = a_check("unavailable", "bundler") | {"chainId": "x"}
    checks = [a_check("current", *check) for check in all_checks([1])]
    chain = ChainTable(id=1, name="Ethereum", block_time_s=12, rpc=(RpcEndpoint("http://127.0.0.1"),))
    deployment = Deployment(Settings(chains=(chain,)), [*checks, row])
    about = deployment.settings.description().read()
    made = make_feed_files(Names("protocol", about), deployment.live, None, NOON, 0)
    assert message(made, "/badge.json") == "unknown"
    assert first_line(deployment) == "No problem when last seen"
