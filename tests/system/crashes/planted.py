"""Stores that are wrong on purpose: what examines stores has to find them out."""

from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from lookout.base.pieces import Pieces
from lookout.core.ledger import State
from lookout.documents.document import Document, DocumentName
from lookout.state.codec import PROGRESS, Differ, encode_progress
from lookout.store.protocol import StoreError
from tests.stores import PassingWriter


class InTwoTransactions(PassingWriter):
    """The documents first, and then the state."""

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self._real.write(documents, Pieces({}))
        self._real.write({}, pieces)


class TooEarly(PassingWriter):
    """Says that a publication is stored when it is about to be."""

    _late: tuple[Mapping[DocumentName, Document], Pieces] | None = None

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        if self._late is not None:
            self._real.write(*self._late)
        self._late = documents, pieces

    def close(self) -> None:
        if self._late is not None:
            self._real.write(*self._late)
        self._real.close()


class Silent(PassingWriter):
    """Says nothing when it could not store."""

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        with suppress(StoreError):
            self._real.write(documents, pieces)


class Unsealed(Differ):
    """Puts no seal on what is stored."""

    def find_changes(self, state: State, others: Mapping[str, bytes] = {}) -> Pieces:
        pieces = super().find_changes(state, others)
        return replace(pieces, put={**pieces.put, PROGRESS: encode_progress(state)})
