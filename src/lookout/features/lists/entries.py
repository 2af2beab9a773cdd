"""What ``/sources`` and the metrics show of lists (M16)."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from lookout.base.instants import format_instant
from lookout.core.model import Check, ListEntry
from lookout.features.lists.rules.coverage import (
    TROUBLE_WORDS,
    Coverage,
    Trouble,
    Waiting,
    checked_blocks,
    gaps_of,
    oldest_unchecked_at,
    split_confirmed,
    suspected_of,
)
from lookout.features.lists.rules.links import Links, confirmed_breaks
from lookout.features.lists.rules.node_gap import NodeGap
from lookout.features.outcome import Entry, EntryOutcome, Note, Outcome, Sample, row_labels

MOST_LISTED: Final = 20


class ListedEntry(Struct, frozen=True):
    id: str
    block: int
    hash: str | None
    transaction: str | UnsetType = UNSET


class BreakEntry(Struct, frozen=True):
    """Two neighbours in a list; the second's hash does not follow from the first's."""

    first: ListedEntry
    second: ListedEntry


class LinksEntry(Struct, frozen=True, rename="camel"):
    """Where a list's running hash breaks: the first few places."""

    service: str
    chain_id: int | None
    breaks: int
    suspected: int
    """Unconfirmed breaks."""
    places: tuple[BreakEntry, ...]
    all_read_at: str | None
    """When the last complete reading ended."""
    unsupported: str | UnsetType = UNSET
    """Why the list, or a part of it, cannot be checked."""


class NodeGapEntry(Struct, frozen=True, rename="camel"):
    """A ppoi node and an indexer's list: their numbers of entries, and whether the difference has lasted."""

    chain_id: int | None
    agrees_with: str
    entries: int
    gap: int
    confirmed: bool
    since_at: str | UnsetType = UNSET


class TransactionEntry(Struct, frozen=True):
    hash: str
    block: int


class NotComparedEntry(Struct, frozen=True, rename="camel"):
    first_block: int
    last_block: int
    why: Trouble
    words: str
    next_at: str


class SideEntry(Struct, frozen=True, rename="camel"):
    name: str
    at: str
    outcome: EntryOutcome
    cause: str | UnsetType = UNSET


class CoverageEntry(Struct, frozen=True, rename="camel"):
    """How far an indexer's list was compared with the chain, and what differs; of long lists the first few."""

    service: str
    chain_id: int | None
    first_block: int
    last_block: int | None
    """The highest compared block; lower blocks may still wait."""
    checked_blocks: int
    oldest_unchecked_at: str
    missing: int
    extra: int
    missing_transactions: tuple[TransactionEntry, ...]
    missing_more: int
    extra_transactions: tuple[TransactionEntry, ...]
    extra_more: int
    suspected: int
    """Unconfirmed differences."""
    not_compared: tuple[NotComparedEntry, ...]
    not_compared_more: int
    endpoints: tuple[SideEntry, ...]
    unusable: str | UnsetType = UNSET
    """Why the list cannot be compared."""


class EntryOfCoverage(Entry, frozen=True, rename="camel", kw_only=True):
    coverage: CoverageEntry


class EntryOfLinks(Entry, frozen=True, rename="camel", kw_only=True):
    links: LinksEntry


class EntryOfNodeGap(Entry, frozen=True, rename="camel", kw_only=True):
    agreement: NodeGapEntry


class CoverageNote(Note, frozen=True, kw_only=True):
    """``outcomes`` are of endpoints, by name, and under "" of the list."""

    check: Check
    coverage: Coverage
    first_block: int
    outcomes: Mapping[str, Outcome]

    def describe(self) -> EntryOfCoverage:
        coverage, gaps = self.coverage, gaps_of(self.coverage)
        missing, extra = split_confirmed(coverage)
        described = CoverageEntry(
            *self.check,
            first_block=self.first_block,
            last_block=coverage.stretches[-1].last if coverage.stretches else None,
            checked_blocks=checked_blocks(coverage),
            oldest_unchecked_at=format_instant(oldest_unchecked_at(coverage, self.first_block)),
            unusable=coverage.unusable or UNSET,
            missing=gaps.missing,
            extra=gaps.extra,
            missing_transactions=tuple(TransactionEntry(found.hash, found.first) for found in missing[:MOST_LISTED]),
            missing_more=len(missing[MOST_LISTED:]),
            extra_transactions=tuple(TransactionEntry(found.hash, found.first) for found in extra[:MOST_LISTED]),
            extra_more=len(extra[MOST_LISTED:]),
            suspected=len(suspected_of(coverage)),
            not_compared=tuple(map(_describe_waiting, coverage.waiting[:MOST_LISTED])),
            not_compared_more=len(coverage.waiting[MOST_LISTED:]),
            endpoints=tuple(_describe_side(name, last) for name, last in self.outcomes.items() if name),
        )
        return EntryOfCoverage(*self.common(), coverage=described)

    def samples(self, now: int) -> Iterator[Sample]:
        coverage, labels, gaps = self.coverage, row_labels(self.check), gaps_of(self.coverage)
        waited_ms = max(0, now - oldest_unchecked_at(coverage, self.first_block))
        yield "lookout_coverage_checked_blocks", labels, checked_blocks(coverage)
        yield "lookout_coverage_missing", labels, gaps.missing
        yield "lookout_coverage_extra", labels, gaps.extra
        yield "lookout_coverage_oldest_unchecked_seconds", labels, waited_ms / 1000


class LinksNote(Note, frozen=True, kw_only=True):
    """The check of a list's running hash."""

    check: Check
    links: Links

    def describe(self) -> EntryOfLinks:
        confirmed = confirmed_breaks(self.links)
        described = LinksEntry(
            *self.check,
            breaks=len(confirmed),
            suspected=len(self.links.breaks) - len(confirmed),
            places=tuple(
                BreakEntry(_describe_listed(found.first), _describe_listed(found.second))
                for found in confirmed[:MOST_LISTED]
            ),
            all_read_at=None if self.links.swept_at is None else format_instant(self.links.swept_at),
            unsupported=self.links.unsupported or UNSET,
        )
        return EntryOfLinks(*self.common(), links=described)

    def samples(self, now: int) -> Iterator[Sample]:
        yield "lookout_links_breaks", row_labels(self.check), len(confirmed_breaks(self.links))


class NodeGapNote(Note, frozen=True, kw_only=True):
    """The comparison of a ppoi node with an indexer's list."""

    node: Check
    indexer: Check
    known: NodeGap

    def describe(self) -> EntryOfNodeGap:
        known, since_at = self.known, self.known.since_at
        since = UNSET if since_at is None else format_instant(since_at)
        agreement = NodeGapEntry(
            self.node.chain_id, self.indexer.service, known.entries, known.gap, known.is_confirmed, since
        )
        return EntryOfNodeGap(*self.common(), agreement=agreement)

    def samples(self, now: int) -> Iterator[Sample]:
        yield "lookout_agreement_gap", row_labels(self.node), self.known.gap
        yield "lookout_agreement_confirmed", row_labels(self.node), int(self.known.is_confirmed)


def _describe_waiting(blocks: Waiting) -> NotComparedEntry:
    next_at = format_instant(blocks.since_at + blocks.wait_ms)
    return NotComparedEntry(blocks.first, blocks.last, blocks.why, TROUBLE_WORDS[blocks.why], next_at)


def _describe_listed(entry: ListEntry) -> ListedEntry:
    return ListedEntry(entry.id, entry.block, entry.hash, entry.transaction or UNSET)


def _describe_side(name: str, last: Outcome) -> SideEntry:
    return SideEntry(name, format_instant(last.at), last.kind, UNSET if last.cause is None else last.cause)
