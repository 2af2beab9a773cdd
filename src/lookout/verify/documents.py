"""What a rule says, and both documents as far as they can be read."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeGuard, TypeVar

import msgspec

from lookout.base.instants import parse_instant, parse_second
from lookout.base.text import shorten

_SCHEMA_VERSION: Final = 1
_LONGEST_QUOTE: Final = 80

Verdict = Literal["pass", "fail", "could not tell", "not seen"]


class Remark(NamedTuple):
    """What one answer shows of a clause: a pass only if it could have been a failure. A pass has its words in the table
    of clauses."""

    clause: str
    verdict: Verdict
    what: str = ""


def fine(clause: str) -> Remark:
    return Remark(clause, "pass")


def wrong(clause: str, what: str) -> Remark:
    return Remark(clause, "fail", what)


def unsure(clause: str, what: str) -> Remark:
    return Remark(clause, "could not tell", what)


def expect(clause: str, is_right: bool, what: str) -> Remark:
    return fine(clause) if is_right else wrong(clause, what)


class VisitedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A live row of exactly these fields (R2). A field with a clause of its own may be anything."""

    service: str
    chain_id: Any
    status: str
    reason: str
    observed_at: Any
    last_success_at: Any
    expires_at: Any
    metrics: Any


class VisitedHistoryRow(msgspec.Struct, frozen=True, rename="camel"):
    service: str
    chain_id: Any
    buckets: str
    uptime: dict[str, Any]


class VisitedReport(msgspec.Struct, frozen=True, rename="camel"):
    schema_version: int
    generated_at: str
    checks: list[Any]

    @property
    def rows(self) -> list[VisitedRow]:
        return [row for row in read_rows(self.checks, VisitedRow) if isinstance(row, VisitedRow)]


class VisitedHistory(msgspec.Struct, frozen=True, rename="camel"):
    schema_version: int
    generated_at: str
    bucket_seconds: Annotated[int, msgspec.Meta(ge=1)]
    retention_days: Annotated[int, msgspec.Meta(ge=1)]
    to: str
    from_: str = msgspec.field(name="from")
    raw_rows: list[Any] = msgspec.field(name="rows")

    @property
    def bucket_ms(self) -> int:
        return self.bucket_seconds * 1000

    @property
    def from_at(self) -> int | None:
        return _read(parse_second, self.from_)

    @property
    def to_at(self) -> int | None:
        return _read(parse_second, self.to)

    @property
    def length(self) -> int | None:
        if self.from_at is None or self.to_at is None or self.to_at < self.from_at:
            return None
        buckets, rest = divmod(self.to_at - self.from_at, self.bucket_ms)
        return None if rest else buckets + 1

    @property
    def rows(self) -> list[VisitedHistoryRow]:
        return [row for row in read_rows(self.raw_rows, VisitedHistoryRow) if isinstance(row, VisitedHistoryRow)]


class Unread(NamedTuple):
    """Why a document or a row cannot be judged."""

    verdict: Verdict
    what: str


class _Head(msgspec.Struct, rename="camel"):
    schema_version: Any = _SCHEMA_VERSION
    generated_at: Any = None


_Shape = TypeVar("_Shape")


def read_document(body: bytes, shape: type[_Shape]) -> _Shape | Unread:
    try:
        version = msgspec.json.decode(body, type=_Head).schema_version
        if is_integer(version) and version != _SCHEMA_VERSION:
            return Unread("could not tell", f"schemaVersion {version} is not known here")
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, RecursionError) as error:
        return Unread("fail", f"{error}; the body begins with {quote(body[:40])}")


def read_generated_at(body: bytes) -> int | None:
    try:
        return read_instant(msgspec.json.decode(body, type=_Head).generated_at)
    except (msgspec.MsgspecError, RecursionError):
        return None


def read_rows(rows: Iterable[object], shape: type[_Shape]) -> Iterator[_Shape | Unread]:
    for row in rows:
        try:
            yield msgspec.convert(row, shape)
        except msgspec.ValidationError as error:
            yield Unread("fail", f"{error}, in the row {quote(row)}")


def list_rows(document: VisitedReport | VisitedHistory | Unread) -> list[str]:
    """The names of a document's rows, in their order; none if it cannot be read."""
    return [] if isinstance(document, Unread) else list(map(describe_row, document.rows))


def list_doubles(document: VisitedReport | VisitedHistory) -> list[str]:
    return [f"{name} has {times} rows" for name, times in Counter(list_rows(document)).items() if times > 1]


def describe_row(row: VisitedRow | VisitedHistoryRow) -> str:
    return row.service if row.chain_id is None else f"{row.service} {quote(row.chain_id)}"


def quote(found: object) -> str:
    """What a server sent, short and in ASCII."""
    return shorten(ascii(found), _LONGEST_QUOTE)


def is_integer(found: object) -> TypeGuard[int]:
    return isinstance(found, int) and not isinstance(found, bool)


def read_instant(found: object) -> int | None:
    """An instant with milliseconds; None if it is not one."""
    return _read(parse_instant, found)


def _read(parse: Callable[[str], int], found: object) -> int | None:
    try:
        return parse(found) if isinstance(found, str) else None
    except ValueError:
        return None
