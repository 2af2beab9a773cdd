"""Instants and durations as people read them, and what they are told beside everything."""

from functools import lru_cache
from typing import Final

from lookout.base.instants import format_second
from lookout_reader.words import notes_for

NOT_OFFICIAL: Final = (
    "What one monitor sees from one place: no official status, and no signal that it is safe to transact."
)


def instant_text(at: int) -> str:
    return f"{format_second(at)[:-1].replace('T', ' ')} UTC"


def duration_text(duration_ms: int) -> str:
    """In whole minutes, or seconds if there are less than one: a history is no more exact than its buckets."""
    minutes, seconds = divmod(duration_ms // 1000, 60)
    if not minutes:
        return f"{seconds} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return " ".join(f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number)


@lru_cache(64)  # there are few services and many rows
def about(service: str) -> tuple[str, ...]:
    """What a service's rows do not say (C12)."""
    return tuple(note.text for note in notes_for(service) if note.services is not None)
