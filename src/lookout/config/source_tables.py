"""The table of each service as it is written: derived from the services and the protocols that are declared."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

from msgspec import NODEFAULT, defstruct
from msgspec.structs import asdict, fields

from lookout.base.problem import UNREAD, Problem
from lookout.base.setting_types import Natural, OneOf, Positive, Url
from lookout.core.services import Service
from lookout.protocols.client.access import AccessTable
from lookout.protocols.registry import has_one_table, kinds_for, own_table_for
from lookout.protocols.tables import KindTable


class AnyKindTable(AccessTable, frozen=True):
    """A table whose ``kind`` names its protocol, with the keys of all kinds that it can be of."""

    kinds: ClassVar[Mapping[str, type[KindTable]]]
    kind: ClassVar[str]  # a key of each subclass

    def settle(self) -> KindTable:
        table = KindTable if self.kind is UNREAD else self.kinds[self.kind]
        missing = {each.name: UNREAD for each in fields(table) if each.required} | {"chain": None}
        given = {name: value for name, value in asdict(self).items() if value is not None and _has(table, name)}
        return table(**missing | given)

    def checks(self) -> Iterable[Iterable[Problem]]:
        yield from self.settle().checks()
        yield self._check_missing()
        yield from (self._check_kind_has(each.name, each.default) for each in reversed(fields(self)))

    def _check_missing(self) -> Iterator[Problem]:
        required = {each.name for each in fields(self.kinds[self.kind]) if each.required}
        yield from (
            Problem(name, "missing") for name, value in asdict(self).items() if name in required and value is None
        )

    def _check_kind_has(self, name: str, default: Any) -> Iterator[Problem]:
        having = [kind for kind, table in self.kinds.items() if _has(table, name)]
        if self.kind not in having and getattr(self, name) != default:
            yield Problem(name, "is for kind {} alone".format(" and ".join(f'"{kind}"' for kind in having)))


def type_of_tables(service: Service) -> Any:
    """What the key of a service holds: ``[name]`` or ``[[name]]``."""
    own = own_table_for(service)
    table: Any = _any_kind_table(service) if own is None else own.settings
    return table if has_one_table(service) else tuple[table, ...]


def _any_kind_table(service: Service) -> type[AnyKindTable]:
    kinds = {each.name: each.settings for each in kinds_for(service)}
    # Whether one of them is required depends on the kind, and is checked when that is known.
    own = {
        each.name: (each.name, each.type, None if each.default is NODEFAULT else each.default)
        for table in kinds.values()
        for each in fields(table)
        if not _has(KindTable, each.name)
    }
    keys: list[Any] = [
        *([] if service.is_shared else [("chain", Positive)]),
        ("kind", Annotated[str, OneOf(lambda: kinds)]),
        ("url", Url),
        *([("confirmations", Natural)] if service.needs_head else []),
        *own.values(),
    ]
    table: type[Any] = defstruct(
        "AnyKindTable", keys, bases=(AnyKindTable,), namespace={"kinds": kinds}, frozen=True, kw_only=True
    )
    return table


def _has(table: type[KindTable], key: str) -> bool:
    return key in table.__struct_fields__
