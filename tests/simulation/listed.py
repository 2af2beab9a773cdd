"""One chain with three endpoints, an indexer whose list has a running hash, and a ppoi node beside it: upstreams for
the real monitor on a clock that does not wait."""

import asyncio
import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from Crypto.Hash import keccak
from yarl import URL

from lookout.protocols.client.request import Request
from tests.builders import NOON
from tests.simulation.lists import Outcome
from tests.unit.running_monitor import FastClock
from tests.unit.simulated_upstreams import BASE, Life, Stored, live

CHAIN: Final = 42161
CONTRACT: Final = "0xfa7093cdd9ee6932b4eb2c9e1cde7ce00b1fa4b9"
NULLIFIED: Final = "0x781745c57906dc2f175fec80a9c691744c91c48a34a83672c41c2604774eb11f"
_QUERY: Final = (
    "query($from: BigInt!, $to: BigInt!) { transactions(where: {blockNumber_gte: $from, blockNumber_lte: $to},"
    " limit: 1000) { transactionHash } }"
)
_COMPLETE: Final = f"""
[indexer.complete]
contracts = ["{CONTRACT}"]
events = ["{NULLIFIED}"]
first_block = FIRST
each = true
query = "{_QUERY}"
pointer = "/transactions/*/transactionHash"
"""
_FIRST: Final = 400_000
_BLOCK_MS: Final = 250
_MINUTES: Final = 90
_ENDS: Final = 12  # minutes in which a report ends, also beside a balancer
_BLOCKS_BEFORE: Final = 40_000  # with entries, when a world begins
_REBUILDS_BY: Final = 20  # times as fast as the chain
_ENTRIES_BEFORE: Final = 61_000  # that the list does not give here


class Row(NamedTuple):
    """An entry of the list, and its hash."""

    id: str
    block: int
    transaction: str
    value: str
    hash: str


class Listed:
    """What is so at an instant; a story changes it."""

    def __init__(self, first_height: int, block_ms: int, seed: int = 0) -> None:
        self.chance = Random(seed)
        self.clock = FastClock()
        self.first_height, self.block_ms = first_height, block_ms
        self.rows: list[Row] = []
        self.lost: set[str] = set()
        self.lag = 0  # blocks, of the indexer
        self.rebuilt_at: int | None = None
        self.replica_lag: int | None = None  # of the other one behind the balancer
        self.short_fields = False
        self.drops_logs = False  # one of the endpoints
        self.reorganised = 0  # blocks, of the head
        self.node_lacks = 0
        self.node_late = 0  # entries that the node has not read yet

    def follow(self, clock: FastClock) -> "Listed":
        """Another monitor lives in it, by its clock."""
        self.clock = clock
        return self

    def head(self) -> int:
        return self.first_height + (self.clock.now() - NOON) // self.block_ms - self.reorganised

    def add(self, block: int, entries: int) -> list[Row]:
        """The entries of one transaction."""
        number, added = len(self.rows), []
        for place in range(entries):
            value, before = f"{len(self.rows) + 1:064x}", self.rows[-1].hash if self.rows else ""
            running = keccak.new(digest_bits=256, data=bytes.fromhex(before + value)).hexdigest()
            row = Row(f"0x{block:064x}{0:064x}{place:064x}", block, f"0x{number:064x}", value, running)
            self.rows.append(row)
            added.append(row)
        return added

    def visible(self, height: int) -> list[Row]:
        return [row for row in self.rows if row.block <= height and row.id not in self.lost]

    async def answer(self, request: Request) -> bytes:
        path, asked = URL(request.url).path, json.loads(request.body or b"{}")
        await asyncio.sleep(0.1)
        if path.startswith("/rpc"):
            return _reply({"jsonrpc": "2.0", "id": asked["id"], "result": self._call(path, asked)})
        if path == "/ppoi":
            return _reply({"jsonrpc": "2.0", "id": asked["id"], "result": self._node()})
        behind = self.lag + (self.chance.choice((0, self.replica_lag)) if self.replica_lag is not None else 0)
        height = self.head() - 10 - behind
        if self.rebuilt_at is not None:
            indexed = (self.clock.now() - self.rebuilt_at) * _REBUILDS_BY // self.block_ms
            height = min(height, self.first_height - _BLOCKS_BEFORE + indexed)
        return _reply({"data": self._list(asked["query"], asked.get("variables") or {}, height)})

    def _call(self, path: str, asked: Mapping[str, Any]) -> Any:
        match asked["method"]:
            case "eth_chainId":
                return hex(CHAIN)
            case "eth_getBlockByNumber":
                return {"number": hex(self.head()), "timestamp": hex(self.clock.now() // 1000)}
            case _:
                wanted = asked["params"][0]
                first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
                drops = self.drops_logs and path.endswith("a")
                rows = (row for row in self.rows if first <= row.block <= last and not (drops and row.block % 2))
                return [_log(row, number) for number, row in enumerate(rows)]

    def _node(self) -> Any:
        index = _ENTRIES_BEFORE + len(self.visible(self.head() - 10)) - 1 - self.node_lacks - self.node_late
        status = {"validatedTxidIndex": index, "currentTxidIndex": index}
        network = {"txidStatus": status, "listStatuses": {"a list": {}}}
        return {"forNetwork": {"Arbitrum": network}, "listKeys": ["a list"]}

    def _list(self, query: str, variables: Mapping[str, Any], height: int) -> Any:
        rows = self.visible(height)
        if "squidStatus" in query:
            return {"squidStatus": {"height": height}}
        if "totalCount" in query:
            count = _ENTRIES_BEFORE + bisect_right(rows, int(variables["to"]), key=lambda row: row.block)
            return {"transactionsConnection": {"totalCount": count}}
        if "id" in variables:
            begin = bisect_left(rows, variables["id"], key=lambda row: row.id)
            return {"transactions": [self._show(row) for row in rows[begin : begin + 1_000]]}
        first, last = int(variables["from"]), int(variables["to"])
        return {"transactions": [{"transactionHash": row.transaction} for row in rows if first <= row.block <= last]}

    def lacks_fields(self, row: Row) -> bool:
        return self.short_fields and int(row.value, 16) % 5 == 0

    def _show(self, row: Row) -> dict[str, Any]:
        return {
            "id": row.id,
            "blockNumber": str(row.block),
            "transactionHash": row.transaction,
            "nullifiers": []
            if self.lacks_fields(row)
            else [f"0x{row.value.lstrip('0')}"],  # leading zeros are left out
            "verificationHash": f"0x{row.hash}",
        }


def _reply(document: Any) -> bytes:
    return json.dumps(document).encode()


def _log(row: Row, number: int) -> dict[str, Any]:
    return {
        "address": CONTRACT,
        "topics": [NULLIFIED],
        "blockNumber": hex(row.block),
        "blockHash": f"0x{row.block:064x}",
        "transactionHash": row.transaction,
        "logIndex": hex(number),
    }


def a_listed_config(block_ms: int, compared_from: int | None = None) -> str:
    rpc = ", ".join(f'"{BASE}/rpc/{letter}"' for letter in "abc")
    complete = "" if compared_from is None else _COMPLETE.replace("FIRST", str(compared_from))
    return f"""
[store]
url = "sqlite:lookout.db"
[admin]
monitor = ""
server = ""
[[chains]]
id = {CHAIN}
rpc = [{rpc}]
block_time_s = {block_ms / 1000}
[[indexer]]
chain = {CHAIN}
kind = "squid"
url = "{BASE}/squid"
confirmations = 10
links = {{}}
{complete}
[ppoi]
url = "{BASE}/ppoi"
required_list = "a list"
chains = [{CHAIN}]
agrees_with = "indexer"
"""


def live_monitor(folder: Path, seed: int) -> Outcome:
    """Let the real monitor live for an hour and a half where chain, indexer and node misbehave, and entries may be lost
    or a node keep an old tree; what is published has to be so."""
    chance, world = Random(seed), Listed(_FIRST, _BLOCK_MS, seed)
    for number in range(chance.randrange(5, 80)):
        world.add(_FIRST - _BLOCKS_BEFORE + 400 * number, chance.choice((1, 1, 2, 3)))
    store, problems, told, metrics = Stored(), list[str](), 0, set[str]()
    world.replica_lag = chance.choice((None, None, 30, 4_000))
    world.short_fields = chance.random() < 0.2
    last_lost = last_split = -_MINUTES  # minutes; it ends within five, or with both replicas
    split_at = chance.choice((1, 5, 20, _MINUTES))
    cannot_end = False  # an entry without its value proves nothing, nor that the links around it hold again (S20)

    async def story(_: Life) -> None:
        nonlocal told, last_lost, last_split
        for minute in range(_MINUTES):
            happen(minute)
            last_lost = minute if world.lost else last_lost
            last_split = minute if world.node_lacks else last_split
            await asyncio.sleep(60)
            for service in ("indexer", "ppoi"):
                row = store.row(service, CHAIN)
                found = {
                    key: row["metrics"][key] for key in ("missing", "extra", "breaks", "gap") if key in row["metrics"]
                }
                told += bool(found)
                metrics.update(found)
                if cannot_end:
                    found.pop("breaks", None)
                is_so = minute - last_lost <= _ENDS if service == "indexer" else minute - last_split <= _ENDS
                if "extra" in found or (found and not is_so):
                    problems.append(f"seed {seed}: minute {minute}: {service} {found}")

    def happen(minute: int) -> None:
        nonlocal cannot_end
        if chance.random() < 0.2:
            world.add(max(world.head(), world.rows[-1].block + 1), chance.choice((1, 1, 2, 3)))
        world.node_late = chance.choice((0, 0, 0, 1, 3)) if chance.random() < 0.3 else world.node_late
        if minute % 20 == 0:
            world.node_late = 0
            world.lag = chance.choice((0, 0, 0, 200, 20_000))
            world.drops_logs = chance.random() < 0.3
        if chance.random() < 0.01:
            world.rebuilt_at = world.clock.now()
        if chance.random() < 0.05:  # a reorganisation
            depth = chance.randrange(1, 100)
            while world.rows[-1].block > world.head() - depth:
                world.rows.pop()
        if chance.random() < 0.015:
            lost = chance.choice(world.rows[-8:])
            world.lost = {lost.id}
            cannot_end = cannot_end or world.lacks_fields(lost)
        elif world.lost and chance.random() < 0.03:
            world.lost = set()
        if minute == split_at:
            world.node_lacks = 4
        elif world.node_lacks and chance.random() < 0.004:
            world.node_lacks = 0

    live(folder, a_listed_config(_BLOCK_MS, _FIRST - _BLOCKS_BEFORE), story, store, make_place=world.follow)
    return Outcome(problems[0] if problems else "", told, _MINUTES / 60, frozenset(metrics))
