"""A service of the operator's own, ``[[services]]`` (R14)."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from msgspec import Meta, defstruct, field
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
    """What is named ``checks`` in the file is ``rows`` here."""

    name: OwnName
    title: NameOrNone = ""
    rows: tuple[KindTable, ...] = field(name="checks")

    @property
    def shown_title(self) -> str:
        return make_title(self.name, self.title)

    def service(self) -> Service:
        chain_ids = frozenset(self.chain_ids())
        return Service(self.name, _answer_of(self.rows[0]), not chain_ids, self.title, chain_ids)

    def settle(self) -> "OwnService":
        return self if self.rows is UNREAD or self.rows else replace(self, rows=UNREAD)

    def chain_ids(self) -> list[int]:
        return [row.chain for row in self.rows if row.chain is not None]

    def checks(self) -> Iterable[Iterable[Problem]]:
        yield self._check_not_empty()
        yield self._check_shared()
        yield self._check_answers()
        yield self._check_chains()

    def _check_not_empty(self) -> Iterator[Problem]:
        if not self.rows:
            yield Problem("checks", "names nothing to watch")

    def _check_shared(self) -> Iterator[Problem]:
        if len(self.rows) > 1 and any(row.chain is None for row in self.rows):
            yield Problem("checks", "one without a chain is the only row of its service; name the chains, or leave one")

    def _check_answers(self) -> Iterator[Problem]:
        for number, row in enumerate(self.rows):
            first = self.rows[0]
            if _answer_of(row) is not _answer_of(first):
                what = f'answers otherwise than "{first.kind}" of checks[0]; make it a service of its own'
                yield Problem(f"checks[{number}].kind", f'"{row.kind}" {what}')

    def _check_chains(self) -> Iterator[Problem]:
        yield from run_checks(_check_has_chain(number, row) for number, row in enumerate(self.rows))


def type_of_own_services() -> Any:
    """As of now: the protocols that are declared."""
    rows = ("rows", type_of_own_checks(all_kinds()), field(name="checks"))
    return tuple[defstruct("OwnService", [rows], bases=(OwnService,), frozen=True, kw_only=True), ...]  # type: ignore[misc]


def _check_has_chain(number: int, row: KindTable) -> Iterator[Problem]:
    if row.chain is None and _answer_of(row) is Blocks:
        what = f'missing; kind "{row.kind}" gives a position, which is compared with the head of its chain'
        yield Problem(f"checks[{number}].chain", what)


def _answer_of(row: KindTable) -> type[Answer]:
    return PROTOCOLS[row.kind].answer
