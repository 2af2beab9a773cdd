"""Recorded answers of the upstreams, and parsers as the tests call them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from lookout.protocols import evm, messaging, ppoi
from lookout.protocols.broadcasters.source import parse_messages, parse_page
from lookout.protocols.http import HttpTable
from lookout.protocols.json_pointer import JsonTable
from lookout.protocols.jsonrpc import JsonRpcTable
from lookout.protocols.protocol import Protocol
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.subgraph import SubgraphTable
from lookout.protocols.tables import KindTable

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
    "head": (evm.parse_block, "evm-block.json"),
    "chain id": (evm.parse_chain_id, "evm-chain-id.json"),
    "connected peers": (messaging.parse_connected, "waku-peers-connected.json"),
    "known peers": (messaging.parse_known, "waku-peers-known-numbers.json"),
    "store": (parse_page, "waku-store-page.json"),
    "relay": (parse_messages, "waku-relay-messages.json"),
}
