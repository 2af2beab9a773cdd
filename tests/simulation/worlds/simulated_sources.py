"""What a monitor of the simulated world probes, and what each probe finds at an instant."""

from collections.abc import Callable, Iterator
from functools import partial
from string import ascii_lowercase
from typing import Final, Literal

from lookout.core.model import Blocks, Check, Found, Indexes, Members, MissingList, Nothing, Peers
from lookout.core.plan import Plan
from lookout.core.services import SERVICES
from lookout.demo.sim.world import EndpointHead, World

Silence = Literal["hang", "fail"]
SimulatedAsk = Callable[[int], tuple[Found, ...] | Silence]
_ADDRESSES: Final = {
    "messaging": "waku/peers",
    "broadcasters": "waku/messages",
    "ppoi": "ppoi",
    "indexer": "squid/{}",
    "hosted-indexer": "hosted/{}",
}


def simulated_sources(plan: Plan, world: World) -> Iterator[tuple[tuple[Check, ...], SimulatedAsk]]:
    """What is probed as one, for the plan's monitored checks, and how it answers at an instant: ppoi and broadcasters
    answer for all their chains."""
    for service in SERVICES:
        checks = tuple(check for check in service.checks(plan.chains) if check in plan.monitored)
        for together in ((check,) for check in checks) if service.needs_head else filter(None, (checks,)):
            yield together, partial(_ask, world, together)


def _ask(world: World, checks: tuple[Check, ...], at: int) -> tuple[Found, ...] | Silence:
    service, chain_id = checks[0]
    silence = _silence(world, _ADDRESSES[service].format(chain_id), at)
    return silence or tuple(find_truth(world, check, at) for check in checks)


def find_truth(world: World, check: Check, at: int) -> Found:
    """What is so about a check, whether or not its source answers."""
    service, chain_id = check
    match service, chain_id:
        case "ppoi", int():
            network = world.network(chain_id, at)
            if network is None:
                return Nothing()
            return Indexes(network.validated, network.current) if network.listed else MissingList()
        case "broadcasters", int():
            return _members(world, chain_id, at)
        case _, int():
            indexed = world.indexed(_ADDRESSES[service].format(chain_id), at)
            return Blocks(indexed.height) if indexed.has_blocks else Nothing()
        case _:
            return Peers(world.peers(at))


def _members(world: World, chain_id: int, at: int) -> Members:
    """Broadcasters whose signatures do not verify were never heard of."""
    (known,) = (chain.members for chain in world.layout if chain.chain_id == chain_id)
    fault = world.faults.find(f"broadcasters/{chain_id}", at)
    lost = 0 if fault is None else min(known, fault.size)
    return Members(known - lost, known - lost if fault is not None and fault.kind == "unsigned" else known)


def ask_endpoint(world: World, chain_id: int, number: int, at: int) -> EndpointHead | Silence:
    """What an endpoint answers when it is asked for its newest block."""
    address = f"rpc/{chain_id}/{ascii_lowercase[number]}"
    return _silence(world, address, at) or world.endpoint_head(address, at)


def endpoint_delay_ms(world: World, chain_id: int, number: int, at: int) -> int:
    """How much longer than usual an endpoint takes to answer."""
    fault = world.faults.find(f"rpc/{chain_id}/{ascii_lowercase[number]}", at)
    return fault.size if fault is not None and fault.kind == "late" else 0


def _silence(world: World, address: str, at: int) -> Silence | None:
    """How an address that does not answer fails to."""
    fault = world.wire_fault(address, at)
    if fault is None or fault.kind == "late":
        return None
    return "hang" if fault.kind == "hang" else "fail"
