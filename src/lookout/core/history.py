"""The 14-day history: published statuses in, one character per bucket and uptime out (clauses H).

A publication says something about every row, yet costs only as much as what it changed: the time for which
statuses were held is one running total for all rows, and a row settles its share when its status changes or its
bucket ends. Buckets are numbered from 1970; a day holds a whole number of them.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Annotated, Final

from msgspec import Meta, Struct

from lookout.core.buckets import CHARACTERS, KNOWN, NO_DATA, bucket_character, uptime
from lookout.core.model import Check, Row
from lookout.core.plan import Span
from lookout.core.strip import Strip, StripState, Tally

DAY_MS: Final = 86_400_000
WINDOW_DAYS: Final = (1, 7, 14)
# Ended buckets are kept this much longer than they are shown, so that a clock set forward and back finds them again.
SPARE_DAYS: Final = 3


class Reached(Struct, frozen=True):
    """How far the history has come."""

    bucket_ms: int
    first: int
    newest: int
    published_at: int
    watched_ms: int


class HistoryState(Struct, frozen=True):
    """The history as it is stored: the filling bucket's tallies and the ended buckets, by day (M7)."""

    reached: Reached
    strips: tuple[StripState, ...]


class HistoryChanges(Struct, frozen=True):
    """What of the stored history is no longer as it was: new tallies, new days' strings, and what to forget."""

    reached: Reached
    tallies: tuple[Tally, ...]
    days: tuple[tuple[Check, int, str], ...]
    forgotten_days: tuple[tuple[Check, int], ...]
    forgotten_checks: tuple[Check, ...]


Share = Annotated[float, Meta(ge=0, le=1)]


class Uptime(Struct, frozen=True, rename={"day": "24h", "week": "7d", "fortnight": "14d"}):
    """The share of current buckets among the known ones of each window; None where too few are known (H10)."""

    day: Share | None
    week: Share | None
    fortnight: Share | None


class HistoryRow(Struct, frozen=True):
    """One row's characters, oldest first, and what they come to."""

    check: Check
    buckets: str
    uptime: Uptime


class HistoryView(Struct, frozen=True):
    """What the history says as of its last publication."""

    published_at: int
    span: Span
    from_at: int
    to_at: int
    rows: tuple[HistoryRow, ...]


class History:
    """The rows' buckets up to the last publication."""

    def __init__(self, span: Span, state: HistoryState | None = None) -> None:
        if state is not None and state.reached.bucket_ms != span.bucket_ms:
            raise ValueError(
                f"the stored history has buckets of {state.reached.bucket_ms / 1000:g} s,"
                f" the configuration of {span.bucket_ms / 1000:g} s"
            )
        self._span = span
        self._per_day = DAY_MS // span.bucket_ms
        self._windows = [min(days, span.retention_days) * self._per_day for days in WINDOW_DAYS]
        self._first = self._newest = self._newest_at = self._watched_ms = 0
        self.published_at: int | None = None
        self._strips: dict[Check, Strip] = {}
        self._expiries: list[tuple[int, Check]] = []
        if state is not None:
            self._first = state.reached.first
            self._begin(state.reached.newest)
            self.published_at, self._watched_ms = state.reached.published_at, state.reached.watched_ms
            self._strips = {strip.tally.check: Strip(strip.tally, strip.days) for strip in state.strips}
        for strip in self._strips.values():
            self._recount(strip)
        self._lived = sorted({day for strip in self._strips.values() for day in strip.days})
        # Since the last call of changes(); at first, everything.
        self._new_tallies = set(self._strips)
        self._new_days = set(self._lived)
        self._forgotten_days: list[tuple[Check, int]] = []
        self._forgotten_checks: list[Check] = []

    @property
    def checks(self) -> Iterable[Check]:
        """Every check that has a history here, the ones that left the configuration included (H15)."""
        return self._strips.keys()

    def publish(self, at: int, changed: Iterable[Row], gone: Iterable[Check] = ()) -> None:
        """A publication, a sample of every row (H8): of those that changed since the last one, these are the new
        rows; ``gone`` are no longer published. Of several publications at one instant only the last one counts."""
        last_at, filling = self.published_at, self._newest
        if last_at is None:
            self._begin(at // self._span.bucket_ms)
            self._first = self._newest
        elif at < last_at:
            self._set_back(at, last_at)
        elif self._newest_at <= last_at and at < self._newest_at + self._span.bucket_ms:  # nearly always
            self._watched_ms += min(at - last_at, self._span.hold_ms)
        else:
            self._advance(at, last_at)
        self.published_at = at
        for row in changed:
            self._take(row, at)
        for check in gone:
            strip = self._strips.get(check)
            if strip is None:  # it aged out just now
                continue
            strip.published, strip.expires_at = NO_DATA, None
            self._count(strip, at)
            if self._newest > filling:  # its last status reaches into a bucket in which it was never published
                strip.lasted_ms.clear()
        if self._expiries and self._expiries[0][0] <= at:
            self._expire(at)

    def view(self, checks: Iterable[Check]) -> HistoryView:
        """The history of these rows, all of which have been published."""
        if self.published_at is None:
            raise ValueError("there is no history before the first publication")
        to = self.published_at // self._span.bucket_ms
        # A clock that was set back may stand before the first bucket ever recorded.
        start = min(max(self._first, to - self._span.retention_days * self._per_day), to)
        rows = tuple(self._view_row(self._strips[check], start, to) for check in checks)
        bucket_ms = self._span.bucket_ms
        return HistoryView(self.published_at, self._span, start * bucket_ms, to * bucket_ms, rows)

    def state(self) -> HistoryState | None:
        if self.published_at is None:
            return None
        strips = tuple(StripState(strip.tally(), dict(strip.days)) for strip in self._strips.values())
        return HistoryState(self._reached(self.published_at), strips)

    def changes(self) -> HistoryChanges:
        """What is new since the last call: storing it costs as much as what changed."""
        if self.published_at is None:
            raise ValueError("there is no history before the first publication")
        changes = HistoryChanges(
            self._reached(self.published_at),
            tuple(self._strips[check].tally() for check in self._new_tallies),
            tuple(
                (s.check, day, s.days[day]) for day in self._new_days for s in self._strips.values() if day in s.days
            ),
            tuple(self._forgotten_days),
            tuple(self._forgotten_checks),
        )
        for noted in (self._new_tallies, self._new_days, self._forgotten_days, self._forgotten_checks):
            noted.clear()
        return changes

    def _reached(self, published_at: int) -> Reached:
        return Reached(self._span.bucket_ms, self._first, self._newest, published_at, self._watched_ms)

    def _take(self, row: Row, at: int) -> None:
        strip = self._strips.get(row.check)
        if strip is None:
            strip = self._strips[row.check] = Strip(Tally(row.check, NO_DATA, self._watched_ms, {}), {})
            self._recount(strip)
        strip.published, strip.expires_at = CHARACTERS[row.status], row.expires_at
        if strip.published != strip.counted or (strip.expires_at is not None and strip.expires_at <= at):
            self._count(strip, at)
        if strip.expires_at is not None and not strip.queued:
            strip.queued = True
            heappush(self._expiries, (strip.expires_at, strip.check))

    def _count(self, strip: Strip, at: int) -> None:
        """Let a row count, from this instant on, as what it is then."""
        character = strip.counts_at(at)
        if character != strip.counted:
            strip.count(character, self._watched_ms)
            self._new_tallies.add(strip.check)

    def _expire(self, at: int) -> None:
        """Rows that ran out without a new probe count as unknown from this publication on (H17)."""
        expiries = self._expiries
        while expiries and expiries[0][0] <= at:
            strip = self._strips[heappop(expiries)[1]]
            strip.queued = False
            if strip.expires_at is not None and strip.expires_at > at:  # renewed since it was queued
                strip.queued = True
                heappush(expiries, (strip.expires_at, strip.check))
            else:
                self._count(strip, at)

    def _advance(self, at: int, last_at: int) -> None:
        """Let the statuses of the last publication last until this one, or until their hold runs out (H8)."""
        held_until_at = min(at, last_at + self._span.hold_ms)
        self._watched_ms += self._within_newest(last_at, held_until_at)
        bucket = at // self._span.bucket_ms
        if bucket > self._newest:
            self._close(bucket)
            self._watched_ms = self._within_newest(last_at, held_until_at)

    def _within_newest(self, from_at: int, until_at: int) -> int:
        return max(0, min(until_at, self._newest_at + self._span.bucket_ms) - max(from_at, self._newest_at))

    def _begin(self, bucket: int) -> None:
        self._newest = bucket
        self._newest_at = bucket * self._span.bucket_ms

    def _set_back(self, at: int, last_at: int) -> None:
        """The clock was set back (H16): what was published last was seen, but for a time that nobody measured."""
        seen_in_newest = last_at // self._span.bucket_ms == self._newest
        for strip in self._strips.values():
            if seen_in_newest:
                strip.note()
            self._count(strip, at)
            strip.queued = strip.expires_at is not None
        self._new_tallies.update(self._strips)
        self._expiries = [(s.expires_at, s.check) for s in self._strips.values() if s.expires_at is not None]
        heapify(self._expiries)

    def _close(self, bucket: int) -> None:
        """End the newest bucket, for good (H16), and begin a later one; between them nothing was published."""
        ended = self._newest
        day, place = divmod(ended, self._per_day)
        leaving = [divmod(ended - window, self._per_day) for window in self._windows]
        for strip in self._strips.values():
            strip.settle(self._watched_ms)
            character = bucket_character(strip.lasted_ms, self._span.counts_from_ms)
            if character != NO_DATA:
                strip.days[day] = strip.days.get(day, "").ljust(place, NO_DATA) + character
            strip.lasted_ms.clear()
            strip.since_ms = 0
            if bucket == ended + 1:
                strip.slide(character, leaving)
        self._new_tallies.update(self._strips)
        self._new_days.add(day)
        self._begin(bucket)
        if bucket > ended + 1:
            for strip in self._strips.values():
                self._recount(strip)
        if self._lived[-1:] != [day]:
            self._lived.append(day)
        if len(self._lived) > self._span.retention_days + 1 + SPARE_DAYS:
            self._forget(self._lived.pop(0))

    def _recount(self, strip: Strip) -> None:
        counted = [_tell(self._ended(strip, self._newest - window, self._newest)) for window in self._windows]
        strip.current = [current for current, _ in counted]
        strip.known = [known for _, known in counted]

    def _forget(self, day: int) -> None:
        for strip in self._strips.values():
            if strip.days.pop(day, None) is not None:
                self._forgotten_days.append((strip.check, day))
        aged_out = [s.check for s in self._strips.values() if s.counted == NO_DATA and not s.days]
        for check in aged_out:
            del self._strips[check]
        self._expiries = [expiry for expiry in self._expiries if expiry[1] in self._strips]
        heapify(self._expiries)
        self._new_tallies.difference_update(aged_out)
        self._forgotten_checks.extend(aged_out)

    def _ended(self, strip: Strip, start: int, end: int) -> str:
        """The characters of the ended buckets from ``start`` up to, not including, ``end``."""
        per_day = self._per_day
        days = range(start // per_day, end // per_day + 1)
        characters = "".join(strip.days.get(day, "").ljust(per_day, NO_DATA) for day in days)
        return characters[start % per_day :][: end - start]

    def _view_row(self, strip: Strip, start: int, to: int) -> HistoryRow:
        if to == self._newest:
            filling = self._filling(strip)
            buckets = self._ended(strip, start, to) + filling
            counted = [
                (current + (filling == "c"), known + (filling in KNOWN))
                for current, known in zip(strip.current, strip.known, strict=True)
            ]
        else:  # the clock was set back: every bucket up to its time has ended (H16)
            buckets = self._ended(strip, start, to + 1)
            counted = [_tell(buckets[-window - 1 :]) for window in self._windows]
        min_known = self._span.min_known_buckets
        figures = (uptime(current, known, min_known) for current, known in counted)
        return HistoryRow(strip.check, buckets, Uptime(*figures))

    def _filling(self, strip: Strip) -> str:
        held_ms = self._watched_ms - strip.since_ms
        seen_ms = strip.lasted_ms | {strip.counted: strip.lasted_ms.get(strip.counted, 0) + held_ms}
        return bucket_character(seen_ms, self._span.counts_from_ms)


def _tell(buckets: Sequence[str]) -> tuple[int, int]:
    """How many buckets are current, and how many known."""
    return buckets.count("c"), sum(buckets.count(character) for character in KNOWN)
