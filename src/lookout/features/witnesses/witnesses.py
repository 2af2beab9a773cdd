"""The feature: reads the witnesses, and makes each row of what all places see."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Self

import msgspec
from msgspec.structs import replace

from lookout.base.logger import get_logger
from lookout.base.problem import Problem
from lookout.base.url import fingerprint_url
from lookout.core.causes import describe_cause
from lookout.core.ledger import Combine
from lookout.core.model import Check, Row
from lookout.core.services import Service
from lookout.documents.api import paths
from lookout.features.feature import Around, Feature, Host, Job, ProbedPart, Probing, Rehearsal
from lookout.features.outcome import EntryKey, Outcome, end
from lookout.features.witnesses.probe import probe_witnesses
from lookout.features.witnesses.reading import (
    EVERY_MS,
    ask,
    describe_reading,
    find_cause,
    knows_time,
    new_feed,
    view_of,
)
from lookout.features.witnesses.settings import WitnessTable, check_witnesses, doubt_witnesses
from lookout.features.witnesses.shown import UNKNOWN, WitnessNote, describe_places, judge_places, list_stand_ins
from lookout.features.witnesses.views import (
    DOCUMENT,
    Dissent,
    ReplayedViews,
    Since,
    Standing,
    StoredWitness,
    StoredWitnesses,
    Views,
    follow,
)
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.session import Session
from lookout.public.about import Description
from lookout.state.errors import naming
from lookout.state.log import Viewed
from lookout_reader.document import rows_by_check
from lookout_reader.feed import Answer, Feed, take_answer
from lookout_reader.report import LiveReport

_LEAST_WAIT_MS: Final = 1_000
_OWN: Final = ""  # the name under which the own place is kept

log = get_logger()


class Witnesses(Feature):
    key = "witnesses"
    table: ClassVar[Any] = tuple[WitnessTable, ...]
    claimed = (DOCUMENT,)
    gauges_in_use: ClassVar = {
        "lookout_witness_rows": (
            "Rows that a witness sees as they are published, otherwise, or not",
            *("witness", "standing"),
        ),
        "lookout_witness_report_age_seconds": ("Age of the witness's last report", "witness"),
    }

    @classmethod
    def check(
        cls, table: tuple[WitnessTable, ...], monitored: frozenset[Check], services: tuple[Service, ...]
    ) -> Iterable[Problem]:
        return check_witnesses(table, services)

    @classmethod
    def warnings(cls, table: tuple[WitnessTable, ...], place: str) -> Iterable[Problem]:
        return doubt_witnesses(table, place)

    @classmethod
    def decode(cls, documents: Mapping[str, bytes]) -> StoredWitnesses:
        with naming(DOCUMENT):
            return msgspec.json.decode(documents.get(DOCUMENT, b"{}"), type=StoredWitnesses)

    @classmethod
    def rehearse(cls, table: tuple[WitnessTable, ...], around: Around) -> Rehearsal | None:
        return ReplayedViews(Views(table, around.plan.monitored)) if table else None

    @classmethod
    async def probe(cls, table: tuple[WitnessTable, ...], probing: Probing) -> tuple[ProbedPart, ...]:
        return await probe_witnesses(table, probing)

    @classmethod
    def build(cls, table: tuple[WitnessTable, ...], kept: StoredWitnesses, host: Host) -> Self:
        return cls(table, kept, host)

    def __init__(self, tables: tuple[WitnessTable, ...], kept: StoredWitnesses, host: Host) -> None:
        self._tables = tables
        self._host = host
        self._addresses = {table.name: fingerprint_url(table.url) for table in tables}
        self._feeds = {table.name: new_feed() for table in tables}
        self.notes: dict[str, WitnessNote] = {}
        """Of each witness that was asked since the start."""
        self._views = Views(tables, host.around.plan.monitored)
        self._since = {_OWN: kept.since.get(_OWN, Since())}
        for name, address in self._addresses.items():
            known = kept.witnesses.get(name)
            is_known = known is not None and known.address == address
            self._since[name] = kept.since.get(name, Since()) if is_known else Since()
            if known is not None and is_known:
                self._feeds[name] = new_feed(known.report_at)
                for row in known.views:
                    self._views.set(name, row)
        self._stand_ins = list_stand_ins([table.name for table in tables], host.around)
        host.verdicts.update(dict.fromkeys(self._stand_ins.values(), UNKNOWN))

    def combiner(self) -> Combine | None:
        return self._views.combine if self._tables else None

    def start(self, at: int, *, was_set: bool) -> None:
        """A clock that was set, also while no monitor ran, makes all instants of views untrue (W7)."""
        published_at = self._host.ledger.published_at
        if was_set or (published_at is not None and at < published_at):
            self._views.keep(lambda _witness, _row: False)
            self._feeds = {name: new_feed() for name in self._feeds}
            self._since = dict.fromkeys(self._since, Since())
        self._views.keep(lambda _witness, row: row.observed_at is None or row.observed_at <= at)
        for witness, views in self._views.of.items():
            for row in views.values():
                self._host.record(Viewed(at, witness, row))

    def jobs(self) -> Iterator[Job]:
        for table in self._tables:
            yield Job(EntryKey("witness", table.name), partial(self._read, table))

    async def _read(self, witness: WitnessTable, session: Session) -> int:
        host, name = self._host, witness.name
        began_ms, path = host.clock.elapsed_ms(), paths(host.around.description.protocol)[0]
        answer, cause = None, None
        try:
            answer = await ask(witness, path, self._feeds[name].etag, session)
            cause = await self._take(name, answer)
        except ProbeFailed as failure:
            cause = failure.reason
        took_ms = host.clock.elapsed_ms() - began_ms
        self._note(witness, end(host.now(), took_ms, cause), None if answer is None else answer.age)
        return max(_LEAST_WAIT_MS, EVERY_MS - took_ms)

    async def _take(self, name: str, answer: Answer) -> str | None:
        """Set the views that a new report gives. The cause why there is none, if it cannot be read. Parsing has a
        thread: two megabytes of a hostile witness take a second, in which no probe may wait."""
        host, before, at, read = self._host, self._feeds[name], self._host.now(), list[Feed[LiveReport]]()
        try:
            with host.open_thread("witness") as thread:
                await thread.call(lambda: read.append(take_answer(before, answer, at, 0)))
        except RuntimeError:  # the system starts no thread
            raise OwnFault("threads") from None
        (feed,), at = read, host.now()
        if self._feeds[name] is not before:  # the clock was set meanwhile
            return None
        self._feeds[name] = feed
        if feed.document is None or feed.arrivals == before.arrivals:  # the same again renews nothing (C4)
            return find_cause(feed)
        rows, lifetime_ms = rows_by_check(feed.document), host.around.plan.limits.row_lifetime_ms
        for check in self._views.asked[name]:
            view = view_of(check, rows.get(check), at, lifetime_ms, knows_time=knows_time(feed))
            if self._views.set(name, view):
                host.record(Viewed(at, name, view))
                host.publish_soon()
        return find_cause(feed)

    def _note(self, witness: WitnessTable, outcome: Outcome, age: str | None) -> None:
        name, before = witness.name, self.notes.get(witness.name)
        if outcome.cause != (None if before is None else before.outcome.cause):
            if outcome.cause is None:
                log.info("the witness can be read again", witness=name)
            else:
                log.warning("the witness cannot be read", witness=name, why=describe_cause(outcome.cause))
        views, standing = tuple(self._views.of[name].values()), self._stand_witness(witness)
        has_rows = any(view.status != "unmonitored" for view in views)
        reading = describe_reading(self._feeds[name], age, has_rows=has_rows)
        key = EntryKey("witness", name)
        self.notes[name] = WitnessNote(key, outcome, reading=reading, standing=standing, views=views)
        self._host.note(self.notes[name])

    def publish(self, at: int, rows: tuple[Row, ...]) -> None:
        if not self._tables:
            return
        published = {row.check: row for row in rows}
        own = [self._host.ledger.newest_row(row.check) for row in rows]
        for name, views in ((_OWN, own), *((name, views.values()) for name, views in self._views.of.items())):
            self._since[name] = follow(self._since[name], views, published, at)
        causes = {name: note.outcome.cause for name, note in self.notes.items()}
        self._host.verdicts.update(judge_places(self.standings(), causes, rows, self._stand_ins))

    def describe(self, description: Description, at: int) -> Description:
        return replace(description, places=describe_places(self.standings(), at)) if self._tables else description

    def standings(self) -> tuple[Standing, ...]:
        """All places as of the last publication, the own one first; none if there are no witnesses."""
        if not self._tables:
            return ()
        own = {row.check: row for row in map(self._host.ledger.newest_row, self._host.around.plan.monitored)}
        return self._stand(_OWN, self._host.around.place, "", own), *map(self._stand_witness, self._tables)

    def _stand_witness(self, of: WitnessTable) -> Standing:
        return self._stand(of.name, of.name, of.public_url, self._views.of[of.name])

    def _stand(self, key: str, name: str, public_url: str, views: Mapping[Check, Row]) -> Standing:
        since = self._since[key]
        differing = dict(since.differs)
        in_order = (check for check in self._host.around.plan.checks() if check in differing and check in views)
        differs = tuple(Dissent(views[check], differing[check]) for check in in_order)
        return Standing(name, public_url, key == _OWN, differs, since.silent)

    def documents(self) -> Mapping[str, bytes]:
        if not self._tables:
            return {}
        witnesses = {
            name: StoredWitness(address, tuple(self._views.of[name].values()), self._report_at(name))
            for name, address in self._addresses.items()
        }
        return {DOCUMENT: msgspec.json.encode(StoredWitnesses(witnesses, self._since))}

    def _report_at(self, name: str) -> int | None:
        report = self._feeds[name].document
        return None if report is None else report.generated_at
