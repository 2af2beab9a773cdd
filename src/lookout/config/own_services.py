"""A service of the operator's own, ``[[services]]`` (R14)."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from msgspec import Meta, defstruct
from msgspec.structs import replace

from lookout.base.problem import UNREAD, Problem, run_checks
from lookout.base.setting_types import NameOrNone, Table, must
from lookout.config.source_tables import type_of_own_checks
from lookout.core.model import Answer, Blocks
from lookout.core.services import OWN_NAME, SERVICES, Service, make_title
from lookout.protocols.registry import PROTOCOLS, all_kinds
from lookout.protocols.tables import KindTable

OwnName = Annotated[
    str,
    Meta(
        pattern=rf"\A(?=.{{1,60}}\Z){OWN_NAME.pattern}\Z",
        description="up to 60 small letters, digits and -, beginning with a letter",
    ),
    must(lambda name: name not in SERVICES, "is a service of the contract, which has a table of its own"),
]


class OwnService(Table, frozen=True, kw_only=True):
    name: OwnName
    title: NameOrNone = ""
    checks: tuple[KindTable, ...]

    @property
    def shown_title(self) -> str:
        return make_title(self.name, self.title)

    def service(self) -> Service:
        chain_ids = frozenset(self.chain_ids())
        return Service(self.name, _answer_of(self.checks[0]), not chain_ids, self.title, chain_ids)

    def normalise(self) -> "OwnService":
        """An empty list is a mistake that ``validate`` reports; nothing else is to look at it."""
        return self if self.checks is UNREAD or self.checks else replace(self, checks=UNREAD)

    def chain_ids(self) -> list[int]:
        return [check.chain for check in self.checks if check.chain is not None]

    def validate(self) -> Iterable[Iterable[Problem]]:
        yield self._check_not_empty()
        yield self._check_shared()
        yield self._check_answers()
        yield self._check_chains()

    def _check_not_empty(self) -> Iterator[Problem]:
        if not self.checks:
            yield Problem("checks", "names nothing to watch")

    def _check_shared(self) -> Iterator[Problem]:
        if len(self.checks) > 1 and any(check.chain is None for check in self.checks):
            yield Problem("checks", "one without a chain is the only row of its service; name the chains, or leave one")

    def _check_answers(self) -> Iterator[Problem]:
        for number, check in enumerate(self.checks):
            first = self.checks[0]
            if _answer_of(check) is not _answer_of(first):
                what = f'answers otherwise than "{first.kind}" of checks[0]; make it a service of its own'
                yield Problem(f"checks[{number}].kind", f'"{check.kind}" {what}')

    def _check_chains(self) -> Iterator[Problem]:
        yield from run_checks(_check_has_chain(number, check) for number, check in enumerate(self.checks))


def type_of_own_services() -> Any:
    """As of now: the protocols that are declared."""
    checks = ("checks", type_of_own_checks(all_kinds()))
    return tuple[defstruct("OwnService", [checks], bases=(OwnService,), frozen=True, kw_only=True), ...]  # type: ignore[misc]


def _check_has_chain(number: int, check: KindTable) -> Iterator[Problem]:
    if check.chain is None and _answer_of(check) is Blocks:
        what = f'missing; kind "{check.kind}" gives a position, which is compared with the head of its chain'
        yield Problem(f"checks[{number}].chain", what)


def _answer_of(check: KindTable) -> type[Answer]:
    return PROTOCOLS[check.kind].answer
