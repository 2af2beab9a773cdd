"""Envio (HyperIndex 2.28 and later): ``_meta`` has the last block that was written of each of its chains."""

from typing import Final

from lookout.core.model import Blocks, Nothing
from lookout.protocols.answers import count, entries, graphql_answer, number, open_value, query, table
from lookout.protocols.client.request import Request
from lookout.protocols.lists import ListTable
from lookout.protocols.source import Protocol

_BEFORE_THE_FIRST_BATCH: Final = -1


def meta_query(chain_id: int | None) -> bytes:
    return query(f"{{ _meta(where: {{chainId: {{_eq: {chain_id}}}}}) {{ chainId progressBlock startBlock }} }}")


def parse_meta(body: bytes, chain_id: int | None) -> Blocks | Nothing:
    """Until its first batch is written, an indexer is at -1 or at the block before its first."""
    for chain in entries(graphql_answer(body).get("_meta"), "no _meta"):
        entry = table(chain, "no _meta of a chain")
        # Hasura, which answers for it, writes a number as text where the column has 64 bits.
        if number(entry.get("chainId"), "a chain's id") != chain_id:
            continue
        progress = open_value(entry.get("progressBlock"))
        if type(progress) is int and progress == _BEFORE_THE_FIRST_BATCH:
            return Nothing()
        position = count(progress, "the progress block")
        return Nothing() if position < count(entry.get("startBlock"), "the start block") else Blocks(position)
    return Nothing()


ENVIO: Final = Protocol(
    "envio",
    Blocks,
    ListTable,
    request=lambda settings: Request("POST", settings.url, settings, meta_query(settings.chain)),
    parse=lambda body, settings: parse_meta(body, settings.chain),
)
