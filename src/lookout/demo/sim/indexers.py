"""The indexers: squids, and an indexer with a plain JSON document of its position.

GraphQL is canned: the variables of a query say what it asks for.
"""

import json
from typing import Final

from lookout.demo.sim.chain import ContractEvent, HashedEntry
from lookout.demo.sim.upstream import Asked, Upstream, UpstreamReply, json_reply

_LONGEST_LIST: Final = 1_000  # as ``limit: 1000`` would cut it


def _squid_reply(asked: Asked) -> UpstreamReply:
    return json_reply({"data": _squid_data(asked)})


def _squid_data(asked: Asked) -> dict[str, object]:
    """The status, the transactions of a range of blocks, the entries from an id on, or the number of entries up to a
    block."""
    world, address = asked.world, asked.address
    match json.loads(asked.body).get("variables"):
        case {"from": first, "to": last}:
            events = world.listed(address, int(first), int(last), asked.at)
            return {"transactions": [_describe_event(event) for event in events[:_LONGEST_LIST]]}
        case {"id": entry_id}:
            entries = world.entries_from(address, entry_id, asked.at)
            return {"transactions": [_describe_entry(entry) for entry in entries[:_LONGEST_LIST]]}
        case {"to": last}:
            return {"transactionsConnection": {"totalCount": world.count_listed(address, int(last), asked.at)}}
        case _:
            return {"squidStatus": {"height": world.indexed(address, asked.at).height}}


def _describe_event(event: ContractEvent) -> dict[str, object]:
    return {"transactionHash": event.transaction, "blockNumber": event.block}


def _describe_entry(entry: HashedEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "blockNumber": str(entry.block),
        "transactionHash": entry.transaction,
        "nullifiers": [entry.value],
        "verificationHash": entry.hash,
    }


def _document_reply(asked: Asked) -> UpstreamReply:
    indexed = asked.world.indexed(asked.address, asked.at)
    last_block = indexed.height if indexed.has_blocks else None
    return json_reply({"status": {"chainId": indexed.chain_id, "lastBlock": last_block}})


SQUID: Final = Upstream("POST", "/{family:squid|hosted}/{chain}/graphql", "{family}/{chain}", _squid_reply)
DOCUMENT: Final = Upstream("GET", "/json/{chain}", "json/{chain}", _document_reply)
