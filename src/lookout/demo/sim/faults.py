"""Faults: the kinds, the addresses they apply to, orders, and faults drawn from a seed.

An address is where an upstream is reached: ``rpc/1/a``, ``squid/56``, ``ppoi``. The target of a fault is an address,
the beginning of its path (``rpc/1``, ``rpc``), or ``*``.
"""

import random
from collections.abc import Iterable, Mapping
from string import ascii_lowercase
from typing import Final, Literal, NamedTuple

from lookout.demo.sim.chain import Layout

AddressKind = Literal[
    "chain",  # rpc/1
    "endpoint",  # rpc/1/a
    "indexer",  # squid/1, hosted/1, json/1
    "ppoi",  # the node
    "network",  # ppoi/1
    "peers",  # the waku node about itself
    "messages",  # its store
    "broadcasters",  # of one chain
    "line",  # line/singapore/squid: from a place to all upstreams whose addresses begin so
]


class Parameter(NamedTuple):
    """The one number that an order may give. A fault's size is that number times ``unit``."""

    name: str
    default: int
    unit: int = 1


class FaultKind(NamedTuple):
    what: str
    applies_to: tuple[AddressKind, ...]
    parameter: Parameter | None = None


class Fault(NamedTuple):
    target: str
    kind: str
    begin_at: int
    end_at: int
    size: int = 0


class Odds(NamedTuple):
    """How often a target has a fault, how long it lasts, and how large it is."""

    kind: str
    per_month: float
    shortest_s: float
    longest_s: float
    smallest: int = 0
    largest: int = 0


PLACES: Final = ("singapore", "lima")
_FAMILIES: Final = ("rpc", "squid", "hosted", "json", "ppoi", "waku")
_ALL_BROADCASTERS: Final = 1_000_000
_FOR_EVER_AT: Final = 1 << 62
_MONTH_MS: Final = 30 * 86_400_000
_SPEAKERS: Final[tuple[AddressKind, ...]] = ("endpoint", "indexer", "ppoi", "peers", "messages", "line")
_FOLLOWERS: Final[tuple[AddressKind, ...]] = ("endpoint", "indexer", "network")
_MEMBERS: Final = Parameter("first", _ALL_BROADCASTERS)

# These decide how an answer is sent, not what it says.
_WIRE: Final[dict[str, FaultKind]] = {
    "refuse": FaultKind("the connection is reset", _SPEAKERS),
    "hang": FaultKind("no answer", _SPEAKERS),
    "garbage": FaultKind("random bytes", _SPEAKERS),
    "status": FaultKind("an HTTP error", _SPEAKERS, Parameter("code", 500)),
    "late": FaultKind("a late answer", _SPEAKERS, Parameter("ms", 3_000)),
}
WIRE_FAULTS: Final = frozenset(_WIRE)
FAULTS: Final[Mapping[str, FaultKind]] = {
    **_WIRE,
    "wrong-chain": FaultKind("a node of another chain", ("endpoint",), Parameter("chainId", 61)),
    "lag": FaultKind("blocks or indexes too low", _FOLLOWERS, Parameter("by", 1_000)),
    "freeze": FaultKind("the height stops", _FOLLOWERS),
    "lie": FaultKind("blocks or indexes too high", _FOLLOWERS, Parameter("by", 1_000_000)),
    "future": FaultKind("block timestamps are ahead", ("endpoint",), Parameter("seconds", 3_600, unit=1000)),
    "past": FaultKind("block timestamps are too old", ("endpoint",), Parameter("seconds", 86_400, unit=1000)),
    "genesis": FaultKind(
        "a node that does not follow its chain yet", ("endpoint",), Parameter("timestamp", 0, unit=1000)
    ),
    "rebuild": FaultKind(
        "has nothing for a minute, then climbs so many times faster than the chain",
        ("indexer",),
        Parameter("times", 50),
    ),
    "halt": FaultKind("the chain itself stops", ("chain",)),
    "reorg": FaultKind("the newest blocks are replaced, once", ("chain",), Parameter("depth", 3)),
    "missing-list": FaultKind("the required list is missing", ("ppoi", "network")),
    "missing-network": FaultKind("the network is missing", ("network",)),
    "zero-peers": FaultKind("no peers", ("peers",)),
    "silent": FaultKind("so many announce nothing", ("broadcasters",), _MEMBERS),
    "unsigned": FaultKind("so many announce with wrong signatures", ("broadcasters",), _MEMBERS),
    "hole": FaultKind("transactions of so many blocks are missing in the list", ("indexer",), Parameter("blocks", 100)),
    "extra": FaultKind("so many transactions too many in the list", ("indexer",), Parameter("transactions", 1)),
    "lose": FaultKind("so many entries are lost, every second of the next ones", ("indexer",), Parameter("entries", 1)),
    "old-tree": FaultKind("the index is so many too low", ("network",), Parameter("by", 10)),
    "narrow": FaultKind("refuses longer ranges", ("endpoint",), Parameter("blocks", 100)),
}

# What fails without an order.
_ODDS: Final[Mapping[AddressKind, tuple[Odds, ...]]] = {
    "chain": (Odds("halt", 0.5, 300, 7_200), Odds("reorg", 4, 0.001, 0.001, 1, 6)),
    "endpoint": (
        Odds("hang", 4, 10, 3_600),
        Odds("refuse", 3, 10, 7_200),
        Odds("status", 5, 10, 7_200, 403, 503),
        Odds("freeze", 4, 60, 14_400),
        Odds("lag", 4, 60, 14_400, 2, 2_000),
        Odds("lie", 2, 30, 7_200, 50, 1_000_000),
        Odds("lie", 2, 30, 7_200, -50, -1_000_000),
        Odds("future", 2, 30, 7_200, 90_000, 86_400_000),
        Odds("wrong-chain", 2, 30, 7_200, 61, 61),
    ),
    "indexer": (
        Odds("hang", 3, 20, 3_600),
        Odds("refuse", 3, 20, 10_800),
        Odds("status", 3, 20, 7_200, 500, 503),
        Odds("freeze", 3, 120, 14_400),
        Odds("lag", 2, 600, 14_400, 20, 5_000),
    ),
    "ppoi": (
        Odds("hang", 2, 20, 3_600),
        Odds("refuse", 2, 20, 7_200),
        Odds("status", 2, 20, 7_200, 500, 503),
        Odds("missing-list", 1, 300, 7_200),
    ),
    "network": (
        Odds("freeze", 4, 120, 14_400),
        Odds("lag", 2, 600, 14_400, 1, 20),
        Odds("missing-network", 0.5, 300, 7_200),
    ),
    "messages": (Odds("hang", 2, 20, 3_600), Odds("status", 3, 20, 3_600, 500, 503)),
    "peers": (
        Odds("hang", 2, 20, 3_600),
        Odds("garbage", 3, 20, 3_600),
        Odds("zero-peers", 2, 20, 1_800),
    ),
    "broadcasters": (Odds("silent", 8, 60, 14_400, 1, 9), Odds("unsigned", 1, 60, 3_600, 1, 9)),
    "line": (Odds("refuse", 90, 300, 900), Odds("status", 60, 300, 900, 403, 429)),
}


def addresses(layout: Layout) -> dict[str, AddressKind]:
    found: dict[str, AddressKind] = {}
    for chain in layout:
        chain_id = chain.chain_id
        found[f"rpc/{chain_id}"] = "chain"
        found |= {f"rpc/{chain_id}/{letter}": "endpoint" for letter in ascii_lowercase[: chain.endpoints]}
        families = ("squid", "hosted", "json") if chain.hosted_indexer else ("squid", "json")
        found |= {f"{family}/{chain_id}": "indexer" for family in families}
        found |= {f"ppoi/{chain_id}": "network", f"broadcasters/{chain_id}": "broadcasters"}
    found |= {"ppoi": "ppoi", "waku/peers": "peers", "waku/messages": "messages"}
    return found | {line_of(place, family): "line" for place in PLACES for family in _FAMILIES}


def line_of(place: str, address: str) -> str:
    """The address of the line from a place to an upstream."""
    return f"line/{place}/{address.partition('/')[0]}"


def covering(address: str) -> list[str]:
    """The targets that cover an address or a target, the narrowest first."""
    parts = address.split("/")
    return [*("/".join(parts[:length]) for length in range(len(parts), 0, -1)), "*"]


class FaultLog:
    """Planned and ordered faults. An order replaces planned faults from its instant on, and changes no earlier
    instant."""

    def __init__(self, known: Mapping[str, AddressKind], planned: Iterable[Fault] = ()) -> None:
        self._addresses = known
        self._planned: dict[str, list[Fault]] = {}
        self._ordered: dict[str, list[Fault]] = {}
        self._of_address: dict[str, list[Fault]] = {}  # until the next order
        for fault in sorted(planned, key=lambda fault: fault.begin_at):
            self._planned.setdefault(fault.target, []).append(fault)

    def find(self, address: str, at: int) -> Fault | None:
        return next((fault for fault in self.find_all(address) if fault.begin_at <= at < fault.end_at), None)

    def find_all(self, address: str) -> list[Fault]:
        """Every fault of this address, past and future: ordered faults first, then by the narrowest target, the newest
        first."""
        if address not in self._of_address:
            kind = self._addresses[address]
            self._of_address[address] = [
                fault
                for of_target in (self._ordered, self._planned)
                for target in covering(address)
                for fault in reversed(of_target.get(target, ()))
                if kind in FAULTS[fault.kind].applies_to
            ]
        return self._of_address[address]

    def ordered_at(self, at: int) -> list[dict[str, object]]:
        """The orders in force at this instant."""
        return [
            _order(fault)
            for faults in self._ordered.values()
            for fault in faults
            if fault.begin_at <= at < fault.end_at
        ]

    def order(self, document: object, at: int) -> None:
        """Set or clear a fault from this instant on. ValueError if the order is wrong."""
        target, kind, size = _parse_order(document, self._addresses)
        self._of_address.clear()
        if kind == "reorg":  # happens once, and replaces nothing
            self._ordered.setdefault(target, []).append(Fault(target, kind, at, at + 1, size))
            return
        for other, faults in self._ordered.items():
            if other == target or (kind is None and target in covering(other)):
                faults[:] = [fault._replace(end_at=min(fault.end_at, at)) for fault in faults]
        if kind is not None:
            self._ordered.setdefault(target, []).append(Fault(target, kind, at, _FOR_EVER_AT, size))


def _order(fault: Fault) -> dict[str, object]:
    order: dict[str, object] = {"target": fault.target, "fault": fault.kind}
    parameter = FAULTS[fault.kind].parameter
    return order if parameter is None else order | {parameter.name: fault.size // parameter.unit}


def _parse_order(document: object, known: Mapping[str, AddressKind]) -> tuple[str, str | None, int]:
    """The target, the fault's kind, which is None for clearing, and its size."""
    match document:
        case {"target": str(target), "fault": str() | None as name, **given}:
            covered = {kind for address, kind in known.items() if target in covering(address)}
            if covered and name is None:
                return target, None, 0
            fault = FAULTS.get(name or "")
            if fault is not None and not covered.isdisjoint(fault.applies_to):
                if fault.parameter is None and not given:
                    return target, name, 0
                if fault.parameter is not None and given.keys() <= {fault.parameter.name}:
                    number = given.get(fault.parameter.name, fault.parameter.default)
                    if type(number) is int:
                        return target, name, number * fault.parameter.unit
    raise ValueError(
        "an order has a target, a fault that it can have, or null, and at most its parameter: GET /control"
    )


def draw_faults(layout: Layout, seed: int, begin_at: int, end_at: int, intensity: float = 1) -> tuple[Fault, ...]:
    """The faults that begin in this period, ``intensity`` times as often as the table says.

    The faults of one target do not overlap, and depend on no other target's.
    """
    drawn: list[Fault] = []
    for target, kind in addresses(layout).items():
        possible = _ODDS[kind]
        chance = random.Random(f"{seed}/{target}")
        weights = [odds.per_month for odds in possible]
        pause_ms = _MONTH_MS / (sum(weights) * intensity)  # on average
        at = begin_at + 1 + round(chance.expovariate(1 / pause_ms))
        while at < end_at:
            (odds,) = chance.choices(possible, weights)
            lasts_ms = max(1, round(1000 * _between(chance, odds.shortest_s, odds.longest_s)))
            size = round(_between(chance, odds.smallest, odds.largest))
            drawn.append(Fault(target, odds.kind, at, at + lasts_ms, size))
            at += lasts_ms + 1 + round(chance.expovariate(1 / pause_ms))
    return tuple(drawn)


def _between(chance: random.Random, low: float, high: float) -> float:
    """A size of any magnitude in this range; 0 for a fault that has no size."""
    return float(low * (high / low) ** chance.random()) if low else 0.0
