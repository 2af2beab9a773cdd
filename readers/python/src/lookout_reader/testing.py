"""For the tests of what is built with this reader: documents of every state, and a reader whose state is set."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any, Final

from lookout_reader.feed import Answer, NoAnswer
from lookout_reader.instants import instant_now
from lookout_reader.poller import Turn, Update
from lookout_reader.reader import Reader

_MADE: Final[Mapping[str, Any]] = json.loads(files("lookout_reader").joinpath("states.json").read_bytes())
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")
_BUCKET_MS: Final = 300_000
_HOLDS_MS: Final = 30_000  # like a monitor's report: then there is a new one
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: The names of the documents; a reader can also be "loading", or without a network ("no-network").
STATES: Final = tuple(_MADE["states"])


def document_of(state: str, at: int | None = None) -> str:
    """The live report of a state, as a monitor would write it now."""
    if state not in STATES:
        raise ValueError(f"{state!r} is none of {', '.join(STATES)}")
    changes: dict[str, Any] = {"ageMs": 0, **_MADE["states"][state]}
    *others, fine_indexer = _MADE["fine"]["checks"]
    checks = [*others, changes.pop("indexer", fine_indexer)]
    by_ms = (instant_now() if at is None else at) - _MADE["madeAt"] - changes.pop("ageMs")
    return _move({**_MADE["fine"], **changes, "checks": checks}, by_ms)


def history_of(at: int | None = None) -> str:
    """A history, as a monitor would write it now."""
    to_at = (datetime.fromisoformat(_MADE["history"]["to"]) - _EPOCH) // timedelta(milliseconds=1)
    by_ms = (instant_now() if at is None else at) - to_at
    return _move(_MADE["history"], by_ms // _BUCKET_MS * _BUCKET_MS)


def _move(document: object, by_ms: int) -> str:
    def move(found: re.Match[str]) -> str:
        moved = datetime.fromisoformat(found[0]) + timedelta(milliseconds=by_ms)
        return moved.isoformat(timespec="milliseconds" if found[1] else "seconds").replace("+00:00", "Z")

    return _INSTANT.sub(move, json.dumps(document))


class FakeReader(Reader):
    """A reader that asks no one: ``show(state)`` sets what it knows."""

    def __init__(self, state: str = "fine", now: Callable[[], int] = instant_now) -> None:
        super().__init__("https://lookout.invalid", "protocol", history=None, fetch=self._answer, now=now)
        self._now = now
        self.show(state)

    def show(self, state: str) -> None:
        self._state, self._shown_at = state, self._now()
        if state != "no-network":
            self._poller = self._make_poller()
        if state != "loading":
            self._poller.take(Turn("live", "", {}, 0.0, is_wanted=False), self._answer())

    def latest(self) -> Update:
        if self._now() - self._shown_at > _HOLDS_MS and self._state != "no-network":
            self.show(self._state)
        return super().latest()

    def _answer(self, *_: object) -> Answer | NoAnswer:
        if self._state in ("loading", "no-network"):
            return NoAnswer()
        return Answer(200, document_of(self._state, self._now()))


def fake_reader(state: str = "fine") -> FakeReader:
    return FakeReader(state)
