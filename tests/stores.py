"""Opening a store for writing that another writer may just be leaving, and writers to be made wrong in one way."""

import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from lookout.documents.document import Document, DocumentName, Pieces
from lookout.store.protocol import StoreBusyError, Writer

_LOOK_EVERY_S: Final = 0.05

W = TypeVar("W", bound=Writer)


def once_free(open_writer: Callable[[], W], within_s: float = 30) -> W:
    """The writer, as soon as nobody else is one; StoreBusyError if somebody still is after so long."""
    until = time.monotonic() + within_s
    while True:
        try:
            return open_writer()
        except StoreBusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(_LOOK_EVERY_S)


class PassingWriter:
    """Passes everything on to a real one."""

    def __init__(self, real: Writer) -> None:
        self._real = real

    def load(self) -> dict[str, bytes]:
        return self._real.load()

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self._real.write(documents, pieces)

    def close(self) -> None:
        self._real.close()
