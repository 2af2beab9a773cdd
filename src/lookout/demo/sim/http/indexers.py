"""The indexers in all their kinds: squid, subgraph, index node, Ponder, Envio, and a plain JSON document."""

import hashlib
from collections.abc import Sequence
from typing import Final

from lookout.demo.sim.http.graphql import graphql_reply
from lookout.demo.sim.http.lists import list_field, named_chain, shared_list_field
from lookout.demo.sim.http.reply import UpstreamReply, json_reply, text_reply
from lookout.demo.sim.http.upstream import Asked, Upstream
from lookout.demo.sim.upstreams import Indexed

_NAMES: Final = {1: "mainnet", 56: "bsc", 137: "polygon", 42161: "arbitrum-one", 11155111: "sepolia"}
_NOT_STARTED: Final = (
    "Store error: query execution failed: Subgraph `{}` has not started syncing yet."
    " Wait for it to ingest a few blocks before querying it"
)
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def deployment(chain_id: int) -> str:
    """The name under which the index node knows a chain's subgraph."""
    number = int.from_bytes(b"\x12\x20" + hashlib.sha256(f"subgraph/{chain_id}".encode()).digest())
    characters = ""
    while number:
        number, rest = divmod(number, 58)
        characters = _BASE58[rest] + characters
    return characters


def _squid_reply(asked: Asked) -> UpstreamReply:
    height = asked.upstreams.indexed(asked.address, asked.at).height
    return _status_reply(asked, "squidStatus", {"height": height})


def _subgraph_reply(asked: Asked) -> UpstreamReply:
    indexed = asked.upstreams.indexed(asked.address, asked.at)
    if not indexed.has_blocks:
        return json_reply({"errors": [{"message": _NOT_STARTED.format(deployment(indexed.chain_id))}]})
    meta = {
        "block": {
            "number": indexed.height,
            "timestamp": indexed.block_at // 1000,
            "hash": "0x" + hashlib.sha256(f"{indexed.chain_id}/{indexed.height}".encode()).hexdigest(),
        },
        "deployment": deployment(indexed.chain_id),
        "hasIndexingErrors": False,
    }
    return _status_reply(asked, "_meta", meta)


def _status_reply(asked: Asked, name: str, status: dict[str, object]) -> UpstreamReply:
    without_status = asked.upstreams.has(asked.address, "null-status", asked.at)
    document = {name: status} | list_field(asked, asked.address)
    return graphql_reply(asked.body, lambda _: document, nulled=name if without_status else None)


def _index_node_reply(asked: Asked) -> UpstreamReply:
    """The deployments that were asked for, as far as there are such; all of them when none was named."""
    chains = asked.upstreams.indexed_by(asked.address, asked.at)
    statuses = {deployment(indexed.chain_id): _indexing_status(indexed) for indexed in chains}

    def answer(named: Sequence[str]) -> dict[str, object]:
        return {"indexingStatuses": [statuses[each] for each in named or statuses if each in statuses]}

    return graphql_reply(asked.body, answer)


def _ponder_reply(asked: Asked) -> UpstreamReply:
    match asked.path:
        case "/status":
            chains = asked.upstreams.indexed_by(asked.address, asked.at)
            return json_reply(
                {_name(indexed.chain_id): _ponder_status(indexed) for indexed in chains if indexed.has_blocks}
            )
        case "/ready" | "/health":
            return UpstreamReply(b"", "text/plain")
        case _:
            return text_reply("404 Not Found", 404)


def _envio_reply(asked: Asked) -> UpstreamReply:
    """The chain that was asked for, if it is there; all of them when none was named."""
    named = named_chain(asked)
    chains = asked.upstreams.indexed_by(asked.address, asked.at)
    wanted = [_envio_meta(each) for each in chains if named is None or each.chain_id == named]
    return graphql_reply(asked.body, lambda _: {"_meta": wanted} | shared_list_field(asked))


def _document_reply(asked: Asked) -> UpstreamReply:
    indexed = asked.upstreams.indexed(asked.address, asked.at)
    last_block = indexed.height if indexed.has_blocks else None
    return json_reply({"status": {"chainId": indexed.chain_id, "lastBlock": last_block}})


def _indexing_status(indexed: Indexed) -> dict[str, object]:
    latest_block = {"number": str(indexed.height)} if indexed.has_blocks else None
    return {
        "subgraph": deployment(indexed.chain_id),
        "synced": indexed.has_blocks,
        "health": "healthy",
        "fatalError": None,
        "chains": [{"network": _name(indexed.chain_id), "latestBlock": latest_block}],
    }


def _ponder_status(indexed: Indexed) -> dict[str, object]:
    return {"id": indexed.chain_id, "block": {"number": indexed.height, "timestamp": indexed.block_at // 1000}}


def _envio_meta(indexed: Indexed) -> dict[str, object]:
    return {
        "chainId": indexed.chain_id,
        "startBlock": 0,
        "endBlock": None,
        "progressBlock": indexed.height,
        "bufferBlock": indexed.height,
        "sourceBlock": indexed.height,
        "isReady": indexed.has_blocks,
    }


def _name(chain_id: int) -> str:
    return _NAMES.get(chain_id, f"chain-{chain_id}")


SQUID: Final = Upstream("POST", "/{family:squid|hosted}/{chain}/graphql", "{family}/{chain}", _squid_reply)
SUBGRAPH: Final = Upstream("POST", "/subgraph/{chain}", "subgraph/{chain}", _subgraph_reply)
INDEX_NODE: Final = Upstream("POST", "/index-node/graphql", "index-node", _index_node_reply)
PONDER: Final = Upstream("GET", "/ponder{path:/.*}", "ponder", _ponder_reply)
ENVIO: Final = Upstream("POST", "/envio/v1/graphql", "envio", _envio_reply)
DOCUMENT: Final = Upstream("GET", "/json/{chain}", "json/{chain}", _document_reply)
