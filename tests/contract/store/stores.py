"""The stores that every store's tests are run over, and what is put into them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lookout.documents.document import Document, DocumentName
from lookout.store.protocol import LostStoreError, Reader, StoreError, Writer

LIVE = Document(b'{"live":1}', '"0123456789abcdef"', 1_793_880_000_001)
HISTORY = Document(b'{"history":1}', '"fedcba9876543210"', 1_793_880_000_000)
NOTHING: Mapping[str, bytes] = {}

Side = TypeVar("Side", bound=Writer | Reader)


class Opened(Protocol):
    """Gives back what it is given, and closes it when the test is over."""

    def __call__(self, side: Side, /) -> Side: ...


@dataclass(frozen=True)
class Store:
    """A place for one store, empty at first."""

    writer: Callable[[float], Writer]  # opens one, and waits so many seconds for another to end
    reader: Callable[[], Reader]
    save: Callable[[], Callable[[], object]]  # what it holds now; the result puts that back
    holding: tuple[str, str]  # a program that holds the store, and its argument


def write_again(
    writer: Writer,
    state: Mapping[str, bytes] = NOTHING,
    documents: Mapping[DocumentName, Document] = {"live": HISTORY},
) -> None:
    """Write as a monitor does: until it goes well."""
    until = time.monotonic() + 10
    while True:
        try:
            return writer.write(documents, state)
        except LostStoreError:
            raise
        except StoreError:
            assert time.monotonic() < until
            time.sleep(0.05)
