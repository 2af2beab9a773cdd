"""Named pieces of bytes: all that a store sees of the state."""

from msgspec import Struct


class StateError(Exception):
    """Stored pieces that do not make a state; the text says why, and of which piece if it is a single one."""


class Pieces(Struct, frozen=True):
    """Pieces to put, and names of pieces to delete; if ``replace_all``, all that is not put is to be deleted."""

    put: dict[str, bytes]
    delete: tuple[str, ...] = ()
    replace_all: bool = False
