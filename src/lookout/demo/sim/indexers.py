"""The indexers in all their kinds: squid, subgraph, index node, Ponder, Envio, and a plain JSON document.

GraphQL is canned: the queries of Lookout's protocols are known by their fields and variables, and any other query is an
error.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from lookout.demo.sim.chain import ListEntry
from lookout.demo.sim.upstream import Asked, Upstream, UpstreamReply, json_reply, text_reply
from lookout.demo.sim.world import Indexed

_LONGEST_LIST: Final = 1_000  # as ``first: 1000`` or ``limit: 1000`` would cut it
_RANGE: Final = re.compile("/transactions/([0-9]{1,15})/([0-9]{1,15})")
_ARGUMENTS: Final = re.compile(r"\([^()]*\)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_ONE_CHAIN: Final = re.compile(r"chainId\s*:\s*(?:{\s*_eq\s*:\s*)?([0-9]+)")
_CHAIN_NAMES: Final = {1: "mainnet", 56: "bsc", 137: "polygon", 42161: "arbitrum-one", 11155111: "sepolia"}
_NOT_STARTED: Final = (
    "Store error: query execution failed: Subgraph `{}` has not started syncing yet."
    " Wait for it to ingest a few blocks before querying it"
)
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class _Query(NamedTuple):
    """A GraphQL request; ``fields`` are the names outside of its arguments, the outermost first."""

    text: str
    fields: tuple[str, ...]
    variables: Mapping[str, Any]

    @property
    def chain_id(self) -> int | None:
        named = _ONE_CHAIN.search(self.text)
        return None if named is None else int(named[1])


class _Known(NamedTuple):
    """A field that can be asked for, with the names of those beneath it, and the answer."""

    beneath: str
    answer: object


def deployment(chain_id: int) -> str:
    number = int.from_bytes(b"\x12\x20" + hashlib.sha256(f"subgraph/{chain_id}".encode()).digest())
    characters = ""
    while number:
        number, rest = divmod(number, 58)
        characters = _BASE58[rest] + characters
    return characters


def _parse_query(body: bytes) -> _Query:
    try:
        request = json.loads(body)
        text, variables = str(request["query"]), request.get("variables") or {}
    except (ValueError, KeyError, TypeError):
        return _Query("", (), {})
    _, _, selection = _ARGUMENTS.sub("", text).partition("{")
    return _Query(text, tuple(_NAME.findall(selection)), variables)


def _graphql_reply(query: _Query, known: Mapping[str, _Known]) -> UpstreamReply:
    outermost = query.fields[0] if query.fields else ""
    field = known.get(outermost)
    allowed = () if field is None else (outermost, *field.beneath.split())
    unknown = [name for name in query.fields if name not in allowed]
    if field is None or unknown:
        message = f'Cannot query field "{unknown[0]}".' if unknown else "the body has no query"
        return json_reply({"errors": [{"message": message, "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"}}]}, 400)
    return json_reply({"data": {outermost: field.answer}})


def _list_of(asked: Asked, query: _Query, address: str) -> dict[str, _Known]:
    """``transactions`` from the block $from to the block $to, or from the entry $id on, or how many there are up to the
    block $to; nothing without such variables."""
    match dict(query.variables):
        case {"id": str(entry_id)}:
            entries = asked.world.entries_from(address, entry_id, asked.at)[:_LONGEST_LIST]
            beneath = "id blockNumber transactionHash nullifiers verificationHash"
            return {"transactions": _Known(beneath, [_describe(entry) for entry in entries])}
        case {"to": to, **others} if not others:
            count = asked.world.count_listed(address, int(to), asked.at)
            return {"transactionsConnection": _Known("totalCount", {"totalCount": count})}
    try:
        first, last = int(query.variables["from"]), int(query.variables["to"])
    except (ValueError, KeyError, TypeError):
        return {}
    return {"transactions": _Known("transactionHash blockNumber items", _entries(asked, address, first, last))}


def _shared_list(asked: Asked, query: _Query) -> dict[str, _Known]:
    address, world = f"{asked.address}/{query.chain_id}", asked.world
    has_chain = address in world.addresses and not world.has(address, "missing-network", asked.at)
    return _list_of(asked, query, address) if has_chain else {}


def _entries(asked: Asked, address: str, first: int, last: int) -> list[dict[str, object]]:
    events = asked.world.listed(address, first, last, asked.at)
    return [{"transactionHash": event.transaction, "blockNumber": event.block} for event in events[:_LONGEST_LIST]]


def _describe(entry: ListEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "blockNumber": str(entry.block),
        "transactionHash": entry.transaction,
        "nullifiers": [entry.value],
        "verificationHash": entry.hash,
    }


def _status_reply(asked: Asked, name: str, beneath: str, status: object) -> UpstreamReply:
    query = _parse_query(asked.body)
    if asked.world.has(asked.address, "null-status", asked.at):
        error = {"message": "Cannot return null for non-nullable field.", "path": [name]}
        return json_reply({"errors": [error], "data": {name: None}})
    return _graphql_reply(query, {name: _Known(beneath, status)} | _list_of(asked, query, asked.address))


def _squid_reply(asked: Asked) -> UpstreamReply:
    height = asked.world.indexed(asked.address, asked.at).height
    return _status_reply(asked, "squidStatus", "height", {"height": height})


def _subgraph_reply(asked: Asked) -> UpstreamReply:
    indexed = asked.world.indexed(asked.address, asked.at)
    if not indexed.has_blocks:
        return json_reply({"errors": [{"message": _NOT_STARTED.format(deployment(indexed.chain_id))}]})
    block = {"number": indexed.height, "timestamp": indexed.block_at // 1000}
    has_errors = asked.world.has(asked.address, "indexing-errors", asked.at)
    meta = {"block": block, "hasIndexingErrors": has_errors}
    return _status_reply(asked, "_meta", "block number timestamp hasIndexingErrors", meta)


def _index_node_reply(asked: Asked) -> UpstreamReply:
    """The deployments that are named, as far as the node has them."""
    query = _parse_query(asked.body)
    named = query.text + json.dumps(query.variables)
    statuses = [
        _indexing_status(indexed)
        for indexed in asked.world.indexed_by(asked.address, asked.at)
        if deployment(indexed.chain_id) in named
    ]
    beneath = "subgraph synced health fatalError message deterministic block chains network latestBlock number"
    return _graphql_reply(query, {"indexingStatuses": _Known(beneath, statuses)})


def _indexing_status(indexed: Indexed) -> dict[str, object]:
    latest_block = {"number": str(indexed.height)} if indexed.has_blocks else None
    return {
        "subgraph": deployment(indexed.chain_id),
        "synced": indexed.has_blocks,
        "health": "healthy",
        "fatalError": None,
        "chains": [{"network": _CHAIN_NAMES.get(indexed.chain_id), "latestBlock": latest_block}],
    }


def _ponder_reply(asked: Asked) -> UpstreamReply:
    match asked.method, asked.path:
        case "GET", "/status":
            chains = asked.world.indexed_by(asked.address, asked.at)
            return json_reply(
                {_CHAIN_NAMES[chain.chain_id]: _ponder_status(chain) for chain in chains if chain.has_blocks}
            )
        case "GET", "/ready" | "/health":
            return UpstreamReply(b"", "text/plain")
        case "POST", "/graphql":
            query = _parse_query(asked.body)
            lists = _shared_list(asked, query).items()
            in_items = {name: known._replace(answer={"items": known.answer}) for name, known in lists}
            return _graphql_reply(query, in_items)
        case _:
            return text_reply("404 Not Found", 404)


def _ponder_status(indexed: Indexed) -> dict[str, object]:
    return {"id": indexed.chain_id, "block": {"number": indexed.height, "timestamp": indexed.block_at // 1000}}


def _envio_reply(asked: Asked) -> UpstreamReply:
    query = _parse_query(asked.body)
    entries = [
        {
            "chainId": indexed.chain_id,
            "startBlock": 0,
            "progressBlock": indexed.height,
            "sourceBlock": indexed.height,
            "isReady": indexed.has_blocks,
        }
        for indexed in asked.world.indexed_by(asked.address, asked.at)
        if query.chain_id in (None, indexed.chain_id)
    ]
    meta = _Known("chainId startBlock progressBlock sourceBlock isReady", entries)
    return _graphql_reply(query, {"_meta": meta} | _shared_list(asked, query))


def _document_reply(asked: Asked) -> UpstreamReply:
    if ends := _RANGE.fullmatch(asked.path):
        return json_reply({"transactions": _entries(asked, asked.address, int(ends[1]), int(ends[2]))})
    if asked.path:
        return text_reply("404 Not Found", 404)
    indexed = asked.world.indexed(asked.address, asked.at)
    last_block = indexed.height if indexed.has_blocks else None
    return json_reply({"status": {"chainId": indexed.chain_id, "lastBlock": last_block}})


SQUID: Final = Upstream("POST", "/{family:squid|hosted}/{chain}/graphql", "{family}/{chain}", _squid_reply)
SUBGRAPH: Final = Upstream("POST", "/subgraph/{chain}", "subgraph/{chain}", _subgraph_reply)
INDEX_NODE: Final = Upstream("POST", "/index-node/graphql", "index-node", _index_node_reply)
PONDER: Final = Upstream("*", "/ponder{path:/.*}", "ponder", _ponder_reply)
ENVIO: Final = Upstream("POST", "/envio/v1/graphql", "envio", _envio_reply)
DOCUMENT: Final = Upstream("GET", "/json/{chain:[0-9]+}{path:(?:/.*)?}", "json/{chain}", _document_reply)
