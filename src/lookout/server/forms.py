"""A document in the forms that are served, as they are read from the store."""

from typing import NamedTuple

from lookout.documents.document import COMPRESSED, Document, PlainName, etag, unpacks_to
from lookout.store.protocol import Reader, StoreError


class Forms(NamedTuple):
    """A document, and the same as gzip, if the store has that."""

    plain: Document
    gzip: Document | None = None


def get_body(forms: Forms | None) -> bytes | None:
    return None if forms is None else forms.plain.body


def read_forms(reader: Reader, name: PlainName, served: Forms | None) -> Forms | None:
    """None if there is no such document; StoreError if it cannot be read, or is damaged. What is ``served`` already is
    not unpacked again."""
    document = reader.read(name)
    if document is None:
        return None
    if not is_whole(document):
        raise StoreError(f"the stored {name} document is damaged")
    if served is not None and served.plain == document and served.gzip is not None:
        return served
    return Forms(document, _read_gzip(reader, name, document))


def _read_gzip(reader: Reader, name: PlainName, plain: Document) -> Document | None:
    """The document as gzip, if it is nothing else: between the two readings another publication may have been stored.
    The next look finds that, and until then the answers are plain."""
    try:
        packed = reader.read(COMPRESSED[name])
    except StoreError:
        return None
    if packed is None or not is_whole(packed) or packed.generated_at != plain.generated_at:
        return None
    return packed if unpacks_to(packed.body, plain.body) else None


def is_whole(stored: object) -> bool:
    """Whether it is as a monitor wrote it: a flipped bit on a disk can make a text of bytes, or a number none."""
    match stored:
        case Document(bytes(body), tag):
            return etag(body) == tag
        case _:
            return False
