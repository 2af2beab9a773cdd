"""One row's buckets: the filling one's tally, the ended ones by day, and those counted per window."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lookout.core.buckets import KNOWN, NO_DATA
from lookout.core.model import Check


class Tally(Struct, frozen=True, omit_defaults=True):
    """What the filling bucket holds for one row: the status that counts now, since when, and how long others lasted.

    ``later`` has what lasted in buckets that began before the clock was set back, and go on when it reaches them.
    """

    check: Check
    counted: str
    since_ms: int
    lasted_ms: dict[str, int]
    later: dict[int, dict[str, int]] = {}


class StripState(Struct, frozen=True):
    """One row's history as it is stored."""

    tally: Tally
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
        "later",
        "published",
        "queued_at",
        "since_ms",
    )

    def __init__(self, tally: Tally, days: Mapping[int, str]) -> None:
        self.check = tally.check
        self.published = tally.counted  # the row's own status as a character
        self.expires_at: int | None = None
        self.queued_at: int | None = None  # the expiry that is waited for
        self.counted = tally.counted  # the same, or unknown once the row has expired (H17)
        self.since_ms = tally.since_ms  # what had been watched of the bucket when that began
        self.lasted_ms = dict(tally.lasted_ms)
        self.later = dict(tally.later)
        self.days = dict(days)
        self.known: list[int] = []  # of each window; empty until they are counted
        self.current: list[int] = []

    def tally(self) -> Tally:
        return Tally(self.check, self.counted, self.since_ms, dict(self.lasted_ms), dict(self.later))

    def count(self, character: str, watched_ms: int) -> None:
        self.settle(watched_ms)
        self.counted = character

    def settle(self, watched_ms: int) -> None:
        held_ms = watched_ms - self.since_ms
        if held_ms and self.counted != NO_DATA:
            self.lasted_ms[self.counted] = self.lasted_ms.get(self.counted, 0) + held_ms
        self.since_ms = watched_ms

    def mark_seen(self) -> None:
        """The status that counts now was seen in this bucket, however short."""
        if self.counted != NO_DATA:
            self.lasted_ms.setdefault(self.counted, 0)

    def put_aside(self, bucket: int) -> None:
        """Keep the tally of the filling bucket until the clock comes back to it."""
        if self.lasted_ms:
            self.later[bucket] = self.lasted_ms
        self.lasted_ms = {}

    def take_up(self, bucket: int) -> None:
        """Begin a bucket, or go on with it."""
        self.lasted_ms = self.later.pop(bucket, {})
        self.since_ms = 0

    def record(self, day: int, place: int, character: str) -> None:
        """Keep the character of a bucket that has ended."""
        if character != NO_DATA:
            characters = self.days.get(day, "").ljust(place, NO_DATA)
            self.days[day] = characters[:place] + character + characters[place + 1 :]

    def recorded(self, day: int, place: int) -> str:
        """The character of that bucket."""
        return self.days.get(day, "")[place : place + 1] or NO_DATA

    def counts_at(self, at: int) -> str:
        """What the row counts as in a publication at this instant (H17)."""
        expired = self.expires_at is not None and self.expires_at <= at
        return "?" if expired else self.published

    def slide(self, entering: str, leaving: Sequence[tuple[int, int]]) -> None:
        """Move the windows' counts on by a bucket that ended; out of each falls the one at that place of that day."""
        for n, (day, place) in enumerate(leaving if self.known else ()):
            left = self.recorded(day, place)
            if left != entering:  # seldom
                self.known[n] += (entering in KNOWN) - (left in KNOWN)
                self.current[n] += (entering == "c") - (left == "c")
