"""Keys of the configuration through the real command: one service that has them all, and what each of them changes."""

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import pytest
from aiohttp import web

from lookout.base.instants import parse_instant
from lookout.base.known_chains import KNOWN_CHAINS
from lookout.demo.sim.chain import CONTRACT, EVENT
from lookout.demo.sim.waku import broadcasters
from tests.cases import text_of
from tests.commands import a_command, lookout_here, said
from tests.compared import QUERY
from tests.integration.fast import REQUIRED_LIST, World, a_world
from tests.integration.metrics import scrape
from tests.integration.receivers import Receiver, a_hook
from tests.integration.served import a_free_port
from tests.integration.whole_service import answer
from tests.wait import until_async

ON_CHAINS: Final = (1, 42161, 137, 56)
TOPIC: Final = "/mine/{chainId}/fees"
SIMULATED_TOPIC: Final = "/railgun/v2/0-{chainId}-fees/json"
LIST_QUERY: Final = QUERY.replace("1000", "999")
LINKS_QUERY: Final = (
    "query($id: String!) { transactions(orderBy: id_ASC, limit: 500, where: {id_gte: $id}) {"
    " id blockNumber transactionHash nullifiers verificationHash } }"
)
CONFIG: Final = text_of("settings/every-key.toml")


class Asked(NamedTuple):
    path: str  # a whole address if a proxy was asked
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Relay:
    """Everything that the monitor asks, on its way to the simulated upstreams, which know neither the keys of headers
    nor the topics. While it is down, each request fails."""

    def __init__(self, world: World) -> None:
        self.asked: list[Asked] = []
        self.is_down = False
        self.base = ""
        self._world = world

    def at(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if path in asked.path]

    def keys_at(self, path: str) -> set[str | None]:
        return {asked.headers.get("X-Key") for asked in self.at(path)}

    async def reply(self, request: web.Request) -> web.Response:
        path, body = request.raw_path.partition("?")[0], await request.read()
        self.asked.append(Asked(path, dict(request.query), dict(request.headers), body))
        if self.is_down:
            return web.Response(status=503)
        if path in ("/own", "/ping"):
            return web.json_response({"state": {"ok": True}}, status=201 if path == "/own" else 200)
        address = self._world.base + path.removeprefix(self._world.base).replace("/lists/", "/squid/")
        query = {name: _exchange(text, TOPIC, SIMULATED_TOPIC) for name, text in request.query.items()}
        async with self._world.http.request(request.method, address, params=query, data=body) as got:
            text = _exchange(await got.text(), SIMULATED_TOPIC, TOPIC)
            return web.Response(status=got.status, text=text, content_type="application/json")


def _exchange(text: str, topic: str, other: str) -> str:
    for chain_id in (1, 137):
        text = text.replace(topic.replace("{chainId}", str(chain_id)), other.replace("{chainId}", str(chain_id)))
    return text


@asynccontextmanager
async def relaying(world: World) -> AsyncIterator[Relay]:
    relay = Relay(world)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", relay.reply)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    relay.base = f"http://{host}:{port}"
    try:
        yield relay
    finally:
        await runner.cleanup()


async def write(folder: Path, world: World, relay: Relay, **more: object) -> None:
    """The configuration, whose indexer's list is compared from 20,000 blocks below the head on."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    async with world.http.post(f"{world.base}/rpc/1/a", json=asked) as got:
        head = int((await got.json())["result"], 16)
    chains = ""
    for chain_id, name, block_time_s in ((1, "One", 12), (42161, "Fast", 0.25), (137, "Green", 1.75)):
        rpc = ", ".join(
            f'{{url = "BASE/rpc/{chain_id}/{letter}", name = "{letter.upper()}", headers = {{X-Key = "rpc"}}}}'
            for letter in "abc"
        )
        chains += f'[[chains]]\nid = {chain_id}\nname = "{name}"\nblock_time_s = {block_time_s}\nrpc = [{rpc}]\n'
    filled = {
        "CHAINS": chains,
        "BASE": relay.base,
        "SIMULATED": world.base,
        "TOPIC": TOPIC,
        "LIST": REQUIRED_LIST,
        "LIST_QUERY": LIST_QUERY,
        "LINKS_QUERY": LINKS_QUERY,
        "CONTRACT": CONTRACT,
        "EVENT": EVENT,
        "FIRST": head - 20_000,
        "MEMBER": broadcasters(0, 1, 1)[0].address,
        **more,
    }
    text = CONFIG
    for name, value in filled.items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    (folder / "lookout.toml").write_text(text)


Rows = dict[tuple[str, int | None], list[Any]]  # of each check every row that was published, the oldest first


@contextmanager
def watching(world: World) -> Iterator[Rows]:
    rows: Rows = defaultdict(list)

    async def watch() -> None:
        while True:
            for row in (world.document() or {"checks": ()})["checks"]:
                known = rows[row["service"], row["chainId"]]
                if row not in known[-1:]:
                    known.append(row)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(watch())
    try:
        yield rows
    finally:
        task.cancel()


def states(rows: Iterable[Any]) -> list[str]:
    return [f"{row['status']}/{row['reason']}" for row in rows]


def instant(row: Any, key: str = "observedAt") -> int:
    return parse_instant(row[key])


@pytest.mark.first
@pytest.mark.clause("S16", "M13")
async def test_what_is_set_for_a_service_changes_what_it_does(tmp_path: Path) -> None:
    ports = {name: a_free_port() for name in ("PORT", "MONITOR", "ADMIN")}
    base, monitor, server = (f"http://127.0.0.1:{ports[name]}" for name in ("PORT", "MONITOR", "ADMIN"))
    async with a_world(tmp_path) as world, relaying(world) as relay:
        with a_hook("key") as hook:
            await write(tmp_path, world, relay, HOOK=hook.address, **ports)
            with a_command(tmp_path, "run", "-c", "lookout.toml"), watching(world) as rows:
                await look_at_a_good_day(world, rows)
                await until_async(lambda: is_answered(world.http, f"{server}/readyz"), "the server serves")
                await look_at_what_is_public(world, base)
                await look_at_what_is_asked(world, relay, monitor)
                await look_at_a_bad_day(world, rows)
                await look_at_alerts(world, hook, monitor)
                await look_at_another_margin(tmp_path, world, rows)
                relay.is_down = True
                # After four seconds without any answer the fault is the monitor's own.
                await world.until(lambda: set(states(last(rows, "unmonitored"))) == {"unknown/unreachable"}, "blind")
                assert "unavailable/unreachable" in states(rows["messaging", None])
    assert {json.loads(line)["level"] for line in said(tmp_path).splitlines()} == {"warning", "error"}
    recorded = (tmp_path / "seen.jsonl").read_text().splitlines()
    assert len(recorded) > 50


def last(rows: Rows, but: str) -> list[Any]:
    return [of_check[-1] for of_check in rows.values() if of_check[-1]["status"] != but]


async def look_at_a_good_day(world: World, rows: Rows) -> None:
    wanted: dict[tuple[str, int | None], str] = {("indexer", chain_id): "current/synced" for chain_id in ON_CHAINS}
    wanted |= dict.fromkeys([("messaging", None), ("relayer", None), ("node", 1)], "current/responding")
    wanted |= {("hosted-indexer", 1): "current/synced", ("ppoi", 1): "current/synced"}
    wanted |= {("ppoi", 137): "unknown/no-observation"}  # the node has no network of this name
    wanted |= {("broadcasters", 1): "current/responding", ("broadcasters", 137): "current/responding"}

    def is_so() -> bool:
        return all(rows[check] and states(rows[check][-1:]) == [wanted_state] for check, wanted_state in wanted.items())

    await world.until(is_so, "everything is as it is set")
    row = rows["indexer", 1][-1]
    assert instant(row, "expiresAt") - instant(row) == 20_000
    monitored = {
        check: rows[check][-1]["metrics"]["monitored"]
        for check in rows
        if check[0] == "broadcasters" and rows[check][-1]["metrics"]
    }
    assert monitored == {("broadcasters", 1): 1, ("broadcasters", 137): 2}
    await world.until(lambda: world.document("history")["rows"][0]["uptime"]["24h"] == 1, "an uptime of one bucket")
    history = world.document("history")
    assert (history["bucketSeconds"], history["retentionDays"]) == (4, 1)


async def look_at_what_is_public(world: World, base: str) -> None:
    about = await answer(world.http, f"{base}/about.json")
    page = {key: about[key] for key in ("protocol", "title", "operator", "contact", "showUnmonitored")}
    assert page == {
        "protocol": "acorn",
        "title": "Acorn",
        "operator": "Acorn Ltd",
        "contact": "status@acorn.example",
        "showUnmonitored": False,
    }
    chains = {chain["id"]: (chain["name"], chain["testNetwork"]) for chain in about["chains"]}
    assert chains == {
        1: ("One", False),
        42161: ("Fast", False),
        137: ("Green", False),
        56: (KNOWN_CHAINS[56].name, True),
    }
    services = {each["name"]: each for each in about["services"]}
    assert [name for name, each in services.items() if each["runByOthers"]] == ["indexer"]
    assert (services["relayer"]["title"], services["relayer"]["effect"]) == ("Relayers", "Relaying stops")
    limited = []
    for _ in range(4):
        async with world.http.get(f"{base}/api/v1/acorn/liveness") as got:
            limited.append((got.status, got.headers.get("Retry-After", "0")))
    assert [http_code for http_code, _ in limited] == [200, 200, 200, 429]
    assert int(limited[-1][1]) <= 2
    await until_async(lambda: is_answered(world.http, f"{base}/api/v1/acorn/liveness"), "the ban is over", 20)


async def is_answered(http: aiohttp.ClientSession, url: str) -> bool:
    return await answer(http, url) is not None


async def look_at_what_is_asked(world: World, relay: Relay, monitor: str) -> None:
    for host, http_code in (("monitor.example", 200), ("other.example", 421)):
        async with world.http.get(f"{monitor}/healthz", headers={"Host": host}) as got:
            assert got.status == http_code
    keys = {"rpc": "/rpc/42161/c", "ppoi": "/ppoi", "broadcasters": "/waku/store", "own": "/own"}
    keys |= {"indexer": "/squid/1/", "messaging": f"{world.base}/waku/admin"}  # a whole address, as a proxy gets it
    assert {key: relay.keys_at(path) for key, path in keys.items()} == {key: {key} for key in keys}
    topics = {(asked.query["pubsubTopic"], asked.query["contentTopics"]) for asked in relay.at("/waku/store")}
    assert topics == {("/waku/2/rs/9/9", TOPIC.replace("{chainId}", chain_id)) for chain_id in ("1", "137")}
    assert any(b'"params":["latest",false]' in asked.body for asked in relay.at("/rpc/1/a"))
    await until_async(lambda: len(relay.at("/ping")) >= 3, "a ping each second")

    async def are_compared() -> bool:
        shown = {each["kind"] for each in await answer(world.http, f"{monitor}/sources")}
        return shown == {"source", "endpoint", "coverage", "links", "agreement"}

    await until_async(are_compared, "the lists are read")
    names = {each["name"] for each in await answer(world.http, f"{monitor}/sources") if each["kind"] == "endpoint"}
    assert {"A of One", "B of Fast", "C of Green"} < names
    assert any(LINKS_QUERY.encode() in asked.body for asked in relay.at("/squid/1/"))

    def logs_of() -> dict[str, int]:
        return {
            letter: sum(b"eth_getLogs" in asked.body for asked in relay.at(f"/rpc/1/{letter.lower()}"))
            for letter in "ABC"
        }

    # More than five a minute, and each time of one endpoint alone.
    await until_async(lambda: logs_of()["A"] >= 7, "the chain's logs are asked for", 40)
    assert logs_of() == {"A": logs_of()["A"], "B": 0, "C": 0}
    assert all(LIST_QUERY.encode() in asked.body for asked in relay.at("/lists/1/"))
    ranges = [json.loads(asked.body)["params"][0] for asked in relay.at("/rpc/1/") if b"eth_getLogs" in asked.body]
    assert {(str(each["address"]), str(each["topics"])) for each in ranges} == {(str([CONTRACT]), str([[EVENT]]))}


async def look_at_a_bad_day(world: World, rows: Rows) -> None:
    orders = {
        "squid/1": ("lag", {"by": 15}),  # within 20 blocks
        "squid/42161": ("lag", {"by": 100}),  # 25 s, and not within one
        "squid/137": ("lag", {"by": 60}),  # more than 60 s
        "ppoi/1": ("lag", {"by": 5}),
        "hosted/1": ("status", {}),
        "rpc/56": ("status", {}),
    }
    began_ms = {check: len(of_check) for check, of_check in rows.items()}
    for target, (fault, parameters) in orders.items():
        await world.order(target, fault, **parameters)
    began = time.monotonic()
    wanted = {
        ("indexer", 42161): "catching-up/behind",
        ("indexer", 137): "degraded/behind",
        ("ppoi", 1): "catching-up/behind",
        ("hosted-indexer", 1): "unavailable/unreachable",
        ("indexer", 56): "unknown/incompatible-reference",
    }
    await world.until(lambda: {check: states(rows[check][-1:])[0] for check in wanted} == wanted, "all is bad")
    assert time.monotonic() - began < 40, "ppoi would be late only after 45 s, and a head too old after 60 s"
    since = {check: of_check[began_ms[check] :] for check, of_check in rows.items()}
    assert set(states(since["indexer", 1])) == {"current/synced"}
    assert "unknown/unreachable" not in states(since["hosted-indexer", 1])
    behind = [row for row in since["indexer", 137] if row["reason"] == "behind"]
    degraded = next(row for row in behind if row["status"] == "degraded")
    assert instant(degraded) - instant(behind[0]) >= 4_000, "the fifth evaluation, of one each second"


async def look_at_alerts(world: World, hook: Receiver, monitor: str) -> None:
    await until_async(lambda: bool(hook.items()), "a message")
    assert {(item["service"], item["chainId"]) for item in hook.items()} == {("indexer", 137)}
    assert all("https://status.acorn.example" in message.body for message in hook.accepted)

    async def is_given_up() -> bool:
        samples = await scrape(world.http, monitor.removeprefix("http://"))
        return samples["lookout_alert_messages_total", "given-up", "nobody"] > 0

    await until_async(is_given_up, "nobody takes the other message")


async def look_at_another_margin(folder: Path, world: World, rows: Rows) -> None:
    path = folder / "lookout.toml"
    path.write_text(path.read_text().replace("seen_s = 150", "seen_s = 150\nexpiry_margin_s = 86400"))
    done = await asyncio.to_thread(lookout_here, folder, "reload")
    assert (done.returncode, done.stdout) == (0, "reloaded lookout.toml\n  changed: broadcasters 1, broadcasters 137\n")
    await world.until(lambda: states(rows["broadcasters", 137][-1:]) == ["unavailable/unreachable"], "none answers")
