"""The last outcome of everything that is asked: ``/sources`` on the admin port (M16)."""

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from lookout.base.instants import format_instant
from lookout.core.agreement import APART, Standing
from lookout.core.causes import code_of, describe_cause
from lookout.core.heads import Reading
from lookout.core.model import Check, Row
from lookout.features.feature import Verdict
from lookout.features.outcome import STORE_KEY, Entry, EntryKey, Note, Outcome, RowOutcome, Sample, end

_UNKNOWN: Final = Verdict("unknown", "no-observation")
_FINE: Final = Verdict("current", "responding")


def describe_rows(rows: Iterable[Row], causes: Mapping[Check, str], at: int) -> tuple[RowOutcome, ...]:
    """The cause is that of the status, so an expired row, which is unknown, has none."""
    return tuple(
        RowOutcome(*row.check, "unknown", "no-observation")
        if row.has_expired(at)
        else RowOutcome(*row.check, row.status, row.reason, causes.get(row.check, UNSET))
        for row in rows
    )


class _SourceNote(Note, frozen=True, kw_only=True):
    rows: tuple[RowOutcome, ...]

    def describe(self) -> Entry:
        return replace(super().describe(), rows=UNSET if _is_own_failure(self.outcome) else self.rows)


class _EndpointNote(Note, frozen=True, kw_only=True):
    """``head`` is the head that positions were compared with then."""

    reading: Reading
    head: Reading | None

    def describe(self) -> Entry:
        entry = super().describe()
        if _is_own_failure(self.outcome):
            return entry
        lag = UNSET if self.head is None else self.head.height - self.reading.height
        return replace(
            entry, height=self.reading.height, block_at=format_instant(self.reading.block_at), lag_blocks=lag
        )


class Board:
    """Written on the event loop; threads may read copies of the notes."""

    def __init__(self) -> None:
        self._notes: dict[EntryKey, Note] = {}
        self._standings: dict[int, Mapping[str, Standing]] = {}  # by chain and endpoint name
        self._doubts: dict[str, tuple[str, ...]] = {}  # by source name
        self.certificates_end_at: dict[str, int] = {}  # by source name
        self._verdicts: dict[EntryKey, Verdict] = {}  # on the store and the sources

    def list_entries(self) -> list[Entry]:
        return [self._describe_note(note) for _, note in sorted(self._notes.copy().items(), key=itemgetter(0))]

    def _describe_note(self, note: Note) -> Entry:
        key, entry = note.key, note.describe()
        if key.kind == "source":
            return replace(entry, doubts=self._doubts.get(key.name) or UNSET)
        if isinstance(key.chain_id, int):
            return replace(entry, standing=self._standings.get(key.chain_id, {}).get(key.name, UNSET))
        return entry

    def samples(self, now: int) -> Iterator[Sample]:
        """The gauges of all that is shown."""
        for entry in self.list_entries():
            endpoint = str(entry.chain_id), entry.name
            if isinstance(entry.height, int):
                yield "lookout_endpoint_height", endpoint, entry.height
            if isinstance(entry.lag_blocks, int):
                yield "lookout_endpoint_lag_blocks", endpoint, entry.lag_blocks
            if isinstance(entry.standing, str):
                yield "lookout_endpoint_standing", [*endpoint, entry.standing], 1
            for doubt in entry.doubts or ():
                yield "lookout_source_doubt", [entry.name, code_of(doubt)], 1
        for note in self._notes.copy().values():
            yield from note.samples(now)
        for source, ends_at in self.certificates_end_at.copy().items():
            yield "lookout_source_certificate_expires_timestamp_seconds", [source], ends_at / 1000

    def describe_endpoints(self, chain_id: int | None) -> tuple[tuple[str, str], ...]:
        """The name and the state of each RPC endpoint of a chain."""
        endpoints = (entry for entry in self.list_entries() if entry.kind == "endpoint" and entry.chain_id == chain_id)
        return tuple((endpoint.name, _describe(endpoint)) for endpoint in endpoints)

    def judge(self, key: EntryKey) -> Verdict:
        """Unknown before the first answer, and for an endpoint without a head."""
        if key.kind != "endpoint":
            return self._verdicts.get(key, _UNKNOWN)
        note = self._notes.get(key)
        standing = self._standings.get(key.chain_id or 0, {}).get(key.name)
        if note is not None and note.outcome.kind == "failed":
            return Verdict("unavailable", "unreachable", note.outcome.cause)
        if note is None or note.outcome.kind != "answered" or standing not in ("agrees", *APART):
            return _UNKNOWN
        if standing == "agrees":
            return _FINE
        return Verdict("degraded", "incompatible-reference", f"apart: {_describe_block(note.describe())}")

    def begin(self) -> None:
        """A monitor starts, perhaps with other settings: forget all outcomes."""
        self._notes, self._doubts, self.certificates_end_at = {}, {}, {}
        self._verdicts.clear()

    def note(self, note: Note) -> None:
        self._notes[note.key] = note

    def note_store(self, error: str | None) -> None:
        """A publication is stored, or could not be."""
        failed = None if error is None else Verdict("unavailable", "unreachable", f"not_stored: {error}")
        self._verdicts[STORE_KEY] = failed or _FINE

    def note_source(self, name: str, at: int, took_ms: int, rows: Iterable[Row], causes: Mapping[Check, str]) -> None:
        outcomes = describe_rows(rows, causes, at)
        failed = all(row.reason == "unreachable" for row in outcomes)
        causes_of_all = {row.cause or None for row in outcomes}
        cause = causes_of_all.pop() if failed and len(causes_of_all) == 1 else None
        outcome = Outcome(at, took_ms, cause, "failed" if failed else "answered")
        self.note(_SourceNote(EntryKey("source", name), outcome, rows=outcomes))

    def note_doubts(self, source: str, doubts: tuple[str, ...]) -> list[str]:
        """Set what is wrong with a source, and return the doubts whose codes are new."""
        before = set(map(code_of, self._doubts.get(source, ())))
        self._doubts[source] = doubts
        self._verdicts[EntryKey("source", source)] = Verdict("degraded", "incomplete", doubts[0]) if doubts else _FINE
        return [doubt for doubt in doubts if code_of(doubt) not in before]

    def note_reading(
        self, endpoint: EntryKey, at: int, took_ms: int, reading: Reading | str, head: Reading | None
    ) -> None:
        """``reading`` is the cause if it failed; ``head`` is the head that positions are compared with then."""
        if isinstance(reading, str):
            self.note(Note(endpoint, end(at, took_ms, reading)))
        else:
            self.note(_EndpointNote(endpoint, end(at, took_ms, None), reading=reading, head=head))

    def note_own_failure(self, key: EntryKey, at: int, took_ms: int, cause: str | None) -> None:
        """Something could not be asked, by a fault of the monitor's own (``cause``) or a bug. What is known of it
        stays so."""
        outcome = Outcome(at, took_ms, cause, "bug" if cause is None else "own_fault")
        known = self._notes.get(key)
        self.note(Note(key, outcome) if known is None else replace(known, outcome=outcome))

    def describe_own_failure(self, source: str) -> str:
        """Why a source could not be asked the last time; empty if it was."""
        note = self._notes.get(EntryKey("source", source))
        return _describe(note.describe()) if note is not None and _is_own_failure(note.outcome) else ""

    def note_standings(self, chain_id: int, standings: Mapping[str, Standing]) -> None:
        """Set the standings of a chain's endpoints; empty while unknown."""
        self._standings[chain_id] = standings


def _is_own_failure(outcome: Outcome) -> bool:
    return outcome.kind in ("own_fault", "bug")


def _describe(entry: Entry) -> str:
    """The block that an endpoint answered with, or why a source or an endpoint did not answer."""
    if entry.outcome == "answered":
        standing = "" if entry.standing is UNSET else f" ({entry.standing})"
        return f"{_describe_block(entry)}{standing}"
    return "a bug; the log has more" if entry.cause is UNSET else describe_cause(entry.cause)


def _describe_block(endpoint: Entry) -> str:
    """The block of an endpoint's answer, and how far that is from the head if one is known."""
    lag = endpoint.lag_blocks
    where = f", {abs(lag)} {'below' if lag > 0 else 'above'} the head" if lag else ""
    return f"block {endpoint.height}{where}"
