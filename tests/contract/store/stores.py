"""The stores that every store's tests are run over, and what is put into them."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from prometheus_client import CollectorRegistry

from lookout.base.clock import SystemClock
from lookout.core.history import HistoryProgress, HistoryState
from lookout.core.ledger import State
from lookout.documents.document import Document, DocumentName, Pieces
from lookout.monitor.metrics import Instruments
from lookout.monitor.publisher import PublicationWriter
from lookout.state.codec import PROGRESS
from lookout.store.protocol import LostStoreError, Reader, StoreError, Writer
from tests.stores import PassingWriter
from tests.unit.kept_pieces import apply_pieces
from tests.unit.running_monitor import InLine

LIVE = Document(b'{"live":1}', '"0123456789abcdef"', 1_793_880_000_001)
HISTORY = Document(b'{"history":1}', '"fedcba9876543210"', 1_793_880_000_000)
NOTHING = Pieces({})
EMPTY = State(None, {}, {}, HistoryState(HistoryProgress(300_000, 0, 0, 0, 0), {}, {}))

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


class MonitorsWriter(PassingWriter):
    """Writes as a monitor does, which knows all that it wrote. Its progress is left out of what it loads."""

    def __init__(self, real: Writer) -> None:
        super().__init__(real)
        self._known = self.load()
        self._attempts, clock = _Attempts(real), SystemClock()
        self._publications = PublicationWriter(self._attempts, InLine(), clock, Instruments(CollectorRegistry(), clock))

    def load(self) -> dict[str, bytes]:
        return without_progress(super().load())

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self._known = apply_pieces(self._known, pieces)
        if not asyncio.run(self._publications.write(documents, EMPTY, self._known)):
            raise self._attempts.failed


class _Attempts(PassingWriter):
    failed = StoreError("never")

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        try:
            super().write(documents, pieces)
        except StoreError as error:
            self.failed = error
            raise


def without_progress(pieces: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: piece for name, piece in pieces.items() if name != PROGRESS}
