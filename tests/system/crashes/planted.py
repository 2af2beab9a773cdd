"""Stores that are wrong on purpose: what examines stores has to find them out."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from lookout.documents.document import Document, DocumentName
from lookout.state.codec import PROGRESS, encode_progress
from lookout.state.differ import Backlog, Kept
from lookout.state.pieces import Pieces
from lookout.store.protocol import StoreError, Writer
from lookout.store.sqlite.writer import open_writer


class _Through:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def load(self) -> dict[str, bytes]:
        return self._writer.load()

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self._writer.write(documents, pieces)

    def close(self) -> None:
        self._writer.close()


class InTwoTransactions(_Through):
    """The documents first, and then the state."""

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self._writer.write(documents, Pieces({}))
        self._writer.write({}, pieces)


class TooEarly(_Through):
    """Says that a publication is stored when it is about to be."""

    _late: tuple[Mapping[DocumentName, Document], Pieces] | None = None

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        if self._late is not None:
            self._writer.write(*self._late)
        self._late = documents, pieces

    def close(self) -> None:
        if self._late is not None:
            self._writer.write(*self._late)
        self._writer.close()


class Silent(_Through):
    """Says nothing when it could not store."""

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        with suppress(StoreError):
            self._writer.write(documents, pieces)


class Unsealed(Backlog):
    """Puts no seal on what is stored."""

    def add(self, now: Kept) -> Pieces:
        pieces = super().add(now)
        return replace(pieces, put={**pieces.put, PROGRESS: encode_progress(now.state)})


def in_two_transactions(path: Path) -> Writer:
    return InTwoTransactions(open_writer(path))


def too_early(path: Path) -> Writer:
    return TooEarly(open_writer(path))


def silent(path: Path) -> Writer:
    return Silent(open_writer(path))
