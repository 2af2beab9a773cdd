"""The history and uptime, straight from the contract (clauses H).

Every publication is kept; every bucket is asked for every publication. An observer who knows less than all
publications says what may have been shown, and gets every character that a bucket may have.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final, NamedTuple

from lookout.core.model import Check, Row
from lookout.core.plan import Span

CHARACTERS: Final = {
    "current": "c",
    "catching-up": "k",
    "degraded": "d",
    "unavailable": "u",
    "unknown": "?",
    "unmonitored": ".",
}
KNOWN: Final = "ckdu"


class Publication(NamedTuple):
    at: int
    rows: tuple[Row, ...]


class Piece(NamedTuple):
    """A time within a bucket, what a row may have shown throughout it, and whether that is sure to be recorded."""

    lasted_ms: int
    shown: frozenset[str]
    sure: bool = True


@dataclass(frozen=True)
class Expected:
    first: int
    to: int
    buckets: dict[Check, str]
    uptime: dict[Check, tuple[float | None, ...]]


def expected_history(publications: Sequence[Publication], span: Span) -> Expected:
    """What the history has to say after these publications, in the order in which they were made."""
    counted = [
        publication
        for publication, following in zip(publications, [*publications[1:], None], strict=True)
        if following is None or following.at != publication.at  # only the last one of an instant counts
    ]
    last_bucket, begun = -1, set[int]()
    recorded, not_recorded = set[int](), set[int]()
    shown: dict[tuple[int, Check], Counter[str]] = defaultdict(Counter)  # what, and for how long
    for publication, following in zip(counted, [*counted[1:], None], strict=True):
        bucket = publication.at // span.bucket_ms
        if bucket != last_bucket:  # H16
            begun.add(bucket)
            recorded |= {earlier for earlier in not_recorded if earlier < bucket}
            not_recorded = (not_recorded | {bucket}) - recorded
        last_bucket = bucket
        next_bucket = bucket if following is None else following.at // span.bucket_ms
        until_at = publication.at if following is None else min(following.at, publication.at + span.hold_ms)  # H8
        for each in {bucket, next_bucket} - recorded:
            start_at = each * span.bucket_ms
            ms = min(until_at, start_at + span.bucket_ms) - max(publication.at, start_at)
            if ms > 0 or each == bucket:
                for row in publication.rows:
                    shown[each, row.check][_counts_as(row, publication.at)] += max(0, ms)
    to = counted[-1].at // span.bucket_ms
    first = max(min(begun), to - span.retention_days * 86_400_000 // span.bucket_ms)  # H4
    buckets = {
        row.check: "".join(_character(shown.get((bucket, row.check), {}), span) for bucket in range(first, to + 1))
        for row in counted[-1].rows
    }
    windows = [days * 86_400_000 // span.bucket_ms for days in (1, 7, 14)]
    uptimes = {
        check: tuple(uptime(characters[-window - 1 :], span.min_known_buckets) for window in windows)  # H12
        for check, characters in buckets.items()
    }
    return Expected(first, to, buckets, uptimes)


def _counts_as(row: Row, at: int) -> str:
    """H17."""
    return "?" if row.expires_at is not None and row.expires_at <= at else CHARACTERS[row.status]


def _character(shown_ms: Mapping[str, int], span: Span) -> str:
    pieces = [Piece(ms, frozenset(character)) for character, ms in shown_ms.items()]
    return the_character(pieces, span.counts_from_ms)


def the_character(pieces: Iterable[Piece], counts_from_ms: int) -> str:
    """The one character of a bucket of which everything is known."""
    (character,) = possible_characters(list(pieces), counts_from_ms)
    return character


def possible_characters(pieces: Sequence[Piece], counts_from_ms: int, noticed_ms: int = 0) -> Iterator[str]:
    """H6 and H7, for times that may be known within limits only. What is shown for less than ``noticed_ms`` may have
    had no publication of its own."""

    def least_ms(characters: str) -> int:
        return sum(piece.lasted_ms for piece in pieces if piece.sure and piece.shown <= set(characters))

    def most_ms(characters: str) -> int:
        return sum(piece.lasted_ms for piece in pieces if not piece.shown.isdisjoint(characters))

    def surely_seen(characters: str) -> bool:
        seen = any(piece.sure and piece.shown <= set(characters) for piece in pieces)
        return seen and least_ms(characters) >= noticed_ms

    anywhere = frozenset[str]().union(*(piece.shown for piece in pieces))
    if not anywhere.isdisjoint(KNOWN):
        for character, worse in (("u", ""), ("d", "u"), ("k", "ud")):
            if character in anywhere and most_ms(worse + character) >= counts_from_ms > least_ms(worse):
                yield character
        if least_ms("udk") < counts_from_ms:
            if "c" in anywhere:
                yield "c"
            if not anywhere.isdisjoint("udk") and not surely_seen("c"):  # short trouble, and nothing seen current
                yield "?"
    if not surely_seen(KNOWN):
        if "?" in anywhere:
            yield "?"
        if "." in anywhere and not surely_seen("?"):
            yield "."
    if not surely_seen(KNOWN + "?."):
        yield "-"


def uptime(characters: str, min_known: int = 12) -> float | None:
    """H9 to H11."""
    known = [character for character in characters if character in KNOWN]
    if len(known) < min_known:
        return None
    if set(known) == {"c"}:
        return 1.0
    share = (Decimal(known.count("c")) / Decimal(len(known))).quantize(Decimal("0.0001"), ROUND_HALF_EVEN)
    return min(float(share), 0.9999)


@dataclass
class EndedBuckets:
    """Remembers every bucket that ended, and finds those that are no longer what they were (H16)."""

    _ended: dict[tuple[str, int | None, int], str] = field(default_factory=dict)

    def changed(self, history: Mapping[str, Any]) -> Iterator[str]:
        """Look at another history document. A bucket that was jumped over may still be lived through."""
        first = round(datetime.fromisoformat(history["from"]).timestamp()) // history["bucketSeconds"]
        of_all = zip(*(row["buckets"] for row in history["rows"]), strict=False)
        begun = {bucket for bucket, characters in enumerate(of_all, first) if set(characters) != {"-"}}
        for row in history["rows"]:
            for bucket, character in enumerate(row["buckets"][:-1], first):
                key = row["service"], row["chainId"], bucket
                if bucket in begun and self._ended.setdefault(key, character) != character:
                    yield f"{key[:2]}: the ended bucket {bucket} was {self._ended[key]} and is {character}"

    def forget(self) -> None:
        self._ended.clear()
