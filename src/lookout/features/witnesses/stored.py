"""What is kept of the witnesses over a restart: their views, and since when places differ."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from lookout.core.model import Row
from lookout.features.witnesses.places import Since
from lookout.state.errors import naming

DOCUMENT: Final = "witnesses"


class StoredWitness(Struct, frozen=True):
    """``address`` is a fingerprint: a witness at another address is another one."""

    address: str
    views: tuple[Row, ...]


class StoredWitnesses(Struct, frozen=True):
    """By the witnesses' names; in ``since``, the own place's name is empty."""

    witnesses: dict[str, StoredWitness] = {}
    since: dict[str, Since] = {}


def decode_witnesses(documents: Mapping[str, bytes]) -> StoredWitnesses:
    """StateError if the document cannot be read."""
    with naming(DOCUMENT):
        return msgspec.json.decode(documents.get(DOCUMENT, b"{}"), type=StoredWitnesses)
