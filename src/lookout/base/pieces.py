"""Named pieces of bytes: all that a store sees of the state."""

from msgspec import Struct


class StateError(Exception):
    """Stored pieces that do not make a state; the text says why, and of which piece if it is a single one."""


class Pieces(Struct, frozen=True):
    """Pieces to put, and names of pieces to delete; if ``replace_all``, all that is not put is to be deleted."""

    put: dict[str, bytes]
    delete: tuple[str, ...] = ()
    replace_all: bool = False

    def then(self, later: "Pieces") -> "Pieces":
        """What both do, one after the other."""
        if later.replace_all:
            return later
        gone = frozenset(later.delete)
        put = {name: piece for name, piece in (self.put | later.put).items() if name not in gone}
        delete = (*(name for name in self.delete if name not in later.put), *later.delete)
        return Pieces(put, delete, self.replace_all)
