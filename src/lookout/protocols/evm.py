"""A chain's head, read from an RPC endpoint."""

from typing import TYPE_CHECKING, Final, NamedTuple

from lookout.base.instants import END_AT
from lookout.core.heads import Reading
from lookout.protocols.answers import call, quantity, result_of, table
from lookout.protocols.client.access import DIRECT, AccessTable
from lookout.protocols.client.failure import WrongChainFailed, not_understood
from lookout.protocols.client.request import Request, at_most
from lookout.protocols.source import Now

if TYPE_CHECKING:  # it loads aiohttp, which reading a configuration does without
    from lookout.protocols.client.session import Session

_CHAIN_ID: Final = 1
_BLOCK: Final = 2
_CHAIN_ID_HOLDS_MS: Final = 60_000


class Block(NamedTuple):
    height: int
    block_at: int


class EvmEndpoint:
    """One RPC endpoint of a chain.

    It is asked for its chain id before its first answer counts, again after any failure, and every minute: behind one
    address there may be another node now. Two requests and not a batch, which some public endpoints refuse or count
    as abuse.
    """

    def __init__(self, name: str, chain_id: int, url: str, access: AccessTable = DIRECT) -> None:
        self.name = name
        self.chain_id = chain_id
        self._ask_chain_id = Request("POST", url, access, call("eth_chainId", [], _CHAIN_ID))
        self._ask_block = Request("POST", url, access, call("eth_getBlockByNumber", ["latest", False], _BLOCK))
        self._right_chain_at: int | None = None

    async def read(self, session: "Session", now: Now, /) -> Reading:
        right_chain_at, self._right_chain_at = self._right_chain_at, None
        async with at_most(session.timeout_s):
            if right_chain_at is None or not 0 <= now() - right_chain_at < _CHAIN_ID_HOLDS_MS:
                await self._check_chain_id(session)
                right_chain_at = now()
            block = parse_block(await session.fetch(self._ask_block))
        self._right_chain_at = right_chain_at
        return Reading(now(), block.height, block.block_at)

    async def _check_chain_id(self, session: "Session") -> None:
        if parse_chain_id(await session.fetch(self._ask_chain_id)) != self.chain_id:
            raise WrongChainFailed


def parse_chain_id(body: bytes) -> int:
    return quantity(result_of(body, _CHAIN_ID), "the chain id")


def parse_block(body: bytes) -> Block:
    """Height and timestamp of the latest block; a node that has none yet says null."""
    block = table(result_of(body, _BLOCK), "no block")
    height = quantity(block.get("number"), "the block number")
    second = quantity(block.get("timestamp"), "the block's timestamp")
    if second * 1000 >= END_AT:
        raise not_understood("the block's timestamp is in no calendar")
    return Block(height, second * 1000)
