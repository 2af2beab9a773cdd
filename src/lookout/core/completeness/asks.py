"""What a look has to know of the two sides: its questions, and the answers."""

from collections.abc import Generator
from typing import Any, NamedTuple

from lookout.core.completeness.coverage import Coverage


class Log(NamedTuple):
    """An event of the contracts, as an endpoint has it."""

    block: int
    block_hash: str
    transaction: str
    number: int
    """The log's number in its block."""


class Receipt(NamedTuple):
    """That a transaction is on the chain, and whether with one of the events."""

    block: int
    has_event: bool


class Listed(NamedTuple):
    hashes: frozenset[str]
    entries: int
    """Of the list; more than hashes if a transaction stands in it once for each of its events."""


class Position(NamedTuple):
    at: int
    block: int | None
    """None if the indexer did not say."""


class Refused(NamedTuple):
    """No answer that counts."""

    asks_for_less: bool = False


class AskList(NamedTuple):
    """The indexer's list of these blocks; sent back: Listed or Refused."""

    first: int
    last: int


class AskLogs(NamedTuple):
    """An endpoint's logs of these blocks; sent back: a frozenset of Log, or Refused."""

    endpoint: str
    first: int
    last: int


class AskReceipt(NamedTuple):
    """What an endpoint has of a transaction; sent back: Receipt, None if it has none, or Refused."""

    endpoint: str
    transaction: str


class AskPosition(NamedTuple):
    """How far the indexer is, asked now; sent back: Position."""


Ask = AskList | AskLogs | AskReceipt | AskPosition
Look = Generator[Ask, Any, Coverage]
