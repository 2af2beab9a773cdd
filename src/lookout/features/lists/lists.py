"""The feature: what is known of indexers' lists, the jobs that compare them, and what follows for rows."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Self

from msgspec import UNSET
from msgspec.structs import asdict

from lookout.base.logger import get_logger
from lookout.core.causes import describe_cause
from lookout.core.model import LARGEST_METRIC, NO_GAPS, Check, Found, ListEntry, Row
from lookout.core.services import PPOI
from lookout.features.feature import Feature, Host, Job, ProbedPart, Probing
from lookout.features.lists.entries import CoverageNote, LinksNote, NodeGapNote
from lookout.features.lists.known import COVERAGE, DOCUMENTS, LINKS, NODE_GAP, Key, Known, decode_known
from lookout.features.lists.readers import (
    Comparer,
    EntryCounter,
    LinkReader,
    build_comparers,
    choose_lists,
    count_entries,
    read_entries,
)
from lookout.features.lists.rules.coverage import Coverage, choose_look
from lookout.features.lists.rules.links import Links, Read, choose_reads, is_hurried, take_answer
from lookout.features.outcome import EntryKey, Outcome, end
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.session import Session
from lookout.protocols.lists import HashedList, ListTable
from lookout.protocols.ppoi import PpoiTable, find_compared_lists

_BETWEEN_LOOKS_MS: Final = 1_000
_NOTHING_DUE_MS: Final = 5_000  # or no block is known to be final
_EVERY_MS: Final = 60_000
_HURRIED_MS: Final = 2_000
_MOST_HURRIED: Final = 30  # pages, and then a minute's rest: a list may have no end

log = get_logger()


class Lists(Feature):
    claimed = DOCUMENTS
    counters: ClassVar = {
        "lookout_coverage_requests_total": (
            "Requests to an RPC endpoint to compare an indexer's list with its chain",
            *("chain", "endpoint", "outcome"),
        ),
    }
    gauges: ClassVar = {
        "lookout_coverage_checked_blocks": (
            "Blocks in which an indexer's list was compared with the chain",
            *("service", "chain"),
        ),
        "lookout_coverage_missing": (
            "Confirmed transactions of the chain (with each: logs) that the list lacks",
            *("service", "chain"),
        ),
        "lookout_coverage_extra": (
            "Confirmed transactions of the list (with each: entries) that the chain does not have",
            *("service", "chain"),
        ),
        "lookout_coverage_oldest_unchecked_seconds": (
            "Age of the oldest comparison; since the beginning while blocks were never compared",
            *("service", "chain"),
        ),
        "lookout_links_breaks": (
            "Places in which the running hash of an indexer's list is confirmed to break",
            *("service", "chain"),
        ),
        "lookout_agreement_gap": (
            "Entries by which a ppoi node is behind an indexer's list, at the last reading",
            *("service", "chain"),
        ),
        "lookout_agreement_confirmed": ("1 if the gap is confirmed, otherwise 0", "service", "chain"),
    }

    @classmethod
    def decode(cls, documents: Mapping[str, bytes]) -> Mapping[Key, Any]:
        return decode_known(documents)

    @classmethod
    def build(cls, _table: Any, kept: Mapping[Key, Any], host: Host) -> Self:
        return cls(kept, host)

    def __init__(self, kept: Mapping[Key, Any], host: Host) -> None:
        tables, addresses = host.around.tables, host.around.plan.addresses
        self._known = Known(kept)
        self._host = host
        self._comparers = build_comparers(host.around, host.clock, host.count)
        self._readers = [LinkReader(check, of) for check, of in choose_lists(tables, ListTable.hashed_list).items()]
        self._counters = [
            EntryCounter(node, indexer, table, addresses[node])
            for node, (indexer, table) in find_compared_lists(tables).items()
        ]

    def documents(self) -> Mapping[str, bytes]:
        return self._known.documents()

    def jobs(self) -> Iterator[Job]:
        for comparer in self._comparers:
            yield Job(EntryKey("coverage", comparer.check.name), partial(self._compare, comparer))
        for reader in self._readers:
            yield Job(EntryKey("links", reader.check.name), partial(self._check_links, reader))
        for counter in self._counters:
            yield Job(EntryKey("agreement", counter.node.name), partial(self._count, counter))

    def start(self, at: int, *, was_set: bool) -> None:
        self._known.restart(at, was_set=was_set)
        if was_set:
            return
        subjects: dict[Key, str] = {
            **{(COVERAGE, comparer.check): comparer.subject for comparer in self._comparers},
            **{(LINKS, reader.check): reader.subject for reader in self._readers},
            **{(NODE_GAP, counter.node): counter.subject for counter in self._counters},
        }
        self._known.follow(subjects, at)
        for check in {*self._host.ledger.gaps, *(check for _, check in subjects)}:
            self._update_gaps(check)  # what was found in lists that are no longer compared is dropped

    def hear(self, check: Check, found: Found, at: int) -> None:
        self._known.hear(check, found)
        if check in self._known:
            self._update_gaps(check)
        for counter in self._counters:
            if check in (counter.node, counter.indexer):
                rows = (self._host.ledger.newest_row(one) for one in (counter.node, counter.indexer))
                are_current = all(_is_current(row, at) for row in rows)
                self._known.hear_node(counter.node, found, at, are_current=are_current)
                self._update_gaps(counter.node)

    def describe_gaps(self, check: Check) -> str:
        return self._known.describe_gaps(check)

    async def _compare(self, comparer: Comparer, session: Session) -> int:
        """Look at what is due (S17 to S19)."""
        check, host = comparer.check, self._host
        facts = comparer.facts(host.now(), self._final_block(check), host.heights(check.chain_id or 0))
        look = choose_look(self._known.get(COVERAGE, check), facts)
        if look is not None:
            self._end_look(check, await comparer.drive(look, session))
        comparer.outcomes.setdefault("", Outcome(host.clock.now(), 0, kind="not_asked"))
        host.note(
            CoverageNote(
                EntryKey("coverage", check.name),
                comparer.outcomes[""],
                check=check,
                coverage=self._known.get(COVERAGE, check),
                first_block=facts.first_block,
                outcomes=dict(comparer.outcomes),
            )
        )
        return _NOTHING_DUE_MS if look is None else _BETWEEN_LOOKS_MS

    async def _check_links(self, reader: LinkReader, session: Session) -> int:
        """Read what is due this minute, and check its running hash (S20)."""
        check, host = reader.check, self._host
        began_ms = host.clock.elapsed_ms()
        final = self._final_block(check)
        if final is None:
            return _NOTHING_DUE_MS
        is_full_round = reader.last_full_ms is None or began_ms - reader.last_full_ms >= _EVERY_MS - _HURRIED_MS
        cause, entries = None, list[ListEntry]()
        try:
            for read in choose_reads(self._known.get(LINKS, check), host.now()):
                if not is_full_round and read.what != "sweep":
                    continue
                if read.what == "again" and {read.from_id, read.to_id} <= {entry.id for entry in entries}:
                    continue  # the answer before has it
                entries = await read_entries(reader.list, read.from_id, session)
                self._set_links(check, take_answer(self._known.get(LINKS, check), read, entries, host.now(), final))
        except ProbeFailed as failure:
            cause = failure.reason
        reader.last_full_ms = began_ms if is_full_round else reader.last_full_ms
        links, outcome = self._known.get(LINKS, check), end(host.clock.now(), host.clock.elapsed_ms() - began_ms, cause)
        host.note(LinksNote(EntryKey("links", check.name), outcome, check=check, links=links))
        reader.quick_pages = (reader.quick_pages + 1) % _MOST_HURRIED if is_hurried(links) and cause is None else 0
        return _HURRIED_MS if reader.quick_pages else _EVERY_MS

    async def _count(self, counter: EntryCounter, session: Session) -> int:
        """Count the entries of the list that a ppoi node is compared with (S21)."""
        node, host = counter.node, self._host
        began_ms = host.clock.elapsed_ms()
        final = self._final_block(counter.indexer)
        if final is None:
            return _NOTHING_DUE_MS
        cause = None
        try:
            self._known.count_entries(node, await count_entries(counter.table, final, session))
        except ProbeFailed as failure:
            cause = failure.reason
        known = self._known.get(NODE_GAP, node)
        outcome = end(host.clock.now(), host.clock.elapsed_ms() - began_ms, cause)
        host.note(
            NodeGapNote(EntryKey("agreement", node.name), outcome, node=node, indexer=counter.indexer, known=known)
        )
        return _EVERY_MS

    def _final_block(self, check: Check) -> int | None:
        """The last block up to which an indexer's list is complete and final (S17); None without a head, or if the
        indexer does not say how far it is."""
        at = self._host.now()
        final, position = self._host.ledger.final_block(check, at), self._known.position(check)
        return None if final is None or position is None else min(final, position)

    def _end_look(self, check: Check, coverage: Coverage) -> None:
        was_unusable = self._known.get(COVERAGE, check).unusable
        self._known.end_look(check, coverage)
        if coverage.unusable and not was_unusable:
            log.warning("the list cannot be compared with the chain", check=check.name, why=coverage.unusable)
        self._update_gaps(check)

    def _set_links(self, check: Check, links: Links) -> None:
        before = self._known.get(LINKS, check)
        self._known.set(LINKS, check, links)
        if links.unsupported and not before.unsupported:
            log.warning("the running hash of the list cannot be checked", check=check.name, why=links.unsupported)
        self._update_gaps(check)

    def _update_gaps(self, check: Check) -> None:
        """Give the monitor the gaps by which a row is judged, if they changed (S18, S20, S21)."""
        self._host.now()  # a clock that was set changes what is known
        gaps, before = self._known.gaps(check), self._host.ledger.gaps.get(check, NO_GAPS)
        if gaps == before:
            return
        self._host.set_gaps(check, gaps)
        where, is_node = self._known.describe_gaps(check), check.service == PPOI
        if where:
            what = "the node and the list differ" if is_node else "the list is not the chain's"
            log.warning(what, check=check.name, found=where)
        else:
            what = "the node and the list agree again" if is_node else "the list matches the chain again"
            log.info(what, check=check.name, **{name: count for name, count in asdict(before).items() if count})

    @classmethod
    async def probe(cls, _table: Any, probing: Probing) -> tuple[ProbedPart, ...]:
        """The first page of each list with a running hash, and a count for each compared node."""
        tables = probing.around.tables
        nodes = [check for check, table in tables.items() if isinstance(table, PpoiTable) and table.agrees_with]
        links = (_probe_links(check, of, probing) for check, of in choose_lists(tables, ListTable.hashed_list).items())
        return tuple(await asyncio.gather(*links, *(_probe_node_gap(node, probing) for node in nodes)))


async def _probe_links(check: Check, of: HashedList, probing: Probing) -> ProbedPart:
    """Read the first page of a list, and check its running hash (S20)."""
    doubt = partial(ProbedPart, check, can_be_checked=False)
    try:
        entries = await read_entries(of, "", probing.session)
    except (ProbeFailed, OwnFault) as failure:
        return doubt(f"the list cannot be read: {describe_cause(failure.reason)}")
    links = take_answer(Links(subject=""), Read("sweep", ""), entries, probing.clock.now(), LARGEST_METRIC)
    if links.unsupported:
        return doubt(f"the running hash cannot be checked: {links.unsupported}")
    if len(entries) < 2:
        return doubt("the running hash cannot be checked yet: no two entries are listed")
    breaks = len(links.breaks)
    what = "holds" if not breaks else f"breaks {breaks} time{'s' * (breaks > 1)}"
    return ProbedPart(check, f"the running hash {what} in the first {len(entries)} entries")


async def _probe_node_gap(node: Check, probing: Probing) -> ProbedPart:
    """Count the entries of the list with which a ppoi node is compared (S21)."""
    doubt = partial(ProbedPart, node, can_be_checked=False)
    counted = find_compared_lists(probing.around.tables)
    if node not in counted:
        why = "this chain has no indexer of kind squid that it could be compared with"
        return doubt(f"not compared with a list: {why}")
    (indexer, table), rows = counted[node], probing.rows
    final, position = probing.ledger.final_block(indexer, probing.clock.now()), rows[indexer].metrics.position
    if final is None or position is UNSET:
        return doubt("not compared with the list: no block of it is known to be final")
    try:
        entries = await count_entries(table, min(final, position), probing.session)
    except (ProbeFailed, OwnFault) as failure:
        return doubt(f"the list cannot be counted: {describe_cause(failure.reason)}")
    head = rows[node].metrics.head
    has = "the node does not say how many it has" if head is UNSET else f"the node has {head + 1}"
    return ProbedPart(node, f"the list of {indexer.service} has {entries} final entries, {has}")


def _is_current(row: Row, at: int) -> bool:
    """Whether a row would be current without the list's known gaps (S21)."""
    is_current = row.status == "current" or row.reason in ("incomplete", "inconsistent")
    return is_current and not row.has_expired(at)
