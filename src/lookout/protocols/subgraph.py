"""The Graph: a subgraph's own ``_meta``, or an index node asked about one deployment.

A subgraph that failed for good stays at its block, and its lag says so. Its errors are for the operator alone.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lookout.base.problem import Problem
from lookout.core.model import Blocks, FaultyBlocks
from lookout.protocols.answers import count, decimal, entries, graphql_answer, open_value, query, table
from lookout.protocols.client.failure import not_understood
from lookout.protocols.client.request import Request
from lookout.protocols.lists import CompleteTable, ListTable
from lookout.protocols.source import Protocol

_META_QUERY: Final = query("{ _meta { block { number } hasIndexingErrors } }")
_NO_BLOCK: Final = "not one deployment on one chain, with its latest block"


class SubgraphTable(ListTable, frozen=True):
    deployment: str = ""
    """If given, such as `"Qm…"`, `url` is an index node's, which is asked about this deployment."""

    def check_list(self, complete: CompleteTable) -> Iterator[Problem]:
        yield from super().check_list(complete)
        if self.deployment and not complete.url:
            yield Problem("url", "missing; an index node lists no transactions: name the subgraph's own address")


def _request(settings: SubgraphTable) -> Request:
    body = status_query(settings.deployment) if settings.deployment else _META_QUERY
    return Request("POST", settings.url, settings, body)


def parse_meta(body: bytes) -> Blocks:
    meta = table(graphql_answer(body).get("_meta"), "no _meta")
    block = table(meta.get("block"), "no block")
    kind = FaultyBlocks if open_value(meta.get("hasIndexingErrors")) is True else Blocks
    return kind(count(block.get("number"), "the block number"))


def status_query(deployment: str) -> bytes:
    named = msgspec.json.encode(deployment).decode()
    return query(
        f"{{ indexingStatuses(subgraphs: [{named}]) {{ health chains {{ network latestBlock {{ number }} }} }} }}"
    )


def parse_indexing_status(body: bytes) -> Blocks:
    """The latest block of the one deployment on its one chain; an index node writes numbers as strings."""
    statuses = entries(graphql_answer(body).get("indexingStatuses"), "no indexingStatuses")
    if not statuses:
        raise not_understood("the index node does not have the deployment")
    status = _only(statuses)
    block = table(_only(status.get("chains")).get("latestBlock"), _NO_BLOCK)
    if "number" not in block:
        raise not_understood(_NO_BLOCK)
    kind = FaultyBlocks if open_value(status.get("health")) in ("unhealthy", "failed") else Blocks
    return kind(decimal(block["number"], "the block number"))


def _only(value: Any) -> dict[str, Any]:
    """The only table in a list."""
    match entries(value, _NO_BLOCK):
        case [one]:
            return table(one, _NO_BLOCK)
        case _:
            raise not_understood(_NO_BLOCK)


SUBGRAPH: Final = Protocol(
    "subgraph",
    Blocks,
    SubgraphTable,
    request=_request,
    parse=lambda body, settings: parse_indexing_status(body) if settings.deployment else parse_meta(body),
)
