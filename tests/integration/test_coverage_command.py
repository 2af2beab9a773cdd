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


async def run(world: World, *arguments: str, config: str) -> CompletedProcess[str]:
    (world.folder / "lookout.toml").write_text(config)
    return await asyncio.to_thread(lookout, world.folder, "coverage", "-c", "lookout.toml", *arguments)


async def position(world: World) -> int:
    """Where the indexer is."""
    body = {"query": "{ squidStatus { height } }"}
    async with world.http.post(f"{world.base}/squid/1/graphql", json=body) as answer:
        return int((await answer.json())["data"]["squidStatus"]["height"])


@pytest.mark.first
@pytest.mark.clause("S17")
async def test_the_exit_code_says_whether_lists_agree_differ_or_could_not_be_compared(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        reached = await position(world)
        config = a_compared_config(world.base, reached - 2_000, "indexer", "hosted-indexer")
        fine = await run(world, "--to", str(reached - 100), config=config)
        assert (fine.returncode, fine.stderr) == (0, "")
        assert fine.stdout.count("agrees with the chain") == 2
        assert f"indexer on one, blocks {reached - 2_000} to {reached - 100}:" in fine.stdout

        await world.order("squid/1", "hole", blocks=50)
        holed = await run(world, config=config)
        assert holed.returncode == 1
        listed = [line.split()[0] for line in holed.stdout.splitlines() if line.startswith("    0x")]
        final = int(holed.stdout.partition(" to ")[2].partition(":")[0])
        lacking = [hash_of("transaction", 1, block) for block in range(reached - 50, final + 1) if block % 10 == 0]
        assert set(lacking[1:]) <= set(listed) <= set(lacking)
        assert holed.stdout.count("agrees with the chain") == 1

        await world.order("rpc/1", "refuse")
        headless = await run(world, config=config)
        assert headless.returncode == 3
        assert "not compared: blocks " in headless.stdout
        assert "agree on no head" in headless.stdout


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
