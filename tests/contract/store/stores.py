"""The stores that every store's tests are run over, and what is put into them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lookout.base.pieces import Pieces
from lookout.documents.document import Document
from lookout.store.protocol import LostStoreError, Reader, StoreError, Writer

LIVE = Document(b'{"live":1}', '"0123456789abcdef"', 1_793_880_000_001)
HISTORY = Document(b'{"history":1}', '"fedcba9876543210"', 1_793_880_000_000)
NOTHING = Pieces({})

Side = TypeVar("Side", bound=Writer | Reader)


class Opened(Protocol):
    """Gives back what it is given, and closes it when the test is over."""

    def __call__(self, side: Side, /) -> Side: ...


@dataclass(frozen=True)
class Store:
    """A place for one store, empty at first."""

    writer: Callable[[float], Writer]  # opens one, and waits so many seconds for another to end
    reader: Callable[[], Reader]
    asks_every_s: float  # after which a reader asks even if nobody notified it
    holding: tuple[str, str]  # a program that holds the store, and its argument


def write_again(writer: Writer, pieces: Pieces = NOTHING) -> None:
    """Write as a monitor does: until it goes well."""
    until = time.monotonic() + 10
    while True:
        try:
            return writer.write({"live": HISTORY}, pieces)
        except LostStoreError:
            raise
        except StoreError:
            assert time.monotonic() < until
            time.sleep(0.05)
