"""What servers read from the store: the documents, each plain and as gzip, with its ETag."""

import zlib
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, Literal

from msgspec import Struct

_GZIP: Final = 31  # zlib's number for the gzip format with the largest window; its header has no instant
_LEVEL: Final = 6  # higher levels take several times as long for each per cent less

PlainName = Literal["live", "history"]
# The gzip form is a document of its own, so no store's schema knows of it. ``about`` describes the deployment: servers
# follow the monitor's configuration.
DocumentName = Literal["live", "history", "live.gzip", "history.gzip", "about"]
COMPRESSED: Final[Mapping[PlainName, DocumentName]] = {"live": "live.gzip", "history": "history.gzip"}


class Document(Struct, frozen=True):
    """A document as it is stored and served: the same bytes and ETag on every server."""

    body: bytes
    etag: str
    generated_at: int


def etag(body: bytes) -> str:
    """A strong validator: a quoted hash of 16 characters (A4)."""
    return f'"{blake2b(body, digest_size=8).hexdigest()}"'


def compress(body: bytes) -> bytes:
    """As gzip, always the same bytes for the same body."""
    return zlib.compress(body, _LEVEL, _GZIP)


def decompress(packed: bytes) -> bytes:
    return zlib.decompress(packed, _GZIP)


def with_compressed(documents: Mapping[DocumentName, Document]) -> dict[DocumentName, Document]:
    stored: dict[DocumentName, Document] = {}
    for name, document in documents.items():
        stored[name] = document
        if name == "live" or name == "history":
            packed = compress(document.body)
            stored[COMPRESSED[name]] = Document(packed, etag(packed), document.generated_at)
    return stored
