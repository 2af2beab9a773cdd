"""An indexer's list of transactions, as each kind of indexer has it."""

import json
import re
from typing import Final

from lookout.demo.sim.http.graphql import graphql_reply
from lookout.demo.sim.http.reply import UpstreamReply, json_reply, text_reply
from lookout.demo.sim.http.upstream import Asked, Upstream

_LONGEST: Final = 1_000  # as ``first: 1000`` or ``limit: 1000`` would cut it
_RANGE: Final = re.compile("/([0-9]{1,15})/([0-9]{1,15})")
_ONE_CHAIN: Final = re.compile(rb"chainId\s*:\s*(?:{\s*_eq\s*:\s*)?([0-9]+)")


def list_field(asked: Asked, address: str) -> dict[str, object]:
    """``transactions`` from the block $from to the block $to; nothing without such variables."""
    try:
        variables = json.loads(asked.body)["variables"]
        first, last = int(variables["from"]), int(variables["to"])
    except (ValueError, KeyError, TypeError):
        return {}
    return {"transactions": _list(asked, address, first, last)}


def named_chain(asked: Asked) -> int | None:
    """The chain that a query asks a node about which has many."""
    named = _ONE_CHAIN.search(asked.body)
    return None if named is None else int(named[1])


def shared_list_field(asked: Asked) -> dict[str, object]:
    """The list of the chain that is named, if the node has it."""
    address = f"{asked.address}/{named_chain(asked)}"
    upstreams = asked.upstreams
    has_it = address in upstreams.addresses and not upstreams.has(address, "missing-network", asked.at)
    return list_field(asked, address) if has_it else {}


def _list(asked: Asked, address: str, first: int, last: int) -> list[dict[str, object]]:
    events = asked.upstreams.listed(address, first, last, asked.at)
    return [{"transactionHash": each.transaction, "blockNumber": each.block} for each in events[:_LONGEST]]


def _ponder_reply(asked: Asked) -> UpstreamReply:
    return graphql_reply(
        asked.body, lambda _: {name: {"items": each} for name, each in shared_list_field(asked).items()}
    )


def _document_reply(asked: Asked) -> UpstreamReply:
    ends = _RANGE.fullmatch(asked.path)
    if ends is None:
        return text_reply("404 Not Found", 404)
    return json_reply({"transactions": _list(asked, asked.address, int(ends[1]), int(ends[2]))})


PONDER_LIST: Final = Upstream("POST", "/ponder/graphql", "ponder", _ponder_reply)
DOCUMENT_LIST: Final = Upstream("GET", "/json/{chain}/transactions{path:/.*}", "json/{chain}", _document_reply)
