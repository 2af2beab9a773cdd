"""The monitor on simulated upstreams: every row, every fault."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import uvloop

from tests.integration.fast import World, a_config, a_world, run, watched

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # a reset connection closes itself a little late


@pytest.mark.clause("M9", "M10", "R12", "S3", "S7", "S10", "S11", "S14", "H2")
@pytest.mark.parametrize("via", ["store", "relay"])
def test_in_a_healthy_world_every_one_of_the_21_rows_is_right(via: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world, watched(world, a_config(world.base, via)):
            await world.until_healthy()
            rows = world.document()["checks"]
            assert len(rows) == 21
            assert world.told("hosted-indexer", 11155111) == "unmonitored/not-configured"
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
            assert [(r["service"], r["chainId"]) for r in history["rows"]] == [
                (r["service"], r["chainId"]) for r in rows
            ]

    run(scenario())


@pytest.mark.clause("M9", "S3")
@pytest.mark.parametrize("kind", ["subgraph", "ponder", "json"])
def test_every_kind_of_indexer_is_understood(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world, watched(world, a_config(world.base, indexer_kind=kind)):
            await world.until_healthy()

    run(scenario())


Of = tuple[str, int | None]  # a row's service and chain

UNREACHABLE = "unavailable/unreachable"
# target, fault, parameters, row, what it has to say, rows that must not mind
CASES = [
    *(
        pytest.param(
            "waku/messages", fault, {}, ("broadcasters", 56), UNREACHABLE, [("messaging", None)], id=f"store {fault}"
        )
        for fault in ("hang", "endless", "status")
    ),
    *(
        pytest.param(
            "rpc/1/a", fault, {}, ("indexer", 1), "current/synced", [("hosted-indexer", 1)], id=f"one endpoint: {fault}"
        )
        for fault in (
            "refuse",
            "hang",
            "garbage",
            "html",
            "rate-limit",
            "wrong-chain",
            "lag",
            "freeze",
            "lie",
            "future",
        )
    ),
    *(
        pytest.param(
            "rpc/1",
            fault,
            {},
            ("indexer", 1),
            "unknown/incompatible-reference",
            [("indexer", 56)],
            id=f"all endpoints: {fault}",
        )
        for fault in ("hang", "future")
    ),
    pytest.param("rpc/1", "halt", {}, ("indexer", 1), "current/synced", [], id="a chain that halts"),
    pytest.param("rpc/1", "reorg", {}, ("indexer", 1), "current/synced", [], id="a chain that reorganises"),
    pytest.param(
        "squid/1",
        "lag",
        {"by": 100},
        ("indexer", 1),
        "catching-up/behind",
        [("hosted-indexer", 1)],
        id="an indexer behind",
    ),
    pytest.param(
        "squid/1",
        "lag",
        {"by": 1000},
        ("indexer", 1),
        "degraded/behind",
        [("hosted-indexer", 1)],
        id="an indexer far behind",
    ),
    pytest.param(
        "hosted/137",
        "lag",
        {"by": 5000},
        ("hosted-indexer", 137),
        "degraded/behind",
        [("indexer", 137)],
        id="a hosted indexer far behind",
    ),
    pytest.param("squid/1", "null-status", {}, ("indexer", 1), UNREACHABLE, [], id="a squid that never ran"),
    pytest.param("squid/1", "lie", {}, ("indexer", 1), "current/synced", [], id="a position above the head"),
    pytest.param(
        "ppoi/56", "lag", {"by": 5}, ("ppoi", 56), "catching-up/behind", [("ppoi", 1)], id="a ppoi node that trails"
    ),
    pytest.param("ppoi", "missing-list", {}, ("ppoi", 1), "unknown/incompatible-reference", [], id="no list at all"),
    pytest.param(
        "ppoi/1",
        "missing-list",
        {},
        ("ppoi", 1),
        "unknown/incompatible-reference",
        [("ppoi", 56)],
        id="no list on one network",
    ),
    pytest.param(
        "ppoi/1", "missing-network", {}, ("ppoi", 1), "unknown/no-observation", [("ppoi", 56)], id="a network left out"
    ),
    pytest.param(
        "ppoi/1", "absent-index", {}, ("ppoi", 1), "unknown/no-observation", [("ppoi", 56)], id="indexes left out"
    ),
    pytest.param("waku", "zero-peers", {}, ("messaging", None), UNREACHABLE, [("broadcasters", 1)], id="no peers"),
]


# Three sources that have nothing to do with each other fail at the same time.
SOURCES: dict[str, Of] = {"squid/1": ("indexer", 1), "ppoi": ("ppoi", 1), "waku/peers": ("messaging", None)}
BESIDE: list[Of] = [("hosted-indexer", 1), ("indexer", 56), ("broadcasters", 1)]

Scenario = Callable[[World], Awaitable[None]]


@pytest.fixture(scope="module")
def lived_through(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Scenario], None]]:
    """Lives through scenarios, one after the other, in one world that is watched throughout. Each ends whole."""

    async def bounded(scenario: Scenario, world: World) -> None:
        try:
            async with asyncio.timeout(180):
                await scenario(world)
        finally:
            await world.order("*", None)

    async def begin(whole_module: AsyncExitStack) -> World:
        world = await whole_module.enter_async_context(a_world(tmp_path_factory.mktemp("world")))
        await whole_module.enter_async_context(
            watched(world, a_config(world.base, head_max_age_s=3, ppoi_behind_s=0.5))
        )
        return world

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        whole_module = AsyncExitStack()
        world = runner.run(begin(whole_module))
        yield lambda scenario: runner.run(bounded(scenario, world))
        runner.run(whole_module.aclose())


@pytest.mark.clause("M3", "M6", "M8", "S1", "S2")
@pytest.mark.parametrize(
    "fault",
    ["refuse", "hang", "drip", "endless", "interim", "numbers", "garbage", "html", "status", "rate-limit"],
)
def test_sources_that_fail_are_unreachable_each_by_itself(
    fault: str, lived_through: Callable[[Scenario], None]
) -> None:
    async def scenario(world: World) -> None:
        await world.until_healthy()
        for target in SOURCES:
            await world.order(target, fault)
        for row in SOURCES.values():
            await until_it_says(world, row, UNREACHABLE)
        await until_seen_again(world, BESIDE)
        await world.order("*", None)
        await world.until_healthy()

    lived_through(scenario)


@pytest.mark.clause("M3", "M6", "M8", "M9", "S1", "S2", "S4", "S5", "S8", "S11", "S12", "S13")
@pytest.mark.parametrize(("target", "fault", "parameters", "row", "expected", "others"), CASES)
def test_a_fault_ends_in_the_right_row_and_troubles_no_other(
    target: str,
    fault: str,
    parameters: dict[str, object],
    row: Of,
    expected: str,
    others: list[Of],
    lived_through: Callable[[Scenario], None],
) -> None:
    async def scenario(world: World) -> None:
        await world.until_healthy()
        await world.order(target, fault, **parameters)
        await until_it_says(world, row, expected)
        if expected.startswith("current"):  # it has to stay so for some rounds
            assert await told_meanwhile(world, row) <= {expected, "unknown/unreachable"}  # on a busy machine
            await until_it_says(world, row, expected)
        await until_seen_again(world, others)
        await world.order("*", None)
        await until_it_says(world, row, "current/")

    lived_through(scenario)


async def until_it_says(world: World, check: Of, begins: str) -> None:
    await world.until(lambda: world.told(*check).startswith(begins), f"{check} is {begins}")


async def until_seen_again(world: World, checks: list[Of]) -> None:
    """Those that must not mind: each is observed from now on, and current."""
    before = {check: world.row(*check)["observedAt"] for check in checks}

    def all_were() -> bool:
        seen = all(world.row(*check)["observedAt"] > before[check] for check in checks)
        return seen and all(world.told(*check).startswith("current/") for check in checks)

    await world.until(all_were, f"{checks} are seen again, and current")


async def told_meanwhile(world: World, row: Of) -> set[str]:
    told = set()
    for _ in range(30):
        told.add(world.told(*row))
        await asyncio.sleep(0.05)
    return told


@pytest.mark.clause("M8", "S13")
def test_endpoints_of_another_chain_give_no_head(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            await world.order("rpc/1", "wrong-chain")
            async with watched(world, a_config(world.base)):
                await world.until(lambda: world.told("indexer", 56) == "current/synced", "other chains")
                await world.until(lambda: world.told("indexer", 1) == "unknown/incompatible-reference", "no head")
                assert set(world.row("indexer", 1)["metrics"]) == {"position"}
                await world.order("rpc/1", None)
                await world.until(lambda: world.told("indexer", 1) == "current/synced", "the right chain again")

    run(scenario())


@pytest.mark.clause("S10", "M7")
def test_broadcasters_that_fall_silent_stay_monitored_also_over_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            config = a_config(world.base).replace("[broadcasters]", "[broadcasters]\nfresh_s = 30")
            async with watched(world, config):
                await world.until_healthy()
                monitored = world.row("broadcasters", 1)["metrics"]["monitored"]
            await world.order("broadcasters/1", "unsigned", first=2)
            config = config.replace("fresh_s = 30", "fresh_s = 0.001")
            async with watched(world, config):
                await world.until(lambda: world.told("broadcasters", 1) == "unavailable/unreachable", "none responding")
            config = config.replace("fresh_s = 0.001", "fresh_s = 3600")
            async with watched(world, config):
                await world.until(lambda: world.told("broadcasters", 1) == "current/responding", "all responding")
                assert world.row("broadcasters", 1)["metrics"]["monitored"] == monitored

    run(scenario())
