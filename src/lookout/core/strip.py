"""One row's buckets: the filling one's tally, the ended ones by day, and those counted per window."""

from msgspec import Struct

from lookout.core.buckets import NO_DATA
from lookout.core.model import Check


class StripState(Struct, frozen=True):
    """One row's history as it is stored."""

    check: Check
    counted: str
    since_ms: int
    lasted_ms: dict[str, int]
    days: dict[int, str]


class Strip:
    """What the history keeps of one row."""

    __slots__ = (
        "check",
        "counted",
        "current",
        "days",
        "expires_at",
        "known",
        "lasted_ms",
        "published",
        "queued",
        "since_ms",
    )

    def __init__(self, state: StripState) -> None:
        self.check = state.check
        self.published = state.counted  # the row's own status as a character
        self.expires_at: int | None = None
        self.queued = False
        self.counted = state.counted  # the same, or unknown once the row has expired (H17)
        self.since_ms = state.since_ms  # what had been watched of the bucket when that began
        self.lasted_ms = dict(state.lasted_ms)
        self.days = dict(state.days)
        self.known: list[int] = []
        self.current: list[int] = []

    def count(self, character: str, watched_ms: int) -> None:
        if character != self.counted:
            self.settle(watched_ms)
            self.counted = character

    def settle(self, watched_ms: int) -> None:
        held_ms = watched_ms - self.since_ms
        if held_ms and self.counted != NO_DATA:
            self.lasted_ms[self.counted] = self.lasted_ms.get(self.counted, 0) + held_ms
        self.since_ms = watched_ms

    def counts_at(self, at: int) -> str:
        """What the row counts as in a publication at this instant (H17)."""
        expired = self.expires_at is not None and self.expires_at <= at
        return "?" if expired else self.published
