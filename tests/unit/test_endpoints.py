"""What the operator sees of each RPC endpoint: at /sources, and in the metrics (M16)."""

import json
from collections.abc import Mapping
from typing import Final

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from lookout.config.settings import Upstreams
from lookout.core.model import Blocks, Check, FaultyBlocks, Found, Peers
from lookout.features.alerts.settings import AlertRule, rules_without_rows
from lookout.features.outcome import Entry
from lookout.monitor.board import Board
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Now
from tests.alerting import sending_into
from tests.builders import DAY, INDEXER, LAUNCH, MESSAGING, NOON, a_plan
from tests.logs import capture_logs
from tests.unit.running_monitor import Asked, Happening, Read, lived, reloading
from tests.unit.server.fakes import SetClock

PLAN: Final = a_plan(INDEXER)
REFUSED: Final = ProbeFailed("refused")
NO_MEMORY: Final = OwnFault("memory")
BSC: Final = Check("indexer", 56)


def entries_after(seconds: float, endpoints: list[Read], *happenings: tuple[float, Happening]) -> list[Entry]:
    """What a monitor shows that has run so long."""
    board, entries = Board(), list[Entry]()
    show: tuple[float, Happening] = (seconds, lambda _: entries.extend(board.list_entries()))
    lived(seconds, PLAN, [], endpoints, *happenings, show, board=board)
    return entries


@pytest.mark.clause("M16")
def test_each_endpoint_has_its_height_its_lag_and_what_its_answer_counts_for() -> None:
    entries = entries_after(
        60,
        [
            Read(1, 1000, name="first"),
            Read(1, 1001, name="second"),
            Read(1, 997, name="lagging"),
            Read(1, 40, name="frozen"),
            Read(1, 10**6, name="lying"),
            Read(1, ProbeFailed("wrong_chain", "5 instead of 1"), name="other chain"),
            Read(1, REFUSED, name="down"),
        ],
    )
    assert {each.name: (each.outcome, each.height, each.lag_blocks, each.standing) for each in entries} == {
        "first": ("answered", 1000, 1, "agrees"),
        "second": ("answered", 1001, 0, "agrees"),
        "lagging": ("answered", 997, 4, "agrees"),
        "frozen": ("answered", 40, 961, "behind"),
        "lying": ("answered", 10**6, 1001 - 10**6, "disagrees"),
        "other chain": ("failed", UNSET, UNSET, "wrong_chain"),
        "down": ("failed", UNSET, UNSET, "failed"),
    }


@pytest.mark.clause("M16", "S13")
def test_there_is_no_lag_behind_a_head_that_is_too_old() -> None:
    """The two agreed once, and then on nothing: after a minute and a half nobody knows what the head is."""

    def two() -> list[Read]:
        return [Read(1, 1000, 10**6, name="moved"), Read(1, 1000, name="still")]

    assert [(each.lag_blocks, each.standing) for each in entries_after(40, two())] == [
        (1000 - 10**6, "disagrees"),
        (0, "agrees"),
    ]
    assert [(each.lag_blocks, each.standing) for each in entries_after(200, two())] == [
        (UNSET, "disagrees"),
        (UNSET, "disagrees"),
    ]


@pytest.mark.clause("M16", "M17")
@pytest.mark.parametrize(
    ("broken", "outcome", "cause"),
    [
        pytest.param(NO_MEMORY, "own_fault", "own_fault: no memory left", id="a fault of our own"),
        pytest.param(ValueError("s3cret"), "bug", UNSET, id="a bug"),
    ],
)
def test_what_could_not_be_asked_is_not_shown_as_answered(broken: Exception, outcome: str, cause: str) -> None:
    board = Board()
    source, endpoint = Asked(MESSAGING, Peers(3), broken), Read(1, 100, broken)  # type: ignore[arg-type]
    lived(60, a_plan(MESSAGING, INDEXER), [source], [endpoint], board=board)
    assert {each.kind: (each.outcome, each.cause, each.rows, each.height) for each in board.list_entries()} == {
        "source": (outcome, cause, UNSET, UNSET),
        "endpoint": (outcome, cause, UNSET, UNSET),
    }


@pytest.mark.clause("M16")
def test_a_chain_that_a_reload_gave_other_endpoints_shows_those_alone() -> None:
    kept, removed = Read(1, 100, name="kept"), Read(1, 100, name="removed")
    entries = entries_after(90, [kept, removed], (60, reloading(PLAN, [], [kept])))
    assert [(each.name, each.standing) for each in entries] == [("kept", "agrees")]


@pytest.mark.clause("M16")
def test_an_endpoint_that_is_apart_is_in_the_log_at_once_and_reported_when_the_policy_says() -> None:
    sent, limits = list[str](), replace(LAUNCH, endpoint_alert_ms=600_000)
    endpoints = [Read(1, 1000, name="first"), Read(1, 1000, name="second"), Read(1, *[1000] * 9, 10, name="third")]
    given = sending_into(sent, AlertRule(unknown=False, not_moving_s=0))
    with capture_logs() as said:
        lived(900, a_plan(limits=limits), [], endpoints, **given)
    apart = "an endpoint is apart from the head"
    (line,) = (line for line in said if line["event"] == apart and line["log_level"] == "warning")
    assert (line["endpoint"], line["chain"]) == ("third", 1)
    assert line["cause"] == "apart: block 10, 990 below the head"
    assert sent == ["Lookout: endpoint third is degraded"]


@pytest.mark.clause("M16")
def test_an_endpoint_that_is_lost_or_differs_for_an_hour_is_reported_once_and_so_is_its_end() -> None:
    hour, sent = 3600 // 16, list[str]()  # readings in an hour
    first, second = Read(1, 1000, name="first"), Read(1, 1000, name="second")
    down = Read(1, *[1000] * 99, *[REFUSED] * (hour + 60), 1000, name="down")
    syncing = Read(1, 10, *[REFUSED] * 9, *[10] * hour, 1000, name="syncing")
    brief = Read(1, 1000, *[REFUSED] * (hour - 20), 1000, name="brief")
    lived(
        5 * 3600,
        PLAN,
        [],
        [first, second, down, syncing, brief],
        **sending_into(sent, AlertRule(from_="degraded", unknown=False)),
    )
    assert sent == [
        "Lookout: endpoint syncing is degraded",
        "Lookout: endpoint syncing recovered",
        "Lookout: endpoint down is unavailable",
        "Lookout: endpoint down recovered",
    ]


class Certified(Asked):
    """A source whose certificate ends then."""

    ends_at = NOON + 20 * DAY

    async def probe(self, session: Session, now: Now, /) -> Mapping[Check, Found]:
        session.hear_certificate(self.ends_at)
        return await super().probe(session, now)


@pytest.mark.clause("M16")
def test_what_a_subgraph_says_of_itself_and_a_certificate_that_ends_soon_is_for_the_operator_alone() -> None:
    sent, board = list[str](), Board()
    subgraph, relayer = (
        Asked(INDEXER, *[FaultyBlocks(1000)] * 180, Blocks(1000)),
        Certified(MESSAGING, Peers(1)),
    )
    subgraph.name, relayer.name = "indexer 1", "messaging"
    entries, rows = list[Entry](), list[str]()

    def renew(_: object) -> None:
        relayer.ends_at += 90 * DAY

    def expire(_: object) -> None:
        entries.extend(board.list_entries())
        relayer.ends_at = NOON + 14 * DAY

    plan, rules = a_plan(INDEXER, MESSAGING), (AlertRule(from_="degraded"),)
    kept = lived(
        9_000,
        plan,
        [subgraph, relayer],
        [Read(1, 1000)],
        (600, expire),
        (8_000, renew),
        board=board,
        **sending_into(sent, *rules),
    )
    rows += [check["status"] for check in json.loads(kept.documents[-1]["live"].body)["checks"]]
    assert [(each.name, each.doubts) for each in entries if each.kind == "source"] == [
        ("indexer 1", ("indexing_errors",)),
        ("messaging", UNSET),
    ]
    assert sent == [
        "Lookout: source indexer 1 is degraded",
        "Lookout: source messaging is degraded",
        "Lookout: source indexer 1 recovered",
        "Lookout: source messaging recovered",
    ]
    assert set(rows) <= {"current", "unmonitored"}
    assert board.certificates_end_at == {"messaging": relayer.ends_at}


@pytest.mark.parametrize(
    ("rules", "reporting"),
    [
        ([AlertRule(name="down", from_="unavailable"), AlertRule(name="behind", from_="degraded")], ["behind"]),
        (
            [AlertRule(name="down", from_="unavailable"), AlertRule(name="ppoi", services=("ppoi",), from_="degraded")],
            ["down"],
        ),
        ([AlertRule(name="lists", reasons=("incomplete",), from_="degraded")], []),
    ],
)
def test_the_rules_for_all_services_report_endpoints_by_severity(rules: list[AlertRule], reporting: list[str]) -> None:
    assert [rule.name for rule in rules_without_rows(rules)] == reporting


def series_of(registry: CollectorRegistry, **labels: str) -> dict[str, float]:
    """The samples with these labels, by name and their other labels."""
    return {
        " ".join((sample.name, *(value for name, value in sample.labels.items() if name not in labels))): sample.value
        for family in registry.collect()
        for sample in family.samples
        if labels.items() <= sample.labels.items() and not sample.name.endswith(("_created", "_bucket"))
    }


def test_what_comes_begins_at_0_and_goes_on_after_a_reload() -> None:
    registry = CollectorRegistry()
    instruments = Instruments(registry, SetClock())
    rpc, bsc_rpc = Read(1, name="rpc"), Read(56, name="rpc")
    upstreams = Upstreams((Asked(INDEXER), Asked(BSC)), (rpc, bsc_rpc))
    instruments.describe_watched((), (), upstreams)
    at_first = {
        "lookout_head_reads_total answered": 0,
        "lookout_head_reads_total failed": 0,
        "lookout_endpoint_reads_total rpc answered": 0,
        "lookout_endpoint_reads_total rpc failed": 0,
        "lookout_endpoint_read_duration_seconds_count rpc": 0,
        "lookout_endpoint_read_duration_seconds_sum rpc": 0,
    }
    assert series_of(registry, chain="56") == at_first

    def count() -> None:
        found: Found = Blocks(7)
        for check in (INDEXER, BSC):
            instruments.count_probe([check], 20, {check: found})
            instruments.count("lookout_probe_failures_total", check.service, str(check.chain_id), "timeout")
            instruments.count_reading(check.chain_id or 0, "rpc", 20, "timeout")

    count()
    assert series_of(registry, chain="56")["lookout_endpoint_failures_total rpc timeout"] == 1
    instruments.describe_watched((), (), upstreams)
    assert series_of(registry, chain="1")["lookout_endpoint_reads_total rpc failed"] == 1
