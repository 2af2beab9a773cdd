"""What is kept of the witnesses over a restart: their views, and since when places differ."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from lookout.base.instants import Instant
from lookout.core.model import Check, Metrics, Row, Status
from lookout.features.witnesses.places import Since
from lookout.state.errors import naming

DOCUMENT: Final = "witnesses"


class _View(Struct, frozen=True):
    """A row whose reason may be one of a witness's later version."""

    check: Check
    status: Status
    reason: str
    observed_at: Instant | None
    last_success_at: Instant | None
    expires_at: Instant | None
    metrics: Metrics

    def row(self) -> Row:
        return Row(*astuple(self))


class StoredWitness(Struct, frozen=True):
    """``address`` is a fingerprint: a witness at another address is another one."""

    address: str
    views: tuple[Row, ...]


class StoredWitnesses(Struct, frozen=True):
    """By the witnesses' names; in ``since``, the own place's name is empty."""

    witnesses: Mapping[str, StoredWitness] = {}
    since: Mapping[str, Since] = {}


class _Witness(Struct, frozen=True):
    address: str
    views: tuple[_View, ...]


class _Document(Struct, frozen=True):
    witnesses: dict[str, _Witness]
    since: dict[str, Since]


def encode_witnesses(kept: StoredWitnesses) -> bytes:
    return msgspec.json.encode(kept)


def decode_witnesses(documents: Mapping[str, bytes]) -> StoredWitnesses:
    """StateError if the document cannot be read."""
    if DOCUMENT not in documents:
        return StoredWitnesses()
    with naming(DOCUMENT):
        found = msgspec.json.decode(documents[DOCUMENT], type=_Document)
    views = {name: tuple(view.row() for view in kept.views) for name, kept in found.witnesses.items()}
    witnesses = {name: StoredWitness(kept.address, views[name]) for name, kept in found.witnesses.items()}
    return StoredWitnesses(witnesses, found.since)
