"""How the table of each service is read: derived from the services and the protocols that are declared."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from msgspec import NODEFAULT
from msgspec.structs import fields

from lookout.base.problem import UNREAD, Problem
from lookout.base.setting_types import Form, Key, OneOf, Positive, Rows
from lookout.core.services import Service
from lookout.protocols.protocol import Protocol
from lookout.protocols.registry import has_one_table, kinds_for, own_table_for
from lookout.protocols.tables import KindTable

_OF_ALL_KINDS = frozenset(each.encode_name for each in fields(KindTable))


def form_of(service: Service) -> Form | Rows:
    """``[name]`` or ``[[name]]``, with the keys of the protocols that give such answers."""
    own = own_table_for(service)
    form = KindForm(service) if own is None else Form(own.settings)
    return form if has_one_table(service) else Rows(form)


class KindForm(Form):
    """A table whose ``kind`` names its protocol. The keys of all its protocols are read, whichever it is."""

    def __init__(self, service: Service) -> None:
        super().__init__(KindTable)
        self._service = service

    def list_keys(self) -> Iterable[Key]:
        for key in super().list_keys():
            match key.name:
                case "chain" if not self._service.is_shared:
                    yield Key("chain", Positive)
                case "kind":
                    yield Key("kind", Annotated[str, OneOf(lambda: [each.name for each in kinds_for(self._service)])])
                case "url":
                    yield key
                case "confirmations" if self._service.needs_head:
                    yield Key("confirmations", key.holds)
                case "headers":
                    # Whether one of them is required depends on the kind, and is checked when that is known.
                    own = {each.name: each for kind in kinds_for(self._service) for each in _own_keys(kind)}
                    yield from (_not_required(each) for each in own.values())
                    yield key

    def build(self, read: dict[str, Any]) -> KindTable:
        kind = self._kind(read)
        table = KindTable if kind is None else kind.settings
        known = {each.name for each in fields(table)}
        built = {"chain": None, **{name: value for name, value in read.items() if name in known}}
        return table(**dict.fromkeys(_missing(kind, read), UNREAD), **built)

    def checks(self, table: KindTable, read: dict[str, Any]) -> Iterable[Iterable[Problem]]:
        yield from table.checks()
        kind = self._kind(read)
        if kind is not None:
            yield [Problem(name, "missing") for name in _missing(kind, read)]
            own = {key.name for key in _own_keys(kind)}
            for name in reversed(read):
                if name not in _OF_ALL_KINDS and name not in own:
                    yield self._check_left_out(name, read[name])

    def _check_left_out(self, name: str, value: Any) -> Iterator[Problem]:
        if value:
            having = [each.name for each in kinds_for(self._service) if name in {key.name for key in _own_keys(each)}]
            yield Problem(name, "is for kind {} alone".format(" and ".join(f'"{kind}"' for kind in having)))

    def _kind(self, read: dict[str, Any]) -> Protocol[Any] | None:
        name = read.get("kind", UNREAD)
        return None if name is UNREAD else next(each for each in kinds_for(self._service) if each.name == name)


def _missing(kind: Protocol[Any] | None, read: dict[str, Any]) -> list[str]:
    """The keys that this kind requires and that were not given."""
    required = () if kind is None else (key.name for key in _own_keys(kind) if key.default is NODEFAULT)
    return [name for name in required if name not in read]


def _not_required(key: Key) -> Key:
    return key._replace(default=None) if key.default is NODEFAULT else key


def _own_keys(kind: Protocol[Any]) -> Iterator[Key]:
    return (key for key in Form(kind.settings).list_keys() if key.name not in _OF_ALL_KINDS)
