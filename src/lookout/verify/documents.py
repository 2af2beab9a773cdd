"""Bodies as JSON, what several rules ask of a row, and what a rule says."""

import json
import zlib
from collections import Counter
from typing import Any, Final, Literal, NamedTuple, TypeGuard

from lookout.base.instants import parse_instant, parse_second

SCHEMA_VERSION: Final = 1
_GZIP: Final = 31  # zlib's number for gzip's format
_LONGEST_QUOTE: Final = 80

Json = dict[str, Any]
RowIdentity = tuple[str, int | None]
Verdict = Literal["pass", "fail", "could not tell"]


class Remark(NamedTuple):
    """What one rule says of what it saw."""

    verdict: Verdict
    what: str


class Unreadable(NamedTuple):
    why: str


def passed(what: str) -> Remark:
    return Remark("pass", what)


def failed(what: str) -> Remark:
    return Remark("fail", what)


def inconclusive(what: str) -> Remark:
    return Remark("could not tell", what)


def quote(found: object) -> str:
    """What a stranger sent, short and in ASCII."""
    text = ascii(found)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def unpack_gzip(body: bytes, most_bytes: int) -> bytes | None:
    """What is in a body that is gzip, or None if it is no gzip, not whole, or larger than that."""
    unpacking = zlib.decompressobj(_GZIP)
    try:
        found = unpacking.decompress(body, most_bytes)
    except zlib.error:
        return None
    return found if unpacking.eof and not unpacking.unused_data else None


def decode_document(body: bytes) -> Json | Unreadable:
    """The JSON object in a body. One with a key twice is none: readers differ in what they make of it."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_build_object)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON ({error}): it begins with {quote(body[:40])}")
    return found if isinstance(found, dict) else Unreadable(f"not a JSON object but {quote(found)}")


def read_document(body: bytes, noun: str) -> Json | Remark:
    """The document in a body, or all there is to be said of one that cannot be read, or not by what is known here."""
    document = decode_document(body)
    if isinstance(document, Unreadable):
        return failed(f"{noun}: {document.why}")
    version = document.get("schemaVersion")
    if is_integer(version) and version != SCHEMA_VERSION:
        return inconclusive(f"{noun}: schemaVersion {version}: a version that is not known here")
    return document


def is_integer(found: object) -> TypeGuard[int]:
    return isinstance(found, int) and not isinstance(found, bool)


def read_instant(found: object) -> int | None:
    """An instant with milliseconds, or None where it is not one."""
    try:
        return parse_instant(found) if isinstance(found, str) else None
    except ValueError:
        return None


def read_second(found: object) -> int | None:
    """An instant without a fraction, or None."""
    try:
        return parse_second(found) if isinstance(found, str) else None
    except ValueError:
        return None


def read_generated_at(body: bytes) -> int | None:
    """When a document was made, as far as it can be read."""
    document = decode_document(body)
    return None if isinstance(document, Unreadable) else read_instant(document.get("generatedAt"))


def quote_field(holder: Json, key: str) -> str:
    return quote(holder[key]) if key in holder else "missing"


def describe_row(row: Json) -> str:
    """How a row is called in a sentence."""
    service, chain_id = row.get("service"), row.get("chainId")
    name = service if isinstance(service, str) and service.isascii() and service.isprintable() else quote(service)
    return name[:40] if chain_id is None else f"{name[:40]} {quote(chain_id)}"


def list_identities(rows: object) -> list[RowIdentity]:
    """Services and chains of the rows, as far as they can be read."""
    if not isinstance(rows, list):
        return []
    found = [(row.get("service"), row.get("chainId")) for row in rows if isinstance(row, dict)]
    return [
        (service, chain_id)
        for service, chain_id in found
        if isinstance(service, str) and (chain_id is None or is_integer(chain_id))
    ]


def find_difference(one: bytes, other: bytes) -> str | None:
    """How two bodies cannot be the same document, of one publication or of two; None if they can."""
    if one == other:
        return None
    first, second_ = decode_document(one), decode_document(other)
    if isinstance(first, Unreadable) or isinstance(second_, Unreadable):
        return None if isinstance(first, Unreadable) else "a body that is no document"
    if first.get("generatedAt") == second_.get("generatedAt"):
        return "another body, with the same generatedAt"
    for rows in ("checks", "rows"):
        if list_identities(first.get(rows)) != list_identities(second_.get(rows)):
            return "other rows"
    return None


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _build_object(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {quote(key)} stands twice in an object")
    return found
