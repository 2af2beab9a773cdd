"""RPC nodes: a chain's head, how far one node is, and the logs of contracts' events (S17)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lookout.base.instants import END_AT
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Check, Found, Log
from lookout.protocols.answers import call, entries, hexadecimal, quantity, result_of, table
from lookout.protocols.client.failure import ProbeFailed, not_understood
from lookout.protocols.client.request import DIRECT, AccessTable, KindTable, Request, at_most
from lookout.protocols.source import Now, OneRequest, Protocol

if TYPE_CHECKING:  # loads ssl and urllib, which reading a configuration does not need
    from lookout.protocols.client.session import Session

_Answer = TypeVar("_Answer")
Texts = tuple[str, ...]

HASH_BYTES: Final = 32
_CHAIN_ID_HOLDS_MS: Final = 60_000
# The ids of the requests.
_CHAIN_ID: Final = 1
_BLOCK: Final = 2
_LOGS: Final = 3


class CheckedChainId:
    """Checks a node's chain id before its first answer counts, after a failed reading, and every minute, since another
    node may have taken its address. Concurrent requests to one node share the check. Two requests and not a batch,
    which some public endpoints refuse or count as abuse."""

    def __init__(self, chain_id: int | None, request: Request) -> None:
        self._expected = chain_id
        self._request = replace(request, body=call("eth_chainId", [], _CHAIN_ID))
        self._right_at: int | None = None

    async def ask(self, session: "Session", now: Now, question: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Ask a node of the right chain; both requests together end within the session's time."""
        try:
            async with at_most(session.timeout_s):
                await self.check(session, now)
                return await question()
        except BaseException:  # also if it was cancelled
            self._right_at = None
            raise

    async def check(self, session: "Session", now: Now) -> None:
        if self._right_at is not None and 0 <= now() - self._right_at < _CHAIN_ID_HOLDS_MS:
            return
        self._right_at = None
        found = parse_chain_id(await session.fetch(self._request))
        if found != self._expected:
            raise ProbeFailed("wrong_chain", f"{found} instead of {self._expected}")
        self._right_at = now()


class EvmEndpoint:
    def __init__(self, name: str, chain_id: int, url: str, access: AccessTable = DIRECT) -> None:
        self.name = name
        self.chain_id = chain_id
        self._ask_block = Request("POST", url, access, call("eth_getBlockByNumber", ["latest", False], _BLOCK))
        self._chain_id = CheckedChainId(chain_id, self._ask_block)

    async def read(self, session: "Session", now: Now, /) -> Reading:
        return await self._chain_id.ask(session, now, lambda: self._read_block(session, now))

    async def _read_block(self, session: "Session", now: Now) -> Reading:
        return parse_block(await session.fetch(self._ask_block), now())

    async def read_logs(
        self, contracts: Texts, events: Texts, first: int, last: int, session: "Session", now: Now, /
    ) -> frozenset[Log]:
        """Logs of any of these contracts with any of these first topics. Many nodes refuse logs and still answer for
        heads: a failure here does not reset the chain id."""
        async with at_most(session.timeout_s):
            await self._chain_id.check(session, now)
            body = await session.fetch(replace(self._ask_block, body=call_logs(contracts, events, first, last)))
        return parse_logs(body, first, last)


class EvmSource:
    def __init__(self, one: OneRequest, settings: KindTable) -> None:
        self.name = one.name
        self.checks = one.checks
        self._one = one
        self._chain_id = CheckedChainId(settings.chain, one.request)

    async def probe(self, session: "Session", now: Now, /) -> Mapping[Check, Found]:
        return await self._chain_id.ask(session, now, lambda: self._one.probe(session, now))


def parse_chain_id(body: bytes) -> int:
    return quantity(result_of(body, _CHAIN_ID), "the chain id")


def parse_block(body: bytes, at: int) -> Reading:
    """Height and timestamp of the latest block; null from a node without a block."""
    block = table(result_of(body, _BLOCK), "no block")
    height = quantity(block.get("number"), "the block number")
    second = quantity(block.get("timestamp"), "the block's timestamp")
    if second * 1000 >= END_AT:
        raise not_understood("the block's timestamp is in no calendar")
    return Reading(at, height, second * 1000)


def parse_block_number(body: bytes) -> Blocks:
    return Blocks(quantity(result_of(body, _BLOCK), "the block number"))


def call_logs(contracts: Texts, events: Texts, first: int, last: int) -> bytes:
    asked = {"address": contracts, "topics": [events], "fromBlock": hex(first), "toBlock": hex(last)}
    return call("eth_getLogs", [asked], _LOGS)


def parse_logs(body: bytes, first: int, last: int) -> frozenset[Log]:
    return frozenset(_parse_log(log, first, last) for log in entries(result_of(body, _LOGS), "no logs"))


def _parse_log(value: Any, first: int, last: int) -> Log:
    log = table(value, "no log")
    block = quantity(log.get("blockNumber"), "a log's block number")
    if not first <= block <= last:
        raise not_understood("a log of another block")
    return Log(
        block,
        hexadecimal(log.get("blockHash"), HASH_BYTES, "a block's hash"),
        hexadecimal(log.get("transactionHash"), HASH_BYTES, "a transaction's hash"),
        quantity(log.get("logIndex"), "a log's index"),
    )


EVM: Final = Protocol(
    "evm",
    Blocks,
    KindTable,
    request=lambda settings: Request("POST", settings.url, settings, call("eth_blockNumber", [], _BLOCK)),
    parse=lambda body, _: parse_block_number(body),
    source=EvmSource,
)
