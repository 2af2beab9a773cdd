"""Asks every source and endpoint once, for the first rows that a monitor started now would publish."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_fields
from typing import NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from lookout.base.clock import Clock
from lookout.base.instants import format_duration
from lookout.config.settings import Settings, around_of, upstreams_of
from lookout.config.tables import ChainTable
from lookout.core.causes import describe_cause, explain, find_doubts
from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Blocks, Check, Found, Indexes, Members, Observation, Peers, Row
from lookout.core.plan import Limits
from lookout.features.feature import ProbedPart, Probing
from lookout.features.registry import FEATURES
from lookout.protocols.client.failure import OwnFault
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.heads import read_heads_once
from lookout.protocols.source import Endpoint, Source, observe


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


class _Run(NamedTuple):
    """A monitor's first moments."""

    ledger: Ledger
    limits: Limits
    session: Session
    clock: Clock


async def probe_once(settings: Settings, clock: Clock) -> Probed:
    """Ask all sources and endpoints at the same time. As after a start, positions are compared once all endpoints have
    answered."""
    upstreams, plan = upstreams_of(settings), settings.plan()
    ledger = Ledger(plan)
    ledger.start(clock.now())
    async with open_session(settings.policy.probe_timeout_s) as session, asyncio.TaskGroup() as group:
        run = _Run(ledger, plan.limits, session, clock)
        chains: dict[int | None, asyncio.Task[ProbedChain]] = {
            chain.id: group.create_task(
                _read_head(chain, [each for each in upstreams.endpoints if each.chain_id == chain.id], run)
            )
            for chain in settings.chains
        }
        probes = [group.create_task(_probe(source, chains, run)) for source in upstreams.sources]

        async def rows() -> dict[Check, Row]:
            return {probed.row.check: probed.row for probe in probes for probed in await probe}

        probing = Probing(around_of(settings, upstreams), ledger, session, clock, rows)
        of_features = [group.create_task(feature.probe(probing)) for feature in FEATURES]
    probed = {row.row.check: row for probe in probes for row in probe.result()}
    return Probed(
        tuple(task.result() for task in chains.values()),
        tuple(probed.get(check) or ProbedRow(ledger.newest_row(check)) for check in plan.checks()),
        tuple(part for task in of_features for part in task.result()),
    )


async def _probe(source: Source, chains: Mapping[int | None, asyncio.Task[ProbedChain]], run: _Run) -> list[ProbedRow]:
    """Let the ledger judge what a source says."""
    began_ms, ends = run.clock.elapsed_ms(), list[int]()
    session = with_fields(run.session, hear_certificate=ends.append)
    try:
        found = await observe(source, session, run.clock.now)
    except OwnFault as fault:  # no observation (M17)
        took_ms = run.clock.elapsed_ms() - began_ms
        return [
            ProbedRow(run.ledger.newest_row(check), describe_cause(fault.cause), fault.cause, took_ms=took_ms)
            for check in source.checks
        ]
    took_ms = run.clock.elapsed_ms() - began_ms
    probed = []
    for check, what in found.items():
        answers = True
        if isinstance(what, Blocks) and check.chain_id in chains:
            chain = await chains[check.chain_id]
            answers = any(endpoint.cause is None for endpoint in chain.endpoints)
        now = run.clock.now()
        row = run.ledger.judge(Observation(check, now, what))
        read = run.ledger.head_for(check, now)
        cause = explain(what, row, read, endpoints_answer=answers)
        probed.append(ProbedRow(row, _describe(what, row, cause), cause, took_ms))
    doubts = find_doubts(found.values(), min(ends, default=None), run.clock.now())
    probed[0] = replace(probed[0], doubts=doubts)
    return probed


async def _read_head(chain: ChainTable, endpoints: Sequence[Endpoint], run: _Run) -> ProbedChain:
    """Let the chain's endpoints agree on a head, and compare them with it."""
    heads = run.ledger.heads(chain.id)
    read = await read_heads_once(endpoints, heads, run.limits.head_max_age_ms, run.session, run.clock)
    now, compared = run.clock.now(), []
    for endpoint, (said, took_ms, _), standing in zip(endpoints, read.answers, read.standings, strict=True):
        if isinstance(said, str):
            compared.append(ProbedEndpoint(endpoint.name, describe_cause(said), said, is_fine=False, took_ms=took_ms))
        else:
            block, is_fine = _describe_block(said, now), standing == "agrees"
            beside_head = f"{standing}{_describe_distance(said, read.head)}: {block}"
            compared.append(ProbedEndpoint(endpoint.name, beside_head, None, is_fine, took_ms, block))
    words = _describe_head(read.head, now) if read.head else "no head: no two answers that agree"
    return ProbedChain(chain.name, words, read.head is not None, tuple(compared))


def _describe_distance(answer: Reading, head: Reading | None) -> str:
    apart = 0 if head is None else answer.height - head.height
    return f", {abs(apart)} {'above' if apart > 0 else 'below'}" if apart else ""


def _describe_block(block: Reading, now: int) -> str:
    return f"block {block.height}, {format_duration(max(0, now - block.block_at))} old"


def _describe_head(head: Reading, now: int) -> str:
    doubt = "" if head.is_fresh else "; the chain stands still, or its endpoints do"
    return f"head: {_describe_block(head, now)}{doubt}"


def _describe(found: Found, row: Row, cause: str | None) -> str:
    """The finding, and why it is not current."""
    why = "" if cause is None else describe_cause(cause)
    match found:
        case Blocks(position) | Indexes(position):
            head = row.metrics.head
            if row.reason == "behind":  # the cause says both
                return why
            where = f"position {position}" if head is UNSET else f"position {position}, head {head}"
            return "; ".join(filter(None, (why, where)))
        case Members(responding, monitored) if row.status == "current":
            return f"{responding} of {monitored}"
        case Peers(peers) if row.status == "current":
            return f"{peers} peers"
        case _:
            return why
