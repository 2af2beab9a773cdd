"""A monitor that reads an indexer's list and a ppoi node beside it, on simulated upstreams (S20, S21)."""

from pathlib import Path

import pytest

from lookout.demo.sim.upstreams import REQUIRED_LIST
from lookout.protocols.client.failure import ProbeFailed
from tests.compared import a_compared_config
from tests.unit.simulated_upstreams import BASE, Life, live

MINUTE = 60
HOUR = 3_600
CONFIG = a_compared_config(BASE, None).replace("confirmations = 12\n", "confirmations = 12\nlinks = {}\n") + (
    f'[ppoi]\nurl = "{BASE}/ppoi"\nrequired_list = "{REQUIRED_LIST}"\nchains = [1]\nagrees_with = "indexer"\n'
)


@pytest.mark.clause("S20", "R9")
def test_a_lost_entry_is_told_within_ten_minutes_and_no_longer_once_it_is_back(tmp_path: Path) -> None:
    async def story(life: Life) -> None:
        await life.wait(5 * MINUTE)
        life.place.order("squid/1", "lose")
        await life.until(lambda: life.store.status() == "degraded/incomplete", 12 * MINUTE)
        assert life.store.row()["metrics"]["breaks"] == 1
        life.place.errors["squid/1"] = ProbeFailed("timeout")  # for questions about its list alone
        life.place.order("squid/1", None)
        await life.wait(5 * MINUTE)
        assert life.store.status() == "degraded/incomplete"
        life.place.errors.clear()
        await life.until(lambda: life.store.status() == "current/synced", 5 * MINUTE)
        assert "breaks" not in life.store.row()["metrics"]

    live(tmp_path, CONFIG, story)


@pytest.mark.clause("S21", "R9")
def test_a_node_with_an_old_tree_is_told_after_an_hour_and_no_longer_once_it_has_the_list(tmp_path: Path) -> None:
    async def story(life: Life) -> None:
        await life.wait(2 * HOUR)
        assert {document["live"].body.count(b'"degraded"') for document in life.store.documents} == {0}
        life.place.order("ppoi/1", "old-tree")
        took_s = await life.until(lambda: life.store.status("ppoi") == "degraded/inconsistent", 70 * MINUTE)
        assert took_s > HOUR - 2 * MINUTE
        assert 1 <= life.store.row("ppoi")["metrics"]["gap"] <= 10
        assert life.store.status() == "current/synced"
        life.place.order("ppoi/1", None)
        await life.until(lambda: life.store.status("ppoi") == "current/synced", 5 * MINUTE)

    live(tmp_path, CONFIG, story)
