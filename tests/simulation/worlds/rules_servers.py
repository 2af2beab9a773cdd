"""Rules about the store's one writer, what servers answer with, and what a reader shows."""

import re
from collections import defaultdict
from typing import Final, NamedTuple

from lookout.core.model import Row
from lookout_reader.report import Row as ShownRow
from lookout_reader.status import effective_status
from tests.simulation.worlds import scene as s
from tests.simulation.worlds.rules import Rule
from tests.simulation.worlds.script import ORIGIN_AT
from tests.simulation.worlds.servers import UNREADABLE_MS

_TAG: Final = re.compile(r'"[!#-~]{16}"')
# A look every 2.5 s, at the latest, and a reading every 15 s even if nothing seems to have changed.
_NOTICED_MS: Final = 15_000 + 4 * 2_500
_STORED_AGAIN_MS: Final = 15_000


class OneWriter(Rule):
    """Once another monitor has written, the one before it never writes again, unless a backup of before that is
    restored; and time goes on."""

    clauses = ("M7", "M14", "M5")

    def __init__(self) -> None:
        self._overtaken: set[s.Life] = set()
        self._last: s.Publication | None = None

    def written(self, event: s.Written) -> None:
        if self._last is not None and self.scene.restored_ms > self._last.ms:
            self._overtaken.clear()
        if event.life in self._overtaken:
            self.broken(f"{event.life.name} wrote after it was overtaken")
        if event.life.process.dead:
            self.broken(f"{event.life.name} wrote after its end")
        last, self._last = self._last, event.publication
        if last is not None and last.life is not event.life:
            self._overtaken.add(last.life)
        back_ms = max(self.scene.stepped_back_ms, self.scene.went_back_ms)
        if last is None or event.publication.at >= last.at:
            return
        if last.life.clock is not event.life.clock and self.scene.clocks_are_set:
            return  # two machines that do not agree about the time
        if back_ms < last.ms:
            self.broken(f"generatedAt went back by {last.at - event.publication.at} ms")


class StoresAgainSoon(Rule):
    """A monitor whose store failed stores again soon after what was wrong with it is over, and nobody has to help."""

    clauses = ("M5", "M7")

    def __init__(self) -> None:
        self._refused_since_ms: dict[s.Life, int] = {}

    def stored(self, event: s.Stored) -> None:
        fails = self.scene.active("write-fails") or self.scene.active("answer-lost")
        if event.ok or fails:
            self._refused_since_ms.pop(event.life, None)
            return
        refused_ms = self.scene.ms - self._refused_since_ms.setdefault(event.life, self.scene.ms)
        if refused_ms > _STORED_AGAIN_MS:
            self.broken(f"nothing could be stored for {refused_ms} ms, though nothing is wrong with the store")


class OneTagOneBody(Rule):
    """A document's ETag is a hash of its body: the same for the same, another for another."""

    clauses = ("A4",)

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}

    def written(self, event: s.Written) -> None:
        for document in event.documents.values():
            if not _TAG.fullmatch(document.etag):
                self.broken(f"{document.etag} is no strong tag of 16 characters")
            if self._bodies.setdefault(document.etag, document.body) != document.body:
                self.broken(f"{document.etag} is of two bodies")

    def served(self, event: s.Served) -> None:
        if event.etag is not None and self._bodies.get(event.etag) != event.body:
            self.broken(f"server {event.server} serves something that was never stored as {event.etag}")


class _Loaded(NamedTuple):
    etag: str | None = None
    good_ms: int = -1
    served: str | None = None


class ServersHoldOn(Rule):
    """What was loaded is served whatever fails: the live report for ever, the history for five minutes."""

    clauses = ("A11", "A12")

    def __init__(self) -> None:
        self._loaded: dict[tuple[int, int, str], _Loaded] = defaultdict(_Loaded)

    def looked(self, event: s.Looked) -> None:
        key = event.server, event.life, event.name
        loaded, document = self._loaded[key], event.document
        good = document is not None and document.etag not in _damaged(event)
        if good and document is not None:
            self._loaded[key] = loaded._replace(etag=document.etag, good_ms=self.scene.ms)
        elif event.name == "history" and loaded.served is not None:
            bad_ms = self.scene.ms - loaded.good_ms
            if bad_ms > UNREADABLE_MS + _NOTICED_MS:
                self.broken(f"server {event.server} serves a history that was unreadable for {bad_ms} ms")

    def served(self, event: s.Served) -> None:
        key = event.server, event.life, event.name
        loaded = self._loaded[key]
        if event.etag is None and loaded.etag is not None:
            bad_ms = self.scene.ms - loaded.good_ms
            if event.name == "live" or bad_ms <= UNREADABLE_MS:
                self.broken(f"server {event.server} answers 503 for {event.name}, {bad_ms} ms after it was read")
        if event.etag is not None and event.etag != loaded.etag:
            self.broken(f"server {event.server} serves {event.etag}, having read {loaded.etag}")
        self._loaded[key] = loaded._replace(served=event.etag)


def _damaged(event: s.Looked) -> set[str]:
    document = event.document
    return {document.etag} if document is not None and document.body.endswith(b" ") else set()


class GreenOnlyWhileItIs(Rule):
    """A reader shows a row as current only for as long as the probe behind it allows, by the reader's own clock."""

    clauses = ("C1", "C2", "C3", "C4", "C9")

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int | None, int], list[s.Seen]] = defaultdict(list)

    def judged(self, event: s.Judged) -> None:
        row: Row = event.seen.row
        if row.status == "current":
            self._seen[*row.check, event.seen.observation.at].append(event.seen)

    def shown(self, event: s.Shown) -> None:
        update = event.update
        if update.report is None:
            return
        for row in update.report.rows:
            if not isinstance(row, ShownRow):
                self.broken("a row could not be read")
            if effective_status(row) != "current":
                continue
            seen = self._seen.get((*row.check, row.observed_at or 0))
            if not seen:
                self.broken(f"{row.check} is shown as current, though it never was seen so at {row.observed_at}")
            # What its clock and the monitor's disagree by is all that may be added to the row's lifetime.
            late_ms = min(
                self.scene.ms - each.ms - 150_000 - (each.observation.at - ORIGIN_AT - each.ms) + event.ahead_ms
                for each in seen
            )
            if late_ms >= 0:
                self.broken(f"{row.check} is shown as current {late_ms} ms too long")


RULES: Final = (OneWriter, StoresAgainSoon, OneTagOneBody, ServersHoldOn, GreenOnlyWhileItIs)
