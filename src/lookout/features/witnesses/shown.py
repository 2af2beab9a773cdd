"""What people are shown of the places: in the public description, in alerts, and in ``/sources`` (W8)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from lookout.base.instants import format_instant, format_second
from lookout.core.model import Check, Row, Status
from lookout.features.feature import Around, Verdict
from lookout.features.outcome import Entry, Note, Sample, StandIn
from lookout.features.witnesses.reading import Reading
from lookout.features.witnesses.rules import counts
from lookout.features.witnesses.views import NAMED_AFTER_MS, Dissent, Standing
from lookout.public.about import DissentDescription, PlaceDescription
from lookout_reader.statuses import BY_WORD

_HERE: Final = "this monitor"
_FINE: Final = Verdict("current", "responding")
UNKNOWN: Final = Verdict("unknown", "no-observation")
StandIns = dict[tuple[str, Check | None], StandIn]
"""By the name of the place, and by the row that it sees; without one it is the witness itself."""


def describe_places(standings: Sequence[Standing], at: int) -> tuple[PlaceDescription, ...]:
    """What has lasted for a minute."""
    return tuple(
        PlaceDescription(
            name=place.name,
            own=place.is_own,
            url=place.public_url,
            silent_since=_since(place.silent_since_at, at),
            differs=tuple(_describe_dissent(dissent) for dissent in place.differs if _since(dissent.since_at, at)),
        )
        for place in standings
    )


def _since(since_at: int | None, at: int) -> str | UnsetType:
    return UNSET if since_at is None or at - since_at < NAMED_AFTER_MS else format_second(since_at)


def list_stand_ins(witnesses: Sequence[str], around: Around) -> StandIns:
    """What alerts report: a silent witness, and each row as each place sees it."""
    names = {chain.id: f" on {chain.name}" for chain in around.description.chains}
    found: StandIns = {(name, None): StandIn("witness", name, None) for name in witnesses}
    for place in (around.place, *witnesses) if witnesses else ():
        for check in around.plan.monitored:
            seen_from = f"{check.service}{names.get(check.chain_id or 0, '')} from {place or _HERE}"
            found[place, check] = StandIn("view", seen_from, check.chain_id)
    return found


def judge_places(
    standings: Sequence[Standing], causes: Mapping[str, str | None], rows: Sequence[Row], stand_ins: StandIns
) -> Iterator[tuple[StandIn, Verdict]]:
    """``causes`` says why a witness's report could not be had, by its name."""
    dissenters = Counter(dissent.row.check for place in standings for dissent in place.differs)
    for place in standings:
        is_silent = place.silent_since_at is not None
        if not place.is_own:
            why = Verdict("unavailable", "unreachable", causes.get(place.name) or "silent")
            yield stand_ins[place.name, None], why if is_silent else _FINE
        differs = {dissent.row.check: dissent for dissent in place.differs}
        for row in rows:
            if (stand_in := stand_ins.get((place.name, row.check))) is None:  # a row that is not monitored
                continue
            verdict = UNKNOWN if is_silent else _FINE
            if row.check in differs:
                verdict = _judge_dissent(place, differs[row.check], row, is_alone=dissenters[row.check] == 1)
            yield stand_in, verdict


def _judge_dissent(place: Standing, dissent: Dissent, published: Row, *, is_alone: bool) -> Verdict:
    who = place.name if not place.is_own else f"{_HERE} alone" if is_alone else _HERE
    views, agreeing = published.metrics.views, published.metrics.agreeing
    if agreeing is UNSET:
        others = "no other place has a view of it now"
    elif agreeing:
        others = f"{agreeing} of {views} places see it {_word(published.status)}, and the row stays so"
    else:
        others = f"places see it differently, and the row is {published.status}"
    code = "own_dissent" if place.is_own else "dissent"
    return Verdict("degraded", "not-everywhere", f"{code}: {who} sees it {_word(dissent.row.status)}; {others}")


def _word(status: Status) -> str:
    return "working" if status == "current" else BY_WORD[status].name


class EntryOfWitness(Entry, frozen=True, rename="camel", kw_only=True):
    """``report_at`` is by the witness's own clock, which seems to be ``clock_behind_s`` behind this machine's."""

    report_at: str | UnsetType
    clock_behind_s: float | UnsetType
    silent_since: str | UnsetType
    differs: tuple[DissentDescription, ...]


class WitnessNote(Note, frozen=True, kw_only=True):
    reading: Reading
    standing: Standing
    views: tuple[Row, ...]

    def describe(self) -> EntryOfWitness:
        reading, silent_at = self.reading, self.standing.silent_since_at
        return EntryOfWitness(
            *self.common(),
            doubts=reading.doubts or UNSET,
            report_at=UNSET if reading.report_at is None else format_instant(reading.report_at),
            clock_behind_s=UNSET if reading.clock_ahead_ms is None else reading.clock_ahead_ms / 1000,
            silent_since=UNSET if silent_at is None else format_second(silent_at),
            differs=tuple(map(_describe_dissent, self.standing.differs)),
        )

    def samples(self, now: int) -> Iterator[Sample]:
        watched = sum(view.status != "unmonitored" for view in self.views)
        counted, differing = sum(counts(view, now) for view in self.views), len(self.standing.differs)
        rows = {"agrees": max(0, counted - differing), "differs": differing, "silent": watched - counted}
        for standing, count in rows.items():
            yield "lookout_witness_rows", [self.key.name, standing], count
        if self.reading.report_at is not None:
            yield "lookout_witness_report_age_seconds", [self.key.name], max(0, now - self.reading.report_at) / 1000


def _describe_dissent(dissent: Dissent) -> DissentDescription:
    return DissentDescription(*dissent.row.check, dissent.row.status, format_second(dissent.since_at))
