"""The table of each service as it is written: derived from the services and the protocols that are declared."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

from msgspec import NODEFAULT, defstruct
from msgspec.structs import asdict, fields

from lookout.base.problem import UNREAD, Problem
from lookout.base.setting_types import Natural, OneOf, Positive, Url
from lookout.core.model import Blocks
from lookout.core.services import Service
from lookout.protocols.client.request import AccessTable
from lookout.protocols.lists import CompleteTable, ListTable
from lookout.protocols.plugins import PluginProtocol, guard_checks
from lookout.protocols.registry import has_one_table, kinds_for, own_table_for
from lookout.protocols.source import Protocol
from lookout.protocols.tables import KindTable


class AnyKindTable(AccessTable, frozen=True):
    """A table whose ``kind`` names its protocol, with the keys of all kinds that it can be of."""

    kinds: ClassVar[Mapping[str, Protocol[KindTable]]]
    kind: ClassVar[str]  # a key of each subclass

    def normalise(self) -> KindTable:
        table = KindTable if self.kind is UNREAD else self.kinds[self.kind].settings
        missing = {each.name: UNREAD for each in fields(table) if each.required} | {"chain": None}
        given = {name: value for name, value in asdict(self).items() if value is not None and _has(table, name)}
        try:
            return table(**missing | given)
        except (Exception, SystemExit):
            if not self._is_plugin():
                raise
            # A plug-in's settings may raise anything; its checks report that.
            return KindTable(**{name: value for name, value in (missing | given).items() if _has(KindTable, name)})

    def validate(self) -> Iterable[Iterable[Problem]]:
        table = self.normalise()
        if self._is_plugin():
            yield guard_checks(table, self.kinds[self.kind].settings)
        else:
            yield from table.validate()
        yield self._check_missing()
        yield from (self._check_kind_has(each.name, each.default) for each in reversed(fields(self)))

    def _is_plugin(self) -> bool:
        return self.kind is not UNREAD and isinstance(self.kinds[self.kind], PluginProtocol)

    def _check_missing(self) -> Iterator[Problem]:
        required = {each.name for each in fields(self.kinds[self.kind].settings) if each.required}
        yield from (
            Problem(name, "missing")
            for name, value in asdict(self).items()
            if name in required and value is None and name != "chain"
        )

    def _check_kind_has(self, name: str, default: Any) -> Iterator[Problem]:
        having = [kind for kind, protocol in self.kinds.items() if _takes(protocol, name)]
        if self.kind not in having and getattr(self, name) != default:
            yield Problem(name, f"is for kind {_join(having)} alone")


def type_of_tables(service: Service) -> Any:
    """What the key of a service holds: ``[name]`` or ``[[name]]``."""
    own = own_table_for(service)
    if own is not None:
        table: Any = own.settings
    else:
        table = _any_kind_table(
            kinds_for(service),
            chain=None if service.is_shared else (Positive,),
            confirmations=(Natural,) if service.needs_head else None,
            complete=(CompleteTable, None) if service.needs_head else None,
        )
    return table if has_one_table(service) else tuple[table, ...]


def type_of_own_checks(kinds: Iterable[Protocol[KindTable]]) -> Any:
    """What ``[[services.checks]]`` holds."""
    return tuple[_any_kind_table(kinds, chain=(Positive, None), confirmations=(Natural, 0)), ...]  # type: ignore[misc]


def _any_kind_table(
    kinds: Iterable[Protocol[KindTable]],
    chain: tuple[Any, ...] | None,
    confirmations: tuple[Any, ...] | None,
    complete: tuple[Any, ...] | None = None,
) -> type[AnyKindTable]:
    """With these keys, given by their type and default, if it has them."""
    by_name = {each.name: each for each in kinds}
    # Whether one of them is required depends on the kind, and is checked when that is known.
    own = {
        each.name: (each.name, each.type, None if each.default is NODEFAULT else each.default)
        for protocol in by_name.values()
        for each in fields(protocol.settings)
        if not _has(ListTable, each.name)
    }
    keys: list[Any] = [
        *([] if chain is None else [("chain", *chain)]),
        ("kind", Annotated[str, OneOf(lambda: by_name)]),
        ("url", Url),
        *([] if confirmations is None else [("confirmations", *confirmations)]),
        *own.values(),
        *([] if complete is None else [("complete", *complete)]),
    ]
    table: type[Any] = defstruct(
        "AnyKindTable", keys, bases=(AnyKindTable,), namespace={"kinds": by_name}, frozen=True, kw_only=True
    )
    return table


def _join(kinds: Iterable[str]) -> str:
    *first, last = (f'"{kind}"' for kind in kinds)
    return f"{', '.join(first)} and {last}" if first else last


def _has(table: type[KindTable], key: str) -> bool:
    return key in table.__struct_fields__


def _takes(protocol: Protocol[KindTable], key: str) -> bool:
    return _has(protocol.settings, key) and (key != "confirmations" or protocol.answer is Blocks)
