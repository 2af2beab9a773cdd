"""The services that are watched, each declared once: the five of the contract here, and an operator's own in the
configuration (R14).

A declaration decides the service's rows and their order, how its probes are judged and recorded, its table in the
configuration, whether it is compared with a chain's head, and its name in alerts and metrics. CONTRIBUTING.md lists the
files with sentences about single services.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from lookout.base.problem import Problem
from lookout.core.model import Answer, Blocks, Check, Failed, Found, Indexes, Members, MissingList, Nothing, Peers


class Named(Protocol):
    @property
    def name(self) -> str: ...


Value = TypeVar("Value", bound=Named)


class Registry(Generic[Value]):
    """The declared values by name, in the order of declaration."""

    def __init__(self, *values: Value) -> None:
        self._by_name = {value.name: value for value in values}

    def __iter__(self) -> Iterator[Value]:
        return iter(self._by_name.values())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._by_name

    def __getitem__(self, name: str) -> Value:
        return self._by_name[name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def add(self, value: Value) -> None:
        self._by_name = {**self._by_name, value.name: value}


class Service(Struct, frozen=True):
    """``answer`` is the type of a successful probe's result, by which the policy judges."""

    name: str
    answer: type[Answer]
    is_shared: bool = False
    """One row without a chain instead of one per chain."""
    given_title: str = ""
    only_on: frozenset[int] | None = None
    """The chains that the service has rows for; None for all."""

    @property
    def title(self) -> str:
        return make_title(self.name, self.given_title)

    @property
    def needs_head(self) -> bool:
        """Whether the service's position is compared with the head of its chain."""
        return self.answer is Blocks

    @property
    def has_list(self) -> bool:
        """Whether the service is an indexer, whose list of transactions can be compared with the chain (S17)."""
        return self.needs_head and self.name in SERVICES

    @property
    def has_required_list(self) -> bool:
        """Whether a probe can find that the required list is missing (S13)."""
        return self.answer is Indexes

    def checks(self, chain_ids: Iterable[int]) -> tuple[Check, ...]:
        if self.is_shared:
            return (Check(self.name, None),)
        own = (chain_id for chain_id in chain_ids if self.only_on is None or chain_id in self.only_on)
        return tuple(Check(self.name, chain_id) for chain_id in sorted(own))

    def gives(self, found: Found) -> bool:
        if isinstance(found, MissingList):
            return self.has_required_list
        return isinstance(found, self.answer | Nothing | Failed)


PPOI: Final = "ppoi"  # the only service that is compared with another service (S21)
OWN_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")  # of a service of the operator's own (R14)

# In the report's order (R12).
SERVICES: Final = Registry(
    Service("messaging", Peers, is_shared=True),
    Service(PPOI, Indexes, given_title="Private proof of innocence"),
    Service("broadcasters", Members),
    Service("indexer", Blocks),
    Service("hosted-indexer", Blocks),
)


def make_title(name: str, given: str) -> str:
    return given or name.replace("-", " ").capitalize()


def all_services(own: Iterable[Service] = ()) -> tuple[Service, ...]:
    """The contract's services, then the operator's own, in the report's order (R12, R14)."""
    return (*SERVICES, *own)


def all_checks(chain_ids: Iterable[int], own: Iterable[Service] = ()) -> tuple[Check, ...]:
    """Every service on every chain, in the report's order (R3, R12)."""
    chain_ids = tuple(chain_ids)
    return tuple(check for service in all_services(own) for check in service.checks(chain_ids))


def find_unknown_services(key: str, named: Iterable[str], known: Collection[str]) -> Iterator[Problem]:
    """Problems of the services that a key of the configuration names."""
    for number, name in enumerate(named):
        if name not in known:
            yield Problem(f"{key}[{number}]", f"there is no such service; there are {', '.join(known)}")
