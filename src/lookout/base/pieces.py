"""Named pieces of bytes, the form in which a store keeps the state."""

from msgspec import Struct


class StateError(Exception):
    """Stored pieces that are no state; the text says why, and names the piece if only one is at fault."""


class Pieces(Struct, frozen=True):
    """Pieces to put, and names of pieces to delete; ``replace_all`` deletes all pieces that are not put."""

    put: dict[str, bytes]
    delete: tuple[str, ...] = ()
    replace_all: bool = False
