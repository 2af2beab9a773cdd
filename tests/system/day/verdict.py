"""Every answer that anybody got all day, held against what must always be."""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from jsonschema import Draft202012Validator

from lookout.base.instants import parse_instant, parse_second
from lookout.core.model import Check
from lookout.documents.document import etag
from tests.integration.served import HISTORY, LIVE, Answer
from tests.oracles.documents import is_in_order
from tests.oracles.history import EndedBuckets
from tests.system.day.diary import Diary

_SCHEMAS: Final = Path(__file__).parents[3] / "docs" / "schemas"
_QUOTED_BYTES: Final = 300
_MOST_FAILURES: Final = 8  # printed of a chapter
_JUMP_MS: Final = 1_800_000  # half of what the clock is set by
_UNAVAILABLE: Final = {LIVE: b"the liveness report is unavailable", HISTORY: b"the liveness history is unavailable"}
_NO_ORIGIN: Final = b"the server does not answer"  # as the edge says it
EDGE: Final = "edge"


class Read(NamedTuple):
    """What is kept of a document: which bytes they were, and when they were made."""

    digest: bytes
    generated_at: int


@dataclass
class Judge:
    diary: Diary
    chapter: str = ""
    failures: list[str] = field(default_factory=list)
    answers: Counter[int] = field(default_factory=Counter)
    """By HTTP code."""
    longest_gap_s: dict[str, float] = field(default_factory=dict)
    """By chapter: between two reports of one server, by their own instants."""
    newest: dict[str, int] = field(default_factory=dict)
    """The last report's instant, of each place."""
    bodies: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """The last document, of each place and path."""
    _failed: Counter[str] = field(default_factory=Counter)
    _reads: dict[tuple[str, str], Read] = field(default_factory=dict)  # by path and ETag
    _last: dict[tuple[str, str], int] = field(default_factory=dict)  # by place and path
    _may_go_back: set[tuple[str, str]] = field(default_factory=set)
    _ended: EndedBuckets = field(default_factory=EndedBuckets)
    _first_at: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._schemas = {
            path: Draft202012Validator(json.loads((_SCHEMAS / name).read_text()))
            for path, name in ((LIVE, "liveness.json"), (HISTORY, "history.json"))
        }

    def fail(self, what: str, body: bytes = b"") -> None:
        self._failed[self.chapter] += 1
        if self._failed[self.chapter] <= _MOST_FAILURES:
            quoted = f": {body[:_QUOTED_BYTES]!r}" if body else ""
            self.failures.append(f"{self.chapter}: {what}{quoted}")

    def count_more(self) -> list[str]:
        """How many more failures there were than are printed."""
        return [
            f"{chapter}: and {number - _MOST_FAILURES:,} more"
            for chapter, number in self._failed.items()
            if number > _MOST_FAILURES
        ]

    def clock_goes_back(self) -> None:
        """Every place may show an earlier instant once."""
        with self._lock:
            self._may_go_back = set(self._last)

    def take(self, place: str, path: str, asked_with: str | None, answer: Answer) -> str | None:
        """Judge an answer to a request with this If-None-Match; the ETag to ask with the next time."""
        with self._lock:
            self.answers[answer.http_code] += 1
            found = list(self._wrong(place, path, asked_with, answer))
            if found:
                more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
                self.fail(f"{place}{path}: {found[0]}{more}", answer.body)
        return answer.header("etag")

    def _wrong(self, place: str, path: str, asked_with: str | None, answer: Answer) -> Iterator[str]:
        tag = answer.header("etag") or ""
        if answer.http_code == 503:
            if (place, path) in self._last:
                yield "503 after a document was served"
            if _UNAVAILABLE[path] not in answer.body and not (place == EDGE and _NO_ORIGIN in answer.body):
                yield "503 with other words"
        elif answer.http_code == 304:
            if tag != asked_with or answer.body:
                yield f"304 with the ETag {tag} and {len(answer.body)} bytes to one who has {asked_with}"
        elif answer.http_code != 200:
            yield f"HTTP {answer.http_code}"
        else:
            yield from self._document(place, path, tag, answer.body)

    def _document(self, place: str, path: str, tag: str, body: bytes) -> Iterator[str]:
        digest = hashlib.sha256(body).digest()
        read = self._reads.get((path, tag))
        if read is None:
            if tag != etag(body):
                yield f"the ETag {tag} is not that of the body"
            document, invalid = self._valid(path, body)
            if invalid:
                yield invalid
                return
            read = self._reads[path, tag] = Read(digest, parse_instant(document["generatedAt"]))
            yield from self._live(document) if path == LIVE else self._history(document)
        elif read.digest != digest:
            yield f"other bytes under the ETag {tag}"
        self.bodies[place, path] = body
        yield from self._order(place, path, read.generated_at)

    def _valid(self, path: str, body: bytes) -> tuple[Any, str]:
        """The document, and what is wrong with it by its schema."""
        try:
            document = json.loads(body)
        except ValueError as error:
            return None, f"no JSON: {error}"
        return document, next((error.message for error in self._schemas[path].iter_errors(document)), "")

    def _order(self, place: str, path: str, generated_at: int) -> Iterator[str]:
        last_at = self._last.get((place, path), 0)
        if generated_at < last_at:
            if (place, path) not in self._may_go_back:
                yield f"generatedAt went back by {last_at - generated_at} ms"
            self._may_go_back.discard((place, path))
        self._last[place, path] = generated_at
        if path == LIVE and generated_at != last_at:
            if place != EDGE and 0 < generated_at - last_at < _JUMP_MS:
                gap_s = (generated_at - last_at) / 1000
                self.longest_gap_s[self.chapter] = max(gap_s, self.longest_gap_s.get(self.chapter, 0))
            self.newest[place] = generated_at

    def _live(self, document: Any) -> Iterator[str]:
        if not is_in_order(document["checks"]):
            yield "rows out of order"
        for row in document["checks"]:
            if row["status"] != "current":
                continue
            check = Check(row["service"], row["chainId"])
            if row["observedAt"] is None:
                yield f"{check} is current, and was never observed"
                continue
            mishap = self.diary.forbids(check, parse_instant(row["observedAt"]))
            if mishap is not None:
                yield f"{check} is current, observed at {row['observedAt']} under {mishap.fault} of {mishap.target}"

    def _history(self, document: Any) -> Iterator[str]:
        if not is_in_order(document["rows"]):
            yield "rows out of order"
        bucket_s = document["bucketSeconds"]
        if (bucket_s, document["retentionDays"]) != (self.diary.scale.bucket_s, 14):
            yield f"buckets of {bucket_s} s for {document['retentionDays']} days"
        from_at, to_at = (parse_second(document[key]) for key in ("from", "to"))
        self._first_at = self._first_at or from_at
        if from_at != self._first_at:
            yield "the history begins elsewhere now"
        for row in document["rows"]:
            check, buckets = Check(row["service"], row["chainId"]), row["buckets"]
            if len(buckets) != (to_at - from_at) // (1000 * bucket_s) + 1:
                yield f"{check} has {len(buckets)} buckets"
        yield from self._ended.changed(document)
