"""What a scrape says of the rows, heads and uptimes that were published last."""

from typing import Final

import pytest
from prometheus_client import CollectorRegistry

from lookout.config.settings import Upstreams
from lookout.core.heads import ChainProgress, Reading
from lookout.core.history import Uptime
from lookout.core.ledger import Ledger
from lookout.core.model import (
    Blocks,
    Check,
    Failed,
    Found,
    Indexes,
    Members,
    Metrics,
    MissingList,
    Nothing,
    Peers,
    Row,
)
from lookout.monitor.metrics import Instruments
from tests.builders import (
    BROADCASTERS,
    HOSTED_INDEXER,
    INDEXER,
    MESSAGING,
    MINUTE,
    NOON,
    PPOI,
    SECOND,
    TWELVE_SECONDS,
    a_plan,
    an_observation,
)
from tests.unit.running_monitor import Asked
from tests.unit.server.fakes import SetClock

FIGURES: Final = ("position", "head", "lag_blocks", "lag_indexes", "lag_seconds")


def samples(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """By the values of the labels, in the order in which they were declared."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def figures(registry: CollectorRegistry, check: Check) -> dict[str, float]:
    """What is known of a row."""
    labels = (check.service, "" if check.chain_id is None else str(check.chain_id))
    known = {name: samples(registry, f"lookout_row_{name}").get(labels) for name in FIGURES}
    return {name: value for name, value in known.items() if value is not None}


def scraped(ledger: Ledger, at: int = NOON) -> CollectorRegistry:
    """What a scrape says of a ledger that is published then."""
    registry, clock = CollectorRegistry(), SetClock()
    clock.wall = at
    ledger.publish(at)
    Instruments(registry, clock).published(at, ledger.published_rows, ledger.progress(at))
    return registry


def a_ledger(head: int | None = 105, read_at: int = NOON) -> Ledger:
    """Of every check on chain 1, which has a head, or none."""
    ledger = Ledger(a_plan())
    ledger.start(NOON)
    if head is not None:
        ledger.read_head(1, Reading(read_at, head, read_at - 3 * SECOND))
    return ledger


IN_SYNC: Final = {"position": 100, "head": 100, "lag_blocks": 0, "lag_seconds": 0}
BEHIND: Final = {"position": 40, "head": 100, "lag_blocks": 60, "lag_seconds": 720}


@pytest.mark.parametrize(
    ("check", "found", "known"),
    [
        pytest.param(INDEXER, Blocks(100), IN_SYNC, id="an indexer at the head, net of confirmations"),
        pytest.param(INDEXER, Blocks(103), IN_SYNC | {"position": 103}, id="an indexer beyond the net head lags by 0"),
        pytest.param(HOSTED_INDEXER, Blocks(40), BEHIND, id="an indexer that is 60 blocks of 12 s behind"),
        pytest.param(
            PPOI,
            Indexes(7, 9),
            {"position": 7, "head": 9, "lag_indexes": 2},
            id="a ppoi node lags by indexes, not time",
        ),
        pytest.param(PPOI, MissingList(), {}, id="a ppoi node without the list"),
        pytest.param(INDEXER, Nothing(), {}, id="an indexer that has nothing for the chain"),
        pytest.param(INDEXER, Failed("timeout"), {}, id="an indexer that fails"),
        pytest.param(BROADCASTERS, Members(1, 2), {}, id="broadcasters have no position"),
        pytest.param(MESSAGING, Peers(3), {}, id="messaging has no position"),
    ],
)
def test_a_row_has_the_figures_that_are_known_and_no_others(
    check: Check, found: Found, known: dict[str, float]
) -> None:
    ledger = a_ledger()
    ledger.judge(an_observation(found, check=check))
    assert figures(scraped(ledger), check) == known


def test_a_head_is_there_with_its_block_until_it_is_too_old_to_compare_with() -> None:
    registry = scraped(a_ledger(105, NOON - MINUTE))
    assert samples(registry, "lookout_head_agreed") == {("1",): 1}
    assert samples(registry, "lookout_head_height") == {("1",): 105}
    assert samples(registry, "lookout_head_block_timestamp_seconds") == {("1",): NOON / 1000 - 63}


@pytest.mark.clause("H17")
@pytest.mark.parametrize(
    ("found", "status"), [(Blocks(100), "current"), (Failed("timeout"), "unavailable")], ids=["current", "unavailable"]
)
def test_a_row_that_was_not_probed_again_is_unknown_at_the_scrape_in_which_it_has_expired(
    found: Found, status: str
) -> None:
    ledger = a_ledger()
    for _ in range(3):  # S2
        ledger.judge(an_observation(found, check=INDEXER))
    known = IN_SYNC if status == "current" else {}
    for at, status_then, known_then in ((NOON + 149_999, status, known), (NOON + 150_000, "unknown", {})):
        registry = scraped(ledger, at)
        statuses = [labels for labels in samples(registry, "lookout_row_status") if labels[:2] == ("indexer", "1")]
        assert statuses == [("indexer", "1", status_then)]
        assert samples(registry, "lookout_rows")[status,] == (status_then == status)
        assert figures(registry, INDEXER) == known_then
        assert samples(registry, "lookout_row_expires_timestamp_seconds") == {("indexer", "1"): NOON / 1000 + 150}


def test_uptime_is_what_the_history_says_and_null_has_no_sample() -> None:
    registry = CollectorRegistry()
    instruments = Instruments(registry, SetClock())
    instruments.set_uptimes({MESSAGING: Uptime(0.9931, 1.0, None), PPOI: Uptime(0.0, None, None)})
    assert samples(registry, "lookout_row_uptime_ratio") == {
        ("messaging", "", "24h"): 0.9931,
        ("messaging", "", "7d"): 1.0,
        ("ppoi", "1", "24h"): 0.0,
    }


def of_chain(registry: CollectorRegistry, chain: str) -> set[str]:
    return {
        sample.name
        for family in registry.collect()
        for sample in family.samples
        if sample.labels.get("chain") == chain and not sample.name.endswith("_created")
    }


def test_of_what_a_reload_removed_there_is_no_sample_after_the_next_publication() -> None:
    registry = CollectorRegistry()
    instruments = Instruments(registry, SetClock())
    bsc = Check("indexer", 56)

    def publish(*checks: Check) -> None:
        rows = [Row(check, "current", "synced", metrics=Metrics(position=1, head=2)) for check in checks]
        head = ChainProgress(Reading(NOON, 7, NOON), TWELVE_SECONDS)
        instruments.published(NOON, tuple(rows), {check.chain_id: head for check in checks if check.chain_id})
        instruments.set_uptimes(dict.fromkeys(checks, Uptime(1.0, 1.0, 1.0)))

    for check in (INDEXER, bsc):
        instruments.count_probe([check], 20, {check: Blocks(1)})
    publish(INDEXER, bsc)
    every = {f"lookout_row_{name}" for name in ("status", "uptime_ratio", *FIGURES) if name != "lag_indexes"}
    every |= {
        "lookout_chain_stands",
        *(f"lookout_head_{name}" for name in ("agreed", "height", "block_timestamp_seconds")),
    }
    every |= {f"lookout_probe_duration_seconds_{name}" for name in ("bucket", "count", "sum")}
    assert of_chain(registry, "56") == of_chain(registry, "1") == every
    instruments.describe_watched((), (), Upstreams((Asked(INDEXER),), ()))
    publish(INDEXER)
    assert {name for name in of_chain(registry, "56") if "_duration_" not in name} == set()  # counts stay
    assert of_chain(registry, "1") == every
    instruments.count_probe([bsc], 20, {bsc: Blocks(1)})  # it came back
    assert samples(registry, "lookout_probe_duration_seconds_count")["indexer", "56"] == 2
