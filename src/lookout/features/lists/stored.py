"""What is known of lists as it is stored: one document per list and kind of knowledge."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from lookout.core.model import Check
from lookout.features.lists.rules.coverage import Coverage
from lookout.features.lists.rules.links import Links
from lookout.features.lists.rules.node_gap import NodeGap
from lookout.state.errors import naming

_KNOWN: Final = {Coverage: "coverage", Links: "links", NodeGap: "agreement"}  # followed by a check
DOCUMENTS: Final = tuple(_KNOWN.values())
_Known = TypeVar("_Known", Coverage, Links, NodeGap)


class StoredLists(NamedTuple):
    coverages: Mapping[Check, Coverage] = {}
    links: Mapping[Check, Links] = {}
    nodes: Mapping[Check, NodeGap] = {}


def name_known(check: Check, known: Coverage | Links | NodeGap) -> str:
    return f"{_KNOWN[type(known)]}/{check.service}/{check.chain_id}"


def encode_known(known: Coverage | Links | NodeGap) -> bytes:
    return msgspec.json.encode(known)


def decode_lists(documents: Mapping[str, bytes]) -> StoredLists:
    """StateError if a document cannot be read."""
    return StoredLists(
        _decode_known(documents, Coverage, _decode_coverage),
        _decode_known(documents, Links, msgspec.json.Decoder(Links).decode),
        _decode_known(documents, NodeGap, msgspec.json.Decoder(NodeGap).decode),
    )


def _decode_known(
    documents: Mapping[str, bytes], kind: type[_Known], decode: Callable[[bytes], _Known]
) -> dict[Check, _Known]:
    known = {}
    for name, document in documents.items():
        if name.startswith(f"{_KNOWN[kind]}/"):
            with naming(name):
                _, service, chain_id = name.split("/")
                known[Check(service, int(chain_id))] = decode(document)
    return known


def _decode_coverage(document: bytes) -> Coverage:
    """Also reads 1.0.0's form, with missing and extra transactions apart, and some that were neither."""
    fields = msgspec.json.decode(document, type=dict[str, Any])
    for side, listed in (("missing", 0), ("extra", 1)):
        for old in fields.pop(side, {}).values():
            if old.get("stage", "suspected") != "elsewhere":
                place = {"first": old["block"], "last": old["block"]} if side == "missing" else {}
                is_confirmed = old.get("stage") == "confirmed"
                finding = {**old, **place, "listed": listed, "logged": 1 - listed, "is_confirmed": is_confirmed}
                fields.setdefault("findings", {})[old["hash"]] = finding
    return msgspec.convert(fields, Coverage)
