"""An indexer's list held against the chain, in worlds drawn from seeds: few here, thousands in the campaign."""

from typing import Any

import pytest

from tests.simulation import planted_lists
from tests.simulation.lists import Plan, Script, draw, live

SEEDS = range(40)
ONCE_FAILED = {
    8: "a list that refuses long ranges, on a fast chain",
    27: "the same, with a clock that is set",
    36: "a list that the server cuts without a word",
    96: "a list that dates by other blocks, on a quiet chain",
    99: "a list that ignores where to end, and is always cut",
    144: "a hole that is healed among many transactions",
    189: "a list that rounds its end down, and is cut beyond",
    202: "an indexer built anew that gives no list of what it does not have",
    211: "a transaction that a deep reorganisation put in, and a replica that lags",
    231: "rounding of which only multiples are ever seen",
    259: "a list that has everything late, where little happens",
    323: "a list that dates by other blocks, and endpoints that are all pruned",
    1054: "a list that dates by other blocks, and is built anew",
    1559: "a neighbour that a reorganisation moved",
    2092: "bursts that are longer than the list gives at once",
    2099: "one entry in all",
    6111: "replicas of which some lag",
    6263: "a hole that is found while an older one is",
    859: "a list that is empty for moments, on a quiet chain",
    1318: "rounding, and nothing after what is looked at",
    1551: "rounding, and lists that are always cut",
    2379: "an indexer that lost what it was tried with, too",
    9539: "a list that is empty for moments, and cut otherwise",
}
PLAIN = Script(seed=0, past_blocks=3_000)


@pytest.mark.clause("S17", "S18", "S19")
@pytest.mark.parametrize("seed", SEEDS, ids="seed {}".format)
def test_nothing_false_is_said_of_a_list_and_what_is_true_is_said_in_time(seed: int) -> None:
    assert live(draw(seed)).complaints == []


@pytest.mark.clause("S17", "S18", "S19")
@pytest.mark.parametrize("seed", ONCE_FAILED, ids=ONCE_FAILED.get)
def test_what_once_failed_holds(seed: int) -> None:
    assert live(draw(seed)).complaints == []


@pytest.mark.long
@pytest.mark.clause("S17", "S18", "S19")
@pytest.mark.parametrize("first", range(1_000, 11_000, 500), ids="seeds from {}".format)
def test_nothing_false_is_said_in_thousands_of_worlds_and_hardly_anything_late(first: int) -> None:
    outcomes = {seed: live(draw(seed)) for seed in range(first, first + 500)}
    assert {seed: each.false_accusations for seed, each in outcomes.items() if each.false_accusations} == {}
    assert sum(bool(each.complaints) for each in outcomes.values()) <= 500 // 50


@pytest.mark.clause("S18", "S19")
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(PLAIN._replace(hole="one"), id="one transaction that never came"),
        pytest.param(PLAIN._replace(hole="batch"), id="a batch"),
        pytest.param(PLAIN._replace(hole="stretch"), id="a whole stretch"),
        pytest.param(PLAIN._replace(hole="old one", hours=3), id="one that was lost later"),
        pytest.param(PLAIN._replace(surplus="made up", hours=3), id="one that is on no chain"),
        pytest.param(
            PLAIN._replace(surplus="orphans kept", reorganisations_per_hour=20, transactions_per_hour=600),
            id="those of orphaned blocks",
        ),
    ],
)
def test_what_differs_is_found(script: Script) -> None:
    outcome = live(script)
    assert outcome.complaints == []
    assert outcome.found


@pytest.mark.clause("S19")
def test_a_known_hole_does_not_make_the_chain_be_read_again() -> None:
    script = PLAIN._replace(hole="one", hours=4, repeat_hours=0.5)
    right, wrong = live(script), live(script, planted_lists.EXPECTS_WHAT_IS_MISSING)
    assert right.found == wrong.found != set()
    assert right.requests < wrong.requests


LATE: dict[str, Any] = {"manner": "late", "transactions_per_hour": 200, "faults": ("none",) * 3}


@pytest.mark.parametrize(
    ("plan", "script"),
    [
        pytest.param(
            planted_lists.WAITS_FOR_NOTHING,
            draw(3)._replace(**LATE, restarts=0, clock_steps=0, hours=1.5),
            id="what is only late is missing",
        ),
        pytest.param(
            planted_lists.TRUSTS_ONE_ENDPOINT,
            draw(0)._replace(needed=2, faults=("drops", "none", "none"), manner="plain", hours=1.5),
            id="one endpoint is enough",
        ),
        pytest.param(
            planted_lists.IGNORES_NEIGHBOURS,
            draw(26)._replace(manner="shifted", transactions_per_hour=600, limit=25, hours=1.5),
            id="neighbours are not looked for",
        ),
        pytest.param(
            planted_lists.ASKS_NO_RECEIPTS,
            draw(0)._replace(manner="ignores to", transactions_per_hour=30, limit=1_000, hours=1.5),
            id="what is not in these blocks is nowhere",
        ),
        pytest.param(
            planted_lists.IGNORES_PRUNING,
            PLAIN._replace(are_all_pruned=True, transactions_per_hour=200, past_blocks=20_000),
            id="who has forgotten something is believed",
        ),
        pytest.param(
            planted_lists.REPEATS_NOTHING,
            PLAIN._replace(hole="old one", hours=3, repeat_hours=0.5),
            id="what was equal once is equal for ever",
        ),
        pytest.param(
            planted_lists.NEVER_LOOKS_AGAIN,
            PLAIN._replace(hole="one", is_healed=True, hours=2.5),
            id="what was missing once is missing for ever",
        ),
        pytest.param(
            planted_lists.COUNTS_ITS_ABSENCE,
            draw(8)._replace(**LATE, clock_steps=20, restarts=0, hours=1.5),
            id="a clock that was set is taken for time that passed",
        ),
        pytest.param(
            planted_lists.IGNORES_ROLLBACKS,
            PLAIN._replace(seed=15, indexing="rolled back", hole="batch", transactions_per_hour=200),
            id="an indexer that went back still lacks what it does not claim",
        ),
    ],
)
def test_a_planted_mistake_is_found(plan: Plan, script: Script) -> None:
    """In one of some worlds that differ by their chances alone."""
    scripts = (script._replace(seed=seed) for seed in range(script.seed, script.seed + 20))
    found = next((each for each in scripts if live(each, plan).complaints), None)
    assert found is not None
    assert live(found).complaints == []
