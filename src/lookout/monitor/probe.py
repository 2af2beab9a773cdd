"""Every source and endpoint asked once, for a person who wants to see what they answer."""

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from lookout.base.clock import Clock
from lookout.base.instants import format_second
from lookout.config.settings import Settings
from lookout.core.model import Failed, Found, Members, MissingList, Nothing, Observation, Responding
from lookout.core.plan import Limits
from lookout.core.policy import Memory, judge
from lookout.monitor.sources import sources_of
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.source import Endpoint, Source, observe


class Probed(Struct, frozen=True):
    """What one source said about one chain, in words that never hold an address."""

    source: str
    chain_id: int | None
    answer: str
    failed: bool
    took_ms: int


async def probe_once(settings: Settings, clock: Clock) -> list[Probed]:
    """All of them at the same time, in the order of the configuration."""
    built, limits = sources_of(settings), settings.plan().limits
    async with open_session(settings.policy.probe_timeout_s) as session:
        answers = await asyncio.gather(
            *(_probe(source, session, clock, limits) for source in built.sources),
            *(_read(endpoint, session, clock) for endpoint in built.endpoints),
        )
    return [each for answer in answers for each in answer]


async def _probe(source: Source, session: Session, clock: Clock, limits: Limits) -> Iterable[Probed]:
    began_ms = clock.elapsed_ms()
    try:
        found = await observe(source, session, clock.now)
    except OwnFault as fault:
        took_ms = clock.elapsed_ms() - began_ms
        return [Probed(check.service, check.chain_id, str(fault), True, took_ms) for check in source.checks]
    took_ms = clock.elapsed_ms() - began_ms
    probed = []
    for check, what in found.items():
        _, row = judge(Memory(), Observation(check, clock.now(), what), None, limits, blind=False)
        probed.append(Probed(check.service, check.chain_id, _words(what), row.has_failed, took_ms))
    return probed


async def _read(endpoint: Endpoint, session: Session, clock: Clock) -> Iterable[Probed]:
    began_ms = clock.elapsed_ms()
    try:
        head = await endpoint.read(session, clock.now)
        answer, failed = f"block {head.height}, of {format_second(head.block_at)}", False
    except (ProbeFailed, OwnFault) as failure:
        answer, failed = str(failure), True
    return [Probed(endpoint.name, endpoint.chain_id, answer, failed, clock.elapsed_ms() - began_ms)]


def _words(found: Found) -> str:
    match found:
        case Failed(error):
            return error
        case Nothing():
            return "has nothing for this chain"
        case MissingList():
            return "does not carry the required list"
        case Responding():
            return "responds"
        case Members(responding, monitored):
            return f"{responding} of {monitored} responding"
        case _:
            return ", ".join(f"{name} {value}" for name, value in msgspec.structs.asdict(found).items())
