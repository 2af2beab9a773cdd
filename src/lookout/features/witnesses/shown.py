"""What people are shown of the places: in the public description, in alerts, and in ``/sources`` (W8)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from lookout.base.instants import format_instant, format_second
from lookout.core.model import Check, Row, Status
from lookout.features.feature import Around, Verdict
from lookout.features.outcome import Entry, EntryKey, Note, Sample, StandIn
from lookout.features.witnesses.places import NAMED_AFTER_MS, Dissent, Standing
from lookout.features.witnesses.reading import Reading
from lookout.features.witnesses.rules import counts
from lookout.public.about import DissentDescription, PlaceDescription
from lookout_reader.statuses import BY_WORD

_HERE: Final = "this monitor"
_FINE: Final = Verdict("current", "not-everywhere")
_ANSWERS: Final = Verdict("current", "responding")
_UNKNOWN: Final = Verdict("unknown", "no-observation")


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


def list_stand_ins(witnesses: Sequence[str], around: Around) -> dict[StandIn, EntryKey]:
    """What alerts report: a witness that is silent, and each row as each place sees it."""
    stand_ins = [StandIn(f"witness {name}", None) for name in witnesses]
    chains = {chain.id: chain.name for chain in around.description.chains}
    for place in (around.place, *witnesses) if witnesses else ():
        stand_ins += [_stand_for_view(check, place, chains) for check in sorted(around.plan.monitored, key=str)]
    return {stand_in: _key_of(stand_in) for stand_in in stand_ins}


def _stand_for_view(check: Check, place: str, chains: Mapping[int, str]) -> StandIn:
    on = "" if check.chain_id is None else f" on {chains.get(check.chain_id, check.chain_id)}"
    return StandIn(f"{check.service}{on} from {place or _HERE}", check.chain_id)


def _key_of(stand_in: StandIn) -> EntryKey:
    return EntryKey("place", stand_in.service)


def judge_places(
    standings: Sequence[Standing], causes: Mapping[str, str | None], rows: Sequence[Row], around: Around
) -> Iterator[tuple[EntryKey, Verdict]]:
    """The verdicts on all of these; ``causes`` says why a witness's report could not be had, by its name."""
    chains = {chain.id: chain.name for chain in around.description.chains}
    dissenters = Counter(dissent.row.check for place in standings for dissent in place.differs)
    for place in standings:
        is_silent = place.silent_since_at is not None
        if not place.is_own:
            why = Verdict("unavailable", "unreachable", causes.get(place.name) or "silent")
            yield EntryKey("place", f"witness {place.name}"), why if is_silent else _ANSWERS
        differs = {dissent.row.check: dissent for dissent in place.differs}
        for row in rows:
            verdict = _UNKNOWN if is_silent else _FINE
            if row.check in differs:
                verdict = _judge_dissent(place, differs[row.check], row, is_alone=dissenters[row.check] == 1)
            yield _key_of(_stand_for_view(row.check, place.name, chains)), verdict


def _judge_dissent(place: Standing, dissent: Dissent, published: Row, *, is_alone: bool) -> Verdict:
    who = place.name if not place.is_own else f"{_HERE} alone" if is_alone else _HERE
    views, agreeing = published.metrics.views, published.metrics.agreeing
    others = (
        f"{agreeing} of {views} places see it {_word(published.status)}, and the row stays so"
        if agreeing
        else f"some places reach it, others do not, and the row is {published.status}"
    )
    code = "own_dissent" if place.is_own else "dissent"
    return Verdict("degraded", "not-everywhere", f"{code}: {who} sees it {_word(dissent.row.status)}; {others}")


def _word(status: Status) -> str:
    return "working" if status == "current" else BY_WORD[status].name


class WitnessEntry(Struct, frozen=True, rename="camel"):
    differs: tuple[DissentDescription, ...]
    report_at: str | UnsetType
    """When it made its last report, by its own clock."""
    clock_behind_s: float | UnsetType
    """How far its clock seems to be behind this machine's."""
    silent_since: str | UnsetType


class EntryOfWitness(Entry, frozen=True, rename="camel", kw_only=True):
    witness: WitnessEntry


class WitnessNote(Note, frozen=True, kw_only=True):
    """``rows`` counts the rows that it watches by how it sees them."""

    reading: Reading
    standing: Standing
    rows: Mapping[str, int]

    def describe(self) -> EntryOfWitness:
        reading, silent_at = self.reading, self.standing.silent_since_at
        shown = WitnessEntry(
            tuple(map(_describe_dissent, self.standing.differs)),
            UNSET if reading.report_at is None else format_instant(reading.report_at),
            UNSET if reading.clock_ahead_ms is None else reading.clock_ahead_ms / 1000,
            UNSET if silent_at is None else format_second(silent_at),
        )
        return EntryOfWitness(*self.common(), doubts=reading.doubts or UNSET, witness=shown)

    def samples(self, now: int) -> Iterator[Sample]:
        for standing, count in self.rows.items():
            yield "lookout_witness_rows", [self.key.name, standing], count
        if self.reading.report_at is not None:
            yield "lookout_witness_report_age_seconds", [self.key.name], max(0, now - self.reading.report_at) / 1000


def count_rows(views: Iterable[Row], watched: int, standing: Standing, at: int) -> dict[str, int]:
    counted, differing = sum(counts(view, at) for view in views), len(standing.differs)
    return {"agrees": counted - differing, "differs": differing, "silent": watched - counted}


def _describe_dissent(dissent: Dissent) -> DissentDescription:
    return DissentDescription(*dissent.row.check, dissent.row.status, format_second(dissent.since_at))
