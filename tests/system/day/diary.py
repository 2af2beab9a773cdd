"""What the script did and when, and what the history has to say of it: which characters a bucket may have.

Mostly that is one. Where a border falls into a bucket, or nobody could write for some of it, there may be several.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from lookout.core.model import Check
from tests.oracles import history
from tests.system.day.scale import Scale

_NOBODY_WATCHES: Final = Check("hosted-indexer", 11155111)


class Mishap(NamedTuple):
    """An order to the simulated upstreams, and what is to come of it."""

    target: str
    fault: str
    checks: tuple[Check, ...] = ()
    """Whose rows show it; nobody's, if it must change nothing."""
    shown: str = "c"
    between: str = "?"
    """What else may be shown on the way from current to that, and back."""
    slow_s: float = 0
    """How long it takes until it can be noticed at all."""
    recovers_s: float = 0
    parameters: Mapping[str, int] = {}


@dataclass
class Standing:
    """When a mishap was ordered, when that was done, and the same for its end; by the monitors' wall clock."""

    mishap: Mishap
    ordered_at: int
    set_at: int
    ending_at: int | None = None
    ended_at: int | None = None


@dataclass
class Life:
    """A time in which there were monitors, on a clock that did not jump. Before ``settled_at`` rows may be unknown."""

    from_at: int
    settled_at: int
    until_at: int | None = None


class Gap(NamedTuple):
    """A time in which the writer was harmed. ``lost`` says that another one went on with what was stored."""

    from_at: int
    until_at: int
    lost: bool


class Piece(NamedTuple):
    """A time, what a row may have shown throughout it, and whether that is sure to have been recorded."""

    from_at: int
    until_at: int
    shown: frozenset[str]
    sure: bool


@dataclass
class Diary:
    scale: Scale
    lives: list[Life] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def forbids(self, check: Check, observed_at: int) -> Mishap | None:
        """The mishap for which a row observed at this instant cannot be current."""
        for standing in self.standings:
            mishap = standing.mishap
            certain_at = standing.set_at + _ms(mishap.slow_s + self.scale.settle_s)
            is_over = standing.ending_at is not None and standing.ending_at <= observed_at
            if check in mishap.checks and certain_at <= observed_at and not is_over:
                return mishap
        return None

    def characters(self, pieces: list[Piece], bucket_at: int) -> frozenset[str]:
        """All that the bucket that begins at this instant may show."""
        end_at = bucket_at + _ms(self.scale.bucket_s)
        clipped = [
            history.Piece(min(piece.until_at, end_at) - max(piece.from_at, bucket_at), piece.shown, piece.sure)
            for piece in pieces
            if piece.from_at < end_at and bucket_at < piece.until_at
        ]
        noticed_ms = _ms(self.scale.heartbeat_s + 1)
        return frozenset(history.possible_characters(clipped, _ms(self.scale.counts_from_s), noticed_ms))

    def pieces(self, check: Check, now: int) -> list[Piece]:
        """The whole day of a row, in order, up to now."""
        spans = list(self._spans(check, now))
        lives = [(life.from_at, life.settled_at, life.until_at or now) for life in self.lives]
        # A clock that was set is noticed with the next publication; until then time goes on as if it was not.
        noticed_ms = _ms(self.scale.heartbeat_s + 1)
        settle_ms = _ms(self.scale.settle_s)
        borders = {border for *ends, _ in spans for border in ends} | {border for life in lives for border in life}
        borders |= {end_at + noticed_ms for *_, end_at in lives}
        borders |= {border for gap in self.gaps for border in (gap.from_at, gap.until_at, gap.until_at + settle_ms)}
        pieces = []
        for from_at, until_at in pairwise(sorted(borders)):
            for begin_at, settled_at, end_at in lives:
                if begin_at <= from_at and until_at <= end_at + noticed_ms:
                    covering = [shown for a, b, shown in spans if a <= from_at and until_at <= b]
                    shown = frozenset("").union(*covering) if covering else frozenset("c")
                    if from_at < settled_at:
                        shown |= {"?"}
                    sure = not any(gap.lost and gap.from_at < until_at and from_at < gap.until_at for gap in self.gaps)
                    pieces.append(Piece(from_at, until_at, shown, sure and until_at <= end_at))
        if check == _NOBODY_WATCHES:
            return [piece._replace(shown=frozenset(".")) for piece in pieces]
        return self._as_late_as_may_be(pieces)

    def _spans(self, check: Check, now: int) -> Iterator[tuple[int, int, frozenset[str]]]:
        settle_ms = _ms(self.scale.settle_s)
        for standing in self.standings:
            mishap = standing.mishap
            if check not in mishap.checks:
                continue
            on_the_way = frozenset("c" + mishap.shown + mishap.between)
            ending_at, ended_at = standing.ending_at or now, standing.ended_at or now
            certain_at = min(standing.set_at + _ms(mishap.slow_s) + settle_ms, ending_at)
            yield standing.ordered_at, certain_at, on_the_way
            yield certain_at, ending_at, frozenset(mishap.shown)
            yield ending_at, ended_at + _ms(mishap.recovers_s) + settle_ms, on_the_way

    def _as_late_as_may_be(self, pieces: list[Piece]) -> list[Piece]:
        """While the writer is harmed, and until its rows have settled, they may show anything of that time."""
        settle_ms = _ms(self.scale.settle_s)
        for gap in self.gaps:
            within = [gap.from_at < piece.until_at and piece.from_at < gap.until_at + settle_ms for piece in pieces]
            anything = frozenset("").union(*(piece.shown for piece, is_in in zip(pieces, within, strict=True) if is_in))
            pieces = [
                piece._replace(shown=anything) if is_in else piece for piece, is_in in zip(pieces, within, strict=True)
            ]
        return pieces


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
