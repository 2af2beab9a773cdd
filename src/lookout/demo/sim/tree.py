"""The index of a ppoi node's tree: it grows by one entry at a time, at irregular intervals."""

from typing import Final

# Entries come so far apart that a healthy node, validating each in seconds, is never seen trailing twice in a row.
SHORTEST_GAP_MS: Final = 60_000


class Tree:
    """The entries of one network over time."""

    def __init__(self, first_index: int, gap_ms: int, origin_at: int) -> None:
        self._first_index = first_index
        self._gap_ms = gap_ms
        self._origin_at = origin_at

    def index(self, at: int) -> int:
        """The newest entry's index."""
        entry = self._first_index + (at - self._origin_at) // self._gap_ms
        return entry if self._added_at(entry) <= at else entry - 1

    def _added_at(self, entry: int) -> int:
        spread_ms = self._gap_ms - SHORTEST_GAP_MS
        return self._origin_at + (entry - self._first_index) * self._gap_ms + entry * 7_919_017 % (spread_ms + 1)
