"""Faults that were ordered: what an order says, and which faults hold since, from when until when.

A target is an address, the beginning of its path (``rpc/1``, ``rpc``), or ``*``. Where several targets cover an
address, the longest decides.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lookout.demo.sim.episodes import FaultEpisode
from lookout.demo.sim.faults import ORDERED, Fault
from lookout.demo.sim.layout import UpstreamAddress

_FOR_EVER_AT: Final = 1 << 62
_MOMENTARY: Final = "reorg"


class Order(NamedTuple):
    """Set this fault on a target, or with None clear the target and all beneath it."""

    target: str
    fault: str | None
    size: int = 0


class OrderError(ValueError):
    """An order that cannot be followed; the text says why."""


class OrderLog:
    """Every fault that was ever ordered, as an episode whose subject is the target: what is asked about an instant in
    the past is answered as it was then."""

    def __init__(self, addresses: Mapping[str, UpstreamAddress]) -> None:
        self._addresses = addresses
        self._by_target: dict[str, list[FaultEpisode]] = {}

    def apply(self, order: Order, at: int) -> None:
        target, fault, size = order
        if fault is None:
            for each in self._by_target:
                if target in _covering(each):
                    self._end(each, at)
            return
        if fault != _MOMENTARY:
            self._end(target, at)
        end_at = at + 1 if fault == _MOMENTARY else _FOR_EVER_AT
        self._by_target.setdefault(target, []).append(FaultEpisode(target, fault, at, end_at, size))

    def set_at(self, at: int) -> list[FaultEpisode]:
        """All that holds at this instant."""
        return [each for episodes in self._by_target.values() for each in episodes if each.begin_at <= at < each.end_at]

    def find(self, address: str, at: int) -> FaultEpisode | None:
        """The fault that this address has at this instant."""
        return next((each for each in self.find_all(address) if each.begin_at <= at < each.end_at), None)

    def find_all(self, address: str) -> Iterator[FaultEpisode]:
        """All faults that this address ever had: those of the longest target first, and of each target the newest."""
        kind = self._addresses[address].kind
        for target in _covering(address):
            for each in reversed(self._by_target.get(target, ())):
                if kind in ORDERED[each.kind].applies_to:
                    yield each

    def _end(self, target: str, at: int) -> None:
        self._by_target[target] = [
            each._replace(end_at=at) if each.end_at == _FOR_EVER_AT else each
            for each in self._by_target.get(target, ())
        ]


def parse_order(document: object, addresses: Mapping[str, UpstreamAddress]) -> Order:
    """What was ordered; OrderError says what is wrong with it."""
    if not isinstance(document, dict):
        raise OrderError('an order is a JSON object: {"target": "rpc/1/a", "fault": "hang"}')
    for key in ("target", "fault"):
        if key not in document:
            raise OrderError(f"{key} is missing")
    target, name = document["target"], document["fault"]
    further = {key: value for key, value in document.items() if key not in ("target", "fault")}
    covered = {place.kind for address, place in addresses.items() if target in _covering(address)}
    if not covered:
        known = sorted({target for address in addresses for target in _covering(address)})
        raise OrderError(f"target is {target!r}; there are {', '.join(known)}")
    if name is None:
        if further:
            raise OrderError(f"{', '.join(further)}: nothing more can be said when clearing")
        return Order(target, None)
    if not isinstance(name, str) or name not in ORDERED:
        raise OrderError(f"fault is {name!r}; there are {', '.join(ORDERED)}, and null to clear")
    fault = ORDERED[name]
    if covered.isdisjoint(fault.applies_to):
        possible = [name for name, fault in ORDERED.items() if not covered.isdisjoint(fault.applies_to)]
        raise OrderError(f"{name} does not apply to {target}; what does: {', '.join(possible)}")
    return Order(target, name, _parse_size(fault, further))


def _parse_size(fault: Fault, given: dict[str, object]) -> int:
    parameter = fault.parameter
    allowed = "no parameter" if parameter is None else parameter.name
    unknown = [key for key in given if key != allowed]
    if unknown:
        raise OrderError(f"{', '.join(unknown)}: {fault.name} takes {allowed}")
    if parameter is None:
        return 0
    number = given.get(parameter.name, parameter.default)
    if isinstance(number, bool) or not isinstance(number, int) or not parameter.lowest <= number <= parameter.highest:
        raise OrderError(
            f"{parameter.name} is {number!r}; it is a whole number from {parameter.lowest} to {parameter.highest}"
        )
    return number * parameter.unit


def _covering(address: str) -> list[str]:
    """The targets that cover an address or a target, the longest first."""
    parts = address.split("/")
    longer = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return longer if address == "*" else [*longer, "*"]
