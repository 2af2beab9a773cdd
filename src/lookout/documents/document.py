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

Headers = tuple[tuple[str, str], ...]

ALLOWED_METHODS: Final = "GET, HEAD, OPTIONS"

# What scripts of other origins may read (A6) and send (A7), from the server and from the edge.
CORS: Final[Headers] = (("access-control-allow-origin", "*"), ("access-control-expose-headers", "ETag"))

PREFLIGHT_HEADERS: Final[Headers] = (
    *CORS,
    ("allow", ALLOWED_METHODS),
    ("access-control-allow-methods", ALLOWED_METHODS),
    ("access-control-allow-headers", "Accept, Content-Type, If-None-Match"),
    ("access-control-max-age", "86400"),
)


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


def paths(protocol: str) -> tuple[str, str]:
    """The paths of the live report and the history (A1)."""
    return f"/api/v1/{protocol}/liveness", f"/api/v1/{protocol}/liveness/history"
