"""The last outcome of every source, RPC endpoint and comparison: ``/sources`` on the admin port (M16)."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from lookout.base.instants import format_instant
from lookout.core.agreement import APART, Standing
from lookout.core.causes import code_of, describe_cause
from lookout.core.coverage import (
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
from lookout.core.episodes import STORE
from lookout.core.heads import Reading
from lookout.core.links import Entry as ListEntry
from lookout.core.links import Links, confirmed_breaks
from lookout.core.model import Check, Row, unobserved
from lookout.core.node_gap import NodeGap

MOST_LISTED: Final = 20

EntryOutcome = Literal["answered", "failed", "own_fault", "bug", "not_asked"]


class RowOutcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    service: str
    chain_id: int | None
    status: str
    reason: str
    cause: str | UnsetType = UNSET


def describe_rows(rows: Iterable[Row], causes: Mapping[Check, str], at: int) -> tuple[RowOutcome, ...]:
    """The cause is that of the status, so an expired row, which is unknown, has none."""
    return tuple(
        RowOutcome(*row.check, "unknown", "no-observation")
        if row.has_expired(at)
        else RowOutcome(*row.check, row.status, row.reason, causes.get(row.check, UNSET))
        for row in rows
    )


EntryKind = Literal["source", "endpoint", "coverage", "links", "agreement"]


class EntryKey(NamedTuple):
    """A source, an RPC endpoint of a chain, or a comparison of a source's list: with the chain, by its running hash, or
    with a ppoi node."""

    kind: EntryKind
    name: str
    chain_id: int | UnsetType = UNSET  # an endpoint's: its name may occur on two chains


class SideOutcome(NamedTuple):
    """How an endpoint, or the list, last answered for a comparison; ``cause`` says why it failed."""

    at: int
    cause: str | None
    took_ms: int = 0
    is_asked: bool = True
    """False since the start, while nothing is due or no block is known to be final."""


class LinksNote(NamedTuple):
    """The check of a list's running hash."""

    check: Check
    took_ms: int
    links: Links
    outcome: SideOutcome


class AgreementNote(NamedTuple):
    """The comparison of a ppoi node with an indexer's list."""

    node: Check
    indexer: Check
    took_ms: int
    known: NodeGap
    outcome: SideOutcome


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


class AgreementEntry(Struct, frozen=True, rename="camel"):
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


class Entry(Struct, frozen=True, rename="camel"):
    """A source with the rows of its last probe; or an endpoint with the block that it read, the distance below the head
    of that time (negative if above), and how its latest answer counts; or a comparison's progress. Never an
    address."""

    name: str
    kind: EntryKind
    at: str
    took_ms: int
    outcome: EntryOutcome
    cause: str | UnsetType = UNSET
    rows: tuple[RowOutcome, ...] | UnsetType = UNSET
    chain_id: int | UnsetType = UNSET
    height: int | UnsetType = UNSET
    block_at: str | UnsetType = UNSET
    lag_blocks: int | UnsetType = UNSET
    standing: Standing | UnsetType = UNSET
    coverage: CoverageEntry | UnsetType = UNSET
    links: LinksEntry | UnsetType = UNSET
    agreement: AgreementEntry | UnsetType = UNSET
    doubts: tuple[str, ...] | UnsetType = UNSET
    """Causes of what is wrong with a source, whatever its rows."""


class Board:
    """Written on the event loop; threads may read copies of the entries."""

    def __init__(self) -> None:
        self._entries: dict[EntryKey, Entry] = {}
        self._standings: dict[int, Mapping[str, Standing]] = {}  # by chain and endpoint name
        self._doubts: dict[str, tuple[str, ...]] = {}  # by source name
        self.certificates_end_at: dict[str, int] = {}  # by source name
        self._store: tuple[Row, str | None] = unobserved(STORE), None

    def list_entries(self) -> list[Entry]:
        standings, doubts = self._standings.copy(), self._doubts.copy()
        entries = sorted(self._entries.copy().items(), key=lambda item: item[0])
        return [
            replace(entry, doubts=doubts[key.name])
            if key.kind == "source" and doubts.get(key.name)
            else replace(entry, standing=standings.get(key.chain_id, {}).get(key.name, UNSET))
            if isinstance(key.chain_id, int)
            else entry
            for key, entry in entries
        ]

    def describe_endpoints(self, chain_id: int | None) -> tuple[tuple[str, str], ...]:
        """The name and the state of each RPC endpoint of a chain."""
        endpoints = (entry for entry in self.list_entries() if entry.kind == "endpoint" and entry.chain_id == chain_id)
        return tuple((endpoint.name, _describe(endpoint)) for endpoint in endpoints)

    def judge(self, check: Check) -> tuple[Row, str | None]:
        """The status of an RPC endpoint, a source or the store as a row, and why it is bad; unknown before the first
        answer, and for an endpoint without a head."""
        if check == STORE:
            return self._store
        kind, _, name = check.service.partition(" ")
        if kind == "source":
            doubts = self._doubts.get(name)
            if doubts:
                return Row(check, "degraded", "incomplete"), doubts[0]
            return (unobserved(check) if doubts is None else Row(check, "current", "responding")), None
        chain_id = check.chain_id or 0
        entry = self._entries.get(EntryKey("endpoint", name, chain_id))
        standing = self._standings.get(chain_id, {}).get(name)
        if entry is not None and entry.outcome == "failed":
            return Row(check, "unavailable", "unreachable"), entry.cause or None
        if entry is None or entry.outcome != "answered" or standing not in ("agrees", *APART):
            return unobserved(check), None
        if standing == "agrees":
            return Row(check, "current", "responding"), None
        return Row(check, "degraded", "incompatible-reference"), f"apart: {_describe_block(entry)}"

    def begin(self) -> None:
        """A monitor starts, perhaps with other settings: forget all outcomes."""
        self._entries, self._doubts, self.certificates_end_at = {}, {}, {}
        self._store = unobserved(STORE), None

    def note_store(self, error: str | None) -> None:
        """A publication is stored, or could not be."""
        if error is None:
            self._store = Row(STORE, "current", "responding"), None
        else:
            self._store = Row(STORE, "unavailable", "unreachable"), f"not_stored: {error}"

    def note_source(self, name: str, at: int, took_ms: int, rows: Iterable[Row], causes: Mapping[Check, str]) -> None:
        outcomes = describe_rows(rows, causes, at)
        failed = all(row.reason == "unreachable" for row in outcomes)
        causes_of_all = {row.cause for row in outcomes}
        cause = causes_of_all.pop() if failed and len(causes_of_all) == 1 else UNSET
        outcome: EntryOutcome = "failed" if failed else "answered"
        self._entries[EntryKey("source", name)] = Entry(
            name, "source", format_instant(at), took_ms, outcome, cause, outcomes
        )

    def note_doubts(self, source: str, doubts: tuple[str, ...]) -> list[str]:
        """Set what is wrong with a source, and return the doubts whose codes are new."""
        before = set(map(code_of, self._doubts.get(source, ())))
        self._doubts[source] = doubts
        return [doubt for doubt in doubts if code_of(doubt) not in before]

    def note_reading(
        self, endpoint: EntryKey, at: int, took_ms: int, reading: Reading | str, head: Reading | None
    ) -> None:
        """``reading`` is the cause if it failed; ``head`` is the head that positions are compared with then."""
        if isinstance(reading, str):
            entry = _entry(endpoint, at, took_ms, "failed", reading)
        else:
            entry = replace(
                _entry(endpoint, at, took_ms, "answered"),
                height=reading.height,
                block_at=format_instant(reading.block_at),
                lag_blocks=UNSET if head is None else head.height - reading.height,
            )
        self._entries[endpoint] = entry

    def note_coverage(
        self, check: Check, coverage: Coverage, first_block: int, outcomes: Mapping[str, SideOutcome]
    ) -> None:
        """``outcomes`` are of endpoints, by name, and under "" of the list."""
        gaps, (missing, extra) = gaps_of(coverage), split_confirmed(coverage)
        described = CoverageEntry(
            *check,
            first_block=first_block,
            last_block=coverage.stretches[-1].last if coverage.stretches else None,
            checked_blocks=checked_blocks(coverage),
            oldest_unchecked_at=format_instant(oldest_unchecked_at(coverage, first_block)),
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
            endpoints=tuple(_describe_side(name, last) for name, last in outcomes.items() if name),
        )
        entry = _describe_reading(check, "coverage", outcomes[""].took_ms, outcomes[""])
        self._entries[EntryKey("coverage", check.name)] = replace(entry, coverage=described)

    def note_links(self, note: LinksNote) -> None:
        self._entries[EntryKey("links", note.check.name)] = replace(
            _describe_reading(note.check, "links", note.took_ms, note.outcome),
            links=_describe_links(note.check, note.links),
        )

    def note_agreement(self, note: AgreementNote) -> None:
        known, since_at = note.known, note.known.since_at
        since = UNSET if since_at is None else format_instant(since_at)
        agreement = AgreementEntry(
            note.node.chain_id, note.indexer.service, known.entries, known.gap, known.is_confirmed, since
        )
        self._entries[EntryKey("agreement", note.node.name)] = replace(
            _describe_reading(note.node, "agreement", note.took_ms, note.outcome), agreement=agreement
        )

    def note_own_failure(self, key: EntryKey, at: int, took_ms: int, cause: str | None) -> None:
        """A source or endpoint could not be asked, by a fault of the monitor's own (``cause``) or a bug."""
        entry = _entry(key, at, took_ms, "bug") if cause is None else _entry(key, at, took_ms, "own_fault", cause)
        if known := self._entries.get(key):  # what is known of a list stays so
            entry = replace(entry, coverage=known.coverage, links=known.links, agreement=known.agreement)
        self._entries[key] = entry

    def describe_own_failure(self, source: str) -> str:
        """Why a source could not be asked the last time; empty if it was."""
        entry = self._entries.get(EntryKey("source", source))
        return "" if entry is None or entry.outcome not in ("own_fault", "bug") else _describe(entry)

    def note_standings(self, chain_id: int, standings: Mapping[str, Standing]) -> None:
        """Set the standings of a chain's endpoints; empty while unknown."""
        self._standings[chain_id] = standings


def _describe(entry: Entry) -> str:
    """The block that an endpoint answered with, or why a source or an endpoint did not answer."""
    if entry.outcome == "answered":
        standing = "" if entry.standing is UNSET else f" ({entry.standing})"
        return f"{_describe_block(entry)}{standing}"
    return "a bug; the log has more" if entry.cause is UNSET else describe_cause(entry.cause)


def _describe_block(endpoint: Entry) -> str:
    """The block of an endpoint's answer, and how far that is from the head if one is known."""
    lag = endpoint.lag_blocks
    where = f", {abs(lag)} {'below' if lag > 0 else 'above'} the head" if lag else ""
    return f"block {endpoint.height}{where}"


def _describe_waiting(blocks: Waiting) -> NotComparedEntry:
    next_at = format_instant(blocks.since_at + blocks.wait_ms)
    return NotComparedEntry(blocks.first, blocks.last, blocks.why, TROUBLE_WORDS[blocks.why], next_at)


def _describe_reading(check: Check, kind: EntryKind, took_ms: int, last: SideOutcome) -> Entry:
    outcome: EntryOutcome = "failed" if last.cause is not None else "answered" if last.is_asked else "not_asked"
    return _entry(EntryKey(kind, check.name), last.at, took_ms, outcome, last.cause or UNSET)


def _describe_links(check: Check, links: Links) -> LinksEntry:
    confirmed = confirmed_breaks(links)
    return LinksEntry(
        *check,
        breaks=len(confirmed),
        suspected=len(links.breaks) - len(confirmed),
        places=tuple(
            BreakEntry(_describe_listed(found.first), _describe_listed(found.second))
            for found in confirmed[:MOST_LISTED]
        ),
        all_read_at=None if links.swept_at is None else format_instant(links.swept_at),
        unsupported=links.unsupported or UNSET,
    )


def _describe_listed(entry: ListEntry) -> ListedEntry:
    return ListedEntry(entry.id, entry.block, entry.hash, entry.transaction or UNSET)


def _describe_side(name: str, last: SideOutcome) -> SideEntry:
    at = format_instant(last.at)
    return SideEntry(name, at, "answered") if last.cause is None else SideEntry(name, at, "failed", last.cause)


def _entry(key: EntryKey, at: int, took_ms: int, outcome: EntryOutcome, cause: str | UnsetType = UNSET) -> Entry:
    return Entry(key.name, key.kind, format_instant(at), took_ms, outcome, cause, chain_id=key.chain_id)
