"""A past for the demo: the events of a fortnight with incidents, as a monitor would have recorded them."""

from collections.abc import Iterator, Sequence
from itertools import cycle
from random import Random
from typing import Final, Literal, NamedTuple

from lookout.core.heads import Reading
from lookout.core.model import (
    NO_GAPS,
    Blocks,
    Check,
    Failed,
    Found,
    Gaps,
    Indexes,
    Members,
    MissingList,
    Nothing,
    Observation,
    Peers,
)
from lookout.core.notices import Notice
from lookout.demo.sim.chain import Block, ChainLayout
from lookout.demo.sim.world import World
from lookout.state.log import Compared, Event, HeadRead, Started, Stopped

FORTNIGHT_MS: Final = 14 * 86_400_000
STEP_MS: Final = 140_000  # between two probes of a check: less than the lifetime of a row
_MINUTE_MS: Final = 60_000

IncidentKind = Literal["down", "stuck", "partial", "nothing", "missing-list", "incomplete", "stopped"]


class Incident(NamedTuple):
    """One check fails in one way; without a check, the monitor itself is stopped."""

    check: Check | None
    kind: IncidentKind
    begin_at: int
    end_at: int


class _Usual(NamedTuple):
    service: str | None
    kind: IncidentKind
    shortest: int
    longest: int


# What a good wallet's services have in a fortnight: one of each, to learn the page's words from.
_USUAL: Final = (
    _Usual(None, "stopped", 60, 120),
    _Usual("messaging", "down", 11, 15),
    _Usual("indexer", "incomplete", 30, 35),
    _Usual("ppoi", "nothing", 30, 60),
    _Usual("broadcasters", "partial", 15, 25),
    _Usual("indexer", "down", 12, 20),
    _Usual("ppoi", "stuck", 15, 25),
    _Usual("hosted-indexer", "stuck", 15, 25),
    _Usual("ppoi", "missing-list", 30, 60),
    _Usual("indexer", "stuck", 15, 25),
    _Usual("broadcasters", "down", 11, 15),
)


def draw_incidents(world: World, seed: int, end_at: int) -> list[Incident]:
    """The networks have them by turns, so that each was well for 99.5 % of the time or more."""
    chance = Random(seed)  # noqa: S311  has to be repeatable
    order = [chain.chain_id for chain in world.layout]
    chance.shuffle(order)
    turns = cycle(order)
    incidents: list[Incident] = []
    for service, kind, shortest, longest in _USUAL:
        begin_at = end_at - chance.randrange((longest + 60) * _MINUTE_MS, FORTNIGHT_MS)
        lasts_ms = chance.randrange(shortest, longest) * _MINUTE_MS
        incidents.append(Incident(_take_turn(world, service, turns), kind, begin_at, begin_at + lasts_ms))
    return incidents


def _take_turn(world: World, service: str | None, turns: Iterator[int]) -> Check | None:
    watched = {check for check, _ in _watched(world)}
    if service is None:
        return None
    shared = Check(service, None)
    if shared in watched:
        return shared
    return next(check for chain_id in turns if (check := Check(service, chain_id)) in watched)


def make_note(incidents: Sequence[Incident]) -> Notice:
    """What the operator said of the gap in an indexer's list."""
    check, begin_at, end_at = next((check, begin, end) for check, kind, begin, end in incidents if kind == "incomplete")
    text = "The indexer's list lacked two transactions, and its operator repaired it. No wallet had to be rescanned."
    chains = () if check is None or check.chain_id is None else (check.chain_id,)
    return Notice("1", "note", text, begin_at, begin_at, end_at, ("indexer",), chains)


def make_events(world: World, incidents: Sequence[Incident], begin_at: int, end_at: int) -> Iterator[Event]:
    """The observation log of a monitor in this period, with the heads of the world and these incidents."""
    watched, is_running, gaps = list(_watched(world)), False, dict[Check, Gaps]()
    for at in range(begin_at, end_at, STEP_MS):
        active = {incident.check: incident for incident in incidents if incident.begin_at <= at < incident.end_at}
        if is_running == (None in active):
            is_running = not is_running
            yield Started(at) if is_running else Stopped(at)
        if not is_running:
            continue
        heads = {chain: world.head(chain.chain_id, at) for chain in world.layout}
        for chain, head in heads.items():
            yield HeadRead(at, chain.chain_id, Reading(at, *head))
        for check, chain in watched:
            incident = active.get(check)
            found_gaps = Gaps(missing=2) if incident and incident.kind == "incomplete" else NO_GAPS
            if gaps.get(check, NO_GAPS) != found_gaps:
                gaps[check] = found_gaps
                yield Compared(at, check, found_gaps)
            yield Observation(check, at, _found(world, check, chain, incident, at, heads[chain]))
    if is_running:
        yield Stopped(end_at)


def _watched(world: World) -> Iterator[tuple[Check, ChainLayout]]:
    yield Check("messaging", None), world.layout[0]
    for chain in world.layout:
        for service in ("ppoi", "broadcasters", "indexer", "hosted-indexer"):
            if service != "hosted-indexer" or chain.hosted_indexer:
                yield Check(service, chain.chain_id), chain


def _found(world: World, check: Check, chain: ChainLayout, incident: Incident | None, at: int, head: Block) -> Found:
    kind = None if incident is None else incident.kind
    stuck_at = incident.begin_at if incident is not None and kind == "stuck" else None
    match check.service, kind:
        case _, "down":
            return Failed("timeout")
        case _, "nothing":
            return Nothing()
        case _, "missing-list":
            return MissingList()
        case "messaging", _:
            return Peers(world.peers(at) or 1)
        case "ppoi", _:
            current = world.tree_index(chain.chain_id, at)
            return Indexes(current if stuck_at is None else world.tree_index(chain.chain_id, stuck_at), current)
        case "broadcasters", _:
            return Members(chain.members // 2 if kind == "partial" else chain.members, chain.members)
        case _:
            reached = head if stuck_at is None else world.head(chain.chain_id, stuck_at)
            return Blocks(reached.height - chain.confirmations)
