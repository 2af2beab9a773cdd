"""The tables that name sources: their keys by service, and the operator's own services (R14)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from msgspec import NODEFAULT, Meta
from msgspec.structs import FieldInfo, fields, replace

from lookout.base.problem import Problem
from lookout.base.setting_types import SECRET, OneOf
from lookout.config.tables import NamedService
from lookout.core.model import Answer, Blocks
from lookout.core.services import Service
from lookout.protocols.client.request import KindTable, SourceTable
from lookout.protocols.plugins import PluginProtocol, check_settings
from lookout.protocols.registry import PROTOCOLS, all_kinds, kinds_for, own_table_for
from lookout.protocols.source import Protocol

_LIST_KEYS: Final = frozenset(("complete", "links"))  # only of indexers


@dataclass(frozen=True)
class KindForm:
    """The form of a table whose ``kind`` names its protocol, and with it the other keys. The service decides which
    keys of ``KindTable`` and ``ListTable`` are omitted, and which have no default."""

    kinds: Mapping[str, Protocol[KindTable]]
    left_out: frozenset[str]
    required: frozenset[str]

    def keys(self) -> dict[str, FieldInfo]:
        """The keys of all kinds. A key of several kinds is the same in all of them; a key that some kinds lack may be
        required by others."""
        keys = {name: key for protocol in self.kinds.values() for name, key in self.keys_of(protocol).items()}
        own = {name: key for name, key in keys.items() if key.required and name not in KindTable.__struct_fields__}
        return keys | {name: replace(key, default=None) for name, key in own.items()}

    def keys_of(self, protocol: Protocol[KindTable] | None) -> dict[str, FieldInfo]:
        """The keys of one kind, or the common keys if the kind is unknown."""
        keys = {key.encode_name: key for key in fields(self.table_of(protocol)) if key.name not in self.left_out}
        if protocol is not None and protocol.answer is not Blocks:
            keys.pop("confirmations", None)
        if isinstance(protocol, PluginProtocol):  # any of its own keys may be a secret
            own = keys.keys() - KindTable.__struct_fields__
            keys |= {name: replace(keys[name], type=Annotated[keys[name].type, SECRET]) for name in own}
        if "chain" in keys:
            keys["chain"] = replace(keys["chain"], default=None)
        keys["kind"] = replace(keys["kind"], type=Annotated[str, OneOf(lambda: self.kinds)])
        return keys | {name: replace(keys[name], default=NODEFAULT) for name in self.required & keys.keys()}

    def table_of(self, protocol: Protocol[KindTable] | None) -> type[KindTable]:
        return KindTable if protocol is None else protocol.settings

    def check(self, table: KindTable) -> Iterable[Problem]:
        """Problems of a table's combination of keys."""
        return check_settings(table) if isinstance(self.kinds[table.kind], PluginProtocol) else table.check()

    def find_other_keys(self, protocol: Protocol[KindTable] | None, written: Mapping[str, Any]) -> Iterator[Problem]:
        """Problems with written keys of other kinds, if the kind is known."""
        keys, of_kind = self.keys(), self.keys_of(protocol)
        for name in written:
            if protocol and name in keys and name not in of_kind and written[name] != keys[name].default:
                *first, last = (f'"{kind}"' for kind, other in self.kinds.items() if name in self.keys_of(other))
                having = f"{', '.join(first)} and {last}" if first else last
                yield Problem(name, f"is only for kind {having}")


def form_of(service: Service) -> type[SourceTable] | KindForm:
    """The form of a table of one of the contract's services."""
    own = own_table_for(service)
    if own is not None:
        return own.settings
    kinds = {protocol.name: protocol for protocol in kinds_for(service)}
    if service.is_shared:
        return KindForm(kinds, _LIST_KEYS | {"chain", "confirmations"}, frozenset())
    if service.needs_head:
        return KindForm(kinds, frozenset(), frozenset(("chain", "confirmations")))
    return KindForm(kinds, _LIST_KEYS | {"confirmations"}, frozenset(("chain",)))


def form_of_own_checks() -> KindForm:
    """The form of an entry of ``[[services.checks]]``."""
    kinds = {protocol.name: protocol for protocol in all_kinds()}
    return KindForm(kinds, _LIST_KEYS, frozenset())


class OwnService(NamedService, frozen=True, kw_only=True):
    """``[[services]]``"""

    checks: Annotated[tuple[KindTable, ...], Meta(min_length=1)]

    def service(self) -> Service:
        chain_ids = frozenset(self.chain_ids())
        return Service(self.name, _answer_of(self.checks[0]), not chain_ids, self.title, chain_ids)

    def chain_ids(self) -> list[int]:
        return [check.chain for check in self.checks if check.chain is not None]

    def check(self) -> Iterator[Problem]:
        first = self.checks[0]
        if len(self.checks) > 1 and any(check.chain is None for check in self.checks):
            yield Problem(
                "checks", "a check without a chain has to be the only one; name the chains, or keep one check"
            )
        for number, check in enumerate(self.checks):
            if _answer_of(check) is not _answer_of(first):
                what = f'gives another kind of answer than "{first.kind}" of checks[0]; make it a service of its own'
                yield Problem(f"checks[{number}].kind", f'"{check.kind}" {what}')
            if check.chain is None and _answer_of(check) is Blocks:
                what = f'missing; kind "{check.kind}" gives a position, which is compared with the head of its chain'
                yield Problem(f"checks[{number}].chain", what)


def _answer_of(check: KindTable) -> type[Answer]:
    return PROTOCOLS[check.kind].answer
