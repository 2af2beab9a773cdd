"""One row's buckets: the filling one's tally and the ended ones by day, and uptime (H5 to H7, H9 to H11)."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.model import Check
from lookout_reader.statuses import CHARACTERS as CHARACTERS
from lookout_reader.statuses import KNOWN_CHARACTERS, TROUBLE_CHARACTERS
from lookout_reader.statuses import NO_DATA as NO_DATA

KNOWN: Final = frozenset(KNOWN_CHARACTERS)
_CURRENT: Final = CHARACTERS["current"]
_UNKNOWN: Final = CHARACTERS["unknown"]
_UNMONITORED: Final = CHARACTERS["unmonitored"]


def bucket_character(seen_ms: Mapping[str, int], counts_from_ms: int) -> str:
    """The character of a bucket, from the time for which statuses were seen in it (H6, H7).

    A status that was just published counts with 0 ms. Short trouble alone makes the bucket unknown: it is
    shown as current only if a current status was seen in it.
    """
    if not KNOWN.isdisjoint(seen_ms):
        total_ms = 0
        for character in TROUBLE_CHARACTERS:  # the worst first
            total_ms += seen_ms.get(character, 0)  # time in a worse status counts toward a milder one
            if total_ms >= counts_from_ms:
                return character
        return _CURRENT if _CURRENT in seen_ms else _UNKNOWN
    return _UNKNOWN if _UNKNOWN in seen_ms else _UNMONITORED if _UNMONITORED in seen_ms else NO_DATA


def uptime(current: int, known: int, min_known: int) -> float | None:
    """The share of ``current`` buckets among the ``known``, to 4 decimals, half to even (H9, H10)."""
    if known < min_known:
        return None
    share, rest = divmod(current * 10_000, known)
    if rest * 2 > known or (rest * 2 == known and share % 2 == 1):
        share += 1
    if current < known:
        share = min(share, 9_999)  # 1 only if every known bucket is current (H11)
    return share / 10_000


class Tally(Struct, frozen=True, omit_defaults=True):
    """One row's filling bucket: the status that counts now, since when, and how long other statuses lasted.

    ``later`` holds the tallies of buckets that began before the clock was set back, and resume when it reaches them.
    """

    check: Check
    counted: str
    since_ms: int
    lasted_ms: dict[str, int]
    later: dict[int, dict[str, int]] = {}


class Strip:
    """One row's history. Tally and days are immutable values."""

    __slots__ = ("days", "expires_at", "published", "tally")

    def __init__(self, tally: Tally, days: Mapping[int, str]) -> None:
        self.tally = tally
        self.days = days
        self.published = tally.counted  # the row's own status as a character; it counts as unknown once expired (H17)
        self.expires_at: int | None = None

    def publish(self, character: str, expires_at: int | None, at: int, watched_ms: int) -> None:
        """Set the row's status, which counts from this instant on."""
        self.published, self.expires_at = character, expires_at
        self.count(at, watched_ms)

    def count(self, at: int, watched_ms: int) -> None:
        """Count the row's status, or unknown if it has expired, from this instant on (H17)."""
        expired = self.expires_at is not None and self.expires_at <= at
        character = "?" if expired else self.published
        if character != self.tally.counted:
            lasted_ms = self._lasted_ms(watched_ms)
            self.tally = replace(self.tally, counted=character, since_ms=watched_ms, lasted_ms=lasted_ms)

    def discard(self, watched_ms: int) -> None:
        """Do not count the time since the last status began."""
        self.tally = replace(self.tally, since_ms=watched_ms)

    def mark_seen(self) -> None:
        """The status that counts now was seen in this bucket, however briefly."""
        counted, lasted_ms = self.tally.counted, self.tally.lasted_ms
        if counted != NO_DATA:
            self.tally = replace(self.tally, lasted_ms={**lasted_ms, counted: lasted_ms.get(counted, 0)})

    def put_aside(self, bucket: int, watched_ms: int) -> None:
        """Keep the tally of the filling bucket until it is recorded, or the clock comes back to it."""
        lasted_ms, later = self._lasted_ms(watched_ms), self.tally.later
        if lasted_ms:
            later = {**later, bucket: lasted_ms}
        self.tally = replace(self.tally, since_ms=watched_ms, lasted_ms={}, later=later)

    def take_up(self, bucket: int) -> None:
        lasted_ms = self._take_later(bucket)
        self.tally = replace(self.tally, since_ms=0, lasted_ms=lasted_ms)

    def record(self, bucket: int, per_day: int, counts_from_ms: int) -> None:
        """Store the character of an ended bucket that was put aside."""
        character = bucket_character(self._take_later(bucket), counts_from_ms)
        if character != NO_DATA:
            day, place = divmod(bucket, per_day)
            characters = self.days.get(day, "").ljust(place, NO_DATA)
            self.days = {**self.days, day: characters[:place] + character + characters[place + 1 :]}

    def forget(self, day: int) -> None:
        if day in self.days:
            self.days = {other: characters for other, characters in self.days.items() if other != day}

    @property
    def is_empty(self) -> bool:
        """Whether the row has left the report, and has no buckets."""
        return self.tally.counted == NO_DATA and not (self.days or self.tally.later)

    def recorded(self, day: int, place: int) -> str:
        return self.days.get(day, "")[place : place + 1] or NO_DATA

    def ended(self, begin: int, end: int, per_day: int) -> str:
        """The characters of these buckets, the last one not included."""
        days = range(begin // per_day, end // per_day + 1)
        characters = "".join(self.days.get(day, "").ljust(per_day, NO_DATA) for day in days)
        return characters[begin % per_day :][: end - begin]

    def filling(self, watched_ms: int, counts_from_ms: int) -> str:
        tally = self.tally
        held_ms = watched_ms - tally.since_ms
        seen_ms = tally.lasted_ms | {tally.counted: tally.lasted_ms.get(tally.counted, 0) + held_ms}
        return bucket_character(seen_ms, counts_from_ms)

    def _lasted_ms(self, watched_ms: int) -> dict[str, int]:
        """How long each status has lasted in the filling bucket, the one that counts now included."""
        counted, lasted_ms = self.tally.counted, self.tally.lasted_ms
        held_ms = watched_ms - self.tally.since_ms
        if held_ms == 0 or counted == NO_DATA:
            return lasted_ms
        return {**lasted_ms, counted: lasted_ms.get(counted, 0) + held_ms}

    def _take_later(self, bucket: int) -> dict[str, int]:
        later = dict(self.tally.later)
        lasted_ms = later.pop(bucket, None)
        if lasted_ms is None:
            return {}
        self.tally = replace(self.tally, later=later)
        return lasted_ms
