"""The rules of the history (clauses H), as pure functions of histories, and of the live reports beside them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from operator import ne
from typing import Final, Literal, NamedTuple

from lookout.base.instants import format_second
from lookout.verify.documents import (
    Json,
    Remark,
    RowIdentity,
    describe_row,
    failed,
    inconclusive,
    is_integer,
    list_identities,
    passed,
    quote,
    read_document,
    read_instant,
    read_second,
)
from lookout_reader.statuses import CHARACTERS, KNOWN_CHARACTERS, NO_DATA

_BUCKET_S: Final = 300
_RETENTION_DAYS: Final = 14
_DAY_S: Final = 86_400
_MIN_KNOWN: Final = 12
_CHARACTERS: Final = frozenset((*CHARACTERS.values(), NO_DATA))
_WINDOWS: Final = {"24h": 1, "7d": 7, "14d": 14}
_FIELDS: Final = ("schemaVersion", "generatedAt", "bucketSeconds", "retentionDays", "from", "to", "rows")
_ROW_FIELDS: Final = ("service", "chainId", "buckets", "uptime")


_Fault = Literal["wrong", "null", "one", "a bucket off"]


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


class History(NamedTuple):
    """A history as far as it can be read; ``problem`` is why there is nothing to read."""

    problem: Remark | None
    fields: Json
    frame: _Frame | None
    rows: list[object]

    def list_buckets(self) -> Iterator[tuple[str, Json, str]]:
        """The rows that have buckets, with their names."""
        for row in self.rows:
            if isinstance(row, dict) and isinstance(row.get("buckets"), str):
                yield f"history: {describe_row(row)}", row, row["buckets"]

    def read_ended(self) -> dict[RowIdentity, str]:
        """The buckets that have ended, of the rows of the right length."""
        length = None if self.frame is None else self.frame.length
        rows = [(row, buckets) for _, row, buckets in self.list_buckets() if len(buckets) == length]
        return {identity: buckets[:-1] for row, buckets in rows for identity in list_identities([row])}


HistoryRule = Callable[[History], Iterator[Remark]]


def read_history(body: bytes) -> History:
    history = read_document(body, "history")
    if isinstance(history, Remark):
        return History(history, {}, None, [])
    rows = history.get("rows")
    return History(None, history, _read_frame(history), rows if isinstance(rows, list) else [])


def _read_frame(history: Json) -> _Frame | None:
    bucket_s, days = history.get("bucketSeconds"), history.get("retentionDays")
    from_at, to_at = read_second(history.get("from")), read_second(history.get("to"))
    if from_at is None or to_at is None or not isinstance(bucket_s, int) or not isinstance(days, int):
        return None
    return _Frame(bucket_s, days, from_at // 1000, to_at // 1000) if bucket_s >= 1 and days >= 1 else None


def verify_fields(history: History) -> Iterator[Remark]:
    if history.problem is not None:
        yield history.problem
        return
    fields = history.fields
    missing = [field for field in _FIELDS if field not in fields]
    if missing:
        yield failed(f"history: without {', '.join(missing)}")
    if "schemaVersion" in fields and not is_integer(fields["schemaVersion"]):
        yield failed(f"history: schemaVersion is {quote(fields['schemaVersion'])}, and not the integer 1")
    if "generatedAt" in fields and read_instant(fields["generatedAt"]) is None:
        yield failed(f"history: generatedAt is {quote(fields['generatedAt'])}, and not to the millisecond")
    for field in ("from", "to"):
        if field in fields and read_second(fields[field]) is None:
            yield failed(f"history: {field} is {quote(fields[field])}, and not like 2026-11-01T00:00:00Z")
    for field, launch in (("bucketSeconds", _BUCKET_S), ("retentionDays", _RETENTION_DAYS)):
        found = fields.get(field, launch)
        if not is_integer(found) or found < 1:
            yield failed(f"history: {field} is {quote(found)}")
        elif found != launch:
            yield inconclusive(f"history: {field} is {found} instead of {launch}: tuned, it seems")
    if "rows" in fields and not isinstance(fields["rows"], list):
        yield failed(f"history: rows is {quote(fields['rows'])}, and not a list")
    yield passed("all fields are there, instants in their forms")


def verify_rows(history: History) -> Iterator[Remark]:
    for row in history.rows:
        if not isinstance(row, dict):
            yield failed(f"history: a row is {quote(row)}, and not an object")
            continue
        name, uptime = f"history: {describe_row(row)}", row.get("uptime")
        missing = [field for field in _ROW_FIELDS if field not in row]
        if missing:
            yield failed(f"{name}: without {', '.join(missing)}")
        if "buckets" in row and not isinstance(row["buckets"], str):
            yield failed(f"{name}: buckets is {quote(row['buckets'])}")
        if "uptime" in row and not isinstance(uptime, dict):
            yield failed(f"{name}: uptime is {quote(uptime)}")
        elif isinstance(uptime, dict) and not set(_WINDOWS) <= set(uptime):
            yield failed(f"{name}: uptime without {', '.join(key for key in _WINDOWS if key not in uptime)}")
    doubles = [identity for identity, times in Counter(list_identities(history.rows)).items() if times > 1]
    if doubles:
        yield failed(f"history: {quote(doubles[0])} has more than one row")


class DocumentRows(NamedTuple):
    """The rows of a document, and the instant it was made, if that can be read."""

    identities: tuple[RowIdentity, ...]
    at: int | None


def read_rows(bodies: Iterable[bytes], key: Literal["checks", "rows"]) -> list[DocumentRows]:
    """The rows of each different document that can be read, each row once."""
    found = []
    for body in dict.fromkeys(bodies):
        document = read_document(body, key)
        if not isinstance(document, Remark) and isinstance(document.get(key), list):
            once = tuple(dict.fromkeys(list_identities(document[key])))
            found.append(DocumentRows(once, read_instant(document.get("generatedAt"))))
    return found


def compare_rows(lives: list[DocumentRows], histories: list[DocumentRows], cache: str | None) -> Remark:
    """Whether the newest history has the rows of the live report before it, or of the newest one. A history that is
    older than every live report, or a live report out of a cache, may be of another configuration."""
    if not lives or not histories:
        return inconclusive("there are no two documents to compare the rows of")
    history, newest = histories[-1], lives[-1]
    not_later = [live for live in lives if live.at is None or history.at is None or live.at <= history.at]
    live = not_later[-1] if not_later else newest
    if history.identities in (live.identities, newest.identities):
        return passed("rows and order are those of the live report")
    if set(live.identities) == set(history.identities):
        return failed("history: the rows are in another order than those of the live report")
    lacking = [identity for identity in live.identities if identity not in history.identities]
    more = [identity for identity in history.identities if identity not in live.identities]
    difference = f"history: without {quote(lacking[0])}" if lacking else f"history: with {quote(more[0])}"
    if not_later and not cache:
        return failed(f"{difference}, other than the live report")
    return inconclusive(
        f"{difference}, other than the live report: perhaps of another configuration; --wait 80 sees the next history"
    )


def verify_lengths(history: History) -> Iterator[Remark]:
    frame = history.frame
    if frame is None or frame.length is None:
        return  # H1 or H4 says so
    longest = frame.retention_days * _DAY_S // frame.bucket_s + 1
    for name, _, buckets in history.list_buckets():
        if len(buckets) != frame.length:
            yield failed(f"{name}: {len(buckets)} buckets, where from and to make {frame.length}")
        elif len(buckets) > longest:
            yield failed(f"{name}: {len(buckets)} buckets, more than {longest}")
        else:
            yield passed(f"every string is {frame.length} characters long, as from and to make it")


def verify_borders(history: History) -> Iterator[Remark]:
    fields, frame = history.fields, history.frame
    if frame is None:
        return
    wrong = []
    for name, at in (("from", frame.from_s), ("to", frame.to_s)):
        if at % frame.bucket_s:
            wrong.append(f"{name} is {fields[name]}, which is not aligned to {frame.bucket_s} s")
    if frame.from_s > frame.to_s:
        wrong.append("from is after to")
    if frame.from_s < frame.to_s - frame.retention_days * _DAY_S:
        wrong.append(f"from is more than {frame.retention_days} days before to")
    generated_at = read_instant(fields.get("generatedAt"))
    if generated_at is not None and not wrong:
        filling_s = generated_at // 1000 // frame.bucket_s * frame.bucket_s
        if filling_s != frame.to_s:
            now_filling = format_second(filling_s * 1000)
            wrong.append(f"to is {fields['to']}, but at generatedAt the bucket of {now_filling} was filling")
    for problem in wrong:
        yield failed(f"history: {problem}")
    if not wrong:
        yield passed("from and to are aligned, and to is the bucket that was filling")


def verify_characters(history: History) -> Iterator[Remark]:
    for name, _, buckets in history.list_buckets():
        strange = sorted(set(buckets) - _CHARACTERS)
        if strange:
            yield inconclusive(f"{name}: the character {quote(strange[0])} is not known here; new ones may appear")
        else:
            yield passed("all characters are known")


class _Window(NamedTuple):
    """The uptime of a row over one window: what the history says, and what its last ``shown`` buckets make."""

    name: str
    said: object
    buckets: str
    shown: int

    @property
    def right(self) -> float | None:
        return calculate_uptime(self.buckets[-self.shown :])

    @property
    def is_cut(self) -> bool:
        """Whether the history is longer than the window."""
        return self.shown < len(self.buckets)

    def find_fault(self) -> tuple[_Fault, Remark] | None:
        name, said, right = self.name, self.said, self.right
        if said is not None and (isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= 1):
            return "wrong", failed(f"{name} is {quote(said)}, and not a number from 0 to 1")
        if said == right:
            return None
        if set(self.buckets) - _CHARACTERS:
            return "wrong", inconclusive(f"{name} is {said}, in a row with characters that are not known here")
        if said is None or right is None:
            known = _count_known(self.buckets[-self.shown :])
            return "null", failed(f"{name} is {'null' if said is None else said} with {known} known buckets")
        if said == 1:
            return "one", failed(f"{name} is 1, although not every known bucket is c; it has to be {right}")
        neighbours = self.buckets[-self.shown - 1 :], self.buckets[-self.shown :][1:]
        if self.is_cut and said in map(calculate_uptime, neighbours):
            text = f"{name} is {said}, which is that of a bucket more or less; it has to be {right}"
            return "a bucket off", failed(text)
        return "wrong", failed(f"{name} is {said}, and has to be {right}")


def _list_windows(history: History) -> Iterator[_Window]:
    frame = history.frame
    for name, row, buckets in history.list_buckets():
        uptime = row.get("uptime")
        if frame is None or len(buckets) != frame.length or not isinstance(uptime, dict):
            continue
        for window, days in _WINDOWS.items():
            if window in uptime:
                shown = min(len(buckets), days * _DAY_S // frame.bucket_s + 1)
                yield _Window(f"{name}: {window}", uptime[window], buckets, shown)


def _of_windows(kind: _Fault, right: str, is_shown_by: Callable[[_Window], bool]) -> HistoryRule:
    """The rule that no uptime has a kind of fault; windows that can have it and have none say ``right``."""

    def verify(history: History) -> Iterator[Remark]:
        for window in _list_windows(history):
            fault = window.find_fault()
            if fault is not None and fault[0] == kind:
                yield fault[1]
            elif fault is None and is_shown_by(window):
                yield passed(right)

    return verify


verify_uptime: Final = _of_windows(
    "wrong", "uptime is c / (c + k + d + u), to 4 decimals", lambda window: window.right is not None
)
verify_null_uptime: Final = _of_windows(
    "null", "uptime is null exactly where fewer than 12 buckets are known", lambda _: True
)
verify_whole_uptime: Final = _of_windows(
    "one", "uptime is 1 only where every known bucket is c", lambda window: window.right is not None
)
verify_window: Final = _of_windows(
    "a bucket off",
    "a window holds the buckets that start within it",
    lambda window: window.right is not None and window.is_cut,
)


def calculate_uptime(buckets: str) -> float | None:
    """Uptime as the contract has it, from the characters themselves."""
    current, total = buckets.count(CHARACTERS["current"]), _count_known(buckets)
    if total < _MIN_KNOWN:
        return None
    rounded = round(Fraction(current * 10_000, total))  # half to even
    return (rounded if current == total else min(rounded, 9_999)) / 10_000


def _count_known(buckets: str) -> int:
    return sum(map(buckets.count, KNOWN_CHARACTERS))


def find_change(before: bytes, after: bytes) -> RowIdentity | None:
    """A row in which a bucket differs that had ended in both histories."""
    one, other = read_history(before), read_history(after)
    if one.frame is None or other.frame is None or one.frame.bucket_s != other.frame.bucket_s:
        return None
    moved, rest = divmod(other.frame.from_s - one.frame.from_s, other.frame.bucket_s)
    if moved < 0 or rest:
        return None  # other buckets altogether
    earlier = one.read_ended()
    for identity, ended in other.read_ended().items():
        if any(map(ne, earlier.get(identity, "")[moved:], ended)):
            return identity
    return None


def verify_ended_buckets(bodies: Iterable[bytes]) -> Iterator[Remark]:
    """Each history is compared with the one before it, so that no more than two are in memory."""
    readable = [body for body in dict.fromkeys(bodies) if read_history(body).read_ended()]
    for before, after in pairwise(readable):
        changed = find_change(before, after)
        if changed is not None:
            yield failed(f"history: an ended bucket of {quote(changed)} changed")
            return
    if len(readable) > 1:
        yield passed(f"no ended bucket changed in {len(readable)} histories")
