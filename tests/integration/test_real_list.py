"""A real list: a squid's GraphQL server over PostgreSQL, beside a chain of ganache whose contract emits Nullified.
A row is cut out by SQL, and put back (S17, S18, S20)."""

import json
import logging
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

import pytest
from Crypto.Hash import keccak

from lookout.base.sockets import a_free_port
from tests.cases import text_of
from tests.commands import LOOKOUT
from tests.nodejs import find_node, find_npm
from tests.postgres import Postgres, Programs, a_postgres, from_debian

_log: Final = logging.getLogger("tests.real_list")
NULLIFIED: Final = "0x781745c57906dc2f175fec80a9c691744c91c48a34a83672c41c2604774eb11f"
PACKAGES: Final = ("ganache@7.9.2", "@subsquid/openreader@5.3.0", "@subsquid/graphql-server@4.11.0")
_CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lookout-tests" / "real-list"
_SCHEMA: Final = """
type Transaction @entity {
  id: ID!  blockNumber: BigInt! @index  transactionHash: Bytes!  nullifiers: [Bytes!]!  verificationHash: Bytes!
}
"""
_TABLES: Final = text_of("real-list.sql")
# The first of two entries of the newest transaction that has two.
_CUT: Final = """
DELETE FROM transaction WHERE id = (SELECT min(id) FROM transaction WHERE transaction_hash =
  (SELECT transaction_hash FROM transaction GROUP BY 1 HAVING count(*) = 2 ORDER BY max(block_number) DESC LIMIT 1))
"""
# Emits the event with what the contract is called with.
_EMIT: Final = f"7f{NULLIFIED[2:]}366000a1"
_QUERY: Final = (
    "query($from: BigInt!, $to: BigInt!) { transactions(where: {blockNumber_gte: $from, blockNumber_lte: $to},"
    " orderBy: blockNumber_ASC, limit: 1000) { transactionHash } }"
)


def _installed() -> Path:
    if not (_CACHE / "node_modules" / "@subsquid" / "graphql-server").is_dir():
        _CACHE.mkdir(parents=True, exist_ok=True)
        command = [find_npm(), "install", "--no-audit", "--no-fund", "--prefix", str(_CACHE), *PACKAGES]
        if subprocess.run(command, check=False, timeout=900).returncode:
            pytest.skip("the packages of ganache and SQD cannot be installed here")
    return _CACHE / "node_modules" / ".bin"


@contextmanager
def _process(command: list[str | Path], log: Path, **more: Any) -> Iterator[None]:
    with log.open("w") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, **more)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def _post(url: str, document: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(document).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - on this machine
        return json.load(answer)


def _until(holds: Callable[[], Any], what: str, within_s: float) -> float:
    """How long it took."""
    began = time.monotonic()
    while True:
        try:
            if holds():
                return time.monotonic() - began
        except OSError:
            pass
        assert time.monotonic() - began < within_s, what
        time.sleep(1)


class Chain:
    """Ganache, with two contracts: one emits once, the other twice."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.account = self.call("eth_accounts")[0]
        self.once, self.twice = self.deploy(_EMIT), self.deploy(_EMIT * 2)
        self.sent = 0

    def call(self, method: str, *params: Any) -> Any:
        answer = _post(self.url, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert "result" in answer, answer
        return answer["result"]

    def deploy(self, emits: str) -> str:
        code = "3660006000" + "37" + emits + "00"
        size = len(code) // 2
        init = f"60{size:02x}600c60003960{size:02x}6000f3"
        sent = self.call("eth_sendTransaction", {"from": self.account, "data": f"0x{init}{code}", "gas": "0x100000"})
        _until(lambda: self.call("eth_getTransactionReceipt", sent), "deployed", 60)
        return str(self.call("eth_getTransactionReceipt", sent)["contractAddress"])

    def send(self) -> None:
        self.sent += 1
        to = self.twice if self.sent % 2 else self.once
        call = {"from": self.account, "to": to, "data": f"0x{self.sent:064x}", "gas": "0x100000"}
        self.call("eth_sendTransaction", call)


class Indexer:
    """What fills the list's tables, as a squid's processor does."""

    def __init__(self, chain: Chain, postgres: Postgres, database: str) -> None:
        self.chain, self.postgres, self.database = chain, postgres, database
        self.height, self.last = 0, b""

    def ask(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self.postgres.ask(self.database, statement, *parameters)

    def index(self) -> None:
        head = int(self.chain.call("eth_blockNumber"), 16)
        wanted = {"fromBlock": hex(self.height + 1), "toBlock": hex(head), "topics": [NULLIFIED]}
        for number, log in enumerate(self.chain.call("eth_getLogs", wanted) if head > self.height else []):
            block, value = int(log["blockNumber"], 16), (int(log["data"], 16) * 10 + number % 7).to_bytes(32)
            self.last = keccak.new(digest_bits=256, data=self.last + value).digest()
            place = int(log["transactionIndex"], 16), int(log["logIndex"], 16)
            entry_id = f"0x{block:064x}{place[0]:064x}{place[1]:064x}"
            transaction = bytes.fromhex(log["transactionHash"][2:])
            row = (entry_id, block, transaction, [value], self.last)
            self.ask("INSERT INTO transaction VALUES (%s, %s, %s, %s, %s)", *row)
        self.ask("UPDATE squid_processor.status SET height = %s", head)
        self.height = head


def _config(chain: Chain, list_url: str, rpc: str, listen: str) -> str:
    return f"""
[server]
listen = "{listen}"
[admin]
monitor = ""
server = ""
[[chains]]
id = 1337
name = "ganache"
rpc = ["{rpc}"]
block_time_s = 1
[[indexer]]
chain = 1337
kind = "squid"
url = "{list_url}"
confirmations = 2
links = {{}}
[indexer.complete]
contracts = ["{chain.once}", "{chain.twice}"]
events = ["{NULLIFIED}"]
first_block = 1
each = true
endpoints = 1
requests_per_minute = 60
query = "{_QUERY}"
pointer = "/transactions/*/transactionHash"
"""


@pytest.mark.long
@pytest.mark.clause("S17", "S18", "S20")
def test_rows_that_are_cut_out_of_a_squid_by_sql_are_found_and_it_ends_when_they_are_back(tmp_path: Path) -> None:
    node, programs = find_node(), _installed()
    rpc_port, list_port, listen = a_free_port(), a_free_port(), f"127.0.0.1:{a_free_port()}"
    rpc, list_url = f"http://127.0.0.1:{rpc_port}", f"http://127.0.0.1:{list_port}/graphql"
    (tmp_path / "schema.graphql").write_text(_SCHEMA)
    ganache: list[str | Path] = [
        node,
        str(programs / "ganache"),
        "--chain.chainId=1337",
        "--miner.blockTime=1",
        f"--port={rpc_port}",
    ]
    with a_postgres(cast("Programs", from_debian().values[0])) as postgres, _process(ganache, tmp_path / "ganache.log"):
        _until(lambda: _post(rpc, {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}), "ganache", 120)
        database = postgres.a_database()
        postgres.ask(database, _TABLES)
        chain = Chain(rpc)
        indexer = Indexer(chain, postgres, database)
        of_database = {
            "DB_URL": f"postgres://postgres@localhost/{database}?host={postgres.folder}",
            "GQL_PORT": str(list_port),
        }
        reader: list[str | Path] = [node, str(programs / "squid-graphql-server")]
        with _process(reader, tmp_path / "reader.log", env={**os.environ, **of_database}, cwd=tmp_path):
            (tmp_path / "lookout.toml").write_text(_config(chain, list_url, rpc, listen))
            with _process(
                [LOOKOUT, "run", "-c", str(tmp_path / "lookout.toml")], tmp_path / "lookout.log", cwd=tmp_path
            ):
                _cut_and_put_back(chain, indexer, f"http://{listen}/api/v1/protocol/liveness")


def _cut_and_put_back(chain: Chain, indexer: Indexer, url: str) -> None:
    seconds = count()

    def row() -> Any:
        """The published one, while chain and indexer go on."""
        if next(seconds) % 3 == 0:
            chain.send()
        indexer.index()
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310
            checks = json.load(answer)["checks"]
        return next(row for row in checks if row["service"] == "indexer")

    def reason() -> str:
        return str(row()["reason"])

    _until(lambda: reason() == "synced", "current", 180)
    settled_at = time.monotonic() + 100
    _until(lambda: reason() and time.monotonic() > settled_at, "entries that are final", 300)
    assert reason() == "synced"
    indexer.ask("CREATE TABLE cut AS SELECT * FROM transaction")
    indexer.ask(_CUT)
    broke_s = _until(lambda: row()["metrics"].get("breaks") == 1, "the break", 600)
    lacked_s = _until(lambda: row()["metrics"].get("missing") == 1, "the missing entry", 600)
    indexer.ask("INSERT INTO transaction SELECT * FROM cut ON CONFLICT DO NOTHING")
    whole_s = _until(lambda: reason() == "synced", "current again", 300)
    _log.warning(f"break after {broke_s:.0f} s, missing {lacked_s:.0f} s later, whole after {whole_s:.0f} s")
