"""What the monitor knows: heads and probes together, a changed plan, blindness, clocks set back."""

import pytest
from msgspec.structs import replace

from lookout.core.heads import Reading
from lookout.core.ledger import Ledger, State
from lookout.core.model import (
    Blocks,
    Check,
    Failed,
    Gaps,
    Indexes,
    Nothing,
    Observation,
    Peers,
    Row,
    unmonitored,
    unobserved,
)
from lookout.core.plan import Plan
from lookout.state.codec import decode_state, encode_state
from tests.builders import DAY, HOUR, INDEXER, LAUNCH, MESSAGING, MINUTE, NOON, PPOI, SECOND, a_plan

FAILED = Failed("timeout")


def a_ledger(plan: Plan, at: int = NOON) -> Ledger:
    ledger = Ledger(plan)
    ledger.start(at)
    ledger.publish(at)
    return ledger


def row_of(ledger: Ledger, check: Check) -> Row:
    return next(row for row in ledger.published_rows if row.check == check)


@pytest.mark.clause("M7")
def test_the_rows_of_a_stored_report_stand_until_their_first_new_probe() -> None:
    ledger = a_ledger(a_plan())
    ledger.judge(Observation(MESSAGING, NOON + SECOND, Peers(5)))
    ledger.publish(NOON + SECOND)
    resumed = Ledger(a_plan(), ledger.state())
    resumed.start(NOON + HOUR)
    resumed.publish(NOON + HOUR)
    assert resumed.published_rows == ledger.published_rows
    assert resumed.judge(Observation(MESSAGING, NOON + HOUR, FAILED)).last_success_at == NOON + SECOND


@pytest.mark.clause("S14", "H15", "M7")
def test_a_check_that_is_no_longer_configured_becomes_unmonitored_and_comes_back_with_its_last_success() -> None:
    ledger = a_ledger(a_plan())
    ledger.judge(Observation(PPOI, NOON, Indexes(1, 1)))
    ledger.publish(NOON)
    without = Ledger(a_plan(MESSAGING), ledger.state())
    without.publish(NOON + 6 * MINUTE)
    assert row_of(without, PPOI) == unmonitored(PPOI)
    again = Ledger(a_plan(), without.state())
    again.publish(NOON + 12 * MINUTE)
    assert row_of(again, PPOI) == replace(unobserved(PPOI), last_success_at=NOON)  # R6
    (ppoi,) = (row for row in again.view().rows if row.check == PPOI)
    assert ppoi.buckets == "c.?"


@pytest.mark.clause("M7", "S2", "S5", "S8", "S9")
def test_another_address_is_another_deployment_that_begins_anew() -> None:
    def plan(address: str) -> Plan:
        return replace(a_plan(), addresses={PPOI: address, INDEXER: address})

    ledger = a_ledger(plan("old"))
    ledger.judge(Observation(PPOI, NOON, Indexes(1, 1)))
    for minute in range(40):
        ledger.judge(Observation(PPOI, NOON + minute * MINUTE, Indexes(1, 9 + minute)))
        ledger.judge(Observation(INDEXER, NOON + minute * MINUTE, FAILED))
    ledger.publish(NOON + 40 * MINUTE)
    assert (ledger.newest_row(PPOI).status, ledger.newest_row(INDEXER).status) == ("degraded", "unavailable")
    before = ledger.state()
    for address, expected in (("old", ("degraded", "unavailable")), ("new", ("current", "unknown"))):
        moved = Ledger(plan(address), before)
        assert moved.newest_row(PPOI) == ledger.newest_row(PPOI)  # as it was, until the first probe
        ppoi = moved.judge(Observation(PPOI, NOON + 41 * MINUTE, Indexes(5, 6)))
        failed = moved.judge(Observation(INDEXER, NOON + 41 * MINUTE, FAILED))
        assert (ppoi.status, failed.status) == expected
        assert moved.judge(Observation(PPOI, NOON + 42 * MINUTE, FAILED)).last_success_at == NOON + 41 * MINUTE


@pytest.mark.clause("H15", "H2")
def test_a_chain_taken_out_leaves_the_documents_and_finds_its_buckets_again() -> None:
    ledger = a_ledger(a_plan(chains=(1, 137)))
    without = Ledger(a_plan(chains=(1,)), ledger.state())
    without.publish(NOON + 5 * MINUTE)
    assert {row.check.chain_id for row in without.published_rows} == {None, 1}
    again = Ledger(a_plan(chains=(1, 137)), without.state())
    again.publish(NOON + 10 * MINUTE)
    assert {row.check.chain_id: row.buckets for row in again.view().rows} == {None: "???", 1: "???", 137: "?-?"}


@pytest.mark.clause("M13")
def test_a_head_is_an_answer_too_and_zero_peers_is_none() -> None:
    ledger = a_ledger(a_plan(limits=replace(LAUNCH, blind_after_ms=MINUTE, failures_for_unavailable=1)))
    ledger.read_head(1, Reading(NOON + 30 * SECOND, 1, NOON))
    assert ledger.judge(Observation(MESSAGING, NOON + 89_999, Peers(0))).status == "unavailable"
    assert ledger.judge(Observation(MESSAGING, NOON + 90 * SECOND, Peers(0))).status == "unknown"


@pytest.mark.clause("M12", "M13", "S8", "S9", "S13")
def test_a_clock_set_forward_while_running_accuses_no_node_and_blinds_no_monitor_and_a_head_of_before_is_none() -> None:
    limits = replace(LAUNCH, blind_after_ms=HOUR, failures_for_unavailable=1)
    at = NOON + 6 * SECOND + DAY
    for step_ms, expected in (
        (DAY, ("incompatible-reference", "current", "unavailable")),
        (0, ("incompatible-reference", "degraded", "unknown")),
    ):
        ledger = a_ledger(a_plan(limits=replace(limits, degraded_evaluations=1)))
        ledger.read_head(1, Reading(NOON, 100, NOON))
        ledger.judge(Observation(PPOI, NOON, Indexes(9, 10)))
        ledger.publish(NOON)
        ledger.start(at, NOON + 6 * SECOND, step_ms)  # without a step, it was stopped for a day
        failed = ledger.judge(Observation(MESSAGING, at, FAILED))
        indexer, ppoi = (
            ledger.judge(Observation(check, at, found))
            for check, found in ((INDEXER, Blocks(95)), (PPOI, Indexes(9, 10)))
        )
        assert (indexer.reason, ppoi.status, failed.status) == expected


@pytest.mark.clause("M7")
def test_a_restart_knows_since_when_a_position_has_not_moved() -> None:
    ledger = a_ledger(a_plan())
    for minute in (0, 20):
        ledger.read_head(1, Reading(NOON + minute * MINUTE, 1000, NOON))
        ledger.judge(Observation(INDEXER, NOON + minute * MINUTE, Blocks(95)))
    ledger.publish(NOON + 20 * MINUTE)
    stored, _ = decode_state(encode_state(ledger.state()).documents)
    restarted = Ledger(a_plan(), stored)
    restarted.start(NOON + 30 * MINUTE)
    restarted.read_head(1, Reading(NOON + 30 * MINUTE, 1000, NOON))
    assert restarted.judge(Observation(INDEXER, NOON + 30 * MINUTE, Blocks(95))).still_since_at == NOON


@pytest.mark.clause("M7")
def test_a_restart_knows_since_when_a_chain_stands_still() -> None:
    ledger = a_ledger(a_plan())
    for minute in range(0, 150, 5):
        ledger.read_head(1, Reading(NOON + minute * MINUTE, 1000, NOON))
    ledger.publish(NOON + 150 * MINUTE)
    stored, _ = decode_state(encode_state(ledger.state()).documents)
    restarted = Ledger(a_plan(), stored)
    restarted.start(NOON + 151 * MINUTE)
    restarted.read_head(1, Reading(NOON + 151 * MINUTE, 1000, NOON))
    assert restarted.progress_of(1, NOON + 151 * MINUTE).stands_since_at == NOON


@pytest.mark.clause("S8")
def test_the_time_between_the_last_publication_and_a_clock_set_back_counts_if_it_is_known() -> None:
    for last_at, expected in ((NOON + 29 * SECOND, "catching-up"), (None, "current")):
        ledger = a_ledger(a_plan())
        ledger.judge(Observation(PPOI, NOON, Indexes(9, 10)))
        ledger.publish(NOON)
        ledger.start(NOON - HOUR, last_at)
        assert ledger.judge(Observation(PPOI, NOON - HOUR + 20 * SECOND, Indexes(9, 10))).status == expected


@pytest.mark.clause("M7")
@pytest.mark.parametrize("stored", [None, a_ledger(a_plan()).state()], ids=["at first", "resumed"])
def test_there_are_no_documents_before_a_ledger_publishes(stored: State | None) -> None:
    ledger = Ledger(a_plan(chains=(1, 137)), stored)
    with pytest.raises(ValueError, match="nothing has been published yet"):
        ledger.report()
    with pytest.raises(ValueError, match="nothing has been published yet"):
        ledger.view()


@pytest.mark.clause("S17")
def test_a_block_is_final_a_minute_of_blocks_below_the_head_of_its_chain() -> None:
    ledger = a_ledger(a_plan())
    assert ledger.final_block(INDEXER, NOON) is None
    ledger.read_head(1, Reading(NOON, 100, NOON))
    assert ledger.final_block(INDEXER, NOON) == 95
    assert ledger.final_block(MESSAGING, NOON) is None


@pytest.mark.clause("S18", "M7")
def test_gaps_take_effect_with_the_next_judgement_and_survive_a_restart() -> None:
    ledger = a_ledger(a_plan())
    ledger.read_head(1, Reading(NOON, 100, NOON))
    assert ledger.judge(Observation(INDEXER, NOON, Blocks(100))).status == "current"
    ledger.set_gaps(INDEXER, Gaps(missing=2))
    ledger.publish(NOON + SECOND)
    assert row_of(ledger, INDEXER).status == "current"
    resumed = Ledger(a_plan(), ledger.state())
    resumed.start(NOON + MINUTE)
    resumed.read_head(1, Reading(NOON + MINUTE, 100, NOON))
    assert resumed.judge(Observation(INDEXER, NOON + MINUTE, Blocks(100))).reason == "incomplete"
    resumed.set_gaps(INDEXER, Gaps())
    assert resumed.judge(Observation(INDEXER, NOON + MINUTE, Blocks(100))).reason == "synced"


@pytest.mark.clause("M13")
def test_a_monitor_that_nobody_answers_is_blind_and_counts_nothing() -> None:
    ledger = a_ledger(a_plan(limits=replace(LAUNCH, blind_after_ms=MINUTE)))
    statuses = [ledger.judge(Observation(MESSAGING, NOON + n * 20 * SECOND, FAILED)).status for n in range(6)]
    assert statuses == ["unknown", "unknown", "unavailable", "unknown", "unknown", "unknown"]
    ledger.judge(Observation(PPOI, NOON + 3 * MINUTE, Nothing()))  # someone answers: it can see
    assert ledger.judge(Observation(MESSAGING, NOON + 3 * MINUTE, FAILED)).status == "unavailable"


@pytest.mark.clause("M13", "S8", "S13")
def test_a_clock_set_back_neither_freshens_a_head_nor_excuses_a_node_nor_makes_the_monitor_see() -> None:
    ledger = a_ledger(a_plan(limits=replace(LAUNCH, blind_after_ms=HOUR, failures_for_unavailable=1)))
    ledger.read_head(1, Reading(NOON, 100, NOON))
    ledger.judge(Observation(PPOI, NOON, Indexes(9, 10)))
    ledger.publish(NOON + 61 * SECOND)
    ledger.start(NOON - DAY)
    ledger.publish(NOON - DAY)
    assert ledger.judge(Observation(INDEXER, NOON - DAY, Blocks(95))).reason == "incompatible-reference"
    assert ledger.judge(Observation(PPOI, NOON - DAY, Indexes(9, 10))).status == "catching-up"
