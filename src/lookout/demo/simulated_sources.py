"""What a monitor of the simulated world probes, and what each probe finds at an instant."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

from lookout.core.model import Blocks, Check, Found, Indexes, Members, MissingList, Nothing, Peers, Responding
from lookout.core.plan import Plan
from lookout.core.services import all_services
from lookout.demo.sim.world import Silence, World

SimulatedAsk = Callable[[int], tuple[Found, ...] | Silence]


def simulated_sources(plan: Plan, world: World) -> Iterator[tuple[tuple[Check, ...], SimulatedAsk]]:
    """What is probed as one, for the plan's monitored checks, and how it answers at an instant: ppoi and broadcasters
    answer for all their chains."""
    for service in all_services(plan.own_services):
        checks = tuple(check for check in service.checks(plan.chains) if check in plan.monitored)
        chain_ids = [check.chain_id for check in checks if check.chain_id is not None]
        ask_one = _ask_indexer if service.needs_head else _ask_responder
        match service.name:
            case "messaging" if checks:
                yield checks, partial(_ask_messaging, world)
            case "ppoi" if checks:
                yield checks, partial(_ask_ppoi, world, chain_ids)
            case "broadcasters" if checks:
                yield checks, partial(_ask_broadcasters, world, chain_ids)
            case name:
                for chain_id in chain_ids:
                    yield (Check(name, chain_id),), partial(ask_one, world, name, chain_id)


def _ask_messaging(world: World, at: int) -> tuple[Found, ...] | Silence:
    peers = world.messaging(at)
    return peers if isinstance(peers, str) else (Peers(peers),)


def _ask_ppoi(world: World, chain_ids: Sequence[int], at: int) -> tuple[Found, ...] | Silence:
    networks = world.ppoi(at)
    if isinstance(networks, str):
        return networks
    return tuple(_indexes(networks.get(chain_id, "nothing")) for chain_id in chain_ids)


def _indexes(of_network: tuple[int, int] | Literal["nothing", "missing-list"]) -> Found:
    match of_network:
        case "nothing":
            return Nothing()
        case "missing-list":
            return MissingList()
        case (validated, current):
            return Indexes(validated, current)


def _ask_broadcasters(world: World, chain_ids: Sequence[int], at: int) -> tuple[Found, ...] | Silence:
    members = world.broadcasters(at)
    if isinstance(members, str):
        return members
    return tuple(Members(*members.get(chain_id, (0, 0))) for chain_id in chain_ids)


def _ask_responder(world: World, service: str, chain_id: int, at: int) -> tuple[Found, ...] | Silence:
    return world.responder(service, chain_id, at) or (Responding(),)


def _ask_indexer(world: World, service: str, chain_id: int, at: int) -> tuple[Found, ...] | Silence:
    position = world.indexer(service, chain_id, at)
    if isinstance(position, str):
        return position
    return (Nothing() if position < 0 else Blocks(position),)
