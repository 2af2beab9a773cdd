"""``lookout probe`` on a simulated world in which things fail: what it predicts, says, and ends with."""

import asyncio
import json
import re
import subprocess
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import UNSET

from lookout.app.probe import Probed, ProbedRow, probe_once
from lookout.base.clock import SystemClock
from lookout.base.instants import format_instant
from lookout.config.file import read_config
from lookout.core.model import Check
from lookout.demo.sim.upstreams import REQUIRED_LIST
from tests.commands import lookout, lookout_here
from tests.compared import a_compared_config
from tests.exhaustion import without_descriptors
from tests.fuzz.attackers import WORDS
from tests.integration.fast import CHAINS, World, a_config, a_world, run, watched
from tests.integration.planted import a_listener
from tests.wait import until_async

FAULTS: Final[tuple[tuple[str, str, dict[str, int]], ...]] = (
    ("rpc/1/a", "hang", {}),
    ("rpc/1/b", "wrong-chain", {}),
    ("rpc/42161/a", "lie", {"by": 9_000_000}),
    ("rpc/42161/c", "lag", {"by": 2_000}),
    ("rpc/137/a", "future", {}),
    ("rpc/56/a", "lag", {"by": 4_000}),
    ("rpc/11155111/a", "past", {}),
    ("rpc/11155111/b", "past", {}),
    ("rpc/11155111/c", "past", {}),
    ("squid/56", "lag", {"by": 40_000}),
    ("squid/42161", "lag", {"by": 1_000}),
    ("hosted/137", "status", {"code": 503}),
    ("ppoi/1", "missing-list", {}),
    ("ppoi/56", "lag", {"by": 3}),
)


async def a_bad_world(world: World) -> str:
    """A configuration of it whose first rows stay for long."""
    for target, fault, parameters in FAULTS:
        await world.order(target, fault, **parameters)
    config = a_config(
        world.base, probe_timeout_s=3, recheck_s=600, backoff_cap_s=600, row_lifetime_s=1500, heartbeat_s=1
    )
    (world.folder / "lookout.toml").write_text(config)
    return config


BELOW: Final = r"blocks below the head \(\d+ of \d+\)"


async def probe_of(world: World) -> Probed:
    return await probe_once(read_config(world.folder / "lookout.toml"), SystemClock())


def row_of(probed: Probed, service: str, chain_id: int | None) -> ProbedRow:
    return next(each for each in probed.rows if each.row.check == (service, chain_id))


@pytest.mark.clause("M12")
def test_it_predicts_the_rows_that_a_monitor_publishes_first(tmp_path: Path) -> None:
    async def compare() -> None:
        async with a_world(tmp_path) as world:
            config = await a_bad_world(world)
            probed = await probe_of(world)
            async with watched(world, config):
                await world.until(
                    lambda: all(
                        row["observedAt"] is not None or row["status"] == "unmonitored"
                        for row in world.document()["checks"]
                    ),
                    "every row was observed",
                )
                published = world.statuses()
        predicted = {each.row.check: f"{each.row.status}/{each.row.reason}" for each in probed.rows}
        assert list(predicted.items()) == list(published.items())
        assert {each.partition("/")[0] for each in published.values()} == {
            "current",
            "catching-up",
            "unknown",
            "unmonitored",
        }

    run(compare())


def test_it_says_what_was_found(tmp_path: Path) -> None:
    async def look() -> None:
        async with a_world(tmp_path) as world:
            await a_bad_world(world)
            probed = await probe_of(world)
        failed, far = row_of(probed, "hosted-indexer", 137), row_of(probed, "indexer", 56)
        near, trailing = row_of(probed, "indexer", 42161), row_of(probed, "ppoi", 56)
        unlisted, headless = row_of(probed, "ppoi", 1), row_of(probed, "indexer", 1)
        assert "503" in failed.found
        assert re.fullmatch(rf"behind: 4\d{{4}} {BELOW}", far.found)
        assert re.fullmatch(rf"behind: 1\d{{3}} {BELOW}", near.found)
        assert re.fullmatch(r"position \d+, head \d+", trailing.found)
        assert (unlisted.found, unlisted.is_fine) == ("the node does not carry the required list", False)
        assert re.fullmatch(r"the chain's RPC endpoints agree on no head, .*; position \d+", headless.found)
        assert row_of(probed, "hosted-indexer", 11155111).took_ms is None
        assert all(each.took_ms is not None for each in probed.rows if each.row.status != "unmonitored")

    run(look())


def a_report() -> dict[str, Any]:
    """A witness's, whose rows live for 300 s."""
    now = SystemClock().now()
    instants = {"observedAt": format_instant(now), "lastSuccessAt": format_instant(now)}
    row = {**instants, "expiresAt": format_instant(now + 300_000), "reason": "responding", "metrics": {}}
    rows = (("messaging", None, "unavailable"), *(("ppoi", chain_id, "current") for chain_id in CHAINS))
    checks = [{"service": name, "chainId": chain_id, "status": status, **row} for name, chain_id, status in rows]
    return {"schemaVersion": 1, "generatedAt": format_instant(now), "checks": checks}


@pytest.mark.clause("W2", "W3", "W8")
def test_it_shows_the_rows_of_witnesses_beside_ours_and_what_is_wrong_with_their_reports(tmp_path: Path) -> None:
    def answer(request: bytes) -> bytes:
        document = a_report() if b"GET /api/v1/protocol/liveness " in request else {"protocol": "other"}
        body = json.dumps(document).encode()
        return b"HTTP/1.1 200 OK\r\nAge: 40\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    def answer_as_another(request: bytes) -> bytes:
        return answer(request) if b"GET /about.json " in request else b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n"

    async def look() -> None:
        with a_listener(answer) as lima, a_listener(answer_as_another) as singapore:
            async with a_world(tmp_path) as world:
                witnesses = {"Lima": lima, "Singapore": singapore, "Oslo": "http://127.0.0.1:1"}
                tables = (f'[[witnesses]]\nname = "{name}"\nurl = "{url}"\n' for name, url in witnesses.items())
                services = 'services = ["messaging", "ppoi", "broadcasters"]\n'
                config = a_config(world.base) + "".join(f"{table}{services}" for table in tables)
                (world.folder / "lookout.toml").write_text(config)
                probed = await probe_of(world)
                shown = (await asyncio.to_thread(lookout_here, world.folder, "probe")).stdout
        seen = {part.check: part.found for part in probed.parts if part.place == "Lima"}
        assert (seen[Check("messaging", None)], seen[Check("ppoi", 137)]) == ("unavailable", "current")
        assert {part.place for part in probed.parts} == {"Lima", ""}
        said = [f"{part.check.name}: {part.found}" for part in probed.parts if not part.place]
        missing = ", ".join(f"broadcasters {chain_id}" for chain_id in sorted(CHAINS))
        assert said == [
            f"witness Lima: it does not watch {missing}",
            "witness Lima: its rows expire after 5 min, and after 2 min 30 s here",
            "witness Lima: a cache answered with a copy 40 s old",
            "witness Singapore: its protocol is 'other', and this monitor's is 'protocol'",
            "witness Oslo: not reached: nothing listens at its address",
        ]
        assert re.search(r"^service +chain +status +Lima +why +took$", shown, re.MULTILINE)
        assert re.search(r"^messaging +current +unavailable +responding: ", shown, re.MULTILINE)
        assert all(f"\n{line}\n" in shown for line in said)

    run(look())


@pytest.mark.clause("W2", "C2")
def test_rows_of_a_witness_that_shows_our_clock_to_be_behind_do_not_count(tmp_path: Path) -> None:
    def answer(_: bytes) -> bytes:
        body, date = json.dumps(a_report()).encode(), formatdate(time.time() + 60, usegmt=True).encode()
        return b"HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Length: %d\r\n\r\n%s" % (date, len(body), body)

    async def look() -> None:
        with a_listener(answer) as lima:
            async with a_world(tmp_path) as world:
                table = f'[[witnesses]]\nname = "Lima"\nurl = "{lima}"\n'
                (world.folder / "lookout.toml").write_text(a_config(world.base) + table)
                probed = await probe_of(world)
        seen = {part.check: part.found for part in probed.parts if part.place == "Lima"}
        assert (seen[Check("messaging", None)], seen[Check("ppoi", 137)]) == ("unknown", "unknown")

    run(look())


@pytest.mark.clause("S20", "S21")
def test_it_says_which_lists_can_be_checked_and_which_nodes_compared(tmp_path: Path) -> None:
    async def look() -> None:
        async with a_world(tmp_path) as world:
            config = a_compared_config(world.base, None, "indexer", "hosted-indexer")
            config = config.replace("confirmations = 12", "confirmations = 12\nlinks = {}")
            config += f'[[chains]]\nid = 56\nrpc = ["{world.base}/rpc/56/a"]\n[ppoi]\nurl = "{world.base}/ppoi"\n'
            config += f'required_list = "{REQUIRED_LIST}"\nchains = [1, 56]\nagrees_with = "indexer"\n'
            (world.folder / "lookout.toml").write_text(config)
            await world.order("hosted/1", "status", code=503)
            found = [(each.check, each.found, each.can_be_checked) for each in (await probe_of(world)).parts]
            await world.order("squid/1", "rebuild")
            rebuilt = [(each.check, each.found) for each in (await probe_of(world)).parts]
            shown = (await asyncio.to_thread(lookout_here, world.folder, "probe")).stdout
        indexer, hosted, node, alone = found
        assert indexer == (("indexer", 1), "the running hash holds in the first 1000 entries", True)
        assert hosted == (("hosted-indexer", 1), "the list cannot be read: no usable answer: HTTP 503", False)
        assert (node[0], node[2]) == (("ppoi", 1), True)
        assert re.fullmatch(r"the list of indexer has \d+ final entries, the node has \d+", node[1])
        why = "not compared with a list: this chain has no indexer of kind squid that it could be compared with"
        assert alone == (("ppoi", 56), why, False)
        assert rebuilt[0][1] == "the running hash cannot be checked yet: no two entries are listed"
        assert f"\nindexer 1: {rebuilt[0][1]}\n" in shown
        assert rebuilt[2][1] == "not compared with the list: no block of it is known to be final"

    run(look())


@pytest.mark.clause("M16")
def test_it_says_of_each_endpoint_that_answers_the_standing_that_a_monitor_shows(tmp_path: Path) -> None:
    async def compare() -> None:
        async with a_world(tmp_path) as world:
            config = await a_bad_world(world)
            probed = await probe_of(world)
            async with watched(world, config) as seen:

                def standings() -> dict[str, object]:
                    return {
                        each.name: each.standing for each in seen.board.list_entries() if each.standing is not UNSET
                    }

                await until_async(lambda: len(standings()) == 15, "every endpoint has its standing")
                shown = standings()
        endpoints = [each for chain in probed.chains for each in chain.endpoints if each.cause is None]
        said = {each.name: re.split("[,:]", each.found)[0] for each in endpoints}
        assert said == {name: shown[name] for name in said}
        assert set(said.values()) == {"agrees", "behind", "disagrees", "not_confirmed"}

    run(compare())


@pytest.mark.clause("M17")
def test_what_this_machine_lacks_is_called_its_own_and_no_failure_of_an_endpoint(tmp_path: Path) -> None:
    async def look() -> None:
        async with a_world(tmp_path) as world:
            (tmp_path / "lookout.toml").write_text(a_config(world.base, probe_timeout_s=10))
            settings = read_config(tmp_path / "lookout.toml")
            with without_descriptors():
                probed = await probe_once(settings, SystemClock())
        lack, words = "own_fault: no file descriptor left", "a fault of this machine's own: no file descriptor left"
        assert {each.found for chain in probed.chains for each in chain.endpoints} == {words}
        assert {chain.found for chain in probed.chains} == {"no head: no two answers that agree"}
        assert {(each.found, each.cause) for each in probed.rows if each.took_ms is not None} == {(words, lack)}
        assert {each.row.reason for each in probed.rows} == {"no-observation", "not-configured"}

    run(look())


def test_the_exit_code_is_0_only_if_every_row_would_be_current_or_unmonitored(tmp_path: Path) -> None:
    async def probe_twice() -> None:
        async with a_world(tmp_path) as world:
            (tmp_path / "lookout.toml").write_text(a_config(world.base, probe_timeout_s=10))
            well = await in_a_process(tmp_path)
            assert (well.returncode, well.stderr) == (0, "")
            assert well.stdout.endswith("\n\nevery row would be current or unmonitored\n")
            await world.order("rpc/1/a", "status", code=500)
            assert (await in_a_process(tmp_path)).returncode == 0  # two agree
            await world.order("ppoi/1", "missing-list")
            ill = await in_a_process(tmp_path)
            assert (ill.returncode, ill.stderr) == (1, "")
            wrong, *steps = ill.stdout.rpartition("\n\n")[2].splitlines()
            assert wrong == "1 of 21 rows are not current"
            assert steps[:2] == [  # a node of ppoi may be trailing by now, which is said after them
                "http_status: look at the service's own log, or ask those who run it",
                "missing_list: compare `required_list` with the lists that the node has",
            ]
            assert re.search(r"  rpc 1 of c1 +http_status: no usable answer: HTTP 500 +\d+ ms", ill.stdout)
            line = next(line for line in ill.stdout.splitlines() if re.match(r"ppoi +c1 ", line))
            why = "incompatible-reference, missing_list: the node does not carry the required list"
            assert re.fullmatch(rf"ppoi +c1 +unknown +{why} +\d+ ms", line)

    run(probe_twice())


async def in_a_process(folder: Path) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(lookout, folder, "probe")


@pytest.mark.clause("M16")
def test_no_word_of_an_upstream_reaches_the_terminal(tmp_path: Path) -> None:
    rows = [{"id": f"{number}{WORDS}", "blockNumber": 1} for number in range(2)]
    body = json.dumps({"data": {"squidStatus": {"height": 5}, "transactions": rows}, WORDS: WORDS}).encode()
    head = b"HTTP/1.1 200 \x1b[2J\r\nServer: \x1b[2J\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    with a_listener(lambda _: head + body) as base:
        listed = a_compared_config(base, None).replace("confirmations = 12\n", "confirmations = 12\nlinks = {}\n")
        (tmp_path / "lookout.toml").write_text(listed)
        shown = lookout_here(tmp_path, "probe", "-c", "lookout.toml")
    assert "indexer 1: the list cannot be read: no usable answer" in shown.stdout
    assert re.findall(r"\x1b|curl", shown.stdout + shown.stderr) == []
