"""Recorded answers of the upstreams, and parsers as the tests call them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from lookout.protocols import evm, json_pointer, messaging, ponder, ppoi, squid, subgraph
from lookout.protocols.broadcasters.source import parse_messages, parse_page

FOLDER: Final = Path(__file__).parent.parent.parent / "data" / "sources"
REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"


def recorded(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


PARSERS: Final[dict[str, tuple[Callable[[bytes], object], str]]] = {
    "ppoi": (
        partial(ppoi.parse_node_status, networks=ppoi.NETWORKS, required_list=REQUIRED_LIST),
        "ppoi-node-status.json",
    ),
    "squid": (squid.parse_status, "squid-status.json"),
    "subgraph": (subgraph.parse_meta, "subgraph-meta.json"),
    "index node": (subgraph.parse_indexing_status, "subgraph-indexing-status.json"),
    "ponder": (partial(ponder.parse_status, chain_id=1), "ponder-status.json"),
    "own indexer": (partial(json_pointer.parse_document, pointer="/mainnet/block/number"), "ponder-status.json"),
    "head": (evm.parse_block, "evm-block.json"),
    "chain id": (evm.parse_chain_id, "evm-chain-id.json"),
    "connected peers": (messaging.parse_connected, "waku-peers-connected.json"),
    "known peers": (messaging.parse_known, "waku-peers-known-numbers.json"),
    "store": (parse_page, "waku-store-page.json"),
    "relay": (parse_messages, "waku-relay-messages.json"),
}
