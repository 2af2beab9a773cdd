"""The 14-day history: published statuses in, one character per bucket and uptime out (clauses H).

A publication samples every row, yet costs only as much as what changed: the monitored time is one running total for all
rows, and a row adds its share when its status changes or its bucket ends. Buckets are numbered from 1970; a day holds a
whole number of them.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from lookout.core.model import Check, Row
from lookout.core.plan import Span
from lookout_reader.statuses import CHARACTERS, KNOWN_CHARACTERS, NO_DATA, TROUBLE_CHARACTERS

KNOWN: Final = frozenset(KNOWN_CHARACTERS)
_CURRENT: Final = CHARACTERS["current"]
_UNKNOWN: Final = CHARACTERS["unknown"]
_UNMONITORED: Final = CHARACTERS["unmonitored"]
DAY_MS: Final = 86_400_000
WINDOW_DAYS: Final = (1, 7, 14)
# Ended buckets are kept this much longer than they are shown, so that they survive a clock set forward and back.
SPARE_DAYS: Final = 3
# Limit for tallies kept aside: a clock that is set back again and again must not fill the store.
MOST_LATER: Final = 16
_NEVER: Final = 1 << 62


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


Lasted = dict[str, int]
"""How long each status, as a character, lasted in a bucket."""


class Tally(Struct, frozen=True, omit_defaults=True):
    """One row's filling bucket: the status that counts now, since when, and how long other statuses lasted."""

    check: Check
    counted: str
    since_ms: int
    lasted_ms: Lasted
    later: dict[int, Lasted] = {}
    """Only in what is stored: what ``SetBack`` holds of this row."""


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
        character = _UNKNOWN if expired else self.published
        if character != self.tally.counted:
            lasted_ms = self.lasted_ms(watched_ms)
            self.tally = replace(self.tally, counted=character, since_ms=watched_ms, lasted_ms=lasted_ms)

    def discard(self, watched_ms: int) -> None:
        """Do not count the time since the last status began."""
        self.tally = replace(self.tally, since_ms=watched_ms)

    def mark_seen(self) -> None:
        """The status that counts now was seen in this bucket, however briefly."""
        counted, lasted_ms = self.tally.counted, self.tally.lasted_ms
        if counted != NO_DATA:
            self.tally = replace(self.tally, lasted_ms={**lasted_ms, counted: lasted_ms.get(counted, 0)})

    def lasted_ms(self, watched_ms: int) -> Lasted:
        """How long each status has lasted in the filling bucket, the one that counts now included."""
        counted, lasted_ms = self.tally.counted, self.tally.lasted_ms
        held_ms = watched_ms - self.tally.since_ms
        if held_ms == 0 or counted == NO_DATA:
            return lasted_ms
        return {**lasted_ms, counted: lasted_ms.get(counted, 0) + held_ms}

    def begin(self, lasted_ms: Lasted) -> None:
        """Begin a bucket, or go on filling one in which so much was seen before."""
        self.tally = replace(self.tally, since_ms=0, lasted_ms=lasted_ms)

    def record(self, bucket: int, per_day: int, character: str) -> None:
        """Store the character of an ended bucket."""
        day, place = divmod(bucket, per_day)
        characters = self.days.get(day, "").ljust(place, NO_DATA)
        self.days = {**self.days, day: characters[:place] + character + characters[place + 1 :]}

    def forget(self, day: int) -> None:
        if day in self.days:
            self.days = {other: characters for other, characters in self.days.items() if other != day}

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


class SetBack:
    """What was seen in the buckets that had begun when the clock was set back. Each goes on filling when the clock
    comes back to it, or is recorded once the clock has passed it (H16). Nearly always there are none."""

    def __init__(self, rows: Iterable[Tally] = ()) -> None:
        self._buckets: dict[int, dict[Check, Lasted]] = defaultdict(dict)
        for row in rows:
            for bucket, lasted_ms in row.later.items():
                self._buckets[bucket][row.check] = lasted_ms

    def keep(self, bucket: int, lasted_ms: Mapping[Check, Lasted]) -> None:
        self._buckets[bucket].update(lasted_ms)

    def take(self, bucket: int) -> Mapping[Check, Lasted]:
        """What was seen in a bucket, which is no longer kept."""
        return self._buckets.pop(bucket, {})

    def passed(self, bucket: int) -> list[int]:
        """The buckets before this one."""
        return sorted(kept for kept in self._buckets if kept < bucket)

    def too_many(self) -> list[int]:
        return sorted(self._buckets)[:-MOST_LATER]

    def of_row(self, check: Check) -> dict[int, Lasted]:
        return {bucket: rows[check] for bucket, rows in self._buckets.items() if check in rows}


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
        self._set_back = SetBack()
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
            self._go_back(at)
        elif at < self._bucket_at + self._span.bucket_ms:  # nearly always
            self._watch(last_at, at)
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
        tallies = {check: replace(s.tally, later=self._set_back.of_row(check)) for check, s in self._strips.items()}
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
        """Go on to a later bucket, and record all earlier ones (H16)."""
        self._watch(last_at, at)
        bucket = at // self._span.bucket_ms
        if self._is_filling:
            self._record(self._bucket, self._lasted_ms())
        for passed in self._set_back.passed(bucket):
            self._record(passed, self._set_back.take(passed))
        self._enter(bucket)
        self._watch(last_at, at)
        if self._has_new_day:
            self._has_new_day = False
            self._forget_old_days()

    def _go_back(self, at: int) -> None:
        """The clock was set back (H16): the last statuses were seen, but for an unknown time."""
        if self._is_filling:
            for strip in self._strips.values():
                strip.mark_seen()
        bucket = at // self._span.bucket_ms
        if bucket < self._bucket:
            if self._is_filling:
                self._set_back.keep(self._bucket, self._lasted_ms())
            for earliest in self._set_back.too_many():
                self._record(earliest, self._set_back.take(earliest))
            self._enter(bucket)
        self._expire(at)

    def _lasted_ms(self) -> dict[Check, Lasted]:
        """How long each status lasted in the filling bucket, of the rows of which any was seen."""
        lasted_ms = {check: strip.lasted_ms(self._watched_ms) for check, strip in self._strips.items()}
        return {check: seen for check, seen in lasted_ms.items() if seen}

    def _enter(self, bucket: int) -> None:
        """Begin a bucket, or go on filling it. A recorded bucket does not change."""
        self._bucket, self._bucket_at = bucket, bucket * self._span.bucket_ms
        self._first = min(self._first, bucket)
        self._is_filling = not self._is_recorded(bucket)
        self._watched_ms = 0
        lasted_ms = self._set_back.take(bucket)
        for check, strip in self._strips.items():
            strip.begin(lasted_ms.get(check, {}))

    def _record(self, bucket: int, lasted_ms: Mapping[Check, Lasted]) -> None:
        for check, seen in lasted_ms.items():
            self._strips[check].record(bucket, self._per_day, bucket_character(seen, self._span.counts_from_ms))
        day = bucket // self._per_day
        if lasted_ms and day not in self._days_kept:
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
        for check, strip in tuple(self._strips.items()):
            has_left = strip.tally.counted == NO_DATA
            if has_left and not (strip.days or self._set_back.of_row(check)):
                del self._strips[check]

    def _view_row(self, check: Check, start: int) -> HistoryRow:
        strip = self._strips[check]
        buckets = strip.ended(start, self._bucket, self._per_day) + self._last_character(strip)
        windows = (buckets[-window - 1 :] for window in self._windows)
        figures = (
            uptime(shown.count(_CURRENT), sum(map(shown.count, KNOWN)), self._span.min_known_buckets)
            for shown in windows
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
        self._set_back = SetBack(state.tallies.values())
        self._strips = {
            check: Strip(replace(tally, later={}), state.days[check]) for check, tally in state.tallies.items()
        }
        self._is_filling = not self._is_recorded(self._bucket)
        if progress.newest > self._bucket:
            self._set_back.keep(progress.newest, self._lasted_ms())
            self._enter(self._bucket)
