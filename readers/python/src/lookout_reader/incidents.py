"""Incidents: the stretches of a row's history that were not current."""

import re
from dataclasses import dataclass
from typing import Final

from lookout_reader.document import UnreadableRow
from lookout_reader.history import History, HistoryRow, bucket_begins_at, characters_of
from lookout_reader.statuses import CHARACTERS, TROUBLE_CHARACTERS, TROUBLE_STATUSES, PublishedStatus

_TROUBLE: Final = re.compile(f"[{re.escape(TROUBLE_CHARACTERS)}]+")
_CURRENT: Final = CHARACTERS["current"]


@dataclass(frozen=True, slots=True)
class Incident:
    """A run of buckets that were catching up, degraded or unavailable.

    ``begin_seen`` and ``end_seen`` say whether the bucket before or after was current: if not, it may have begun
    earlier, or gone on unseen. ``ends_at`` is None while it lasts.
    """

    begins_at: int
    ends_at: int | None
    worst: PublishedStatus
    buckets: int
    begin_seen: bool
    end_seen: bool


def incidents_of(history: History, row: HistoryRow | UnreadableRow) -> list[Incident]:
    """The incidents of a row, oldest first."""
    characters = characters_of(row)
    return [_incident(history, characters, *run.span()) for run in _TROUBLE.finditer(characters)]


def _incident(history: History, characters: str, begin: int, end: int) -> Incident:
    run = characters[begin:end]
    return Incident(
        begins_at=bucket_begins_at(history, begin),
        ends_at=None if end == len(characters) else bucket_begins_at(history, end),
        worst=next(status for status in TROUBLE_STATUSES if CHARACTERS[status] in run),
        buckets=end - begin,
        begin_seen=begin > 0 and characters[begin - 1] == _CURRENT,
        end_seen=characters[end : end + 1] == _CURRENT,
    )
