"""The outage of August 2026, rehearsed on the real monitor: an indexer at its head whose list lacked four entries for
days, and a ppoi node that kept the shorter list after the repair. Days last a tenth here, as the chain's blocks do."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lookout.public.page.assets import read_catalogue
from tests.simulation.listed import CHAIN, Listed, a_listed_config
from tests.unit.simulated_upstreams import Life, Stored, live

LOST = {491_612_310: 1, 491_644_057: 1, 491_943_298: 2}
BLOCK_MS = 25
FIRST = min(LOST) - 10 * 60_000 // BLOCK_MS
MINUTE = 60
GREEN, GAP, SPLIT = "current/synced", "degraded/incomplete", "degraded/inconsistent"


class Rehearsal:
    """Lives of a monitor in one world, and when each row changed, in seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = Listed(FIRST, BLOCK_MS)
        for number in range(150):
            self.world.add(FIRST - 200_000 + 1_000 * number, 1 + number % 2)
        self.store = Stored()
        self.second = 0
        self.changes: list[tuple[int, str, str, int | None]] = []
        self.lost_at: list[int] = []

    def live(self, story: Callable[[], Any]) -> None:
        async def run(_: Life) -> None:
            await story()

        config, begin_at_s = a_listed_config(BLOCK_MS), self.second
        live(self.folder, config, run, self.store, begin_at_s=begin_at_s, make_place=self.world.follow)

    async def go_on(self, seconds: int) -> None:
        for _ in range(seconds):
            head = self.world.head()
            for block, entries in [*LOST.items()][len(self.lost_at) :]:
                if head >= block:
                    self.world.lost |= {row.id for row in self.world.add(block, entries + 1)[:entries]}
                    self.lost_at.append(self.second)
            if self.second % 180 == 0:
                self.world.add(head + 1, 1)
            await asyncio.sleep(1)
            self.second += 1
            self.note("indexer", "breaks")
            self.note("ppoi", "gap")

    def note(self, service: str, metric: str) -> None:
        row = self.store.row(service, CHAIN)
        seen = (service, f"{row['status']}/{row['reason']}", row["metrics"].get(metric))
        before = next((change[1:] for change in reversed(self.changes) if change[1] == service), None)
        if seen != before:
            self.changes.append((self.second, *seen))

    def when(self, *seen: object, since: int = 0) -> int:
        return next(second for second, *change in self.changes if second >= since and change == [*seen])


@pytest.mark.clause("S20", "S21", "M7", "R9")
def test_the_lost_entries_are_told_at_once_and_the_split_within_70_minutes_of_the_backfill(tmp_path: Path) -> None:
    rehearsal = Rehearsal(tmp_path)
    world, moments = rehearsal.world, dict[str, int]()

    async def lose_and_backfill() -> None:
        await rehearsal.go_on((max(LOST) - FIRST) * BLOCK_MS // 1000 + 20 * MINUTE)
        moments["backfill"] = rehearsal.second
        world.lost.clear()
        world.node_lacks = sum(LOST.values())
        await rehearsal.go_on(30 * MINUTE)

    async def go_on_after_a_restart() -> None:
        await rehearsal.go_on(45 * MINUTE)
        moments["repair"] = rehearsal.second
        world.node_lacks = 0
        await rehearsal.go_on(6 * MINUTE)

    rehearsal.live(lose_and_backfill)
    rehearsal.second += 90  # until it is started again
    rehearsal.live(go_on_after_a_restart)

    final_s = 60
    for number, lost_at in enumerate(rehearsal.lost_at, 1):
        told = rehearsal.when("indexer", GAP, number)  # two neighbours that are lost are one break
        assert final_s <= told - lost_at <= final_s + 10 * MINUTE
    assert rehearsal.when("indexer", GREEN, None, since=moments["backfill"]) - moments["backfill"] <= 5 * MINUTE
    split = min(
        rehearsal.when("ppoi", SPLIT, gap) for gap in (3, 4)
    )  # the newest entry is in the node before it is final
    assert 60 * MINUTE <= split - moments["backfill"] <= 70 * MINUTE
    assert rehearsal.when("ppoi", GREEN, None, since=moments["repair"]) - moments["repair"] <= 5 * MINUTE
    of_node = [change for change in rehearsal.changes if change[1] == "ppoi" and change[0] < moments["backfill"]]
    assert [status for _, _, status, _ in of_node] == [GREEN]


def test_users_are_told_that_their_wallets_need_no_repair() -> None:
    texts = read_catalogue("en").texts
    assert "Rescanning, reinstalling or another RPC endpoint does not help" in str(texts["help.indexer.incomplete"])
    assert "Nothing in your wallet needs repair" in str(texts["help.ppoi.inconsistent"])
