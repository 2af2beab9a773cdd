"""The 14-day history: published statuses in, one character per bucket and uptime out (clauses H).

A publication samples every row, yet costs only as much as what changed: the monitored time is one running total for all
rows, and a row adds its share when its status changes or its bucket ends. Buckets are numbered from 1970; a day holds a
whole number of them.
"""

from bisect import insort
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct

from lookout.core.model import Check, Row
from lookout.core.plan import Span
from lookout.core.strip import CHARACTERS, KNOWN, NO_DATA, Strip, Tally, uptime

DAY_MS: Final = 86_400_000
WINDOW_DAYS: Final = (1, 7, 14)
# Ended buckets are kept this much longer than they are shown, so that they survive a clock set forward and back.
SPARE_DAYS: Final = 3
# Limit for tallies kept aside: a clock that is set back again and again must not fill the store.
MOST_LATER: Final = 16
_NEVER: Final = 1 << 62


class HistoryProgress(Struct, frozen=True):
    bucket_ms: int
    first: int
    """The earliest bucket ever begun."""
    newest: int
    """The bucket of the last publication. Earlier versions left it, and the tallies, at the latest bucket ever begun
    when the clock was set back."""
    published_at: int
    watched_ms: int


class HistoryState(Struct, frozen=True):
    """The stored history: for each check the tally of the filling bucket, and the ended buckets by day (M7)."""

    progress: HistoryProgress
    tallies: Mapping[Check, Tally]
    days: Mapping[Check, Mapping[int, str]]


Share = Annotated[float, Meta(ge=0, le=1)]


class Uptime(Struct, frozen=True, rename={"day": "24h", "week": "7d", "fortnight": "14d"}):
    """The share of current buckets among the known ones of each window; None where too few are known (H10)."""

    day: Share | None
    week: Share | None
    fortnight: Share | None


class HistoryRow(Struct, frozen=True):
    """One row's characters, oldest first, and its uptime."""

    check: Check
    buckets: str
    uptime: Uptime


class HistoryView(Struct, frozen=True):
    published_at: int
    span: Span
    from_at: int
    to_at: int
    rows: tuple[HistoryRow, ...]


class History:
    """The rows' buckets up to the last publication."""

    def __init__(self, span: Span, state: HistoryState | None = None) -> None:
        if state is not None and state.progress.bucket_ms != span.bucket_ms:
            raise ValueError(
                f"the stored history has buckets of {state.progress.bucket_ms / 1000:g} s,"
                f" the configuration of {span.bucket_ms / 1000:g} s"
            )
        self._span = span
        self._per_day = DAY_MS // span.bucket_ms
        self._windows = [min(days, span.retention_days) * self._per_day for days in WINDOW_DAYS]
        self._first = self._bucket = self._bucket_at = self._watched_ms = 0
        self._is_filling = True  # false if the clock was set back to a bucket that is recorded
        self.published_at: int | None = None
        self._strips: dict[Check, Strip] = {}
        self._expires_at = _NEVER  # no row expires before
        if state is not None:
            self._resume(state)
        self._days_kept = sorted({day for strip in self._strips.values() for day in strip.days})
        self._has_new_day = False

    @property
    def checks(self) -> Iterable[Check]:
        """Every check with a history, also checks that left the configuration (H15)."""
        return self._strips.keys()

    def publish(self, at: int, changed: Iterable[Row], gone: Iterable[Check] = ()) -> None:
        """A publication, a sample of every row (H8). ``changed`` has the rows that changed since the last publication,
        ``gone`` the checks that left. Of several publications at one instant only the last counts."""
        last_at, bucket = self.published_at, self._bucket
        if last_at is None:
            bucket = self._first = at // self._span.bucket_ms
            self._enter(bucket)
        elif at < last_at:
            self._set_back(at)
        elif at < self._bucket_at + self._span.bucket_ms:  # nearly always
            if self._is_filling:
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
            if self._bucket != bucket:  # its last status reaches into a later bucket
                strip.discard(self._watched_ms)
            strip.publish(NO_DATA, None, at, self._watched_ms)
        if self._expires_at <= at:
            self._expire(at)

    def view(self, checks: Iterable[Check]) -> HistoryView:
        if self.published_at is None:
            raise ValueError("there is no history before the first publication")
        to, bucket_ms = self._bucket, self._span.bucket_ms
        start = max(self._first, to - self._span.retention_days * self._per_day)
        rows = tuple(self._view_row(check, start) for check in checks)
        return HistoryView(self.published_at, self._span, start * bucket_ms, to * bucket_ms, rows)

    def state(self) -> HistoryState | None:
        if self.published_at is None:
            return None
        span, published_at = self._span, self.published_at
        progress = HistoryProgress(span.bucket_ms, self._first, self._bucket, published_at, self._watched_ms)
        tallies = {check: strip.tally for check, strip in self._strips.items()}
        return HistoryState(progress, tallies, {check: strip.days for check, strip in self._strips.items()})

    def _take(self, row: Row, at: int) -> None:
        strip = self._strips.get(row.check)
        if strip is None:
            strip = self._strips[row.check] = Strip(Tally(row.check, NO_DATA, self._watched_ms, {}), {})
        strip.publish(CHARACTERS[row.status], row.expires_at, at, self._watched_ms)
        if row.expires_at is not None and row.expires_at < self._expires_at:
            self._expires_at = row.expires_at

    def _expire(self, at: int) -> None:
        """Rows that expired without a new probe count as unknown from this publication on (H17)."""
        for strip in self._strips.values():
            strip.count(at, self._watched_ms)
        expiries = (strip.expires_at for strip in self._strips.values())
        self._expires_at = min((later for later in expiries if later is not None and later > at), default=_NEVER)

    def _watch(self, from_at: int, until_at: int) -> None:
        """Add the time for which a publication's statuses hold to the filling bucket (H8)."""
        if self._is_filling:
            begin_at = max(from_at, self._bucket_at)
            end_at = min(until_at, from_at + self._span.hold_ms, self._bucket_at + self._span.bucket_ms)
            self._watched_ms += max(0, end_at - begin_at)

    def _advance(self, at: int, last_at: int) -> None:
        """Go on to a later bucket, and record all earlier ones (H16): the bucket of the last publication, and buckets
        kept aside when the clock was set back."""
        self._watch(last_at, at)
        bucket = at // self._span.bucket_ms
        self._put_aside()
        for later in self._later():
            if later < bucket:
                self._record(later)
        self._enter(bucket)
        self._watch(last_at, at)
        if self._has_new_day:
            self._has_new_day = False
            self._forget_old_days()

    def _set_back(self, at: int) -> None:
        """The clock was set back (H16): the last statuses were seen, but for an unknown time."""
        if self._is_filling:
            for strip in self._strips.values():
                strip.mark_seen()
        bucket = at // self._span.bucket_ms
        if bucket < self._bucket:
            self._put_aside()
            for later in self._later()[:-MOST_LATER]:
                self._record(later)
            self._enter(bucket)
        self._expire(at)

    def _put_aside(self) -> None:
        """Keep the tallies of the filling bucket until it is recorded, or the clock comes back to it."""
        if self._is_filling:
            for strip in self._strips.values():
                strip.put_aside(self._bucket, self._watched_ms)

    def _later(self) -> list[int]:
        return sorted({later for strip in self._strips.values() for later in strip.tally.later})

    def _enter(self, bucket: int) -> None:
        """Begin a bucket, or resume it from its tallies. A recorded bucket does not change."""
        self._bucket, self._bucket_at = bucket, bucket * self._span.bucket_ms
        self._first = min(self._first, bucket)
        self._is_filling = not self._is_recorded(bucket)
        self._watched_ms = 0
        for strip in self._strips.values():
            strip.take_up(bucket)

    def _record(self, bucket: int) -> None:
        for strip in self._strips.values():
            strip.record(bucket, self._per_day, self._span.counts_from_ms)
        day = bucket // self._per_day
        if day not in self._days_kept:
            insort(self._days_kept, day)
            self._has_new_day = True

    def _is_recorded(self, bucket: int) -> bool:
        """Whether a bucket was recorded, which is the same for all rows: a publication samples every row."""
        place = divmod(bucket, self._per_day)
        return any(strip.recorded(*place) != NO_DATA for strip in self._strips.values())

    def _forget_old_days(self) -> None:
        """Forget days by how much was recorded later, not by date: a clock that is ten days ahead for a moment, even
        once an hour, must not erase the buckets shown at the right time."""
        days = self._span.retention_days + SPARE_DAYS
        recorded = {day: self._recorded_on(day) for day in self._days_kept}
        later = sum(recorded.values())
        for day, buckets in recorded.items():
            later -= buckets
            if later >= days * self._per_day:
                self._forget(day)
        today = self._bucket // self._per_day
        shown = range(today - self._span.retention_days, today + 1)
        while len(self._days_kept) > 4 * days:  # even nearly empty days
            self._forget(min(self._days_kept, key=lambda day: (day in shown, recorded[day])))

    def _recorded_on(self, day: int) -> int:
        characters = (strip.days.get(day, "") for strip in self._strips.values())
        return max(len(row) - row.count(NO_DATA) for row in characters)

    def _forget(self, day: int) -> None:
        self._days_kept.remove(day)
        for strip in self._strips.values():
            strip.forget(day)
        self._strips = {check: strip for check, strip in self._strips.items() if not strip.is_empty}

    def _view_row(self, check: Check, start: int) -> HistoryRow:
        strip = self._strips[check]
        buckets = strip.ended(start, self._bucket, self._per_day) + self._last_character(strip)
        windows = (buckets[-window - 1 :] for window in self._windows)
        figures = (
            uptime(shown.count("c"), sum(map(shown.count, KNOWN)), self._span.min_known_buckets) for shown in windows
        )
        return HistoryRow(check, buckets, Uptime(*figures))

    def _last_character(self, strip: Strip) -> str:
        if self._is_filling:
            return strip.filling(self._watched_ms, self._span.counts_from_ms)
        return strip.recorded(*divmod(self._bucket, self._per_day))

    def _resume(self, state: HistoryState) -> None:
        progress = state.progress
        self.published_at, self._first, self._watched_ms = progress.published_at, progress.first, progress.watched_ms
        self._bucket = progress.published_at // progress.bucket_ms
        self._bucket_at = self._bucket * progress.bucket_ms
        self._strips = {check: Strip(tally, state.days[check]) for check, tally in state.tallies.items()}
        self._is_filling = not self._is_recorded(self._bucket)
        if progress.newest > self._bucket:
            for strip in self._strips.values():
                strip.put_aside(progress.newest, self._watched_ms)
            self._enter(self._bucket)
