"""Recorded answers of the upstreams, and parsers as the tests call them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from lookout.protocols import evm, messaging, ppoi
from lookout.protocols.broadcasters.source import parse_messages, parse_page
from lookout.protocols.client.request import DIRECT, KindTable
from lookout.protocols.evm import parse_logs
from lookout.protocols.generic import HttpTable, JsonRpcTable, JsonTable
from lookout.protocols.lists import (
    SQUID_LINKS,
    CompleteTable,
    HashedList,
    TransactionList,
    parse_entries,
    parse_list,
)
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.source import Protocol
from lookout.protocols.squid import parse_count
from lookout.protocols.subgraph import SubgraphTable
from tests.builders import NOON

# What the recorded logs and list are of, and the blocks of the logs.
SHIELD: Final = "0x3a5b9dc26075a3801a6ddccf95fec485bb7500a91b44cec1add984c21ee6db3b"
TRANSACT: Final = "0x56a618cda1e34057b7f849a5792f6c8587a2dbe11c83d0254e72cb3daffda7d1"
CONTRACTS: Final = ("0xfa7093cdd9ee6932b4eb2c9e1cde7ce00b1fa4b9",)
EVENTS: Final = (SHIELD, TRANSACT)
FIRST: Final = 0x14E2A3F
LAST: Final = 0x14E2A44
TRANSACTION: Final = "0x992300f61a013e905fe21a974698a3ea6968912b884eeddf1b508551145bfc82"
OTHER_TRANSACTION: Final = "0xa4ef7efc0c74c6787ef1398cfd0835f65079c9c556e7e23cec7fc2930ba4cc56"
COMMITMENTS: Final = TransactionList(
    CompleteTable(
        contracts=CONTRACTS,
        events=EVENTS,
        first_block=0,
        query="query($from: Int!, $to: Int!) { commitments(from: $from, to: $to, limit: 1000) { transactionHash } }",
        pointer="/commitments/*/transactionHash",
    ),
    "http://127.0.0.1",
    DIRECT,
)
ENTRIES: Final = HashedList(SQUID_LINKS, "http://127.0.0.1", DIRECT)
FOLDER: Final = Path(__file__).parent.parent.parent / "data" / "sources"
REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"


def recorded(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


# Every protocol that is chosen by ``kind``, with settings for the answer that was recorded.
KIND_TABLES: Final[dict[str, KindTable]] = {
    "squid": KindTable(1, "squid", "http://127.0.0.1", 5),
    "subgraph": SubgraphTable(1, "subgraph", "http://127.0.0.1", 5),
    "index node": SubgraphTable(1, "subgraph", "http://127.0.0.1", 5, deployment="Qm1"),
    "ponder": KindTable(1, "ponder", "http://127.0.0.1", 5),
    "own indexer": JsonTable(1, "json", "http://127.0.0.1", 5, pointer="/mainnet/block/number"),
    "envio": KindTable(1, "envio", "http://127.0.0.1", 5),
    "node": KindTable(1, "evm", "http://127.0.0.1"),
    "http": HttpTable(None, "http", "http://127.0.0.1", pointer="/status", expect="ok"),
    "JSON-RPC": JsonRpcTable(None, "jsonrpc", "http://127.0.0.1", method="eth_supportedEntryPoints", pointer="/0"),
}


def parser_of(table: KindTable) -> Callable[[bytes], object]:
    protocol = PROTOCOLS[table.kind]
    assert isinstance(protocol, Protocol)
    return lambda body: protocol.parse(body, table)


PARSERS: Final[dict[str, tuple[Callable[[bytes], object], str]]] = {
    "ppoi": (
        partial(ppoi.parse_node_status, networks=ppoi.NETWORKS, required_list=REQUIRED_LIST),
        "ppoi-node-status.json",
    ),
    "squid": (parser_of(KIND_TABLES["squid"]), "squid-status.json"),
    "subgraph": (parser_of(KIND_TABLES["subgraph"]), "subgraph-meta.json"),
    "index node": (parser_of(KIND_TABLES["index node"]), "subgraph-indexing-status.json"),
    "ponder": (parser_of(KIND_TABLES["ponder"]), "ponder-status.json"),
    "own indexer": (parser_of(KIND_TABLES["own indexer"]), "ponder-status.json"),
    "envio": (parser_of(KIND_TABLES["envio"]), "envio-meta.json"),
    "node": (parser_of(KIND_TABLES["node"]), "evm-block-number.json"),
    "http": (parser_of(KIND_TABLES["http"]), "http-relayer.json"),
    "JSON-RPC": (parser_of(KIND_TABLES["JSON-RPC"]), "jsonrpc-entry-points.json"),
    "head": (partial(evm.parse_block, at=NOON), "evm-block.json"),
    "chain id": (evm.parse_chain_id, "evm-chain-id.json"),
    "logs": (partial(parse_logs, first=FIRST, last=LAST), "evm-logs.json"),
    "list": (partial(parse_list, of=COMMITMENTS), "squid-commitments.json"),
    "entries": (partial(parse_entries, of=ENTRIES), "squid-entries.json"),
    "count": (parse_count, "squid-count.json"),
    "connected peers": (messaging.parse_connected, "waku-peers-connected.json"),
    "known peers": (messaging.parse_known, "waku-peers-known-numbers.json"),
    "store": (parse_page, "waku-store-page.json"),
    "relay": (parse_messages, "waku-relay-messages.json"),
}
