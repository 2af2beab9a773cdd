"""The known part of an uptime window."""

from dataclasses import dataclass

from lookout_reader.document import UnreadableRow
from lookout_reader.history import WINDOWS, History, HistoryRow, Window, characters_of
from lookout_reader.statuses import KNOWN_CHARACTERS


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of the ``buckets`` that a window has, ``existing`` were recorded, and ``known`` are what uptime counts."""

    window: Window
    known: int
    existing: int
    buckets: int

    @property
    def share(self) -> float:
        return self.known / self.buckets

    @property
    def share_of_existing(self) -> float:
        return self.known / self.existing


def coverage_of(history: History, row: HistoryRow | UnreadableRow, window: Window) -> Coverage:
    """How much of the window was known: the service was read, well or in trouble."""
    buckets = WINDOWS[window] // history.bucket_seconds + 1  # H12
    existing = min(buckets, history.length)
    characters = characters_of(row)[history.length - existing :]
    return Coverage(window, sum(map(characters.count, KNOWN_CHARACTERS)), existing, buckets)
