"""Reading indexers' lists without the chain: their running hashes (S20), and how many entries they have (S21)."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from lookout.base.clock import Clock
from lookout.core.links import Entry, choose_reads, is_hurried, take_answer
from lookout.core.model import Check
from lookout.core.plan import Plan
from lookout.monitor.board import AgreementNote, EntryKey, LinksNote, SideOutcome
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.session import Session
from lookout.protocols.lists import LinkedList, entries_request, parse_entries
from lookout.protocols.squid import SquidTable, count_request, parse_count

_EVERY_MS: Final = 60_000
_HURRIED_MS: Final = 2_000
_MOST_HURRIED: Final = 30  # pages, and then a minute's rest: a list may have no end
_PAUSE_S: Final = 0.01
"""Between parsing a long answer and checking it, each of which takes a tenth of a second: what is due comes first."""
_NOTHING_FINAL_MS: Final = 5_000  # or the indexer does not say how far it is


def fingerprint(*parts: object) -> str:
    """Of what is read. An address may hold a key, and is not stored."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


@dataclass(slots=True)
class LinkReader:
    """Checks the running hash of one indexer's list."""

    check: Check
    list: LinkedList
    journal: Journal
    clock: Clock
    instruments: Instruments
    hurried: int = 0
    """Pages of the first sweep that were read without a rest."""
    whole_ms: int = -_EVERY_MS
    """When all that was due was read last; between the pages of a hurried sweep nothing else is read."""

    @property
    def subject(self) -> str:
        return fingerprint(self.list.url, self.list.kind, self.list.table)

    @property
    def key(self) -> EntryKey:
        return EntryKey("links", self.check.name)

    async def look(self, session: Session) -> int:
        """Read what is due this minute; how long to wait until the next time, in milliseconds."""
        journal, check, began_ms = self.journal, self.check, self.clock.elapsed_ms()
        final = journal.final_entry_block(check)
        if final is None:
            return _NOTHING_FINAL_MS
        is_whole = began_ms - self.whole_ms >= _EVERY_MS - _HURRIED_MS
        cause, entries = None, list[Entry]()
        try:
            for read in choose_reads(journal.lists.links(check), journal.now()):
                if not is_whole and read.what != "sweep":
                    continue
                if read.what == "again" and {read.from_id, read.to_id} <= {entry.id for entry in entries}:
                    continue  # the answer before has it
                entries = await read_entries(self.list, read.from_id, session)
                journal.set_links(check, take_answer(journal.lists.links(check), read, entries, journal.now(), final))
        except ProbeFailed as failure:
            cause = failure.reason
        self.whole_ms = began_ms if is_whole else self.whole_ms
        links = journal.lists.links(check)
        outcome = SideOutcome(self.clock.now(), cause)
        self.instruments.board.note_links(LinksNote(check, self.clock.elapsed_ms() - began_ms, links, outcome))
        self.hurried = (self.hurried + 1) % _MOST_HURRIED if is_hurried(links) and cause is None else 0
        return _HURRIED_MS if self.hurried else _EVERY_MS


async def read_entries(of: LinkedList, from_id: str, session: Session) -> list[Entry]:
    """The entries of one answer, from this one on."""
    entries = parse_entries(await session.fetch(entries_request(of, from_id)), of)
    await asyncio.sleep(_PAUSE_S)
    return entries


@dataclass(frozen=True, slots=True)
class EntryCounter:
    """Counts the entries of the list that a ppoi node is compared with."""

    node: Check
    indexer: Check
    table: SquidTable
    address: str
    """A fingerprint of the node's."""
    journal: Journal
    clock: Clock
    instruments: Instruments

    @property
    def subject(self) -> str:
        return fingerprint(self.table.url, self.address)

    @property
    def key(self) -> EntryKey:
        return EntryKey("agreement", self.node.name)

    async def look(self, session: Session) -> int:
        """Count them now; how long to wait until the next time, in milliseconds."""
        journal, began_ms = self.journal, self.clock.elapsed_ms()
        final = journal.final_entry_block(self.indexer)
        if final is None:
            return _NOTHING_FINAL_MS
        cause = None
        try:
            journal.lists.count_entries(self.node, await count_entries(self.table, final, session))
        except ProbeFailed as failure:
            cause = failure.reason
        outcome = SideOutcome(self.clock.now(), cause)
        took_ms, node = self.clock.elapsed_ms() - began_ms, journal.lists.node(self.node)
        self.instruments.board.note_agreement(AgreementNote(self.node, self.indexer, took_ms, node, outcome))
        return _EVERY_MS


async def count_entries(of: SquidTable, last_block: int, session: Session) -> int:
    """How many entries the list has up to this block."""
    return parse_count(await session.fetch(count_request(of, last_block)))


ListReader = LinkReader | EntryCounter


def build_list_readers(
    linked: Mapping[Check, LinkedList],
    counted: Mapping[Check, tuple[Check, SquidTable]],
    plan: Plan,
    journal: Journal,
    clock: Clock,
    instruments: Instruments,
) -> tuple[ListReader, ...]:
    """One for each list that has a table ``links``, and for each chain on which a ppoi node is compared with a list."""
    links = (LinkReader(check, of, journal, clock, instruments) for check, of in linked.items())
    counters = (
        EntryCounter(node, indexer, table, plan.addresses[node], journal, clock, instruments)
        for node, (indexer, table) in counted.items()
    )
    return (*links, *counters)
