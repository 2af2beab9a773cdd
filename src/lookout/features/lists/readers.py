"""Reading indexers' lists without the chain: their running hashes (S20), and how many entries they have (S21)."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from lookout.core.listed import ListEntry
from lookout.core.model import Check
from lookout.protocols.client.request import SourceTable
from lookout.protocols.client.session import Session
from lookout.protocols.lists import HashedList, ListTable, entries_request, parse_entries
from lookout.protocols.squid import SquidTable, count_request, parse_count

_PAUSE_S: Final = 0.01
"""Between parsing a long answer and checking it, each of which takes a tenth of a second: what is due comes first."""


def fingerprint(*parts: object) -> str:
    """Of what is read. An address may hold a key, and is not stored."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


@dataclass(slots=True)
class LinkReader:
    """One indexer's list whose running hash is checked, and how far that is."""

    check: Check
    list: HashedList
    hurried: int = 0
    """Pages of the first sweep that were read without a rest."""
    whole_ms: int | None = None
    """When all that was due was read last; between the pages of a hurried sweep nothing else is read."""

    @property
    def subject(self) -> str:
        return fingerprint(self.list.url, self.list.kind, self.list.table)


@dataclass(frozen=True, slots=True)
class EntryCounter:
    """The list that a ppoi node is compared with."""

    node: Check
    indexer: Check
    table: SquidTable
    address: str
    """A fingerprint of the node's."""

    @property
    def subject(self) -> str:
        return fingerprint(self.table.url, self.address)


def list_entries(tables: Mapping[Check, SourceTable]) -> dict[Check, HashedList]:
    """The list of every check whose running hash is checked."""
    listing = {check: table.hashed_list() for check, table in tables.items() if isinstance(table, ListTable)}
    return {check: listed for check, listed in listing.items() if listed is not None}


async def read_entries(of: HashedList, from_id: str, session: Session) -> list[ListEntry]:
    """The entries of one answer, from this one on."""
    entries = parse_entries(await session.fetch(entries_request(of, from_id)), of)
    await asyncio.sleep(_PAUSE_S)
    return entries


async def count_entries(of: SquidTable, last_block: int, session: Session) -> int:
    """How many entries the list has up to this block."""
    return parse_count(await session.fetch(count_request(of, last_block)))
