"""A monitor that compares lists with their chain, at the launch values, hours in a moment (S17 to S19)."""

import json
from bisect import bisect_left
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from lookout.base.instants import format_instant
from lookout.core.causes import describe_cause
from lookout.core.model import Check, Gaps
from lookout.demo.sim.chain import hash_of
from lookout.demo.sim.world import launch_world
from lookout.documents.reports import live_document
from lookout.features.lists.entries import CoverageEntry, EntryOfCoverage
from lookout.features.lists.known import COVERAGE, decode_known
from lookout.features.lists.rules.coverage import RETRY_MS, gaps_of
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.replay.replay import Replay
from lookout.state.log import Compared
from tests.builders import NOON
from tests.compared import a_compared_config
from tests.logs import capture_logs
from tests.unit.running_monitor import Record
from tests.unit.simulated_upstreams import BASE, Life, Stored, live, settings_of

MINUTE = 60
HOUR = 3_600
INDEXER = Check("indexer", 1)
FIRST = launch_world(None, NOON).indexed("squid/1", NOON).height - 3_000
SYNCED, INCOMPLETE, INCONSISTENT = "current/synced", "degraded/incomplete", "degraded/inconsistent"


def a_config(*services: str, first_block: int | None = FIRST, requests_per_minute: int = 5) -> str:
    return a_compared_config(BASE, first_block, *services, requests_per_minute=requests_per_minute)


@pytest.mark.clause("S18", "S19")
@pytest.mark.parametrize("failing", [("squid/1",), ("rpc/1/a", "rpc/1/b")], ids=["the list's", "the logs'"])
def test_one_failed_request_delays_what_is_wrong_with_its_blocks_by_a_minute(
    failing: tuple[str, ...], tmp_path: Path
) -> None:
    async def story(life: Life) -> None:
        await life.wait(15 * MINUTE)
        compared = life.gauge("checked_blocks")
        await life.until(lambda: life.gauge("checked_blocks") != compared, 2 * MINUTE)
        life.place.order("squid/1", "extra", transactions=7)  # in blocks of the next comparison
        life.place.errors = dict.fromkeys(failing, ProbeFailed("refused"))
        await life.until(lambda: not_compared(life) > 0, 2 * MINUTE)
        life.place.errors.clear()
        await life.until(lambda: life.store.row()["metrics"].get("extra") == 7, 6 * MINUTE)

    live(tmp_path, a_config(), story)


@pytest.mark.clause("S19")
def test_all_lists_of_a_chain_share_its_smallest_budget(tmp_path: Path) -> None:
    async def story(life: Life) -> None:
        life.place.order("rpc/1/c", "narrow", blocks=50)  # so that there is always something to ask
        await life.wait(HOUR / 2)
        samples = (each for family in life.registry.collect() for each in family.samples)
        counted.extend(each.value for each in samples if each.name == "lookout_coverage_requests_total")

    counted: list[float] = []
    config = a_config("indexer", "hosted-indexer", first_block=FIRST - 100_000)
    config = config.replace("requests_per_minute = 5", "requests_per_minute = 3", 1)
    asked = [each.second for each in live(tmp_path, config, story).requests()]
    assert min(later - earlier for earlier, later in pairwise(asked)) >= 19.5  # some wait for a chain id
    assert 80 < len(asked) <= sum(counted) <= 3 * 30 + 1


@pytest.mark.clause("S19")
@pytest.mark.parametrize("requests_per_minute", [1, 5])
@pytest.mark.parametrize(
    "error", [None, ProbeFailed("jsonrpc_error", code=-32000)], ids=["endpoints answer", "endpoints refuse logs"]
)
def test_no_minute_has_more_further_requests_than_the_budget_chain_ids_included(
    error: Exception | None, requests_per_minute: int, tmp_path: Path
) -> None:
    async def story(life: Life) -> None:
        if error is not None:
            life.place.errors = {f"rpc/1/{letter}": error for letter in "abc"}
        await life.wait(HOUR / 2)

    def most_in_a_minute(config: str) -> int:
        seconds = [each.second for each in live(tmp_path, config, story).place.asked if each.is_to_endpoint]
        return max(bisect_left(seconds, second + MINUTE) - number for number, second in enumerate(seconds))

    compared = a_config(first_block=FIRST - 100_000, requests_per_minute=requests_per_minute)
    assert most_in_a_minute(compared) <= most_in_a_minute(a_config(first_block=None)) + requests_per_minute


@pytest.mark.clause("S17")
def test_without_the_table_nothing_is_asked_and_with_it_nothing_else_is_published(tmp_path: Path) -> None:
    measured: list[set[str]] = []

    async def story(life: Life) -> None:
        await life.wait(20 * MINUTE)
        measured.append({each.name for each in life.registry.collect() if each.samples and "coverage" in each.name})

    without, compared = (live(tmp_path, a_config(first_block=first), story) for first in (None, FIRST))
    assert not [each for each in without.place.asked if each.is_for_comparison]
    assert not [name for name in without.store.others if name.startswith("coverage/")]
    assert not measured[0]
    assert [each for each in compared.place.asked if each.is_for_comparison]
    assert len(measured[1]) == 5
    assert rows_of(without.store) == rows_of(compared.store)


def rows_of(store: Stored) -> list[object]:
    """What was ever published, whenever that was."""
    return [json.loads(each["live"].body)["checks"] for each in store.documents]


@pytest.mark.clause("S18", "S19", "M7")
def test_what_was_found_survives_a_restart_and_leaves_with_the_table(tmp_path: Path) -> None:
    store, record = Stored(), Record()

    async def find(life: Life) -> None:
        life.place.order("squid/1", "hole", blocks=30)
        await life.until(lambda: life.store.status() == INCOMPLETE, 10 * MINUTE)

    live(tmp_path, a_config(), find, store)
    before = decode_known(store.others)[COVERAGE, INDEXER]
    assert gaps_of(before) == Gaps(missing=store.row()["metrics"]["missing"]) != Gaps()

    async def continue_and_reload(life: Life) -> None:
        assert outcome_of(life) == "not_asked"
        assert life.gauge("checked_blocks") == sum(each.last - each.first + 1 for each in before.stretches)
        life.place.order("squid/1", "hole", blocks=200)  # it reaches back to the same blocks
        await life.wait(MINUTE)
        assert life.store.status() == INCOMPLETE
        await life.reload(a_config(first_block=None))
        await life.until(lambda: life.store.status() == SYNCED, 2 * MINUTE)
        assert "coverage/indexer/1" not in life.store.others
        asked = len(life.requests())
        await life.wait(10 * MINUTE)
        assert len(life.requests()) == asked

    live(tmp_path, a_config(), continue_and_reload, store, record, begin_at_s=HOUR / 2)
    compared = [each for each in record if isinstance(each, Compared)]
    assert [each.check for each in compared] == [INDEXER] * len(compared)
    assert (compared[0].gaps, compared[-1].gaps) == (gaps_of(before), Gaps())


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("change", "is_other"),
    [
        (("limit: 1000)", "limit: 1000, orderBy: block_ASC)"), True),
        (("endpoints", "endpoints"), False),
        (("requests_per_minute = 5", "requests_per_minute = 4"), False),
        (('/squid/1/graphql"', '/squid/1/graphql?key=1"'), True),
    ],
    ids=["another query", "nothing", "another budget", "another address"],
)
def test_a_list_of_another_subject_starts_from_scratch(change: tuple[str, str], is_other: bool, tmp_path: Path) -> None:
    config = a_config()

    async def story(life: Life) -> None:
        life.place.order("squid/1", "hole", blocks=30)
        await life.until(lambda: life.store.status() == INCOMPLETE, 10 * MINUTE)
        await life.reload(config.replace(*change))
        await life.wait(5)
        assert (life.gauge("missing") == 0) == is_other
        await life.wait(MINUTE)
        assert life.store.status() == (SYNCED if is_other else INCOMPLETE)
        await life.until(lambda: life.store.status() == INCOMPLETE, 10 * MINUTE)

    live(tmp_path, config, story)


@pytest.mark.clause("M11", "M17", "M6")
def test_a_bug_and_a_fault_of_our_own_prove_nothing_and_end(tmp_path: Path) -> None:
    async def story(life: Life) -> None:
        life.place.order("squid/1", "hole", blocks=30)
        life.place.errors["squid/1"] = ZeroDivisionError()
        await life.wait(5 * MINUTE)
        bugs = life.registry.get_sample_value("lookout_probe_bugs_total")
        assert bugs is not None
        assert bugs > 5
        assert outcome_of(life) == "bug"
        life.place.errors["squid/1"] = OwnFault("descriptors")
        await life.wait(5 * MINUTE)
        assert life.registry.get_sample_value("lookout_probe_bugs_total") == bugs
        assert outcome_of(life) == "own_fault"
        assert life.store.status() == SYNCED
        life.place.errors.clear()
        await life.until(lambda: life.store.status() == INCOMPLETE, 10 * MINUTE)
        assert outcome_of(life) == "answered"

    with capture_logs():
        live(tmp_path, a_config(), story)


def outcome_of(life: Life) -> str:
    (entry,) = (each for each in life.instruments.board.list_entries() if each.kind == "coverage")
    return entry.outcome


@pytest.mark.clause("M12", "S18")
def test_a_clock_that_is_set_forward_confirms_nothing(tmp_path: Path) -> None:
    async def story(life: Life) -> None:
        life.place.order("squid/1", "hole", blocks=30)
        await life.until(lambda: suspected(life) > 0, 10 * MINUTE)
        life.clock.ahead_ms += HOUR * 1000
        await life.wait(50)
        assert life.gauge("missing") == 0
        assert life.store.status() == SYNCED

    live(tmp_path, a_config(), story)


def suspected(life: Life) -> int:
    return sum(each.suspected for each in coverages(life))


def not_compared(life: Life) -> int:
    return sum(len(each.not_compared) for each in coverages(life))


def coverages(life: Life) -> list[CoverageEntry]:
    entries = life.instruments.board.list_entries()
    return [each.coverage for each in entries if isinstance(each, EntryOfCoverage)]


@pytest.mark.clause("S18", "M16")
def test_the_operator_sees_which_transactions_are_missing_and_why_blocks_were_not_compared(tmp_path: Path) -> None:
    async def story(life: Life) -> None:
        life.place.order("squid/1", "hole", blocks=300)
        await life.until(lambda: life.store.status() == INCOMPLETE, 20 * MINUTE)
        await life.until(lambda: life.store.row()["metrics"]["missing"] > 20, 30 * MINUTE)
        (source, told) = (
            next(each for each in life.instruments.board.list_entries() if each.kind == kind)
            for kind in ("source", "coverage")
        )
        assert isinstance(told, EntryOfCoverage)
        assert told.coverage.missing > 20
        assert len(told.coverage.missing_transactions) == 20
        assert told.coverage.missing_more == told.coverage.missing - 20
        first = told.coverage.missing_transactions[0]
        assert first.hash == hash_of("transaction", 1, first.block)
        assert {each.outcome for each in told.coverage.endpoints} == {"answered"}
        assert isinstance(source.rows, tuple)
        cause = str(source.rows[0].cause)
        assert cause.startswith(f"incomplete: {told.coverage.missing} missing in blocks ")
        assert describe_cause(cause).startswith("its list of transactions has a gap (")
        assert cause.count("0x") == 5
        assert first.hash in cause
        assert cause.endswith(f" and {told.coverage.missing - 5} more")

    with capture_logs() as logs:
        live(tmp_path, a_config(), story)
    levels = [each["log_level"] for each in logs if each["event"] == "the list is not the chain's"]
    assert set(levels) == {"warning"}
    assert len(levels) > 1  # a few at first, and then the others


def test_the_operator_sees_why_blocks_could_not_be_compared(tmp_path: Path) -> None:
    async def story(life: Life) -> None:
        for endpoint in ("rpc/1/a", "rpc/1/b"):
            life.place.errors[endpoint] = ProbeFailed("refused")
        await life.wait(5 * MINUTE)
        (told,) = coverages(life)
        assert told.checked_blocks == 0
        assert {each.why for each in told.not_compared} == {"logs_failed"}
        assert {each.words for each in told.not_compared} == {"too few endpoints gave the chain's logs"}
        now = format_instant(life.clock.now())
        assert all(now < each.next_at <= format_instant(life.clock.now() + RETRY_MS) for each in told.not_compared)
        assert told.not_compared_more == 0
        assert {each.outcome for each in told.endpoints} == {"answered", "failed"}

    live(tmp_path, a_config(), story)


@pytest.mark.clause("S18", "M7")
def test_a_replayed_log_gives_the_same_documents(tmp_path: Path) -> None:
    record = Record()

    async def story(life: Life) -> None:
        life.place.order("squid/1", "hole", blocks=30)
        await life.until(lambda: life.store.status() == INCOMPLETE, 10 * MINUTE)
        life.place.order("*", None)
        await life.until(lambda: life.store.status() == SYNCED, 10 * MINUTE)
        await life.wait(90)

    life = live(tmp_path, a_config(), story, record=record)
    replay = Replay(settings_of(tmp_path, a_config()).plan())
    rows = []
    for event in record:
        replay.feed(event)
        rows.append(replay.ledger.published_rows)
    assert json.loads(live_document(replay.ledger.report()).body)["checks"] == rows_of(life.store)[-1]
    reasons = [next(row.reason for row in each if row.check == INDEXER) for each in rows]
    assert [reason for reason, _ in groupby(reasons)] == ["no-observation", "synced", "incomplete", "synced"]
