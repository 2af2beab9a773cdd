"""The common part of both documents: untrusted JSON, and rows that are identified by their check."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol, TypeGuard, TypeVar

SCHEMA_VERSION: Final = 1
WRONG_VERSION: Final = "its schemaVersion is not 1"
LARGEST: Final = 2**53 - 1  # the largest number that all JSON parsers read exactly
ROWS_MOST: Final = 10_000  # counted before rows are read
PARTS_MOST: Final = 100_000  # objects and lists, of which a row has two: counted before the text is parsed
DEEPEST: Final = 100  # nested objects and lists; parsers have different limits

Fields = Mapping[str, object]
Check = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that cannot be read, and why."""

    problem: str


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that cannot be read, and why; ``check`` is its check, if that can be read."""

    service: str | None
    chain_id: int | None
    check: Check | None
    problem: str


class Checked(Protocol):
    """A readable row of either document."""

    @property
    def check(self) -> Check: ...


R = TypeVar("R", bound=Checked)
R_co = TypeVar("R_co", bound=Checked, covariant=True)
Reader = Callable[[Fields, Check], R | str]


class Rows(Protocol[R_co]):
    """Either document."""

    @property
    def rows(self) -> Sequence[R_co | UnreadableRow]: ...


def read_document(text: str | bytes, rows: str) -> tuple[Fields, list[object]] | Unreadable:
    """The fields of a document of the schema version that this reader knows (C6), and its list of rows."""
    found = read_json(text, DEEPEST)
    if isinstance(found, Unreadable):
        return found
    if not is_object(found):
        return Unreadable("it is not a JSON object")
    version = found.get("schemaVersion")
    if isinstance(version, bool) or version != SCHEMA_VERSION:
        return Unreadable(WRONG_VERSION)
    listed = found.get(rows)
    if not is_list(listed):
        return Unreadable(f"its {rows} are not a list")
    return (found, listed) if len(listed) <= ROWS_MOST else Unreadable(f"its {rows} are too many")


def is_object(value: object) -> TypeGuard[Fields]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def read_json(text: str | bytes, deepest: int) -> object | Unreadable:
    """The value of ``text``, if it is JSON with at most ``deepest`` nested objects and lists."""
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        if decoded.count("{") + decoded.count("[") >= PARTS_MOST:
            return Unreadable("it is not JSON")
        found: object = json.loads(decoded, parse_constant=_refuse_constant, parse_int=_integer)
    except (ValueError, RecursionError):
        return Unreadable("it is not JSON")
    return Unreadable("it is not JSON") if _is_too_deep(found, deepest) else found


def read_rows(found: Sequence[object], reader: Reader[R]) -> tuple[R | UnreadableRow, ...]:
    """Read rows independently: an unreadable one does not affect others (C7)."""
    rows = [read_row(row, reader) for row in found]
    times = Counter(row.check for row in rows)
    return tuple(
        # Of two rows of the same check either may be wrong: both are unreadable.
        UnreadableRow(*row.check, row.check, "another row has the same service and chainId")
        if row.check is not None and times[row.check] > 1
        else row
        for row in rows
    )


def find_row(document: Rows[R] | Unreadable | None, service: str, chain_id: int | None) -> R | UnreadableRow | None:
    """The row of a check, readable or not; None if there is none (C8)."""
    if document is None or isinstance(document, Unreadable):
        return None
    return next((row for row in document.rows if row.check == (service, chain_id)), None)


def rows_by_check(document: Rows[R]) -> dict[Check, R | UnreadableRow]:
    """The rows by (service, chain_id) (C8); rows whose check cannot be read are not in it."""
    return {row.check: row for row in document.rows if row.check is not None}


def whole(value: object, least: int) -> int | None:
    """A whole number as JSON has them: 1, 1.0 and 1e0 are the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if least <= value <= LARGEST else None


def read_row(raw: object, reader: Reader[R]) -> R | UnreadableRow:
    if not is_object(raw):
        return UnreadableRow(None, None, None, "the row is not an object")
    named = raw.get("service")
    service = named if isinstance(named, str) and named else None
    chain_id = whole(raw.get("chainId"), 1)
    if service is None:
        return UnreadableRow(None, chain_id, None, "its service is not a name")
    if chain_id is None and raw.get("chainId", ...) is not None:
        return UnreadableRow(service, None, None, "its chainId is neither a positive whole number nor null")
    row = reader(raw, (service, chain_id))
    return UnreadableRow(service, chain_id, (service, chain_id), row) if isinstance(row, str) else row


def _is_too_deep(found: object, deepest: int) -> bool:
    level = [found]
    for _ in range(deepest):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if is_object(outer) else outer if is_list(outer) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _integer(digits: str) -> float:
    """As in JavaScript. Python refuses very long whole numbers, which must not make a document unreadable."""
    return int(digits) if len(digits) <= len(str(LARGEST)) else float(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
