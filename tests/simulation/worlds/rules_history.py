"""Rules about the history: ended buckets stand for ever, and a slow count of all publications gives the same."""

from typing import Any, Final

import msgspec

from lookout.base.instants import parse_instant
from lookout.core.model import Check
from lookout.documents.document import Document
from tests.oracles.documents import assert_history_is_right
from tests.oracles.history import EndedBuckets, expected_history
from tests.oracles.history import Publication as Sample
from tests.simulation.worlds import scene as s
from tests.simulation.worlds.rules import Rule

BUCKET_MS: Final = 300_000
_LONGEST_COUNT: Final = 3_000  # publications; the count is slow


class EndedBucketsStay(Rule):
    """A bucket that has ended never changes, over restarts, takeovers and clocks that are set."""

    clauses = ("H1", "H2", "H3", "H4", "H5", "H9", "H10", "H11", "H12", "H16", "M12")

    def __init__(self) -> None:
        self._ended = EndedBuckets()
        self._went_back_ms = -1
        self._times = 0

    def written(self, event: s.Written) -> None:
        if self._went_back_ms != self.scene.went_back_ms:
            self._went_back_ms = self.scene.went_back_ms
            self._ended.forget()
        if "history" not in event.documents:
            return
        self._times += 1
        history = self._decode(event.documents["history"])
        first, last = (parse_instant(history[name][:-1] + ".000Z") // BUCKET_MS for name in ("from", "to"))
        for row in history["rows"]:
            if len(row["buckets"]) != last - first + 1:
                self.broken(f"{row} has {len(row['buckets'])} buckets from {history['from']} to {history['to']}")
        for changed in self._ended.changed(history):
            self.broken(changed)

    def _decode(self, document: Document) -> dict[str, Any]:
        if self._times % 5 == 1:
            try:
                return assert_history_is_right(document)
            except AssertionError as error:
                self.broken(str(error))
        history: dict[str, Any] = msgspec.json.decode(document.body)
        return history


class HistoryIsTheCount(Rule):
    """The stored history is what counting all publications of its line gives."""

    clauses = ("H4", "H6", "H7", "H8", "H9", "H10", "H13", "H15", "H17", "M7")

    def __init__(self) -> None:
        self._last: tuple[s.Publication, Document] | None = None

    def written(self, event: s.Written) -> None:
        if "history" not in event.documents:
            return
        last, self._last = self._last, (event.publication, event.documents["history"])
        if last is not None and last[0].life is not event.life and self.scene.ms % 3 == 0:  # the first of a new life
            self._count(*self._last)

    def concluded(self, _event: s.Concluded) -> None:
        if self._last is not None:
            self._count(*self._last)

    def _count(self, publication: s.Publication, document: Document) -> None:
        samples: list[Sample] = []
        each: s.Publication | None = publication
        while each is not None and each.at > document.generated_at:
            each = each.before  # a store that went back is written whole, with the last history that was made
        while each is not None:
            samples.append(Sample(each.at, each.rows))
            each = each.before
        if len(samples) > _LONGEST_COUNT:
            return
        samples.reverse()
        expected = expected_history(samples, publication.life.plan.span)
        doubtful = _reached_into(samples)
        history = msgspec.json.decode(document.body)
        for row in history["rows"]:
            check = Check(row["service"], row["chainId"])
            for number, (stored, counted) in enumerate(zip(row["buckets"], expected.buckets[check], strict=True)):
                if stored != counted and (check, expected.first + number) not in doubtful:
                    self.broken(f"bucket {expected.first + number} of {check} is {stored}, counted {counted}")
            if row["buckets"] == expected.buckets[check] and tuple(row["uptime"].values()) != expected.uptime[check]:
                self.broken(f"the uptime of {check} is {row['uptime']}, counted {expected.uptime[check]}")


def _reached_into(samples: list[Sample]) -> set[tuple[Check, int]]:
    """The buckets in which a check was gone for the first time: its last status would reach into them, but as it is not
    published there any more, nothing is known (H8, H15)."""
    doubtful: set[tuple[Check, int]] = set()
    before: set[Check] = set()
    for sample in samples:
        now = {row.check for row in sample.rows}
        doubtful |= {(check, sample.at // BUCKET_MS) for check in before - now}
        before = now
    return doubtful


RULES: Final = (EndedBucketsStay, HistoryIsTheCount)
