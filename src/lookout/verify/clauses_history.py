"""Clauses H: the history, as a pure function of its body."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

from lookout.base.instants import format_second
from lookout.verify.documents import (
    Json,
    RowIdentity,
    Unreadable,
    decode_document,
    describe_row,
    is_integer,
    list_identities,
    read_document,
    read_instant,
    read_second,
)
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout_reader.statuses import CHARACTERS, KNOWN_CHARACTERS, NO_DATA

_BUCKET_S: Final = 300
_RETENTION_DAYS: Final = 14
_DAY_S: Final = 86_400
_MIN_KNOWN: Final = 12
_CHARACTERS: Final = frozenset((*CHARACTERS.values(), NO_DATA))
_WINDOWS: Final = {"24h": 1, "7d": 7, "14d": 14}
_FIELDS: Final = ("schemaVersion", "generatedAt", "bucketSeconds", "retentionDays", "from", "to", "rows")


class _Frame(NamedTuple):
    """The span of a history; instants in seconds."""

    bucket_s: int
    retention_days: int
    from_s: int
    to_s: int

    @property
    def length(self) -> int | None:
        """How many buckets there are, if the borders allow for a whole number."""
        whole, rest = divmod(self.to_s - self.from_s, self.bucket_s)
        return whole + 1 if rest == 0 and whole >= 0 else None


class EndedBuckets(NamedTuple):
    """The buckets of a history by row; all but the last of each have ended."""

    frame: _Frame
    rows: dict[RowIdentity, str]

    def find_change(self, before: "EndedBuckets") -> RowIdentity | None:
        """A row in which a bucket differs that had ended in both."""
        own, earlier = self.frame, before.frame
        if own.bucket_s != earlier.bucket_s or (own.from_s - earlier.from_s) % own.bucket_s:
            return None  # other buckets altogether
        from_s, to_s = max(own.from_s, earlier.from_s), min(own.to_s, earlier.to_s)
        if from_s >= to_s:
            return None
        for identity in self.rows:
            if identity in before.rows and self._cut(identity, from_s, to_s) != before._cut(identity, from_s, to_s):
                return identity
        return None

    def _cut(self, identity: RowIdentity, from_s: int, to_s: int) -> str:
        first, bucket_s = self.frame.from_s, self.frame.bucket_s
        return self.rows[identity][(from_s - first) // bucket_s : (to_s - first) // bucket_s]


def verify_history(body: bytes) -> Iterator[ClauseFinding]:
    """What a history alone shows of the clauses H."""
    history = read_document(body, "history", "H1")
    if isinstance(history, ClauseFinding):
        yield history
        return
    yield from _verify_fields(history)
    frame, rows = _read_frame(history), history.get("rows")
    if frame is not None:
        yield from _verify_borders(history, frame)
    if isinstance(rows, list):
        yield from _verify_rows(rows)
        for row in rows:
            if isinstance(row, dict) and isinstance(row.get("buckets"), str):
                yield from _verify_buckets(row, row["buckets"], frame)


def read_ended_buckets(body: bytes) -> EndedBuckets | None:
    """What is left of a history for comparing it with the next one; None if it cannot be read."""
    history = decode_document(body)
    frame = None if isinstance(history, Unreadable) else _read_frame(history)
    if isinstance(history, Unreadable) or frame is None or not isinstance(history.get("rows"), list):
        return None
    rows = {
        identity: row["buckets"]
        for row in history["rows"]
        for identity in list_identities([row])
        if isinstance(row.get("buckets"), str) and len(row["buckets"]) == frame.length
    }
    return EndedBuckets(frame, rows) if rows else None


def calculate_uptime(buckets: str) -> float | None:
    """Uptime as the contract has it, from the characters themselves (H9 to H11)."""
    current, total = buckets.count(CHARACTERS["current"]), _count_known(buckets)
    if total < _MIN_KNOWN:
        return None
    rounded = round(Fraction(current * 10_000, total))  # half to even
    return (rounded if current == total else min(rounded, 9_999)) / 10_000


def _count_known(buckets: str) -> int:
    return sum(map(buckets.count, KNOWN_CHARACTERS))


def _verify_fields(history: Json) -> Iterator[ClauseFinding]:
    missing = [field for field in _FIELDS if field not in history]
    if missing:
        yield failed("H1", f"history: without {', '.join(missing)}")
    if "schemaVersion" in history and not is_integer(history["schemaVersion"]):
        yield failed("H1", f"history: schemaVersion is {quote(history['schemaVersion'])}, and not the integer 1")
    if "generatedAt" in history and read_instant(history["generatedAt"]) is None:
        yield failed("H1", f"history: generatedAt is {quote(history['generatedAt'])}, and not to the millisecond")
    for field in ("from", "to"):
        if field in history and read_second(history[field]) is None:
            yield failed("H1", f"history: {field} is {quote(history[field])}, and not like 2026-11-01T00:00:00Z")
    for field, launch in (("bucketSeconds", _BUCKET_S), ("retentionDays", _RETENTION_DAYS)):
        found = history.get(field, launch)
        if not is_integer(found) or found < 1:
            yield failed("H1", f"history: {field} is {quote(found)}")
        elif found != launch:
            yield inconclusive("H1", f"history: {field} is {found} instead of {launch}: tuned, it seems")
    if "rows" in history and not isinstance(history["rows"], list):
        yield failed("H1", f"history: rows is {quote(history['rows'])}, and not a list")
    yield passed("H1", "all fields are there, instants in their forms")


def _read_frame(history: Json) -> _Frame | None:
    bucket_s, days = history.get("bucketSeconds"), history.get("retentionDays")
    from_at, to_at = read_second(history.get("from")), read_second(history.get("to"))
    if from_at is None or to_at is None or not isinstance(bucket_s, int) or not isinstance(days, int):
        return None
    return _Frame(bucket_s, days, from_at // 1000, to_at // 1000) if bucket_s >= 1 and days >= 1 else None


def _verify_borders(history: Json, frame: _Frame) -> Iterator[ClauseFinding]:
    wrong = []
    for name, at in (("from", frame.from_s), ("to", frame.to_s)):
        if at % frame.bucket_s:
            wrong.append(f"{name} is {history[name]}, which is not aligned to {frame.bucket_s} s")
    if frame.from_s > frame.to_s:
        wrong.append("from is after to")
    if frame.from_s < frame.to_s - frame.retention_days * _DAY_S:
        wrong.append(f"from is more than {frame.retention_days} days before to")
    generated_at = read_instant(history.get("generatedAt"))
    if generated_at is not None and not wrong:
        filling_s = generated_at // 1000 // frame.bucket_s * frame.bucket_s
        if filling_s != frame.to_s:
            now_filling = format_second(filling_s * 1000)
            wrong.append(f"to is {history['to']}, but at generatedAt the bucket of {now_filling} was filling")
    for problem in wrong:
        yield failed("H4", f"history: {problem}")
    if not wrong:
        yield passed("H4", "from and to are aligned, and to is the bucket that was filling")


def _verify_rows(rows: list[object]) -> Iterator[ClauseFinding]:
    for row in rows:
        if not isinstance(row, dict):
            yield failed("H2", f"history: a row is {quote(row)}, and not an object")
            continue
        name, uptime = f"history: {describe_row(row)}", row.get("uptime")
        missing = [field for field in ("service", "chainId", "buckets", "uptime") if field not in row]
        if missing:
            yield failed("H2", f"{name}: without {', '.join(missing)}")
        if "buckets" in row and not isinstance(row["buckets"], str):
            yield failed("H2", f"{name}: buckets is {quote(row['buckets'])}")
        if "uptime" in row and not isinstance(uptime, dict):
            yield failed("H2", f"{name}: uptime is {quote(uptime)}")
        elif isinstance(uptime, dict) and not set(_WINDOWS) <= set(uptime):
            yield failed("H2", f"{name}: uptime without {', '.join(key for key in _WINDOWS if key not in uptime)}")
    doubles = [identity for identity, times in Counter(list_identities(rows)).items() if times > 1]
    if doubles:
        yield failed("H2", f"history: {quote(doubles[0])} has more than one row")


def _verify_buckets(row: Json, buckets: str, frame: _Frame | None) -> Iterator[ClauseFinding]:
    name = f"history: {describe_row(row)}"
    strange = sorted(set(buckets) - _CHARACTERS)
    if strange:
        yield inconclusive("H5", f"{name}: the character {quote(strange[0])} is not known here; new ones may appear")
    else:
        yield passed("H5", "all characters are known")
    if frame is None or frame.length is None:
        return  # the borders are wrong, and said to be
    longest = frame.retention_days * _DAY_S // frame.bucket_s + 1
    if len(buckets) != frame.length:
        yield failed("H3", f"{name}: {len(buckets)} buckets, where from and to make {frame.length}")
        return
    if len(buckets) > longest:
        yield failed("H3", f"{name}: {len(buckets)} buckets, more than {longest}")
    else:
        yield passed("H3", f"every string is {frame.length} characters long, as from and to make it")
    uptime = row.get("uptime")
    for window, days in _WINDOWS.items():
        if isinstance(uptime, dict) and window in uptime:
            shown = min(len(buckets), days * _DAY_S // frame.bucket_s + 1)
            yield from _verify_uptime(f"{name}: {window}", uptime[window], buckets, shown, known_all=not strange)


def _verify_uptime(name: str, said: object, buckets: str, shown: int, *, known_all: bool) -> Iterator[ClauseFinding]:
    """One window's uptime, of the last ``shown`` buckets."""
    window = buckets[-shown:]
    right = calculate_uptime(window)
    if said is not None and (isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= 1):
        yield failed("H9", f"{name} is {quote(said)}, and not a number from 0 to 1")
    elif said == right:
        yield passed("H10", "uptime is null exactly where fewer than 12 buckets are known")
        if right is not None:
            yield passed("H9", "uptime is c / (c + k + d + u), to 4 decimals")
            yield passed("H11", "uptime is 1 only where every known bucket is c")
            if shown < len(buckets):
                yield passed("H12", "a window holds the buckets that start within it")
    elif not known_all:
        yield inconclusive("H9", f"{name} is {said}, in a row with characters that are not known here")
    elif said is None or right is None:
        yield failed("H10", f"{name} is {'null' if said is None else said} with {_count_known(window)} known buckets")
    elif said == 1:
        yield failed("H11", f"{name} is 1, although not every known bucket is c; it has to be {right}")
    elif shown < len(buckets) and said in (calculate_uptime(buckets[-shown - 1 :]), calculate_uptime(window[1:])):
        yield failed("H12", f"{name} is {said}, which is that of a bucket more or less; it has to be {right}")
    else:
        yield failed("H9", f"{name} is {said}, and has to be {right}")
