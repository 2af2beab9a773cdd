"""RPC nodes: a chain's head, read from an endpoint of it; and how far one node is."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from lookout.base.instants import END_AT
from lookout.core.completeness.asks import Log, Receipt
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Check, Found
from lookout.protocols.answers import call, quantity, result_of, table
from lookout.protocols.client.access import DIRECT, AccessTable
from lookout.protocols.client.failure import WrongChainFailed, not_understood
from lookout.protocols.client.request import Request, at_most
from lookout.protocols.logs import EventFilter, call_logs, call_receipt, parse_logs, parse_receipt
from lookout.protocols.protocol import Protocol
from lookout.protocols.source import Now, OneRequest
from lookout.protocols.tables import KindTable

if TYPE_CHECKING:  # it loads aiohttp, which reading a configuration does without
    from lookout.protocols.client.session import Session

_Answer = TypeVar("_Answer")

_CHAIN_ID: Final = 1
_BLOCK: Final = 2
_CHAIN_ID_HOLDS_MS: Final = 60_000


class Block(NamedTuple):
    height: int
    block_at: int


class CheckedChainId:
    """A node is asked for its chain id before its first answer counts, again after a reading that failed, and every
    minute: behind one address there may be another node now. All that is asked of one node at the same time shares
    that. Two requests and not a batch, which some public endpoints refuse or count as abuse."""

    def __init__(self, chain_id: int | None, request: Request) -> None:
        """``request`` is one that the same node is asked."""
        self._expected = chain_id
        self._request = replace(request, body=call("eth_chainId", [], _CHAIN_ID))
        self._right_at: int | None = None

    async def ask(self, session: "Session", now: Now, question: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Ask a node of the right chain. ``question`` has to end within the session's time on its own: the limit here
        is for the chain id and the question together."""
        try:
            if self._holds(now()):
                return await question()
            async with at_most(session.timeout_s):
                await self.check(session, now)
                return await question()
        except BaseException:  # also if it was cancelled
            self._right_at = None
            raise

    async def check(self, session: "Session", now: Now) -> bool:
        """Whether the node had to be asked."""
        if self._holds(now()):
            return False
        self._right_at = None
        found = parse_chain_id(await session.fetch(self._request))
        if found != self._expected:
            raise WrongChainFailed(found, self._expected)
        self._right_at = now()
        return True

    def _holds(self, at: int) -> bool:
        return self._right_at is not None and 0 <= at - self._right_at < _CHAIN_ID_HOLDS_MS


class EvmEndpoint:
    """One RPC endpoint of a chain."""

    def __init__(self, name: str, chain_id: int, url: str, access: AccessTable = DIRECT) -> None:
        self.name = name
        self.chain_id = chain_id
        self._ask_block = Request("POST", url, access, call("eth_getBlockByNumber", ["latest", False], _BLOCK))
        self._chain_id = CheckedChainId(chain_id, self._ask_block)

    async def read(self, session: "Session", now: Now, /) -> Reading:
        block = await self._chain_id.ask(session, now, lambda: self._read_block(session))
        return Reading(now(), block.height, block.block_at)

    async def _read_block(self, session: "Session") -> Block:
        return parse_block(await session.fetch(self._ask_block))

    async def check_chain(self, session: "Session", now: Now, /) -> bool:
        """Whether the node had to be asked for its chain id, which logs and receipts need."""
        async with at_most(session.timeout_s):
            return await self._chain_id.check(session, now)

    # Many nodes refuse logs and go on answering for heads: their failure says nothing of the chain.
    async def read_logs(
        self, of: EventFilter, first: int, last: int, session: "Session", now: Now, /
    ) -> frozenset[Log]:
        """Read the logs from the first to the last of these blocks, both included."""
        async with at_most(session.timeout_s):
            await self._chain_id.check(session, now)
            body = await session.fetch(replace(self._ask_block, body=call_logs(of, first, last)))
            return await session.parse(body, lambda: parse_logs(body, of, first, last))

    async def read_receipt(self, of: EventFilter, transaction: str, session: "Session", now: Now, /) -> Receipt | None:
        """None if the node does not have the transaction."""
        async with at_most(session.timeout_s):
            await self._chain_id.check(session, now)
            body = await session.fetch(replace(self._ask_block, body=call_receipt(transaction)))
            return await session.parse(body, lambda: parse_receipt(body, of, transaction))


class EvmSource:
    """One RPC node as a service: how far it is itself."""

    def __init__(self, one: OneRequest, settings: KindTable) -> None:
        self.name = one.name
        self.checks = one.checks
        self._one = one
        self._chain_id = CheckedChainId(settings.chain, one.request)

    async def probe(self, session: "Session", now: Now, /) -> Mapping[Check, Found]:
        return await self._chain_id.ask(session, now, lambda: self._one.probe(session, now))


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


def parse_block_number(body: bytes) -> Blocks:
    return Blocks(quantity(result_of(body, _BLOCK), "the block number"))


EVM: Final = Protocol(
    "evm",
    Blocks,
    KindTable,
    request=lambda settings: Request("POST", settings.url, settings, call("eth_blockNumber", [], _BLOCK)),
    parse=lambda body, _: parse_block_number(body),
    source=EvmSource,
)
