"""What indexers and RPC endpoints answer about a list of transactions."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

Counts = Mapping[str, int]
"""How often transactions count on one side, by their hashes: once, or with ``each`` once for every entry or log."""


class Log(NamedTuple):
    """An event of the contracts, as an endpoint has it."""

    block: int
    block_hash: str
    transaction: str
    number: int
    """The log's number in its block."""


class Listed(NamedTuple):
    entries: Counts
    length: int
    """Of the longest single list: one as long as the limit may have been cut."""


class ListEntry(Struct, frozen=True, gc=False, array_like=True):
    """What a list says of one transaction. ``value`` and ``hash`` are 0x and 64 digits, None if they are missing."""

    id: str
    block: int
    value: str | None
    hash: str | None
    transaction: str = ""
