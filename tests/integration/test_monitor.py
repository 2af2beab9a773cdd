"""The monitor on simulated upstreams: every row, every fault."""

from pathlib import Path
from typing import NamedTuple

import pytest

from lookout.base.clock import SystemClock
from lookout.base.instants import parse_instant
from lookout.demo.sim.server import wall_clock
from tests.builders import MINUTE
from tests.integration.fast import CHAINS, RowKey, a_config, a_world, watched

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # a reset connection closes itself a little late


@pytest.mark.first
@pytest.mark.clause("M9", "M10", "R12", "S3", "S7", "S10", "S11", "S14", "H2")
async def test_in_a_healthy_world_every_one_of_the_21_rows_is_right(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, watched(world, a_config(world.base)):
        await world.until_healthy()
        rows = world.document()["checks"]
        assert len(rows) == 21
        assert world.status_of("hosted-indexer", 11155111) == "unmonitored/not-configured"
        for row in rows:
            match row["service"]:
                case "messaging":
                    assert row["metrics"]["peers"] > 0
                case "broadcasters":
                    assert row["metrics"]["responding"] == row["metrics"]["monitored"] > 0
                case "ppoi":
                    assert row["metrics"]["position"] >= row["metrics"]["head"] - 3 > 0  # it may trail a moment
                case "indexer" | "hosted-indexer" if row["status"] != "unmonitored":
                    assert row["metrics"]["head"] > 0
        history = world.document("history")
        assert [(r["service"], r["chainId"]) for r in history["rows"]] == [(r["service"], r["chainId"]) for r in rows]


class Ordered(NamedTuple):
    """A fault of an upstream, and what all rows that depend on it have to say."""

    target: str
    fault: str
    expected: str
    by: int | None = None


UNREACHABLE = "unavailable/unreachable"
SYNCED = "current/synced"
INCOMPATIBLE = "unknown/incompatible-reference"
# Upstreams that have nothing to do with each other have their faults at the same time.
FAULTS = {
    "sources that are waited for in vain, refuse, or answer nonsense": (
        Ordered("squid/1", "hang", UNREACHABLE),
        Ordered("squid/56", "garbage", UNREACHABLE),
        Ordered("hosted/1", "status", UNREACHABLE),
        Ordered("ppoi", "refuse", UNREACHABLE),
        Ordered("waku/messages", "garbage", UNREACHABLE),
        Ordered("waku/peers", "status", UNREACHABLE),
    ),
    "one endpoint of each chain fails or is wrong": (
        Ordered("rpc/1/a", "lie", SYNCED),
        Ordered("rpc/42161/a", "wrong-chain", SYNCED),
        Ordered("rpc/137/a", "hang", SYNCED),
        Ordered("rpc/56/a", "freeze", SYNCED),
        Ordered("rpc/11155111/a", "future", SYNCED),
        Ordered("ppoi", "hang", UNREACHABLE),
        Ordered("waku/messages", "refuse", UNREACHABLE),
        Ordered("waku/peers", "hang", UNREACHABLE),
    ),
    "all endpoints of a chain, and no list at all": (
        Ordered("rpc/1", "halt", SYNCED),
        Ordered("rpc/42161", "hang", INCOMPATIBLE),
        Ordered("rpc/137", "garbage", INCOMPATIBLE),
        Ordered("rpc/56", "future", INCOMPATIBLE),
        Ordered("rpc/11155111", "reorg", SYNCED),
        Ordered("ppoi", "missing-list", INCOMPATIBLE),
    ),
    "answers that say that something lags or is not there": (
        Ordered("squid/1", "lag", "catching-up/behind", by=100),
        Ordered("squid/11155111", "lag", "degraded/behind", by=1_000),
        Ordered("hosted/137", "lag", "degraded/behind", by=5_000),
        Ordered("squid/56", "lie", INCOMPATIBLE),
        Ordered("ppoi/56", "lag", "catching-up/behind", by=5),
        Ordered("ppoi/1", "missing-list", INCOMPATIBLE),
        Ordered("ppoi/137", "missing-network", "unknown/no-observation"),
        Ordered("waku", "zero-peers", UNREACHABLE),
    ),
}


def rows_of(target: str) -> list[RowKey]:
    """Those that depend on an upstream."""
    upstream, *chain = target.split("/")
    chains = [int(chain[0])] if chain and chain[0].isdigit() else list(CHAINS)
    services = {
        "squid": ("indexer",),
        "hosted": ("hosted-indexer",),
        "rpc": ("indexer", "hosted-indexer"),
        "ppoi": ("ppoi",),
        "waku": ("broadcasters",),
    }
    if upstream == "waku" and chain != ["messages"]:
        return [("messaging", None)]
    return [(service, chain_id) for service in services[upstream] for chain_id in chains]


@pytest.mark.first
@pytest.mark.clause("M3", "M6", "M8", "M9", "S1", "S2", "S4", "S5", "S8", "S11", "S12", "S13")
@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS.keys())
async def test_a_fault_shows_in_its_rows_and_in_no_other(faults: tuple[Ordered, ...], tmp_path: Path) -> None:
    async with (
        a_world(tmp_path) as world,
        watched(world, a_config(world.base, head_max_age_s=15, ppoi_behind_s=0.5)),
    ):
        await world.until_healthy()
        watched_rows = [row for row, status in world.statuses().items() if not status.startswith("unmonitored")]
        expected = {row: each.expected for each in faults for row in rows_of(each.target) if row in watched_rows}
        well = [row for row in watched_rows if expected.get(row, SYNCED) == SYNCED]
        seen_of_the_well: set[str] = set()
        for each in faults:
            await world.order(each.target, each.fault, **({} if each.by is None else {"by": each.by}))
        a_while_later_at = SystemClock().now() + 1_500

        def is_as_expected() -> bool:
            statuses = world.statuses()
            seen_of_the_well.update(statuses[row] for row in well)
            return (
                statuses.items() >= expected.items()
                and all(statuses[row].startswith("current/") for row in well)
                and all(parse_instant(world.row(*row)["observedAt"]) > a_while_later_at for row in well)
            )

        await world.until(is_as_expected, f"{expected}, and the others are current")
        on_a_busy_machine = {"unknown/unreachable"}
        assert seen_of_the_well <= {"current/synced", "current/responding", *on_a_busy_machine}
        await world.order("*", None)
        await world.until_healthy()


@pytest.mark.clause("S10", "M7")
async def test_broadcasters_that_fall_silent_stay_monitored_also_over_a_restart(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        config = a_config(world.base).replace("[broadcasters]", "[broadcasters]\nfresh_s = 30")
        async with watched(world, config):
            await world.until_healthy()
            monitored = world.row("broadcasters", 1)["metrics"]["monitored"]
        await world.order("broadcasters/1", "unsigned", first=2)
        config = config.replace("fresh_s = 30", "fresh_s = 0.001")
        async with watched(world, config):
            await world.until(lambda: world.status_of("broadcasters", 1) == UNREACHABLE, "none responding")
        config = config.replace("fresh_s = 0.001", "fresh_s = 3600")
        async with watched(world, config):
            await world.until(lambda: world.status_of("broadcasters", 1) == "current/responding", "all responding")
            assert world.row("broadcasters", 1)["metrics"]["monitored"] == monitored


class SlowClock:
    """The world's time: two minutes late, so that a part of them can pass at once without being the future."""

    def __init__(self) -> None:
        self.late_ms = 2 * MINUTE

    def now(self) -> int:
        return wall_clock() - self.late_ms


@pytest.mark.clause("S12")
async def test_an_indexer_rebuilt_from_scratch_has_nothing_then_is_far_behind(tmp_path: Path) -> None:
    clock = SlowClock()
    async with a_world(tmp_path, clock.now) as world, watched(world, a_config(world.base)):
        await world.until(lambda: world.status_of("indexer", 1) == SYNCED, "in step")
        before = world.row("indexer", 1)["lastSuccessAt"]
        await world.order("squid/1", "rebuild")
        await world.until(lambda: world.status_of("indexer", 1) == "unknown/no-observation", "nothing yet")
        row = world.row("indexer", 1)
        assert (row["metrics"], row["expiresAt"]) == ({}, None)
        assert row["lastSuccessAt"] >= before
        clock.late_ms -= MINUTE
        await world.until(lambda: world.status_of("indexer", 1) == "degraded/behind", "a day behind")
        await world.order("*", None)
        await world.until(lambda: world.status_of("indexer", 1) == SYNCED, "in step again")
