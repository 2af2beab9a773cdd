"""The Graph: a subgraph's own ``_meta``, or an index node asked about one deployment.

``hasIndexingErrors``, ``health`` and ``fatalError`` are not asked for. They tell why a subgraph may have stopped, and
the row is about how far it is: the answer was understood, its block number is true, and a subgraph that failed for good
stays at its block, so that its lag says so. To call it unreachable would be wrong.
"""

from typing import Final

import msgspec

from lookout.core.model import Blocks
from lookout.sources.answers import count, decimal, entries, graphql_answer, query, table
from lookout.sources.failure import not_understood

META_QUERY: Final = query("{ _meta { block { number } } }")


def parse_meta(body: bytes) -> Blocks:
    meta = table(graphql_answer(body).get("_meta"), "no _meta")
    block = table(meta.get("block"), "no block")
    return Blocks(count(block.get("number"), "the block number"))


def status_query(deployment: str) -> bytes:
    named = msgspec.json.encode(deployment).decode()
    return query(f"{{ indexingStatuses(subgraphs: [{named}]) {{ chains {{ network latestBlock {{ number }} }} }} }}")


def parse_indexing_status(body: bytes) -> Blocks:
    """The latest block of the one deployment on its one chain; an index node writes numbers as strings."""
    statuses = entries(graphql_answer(body).get("indexingStatuses"), "no indexingStatuses")
    match statuses:
        case [{"chains": [{"latestBlock": {"number": number}}]}]:
            return Blocks(decimal(number, "the block number"))
        case []:
            raise not_understood("the index node does not have the deployment")
        case _:
            raise not_understood("no latest block of one chain")
