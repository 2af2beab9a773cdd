"""The history and uptime worked out the slow way, straight from the contract, sharing no code with what it checks.

Every publication is kept; every bucket is asked for every publication.
"""

from collections import defaultdict
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from lookout.core.model import Check, Row
from lookout.core.plan import Span

CHARACTER = {
    "current": "c",
    "catching-up": "k",
    "degraded": "d",
    "unavailable": "u",
    "unknown": "?",
    "unmonitored": ".",
}


@dataclass(frozen=True)
class Publication:
    at: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Expected:
    first: int
    to: int
    buckets: dict[Check, str]
    uptime: dict[Check, tuple[float | None, float | None, float | None]]


def expected_history(publications: list[Publication], span: Span) -> Expected:
    """What the history has to say after these publications, in the order in which they were made."""
    counted = [
        publication
        for publication, following in zip(publications, [*publications[1:], None], strict=True)
        if following is None or following.at != publication.at  # only the last one of an instant counts
    ]
    last_bucket, begun = -1, set[int]()
    recorded, not_recorded = set[int](), set[int]()
    lasted: dict[tuple[int, Check], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    seen: dict[tuple[int, Check], set[str]] = defaultdict(set)
    for publication, following in zip(counted, [*counted[1:], None], strict=True):
        bucket = publication.at // span.bucket_ms
        if bucket != last_bucket:
            begun.add(bucket)
            recorded |= {earlier for earlier in not_recorded if earlier < bucket}
            not_recorded = (not_recorded | {bucket}) - recorded
        last_bucket = bucket
        next_bucket = bucket if following is None else following.at // span.bucket_ms
        until_at = publication.at if following is None else min(following.at, publication.at + span.hold_ms)
        for row in publication.rows:
            character = _counts_as(row, publication.at)
            if bucket not in recorded:
                seen[bucket, row.check].add(character)
            for each in {bucket, next_bucket} - recorded:
                start_at = each * span.bucket_ms
                ms = min(until_at, start_at + span.bucket_ms) - max(publication.at, start_at)
                if ms > 0:
                    lasted[each, row.check][character] += ms
                    seen[each, row.check].add(character)
    to = counted[-1].at // span.bucket_ms
    earliest = to - span.retention_days * 86_400_000 // span.bucket_ms
    first = max(min(begun), earliest)
    buckets = {
        row.check: "".join(
            _character(lasted[bucket, row.check], seen[bucket, row.check], span) for bucket in range(first, to + 1)
        )
        for row in counted[-1].rows
    }
    windows = [days * 86_400_000 // span.bucket_ms for days in (1, 7, 14)]
    shares = {
        check: tuple(_uptime(characters[-window - 1 :], span) for window in windows)
        for check, characters in buckets.items()
    }
    return Expected(first, to, buckets, shares)  # type: ignore[arg-type]


def _counts_as(row: Row, at: int) -> str:
    if row.expires_at is not None and row.expires_at <= at:
        return "?"
    return CHARACTER[row.status]


def _character(lasted: dict[str, int], seen: set[str], span: Span) -> str:
    if seen & set("ckdu"):
        for character, worse in (("u", "u"), ("d", "du"), ("k", "kdu")):
            if sum(lasted[status] for status in worse) >= span.counts_from_ms:
                return character
        return "c" if "c" in seen else "?"
    return "?" if "?" in seen else "." if "." in seen else "-"


def _uptime(characters: str, span: Span) -> float | None:
    known = [character for character in characters if character in "ckdu"]
    if len(known) < span.min_known_buckets:
        return None
    if set(known) == {"c"}:
        return 1.0
    share = Fraction(known.count("c"), len(known))
    exact = Decimal(share.numerator * 10**40 // share.denominator) / Decimal(10**40)
    if share.denominator > 0 and (share * 10**40).denominator != 1:
        exact += Decimal(1) / Decimal(10**45)  # not a tie: a little above what was cut off
    return min(float(exact.quantize(Decimal("0.0001"), rounding=ROUND_HALF_EVEN)), 0.9999)
