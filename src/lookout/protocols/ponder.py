"""Ponder: ``/status`` has the latest indexed block of each of its chains."""

import re
from typing import Final

from lookout.core.model import Blocks, Nothing
from lookout.protocols.answers import count, decode, table
from lookout.protocols.client.request import Request, below
from lookout.protocols.lists import ListTable
from lookout.protocols.source import Protocol


class PonderTable(ListTable, frozen=True):
    def list_url(self) -> str:
        """The path of a new Ponder project, beside the status."""
        return below(re.sub(r"/status/*(?=\?|$)", "", self.url), "/graphql")


def status_url(url: str) -> str:
    """The address of the status, from the server's or the status's own."""
    bare = url.partition("?")[0]
    return below(url, "" if bare.rstrip("/").endswith("/status") else "/status")


def parse_status(body: bytes, chain_id: int | None) -> Blocks | Nothing:
    """Chains are found by id, since the operator chooses their names."""
    status = table(decode(body), "no status")
    by_id = {}
    for named in status.values():
        chain = table(named, "no status of chains")
        by_id[count(chain.get("id"), "a chain's id")] = chain
    if chain_id is None or chain_id not in by_id:
        return Nothing()
    block = table(by_id[chain_id].get("block"), "no block")
    return Blocks(count(block.get("number"), "the block number"))


PONDER: Final = Protocol(
    "ponder",
    Blocks,
    PonderTable,
    request=lambda settings: Request("GET", status_url(settings.url), settings),
    parse=lambda body, settings: parse_status(body, settings.chain),
)
