"""Asks every source and endpoint once, for the first rows that a monitor started now would publish."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from msgspec import UNSET, Struct
from prometheus_client import CollectorRegistry

from lookout.base.clock import Clock
from lookout.base.concurrency import DaemonThread
from lookout.base.instants import format_duration, parse_instant
from lookout.config.settings import Settings, Upstreams, around_of, upstreams_of
from lookout.core.causes import describe_cause
from lookout.core.heads import Reading
from lookout.core.model import Row
from lookout.documents.document import Document, DocumentName
from lookout.features.feature import ProbedPart, Probing
from lookout.features.outcome import Entry
from lookout.features.registry import FEATURES
from lookout.monitor.assembly import Machine, build_monitor
from lookout.monitor.metrics import Instruments
from lookout.monitor.monitor import Monitor, OpenSession
from lookout.protocols.client.session import open_session
from lookout.protocols.source import Source


class ProbedRow(Struct, frozen=True):
    """A row as it would be published, with its origin in words that never hold an address."""

    row: Row
    found: str = ""
    cause: str | None = None
    """Why it is not current."""
    took_ms: int | None = None
    doubts: tuple[str, ...] = ()
    """Causes of what is wrong with the source, whatever its rows; at the source's first row."""

    @property
    def is_fine(self) -> bool:
        return self.row.status in ("current", "unmonitored")


class ProbedEndpoint(Struct, frozen=True):
    name: str
    found: str
    cause: str | None
    """Why it failed, if it did."""
    is_fine: bool
    took_ms: int
    block: str = ""
    """The block in its answer, before any comparison."""


class ProbedChain(Struct, frozen=True):
    name: str
    found: str
    has_head: bool
    endpoints: tuple[ProbedEndpoint, ...]


class Probed(Struct, frozen=True):
    """The result of a probe of all sources; ``rows`` are the whole report, in its order (R12)."""

    chains: tuple[ProbedChain, ...]
    rows: tuple[ProbedRow, ...]
    parts: tuple[ProbedPart, ...] = ()
    """What features found."""


class _NoStore:
    """Of a monitor that publishes nothing."""

    def load(self) -> dict[str, bytes]:
        return {}

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None: ...

    def close(self) -> None: ...


@asynccontextmanager
async def asking_once(
    settings: Settings, clock: Clock, upstreams: Upstreams, open_session: OpenSession = open_session
) -> AsyncIterator[tuple[Monitor, Probing]]:
    """Ask these sources and endpoints as a monitor does that starts now; more questions may follow."""
    machine = Machine(
        writer=_NoStore(),
        store=DaemonThread("store"),
        instruments=Instruments(CollectorRegistry(), clock),
        clock=clock,
        open_session=open_session,
        features=(),
        build_upstreams=lambda _: upstreams,
    )
    monitor = build_monitor(settings, {}, machine)
    async with monitor.asking_once() as session:
        ledger = monitor.journal.ledger
        rows = {check: ledger.newest_row(check) for check in settings.plan().checks()}
        yield monitor, Probing(around_of(settings), ledger, session, clock, rows, monitor.watcher.heights)


async def probe_once(settings: Settings, clock: Clock) -> Probed:
    upstreams = upstreams_of(settings)
    async with asking_once(settings, clock, upstreams) as (monitor, probing):
        parts = await asyncio.gather(*(feature.probe(settings.table_of(feature), probing) for feature in FEATURES))
        entries = {
            (entry.kind, entry.name, entry.chain_id): entry for entry in monitor.instruments.board.list_entries()
        }
        now = clock.now()
        progress = probing.ledger.progress(now)
        of_endpoints = [(endpoint.chain_id, endpoint.name) for endpoint in upstreams.endpoints]
        chains = (
            _describe_chain(
                chain.name,
                progress[chain.id].head,
                [entries["endpoint", name, chain_id] for chain_id, name in of_endpoints if chain_id == chain.id],
                now,
            )
            for chain in settings.chains
        )
        sources = {
            check: (source, entries["source", source.name, UNSET])
            for source in upstreams.sources
            for check in source.checks
        }
        rows = (
            _describe_row(row, monitor.journal.causes.get(row.check), *sources.get(row.check, (None, None)))
            for row in probing.rows.values()
        )
        return Probed(tuple(chains), tuple(rows), tuple(part for some in parts for part in some))


def _describe_row(row: Row, cause: str | None, source: Source | None, entry: Entry | None) -> ProbedRow:
    if source is None or entry is None:
        return ProbedRow(row)
    if entry.outcome in ("own_fault", "bug"):  # no observation (M17)
        cause = entry.cause or None
        return ProbedRow(row, describe_cause(cause) if cause else "a bug", cause, took_ms=entry.took_ms)
    doubts = (entry.doubts or ()) if row.check == source.checks[0] else ()
    return ProbedRow(row, _describe_found(row, cause), cause, entry.took_ms, doubts)


def _describe_found(row: Row, cause: str | None) -> str:
    """The finding, and why it is not current."""
    why, metrics = "" if cause is None else describe_cause(cause), row.metrics
    if row.reason == "behind":  # the cause says both
        return why
    if metrics.position is not UNSET:
        head = "" if metrics.head is UNSET else f", head {metrics.head}"
        return "; ".join(filter(None, (why, f"position {metrics.position}{head}")))
    if row.status == "current" and metrics.monitored is not UNSET:
        return f"{metrics.responding} of {metrics.monitored}"
    if row.status == "current" and metrics.peers is not UNSET:
        return f"{metrics.peers} peers"
    return why


def _describe_chain(name: str, head: Reading | None, entries: Iterable[Entry], now: int) -> ProbedChain:
    """The head on which the chain's endpoints agree, and each of them beside it."""
    endpoints = tuple(_describe_endpoint(entry, head, now) for entry in entries)
    if head is None:
        return ProbedChain(name, "no head: no two answers that agree", False, endpoints)
    doubt = "" if head.is_fresh else "; the chain stands still, or its endpoints do"
    return ProbedChain(name, f"head: {_describe_block(head.height, head.block_at, now)}{doubt}", True, endpoints)


def _describe_endpoint(entry: Entry, head: Reading | None, now: int) -> ProbedEndpoint:
    if entry.outcome != "answered" or entry.height is UNSET or entry.block_at is UNSET:
        cause = entry.cause or None
        found = describe_cause(cause) if cause else "a bug"
        return ProbedEndpoint(entry.name, found, cause, is_fine=False, took_ms=entry.took_ms)
    block = _describe_block(entry.height, parse_instant(entry.block_at), now)
    apart = 0 if head is None else entry.height - head.height
    where = f", {abs(apart)} {'above' if apart > 0 else 'below'}" if apart else ""
    is_fine = entry.standing == "agrees"
    return ProbedEndpoint(entry.name, f"{entry.standing}{where}: {block}", None, is_fine, entry.took_ms, block)


def _describe_block(height: int, block_at: int, now: int) -> str:
    return f"block {height}, {format_duration(max(0, now - block_at))} old"
