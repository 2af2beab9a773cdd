"""Instants and durations as people read them, and what stands beside everything."""

from functools import lru_cache
from typing import Final

from lookout.base.durations import format_duration
from lookout.base.instants import format_second
from lookout.public.feeds.picture import Names
from lookout_reader.words import notes_for

MINUTE_MS: Final = 60_000
NOT_OFFICIAL: Final = (
    "What one monitor sees from one place: no official status, and no signal that it is safe to transact."
)


def instant_text(at: int) -> str:
    return f"{format_second(at)[:-1].replace('T', ' ')} UTC"


def duration_text(duration_ms: int) -> str:
    """In whole minutes, or seconds if there are less than one: a history is no more exact than its buckets."""
    return format_duration(duration_ms if duration_ms < MINUTE_MS else duration_ms // MINUTE_MS * MINUTE_MS, units=3)


def notes_on(service: str, names: Names) -> tuple[str, ...]:
    """What a service's rows do not say (C12)."""
    return _notes(service, service in names.about.run_by_others)


@lru_cache(64)  # there are few services and many rows
def _notes(service: str, run_by_others: bool) -> tuple[str, ...]:
    return tuple(note.text for note in notes_for(service, run_by_others) if note.services is not None)
