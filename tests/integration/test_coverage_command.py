"""``lookout coverage``: what it finds, says and ends with."""

import asyncio
import signal
from asyncio.subprocess import PIPE
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from lookout.demo.sim.chain import hash_of
from tests.commands import LOOKOUT, lookout, lookout_here
from tests.compared import a_compared_config
from tests.integration.fast import World, a_world
from tests.integration.test_coverage import position


async def run(world: World, *arguments: str, config: str) -> CompletedProcess[str]:
    (world.folder / "lookout.toml").write_text(config)
    return await asyncio.to_thread(lookout, world.folder, "coverage", "-c", "lookout.toml", *arguments)


@pytest.mark.first
@pytest.mark.clause("S17")
async def test_the_exit_code_says_whether_lists_agree_differ_or_could_not_be_compared(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        reached = await position(world)
        config = a_compared_config(world.base, reached - 5_000, "indexer", "hosted-indexer")
        fine = await run(world, config=config)
        assert (fine.returncode, fine.stderr) == (0, "")
        assert fine.stdout.count("agrees with the chain") == 2
        assert f"indexer on one, blocks {reached - 5_000} to " in fine.stdout

        await world.order("squid/1", "hole", blocks=50)
        holed = await run(world, config=config)
        assert holed.returncode == 1
        listed = [line.split()[0] for line in holed.stdout.splitlines() if line.startswith("    0x")]
        final = int(holed.stdout.partition(" to ")[2].partition(":")[0])
        lacking = [hash_of("transaction", 1, block) for block in range(reached - 50, final + 1) if block % 10 == 0]
        assert set(lacking[1:]) <= set(listed) <= set(lacking)
        assert holed.stdout.count("agrees with the chain") == 1

        below = await run(world, "--to", str(reached - 100), config=config)
        assert below.returncode == 0, below.stdout
        assert f"blocks {reached - 5_000} to {reached - 100}:" in below.stdout

        await world.order("rpc/1/a", "drop-logs", oneIn=2)
        await world.order("rpc/1/b", "drop-logs", oneIn=3)
        unproved = await run(world, "--from", str(reached - 1_000), config=config)
        assert unproved.returncode == 3
        assert "the endpoints give different logs" in unproved.stdout

        await world.order("*", None)
        await world.order("rpc/1", "refuse")
        headless = await run(world, config=config)
        assert headless.returncode == 3
        assert "agree on no head" in headless.stdout


@pytest.mark.clause("S17")
async def test_blocks_that_are_not_final_or_that_the_indexer_does_not_have_are_not_compared(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        reached = await position(world)
        config = a_compared_config(world.base, reached - 500)
        beyond = await run(world, "--to", str(reached + 1_000), config=config)
        assert beyond.returncode == 3
        assert "not compared: blocks " in beyond.stdout
        assert f" to {reached + 1_000}: " in beyond.stdout
        await world.order("squid/1", "lag", by=200)
        late = await run(world, config=config)
        assert late.returncode == 3
        assert "the indexer is at block " in late.stdout


@pytest.mark.clause("S17")
async def test_what_is_too_much_is_told_and_endpoints_may_refuse_wide_ranges(
    tmp_path: Path,
) -> None:
    async with a_world(tmp_path) as world:
        reached = await position(world)
        config = a_compared_config(world.base, reached - 1_000)
        await world.order("rpc/1", "narrow", blocks=150)
        await world.order("squid/1", "extra", transactions=14)
        ran = await run(world, "--to", str(reached - 10), config=config)
        assert ran.returncode == 1
        listed = {line.split()[0] for line in ran.stdout.splitlines() if line.startswith("    0x")}
        assert listed <= {hash_of("made up", 1, block) for block in range(reached - 14, reached - 9)}
        assert len(listed) >= 3  # a block may have come before the order
        assert "not compared" not in ran.stdout


def test_wrong_use_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    config = tmp_path / "lookout.toml"
    config.write_text(a_compared_config("http://127.0.0.1:9", None))
    without = lookout_here(tmp_path, "coverage", "-c", "lookout.toml")
    assert without.returncode == 2
    assert without.stderr == (
        "lookout: lookout.toml: no indexer has a table `complete`, so there is no list to compare"
        " (docs/operations.md)\n"
    )
    config.write_text(a_compared_config("http://127.0.0.1:9", 5))
    crossed = lookout_here(tmp_path, "coverage", "-c", "lookout.toml", "--from", "9", "--to", "8")
    assert (crossed.returncode, crossed.stderr) == (2, "lookout: --from 9 is above --to 8\n")
    assert lookout_here(tmp_path, "coverage", "-c", "lookout.toml", "--from", "-1").returncode == 2


async def test_ctrl_c_ends_it_without_a_word(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await world.order("squid/1", "hang")
        (tmp_path / "lookout.toml").write_text(a_compared_config(world.base, 1))
        process = await asyncio.create_subprocess_exec(
            *(LOOKOUT, "coverage", "-c", "lookout.toml"), cwd=tmp_path, stdout=PIPE, stderr=PIPE
        )
        await asyncio.sleep(4)
        process.send_signal(signal.SIGINT)
        output = await asyncio.wait_for(process.communicate(), 20)
        assert (process.returncode, output) == (130, (b"", b""))
