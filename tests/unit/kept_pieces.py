"""The stored pieces of a state, kept in memory."""

from collections.abc import Mapping

from hypothesis import strategies as st

from lookout.core.ledger import Ledger
from lookout.documents.document import Pieces
from lookout.state.codec import Differ

NAMES = st.sampled_from(["a", "b", "c", "d"])
OUTCOMES = st.sampled_from(["written", "failed", "written, and reported as failed"])


def apply_pieces(stored: Mapping[str, bytes], pieces: Pieces) -> dict[str, bytes]:
    """What a store holds after these are written."""
    kept = {} if pieces.replace_all else {name: piece for name, piece in stored.items() if name not in pieces.delete}
    return {**kept, **pieces.put}


def after_write(differ: Differ, outcome: str) -> Differ:
    """What finds the next pieces: a store that took a write of which the monitor does not know is written whole."""
    if outcome == "written":
        differ.mark_stored()
    return Differ() if outcome == "written, and reported as failed" else differ


class AStore:
    """The pieces as a store keeps them, and a monitor that writes them to it."""

    def __init__(self, pieces: Mapping[str, bytes] = {}) -> None:
        self.pieces = dict(pieces)
        self._differ = Differ()

    def write(self, ledger: Ledger) -> Pieces:
        pieces = self._differ.find_changes(ledger.state())
        self.pieces = apply_pieces(self.pieces, pieces)
        self._differ.mark_stored()
        return pieces
