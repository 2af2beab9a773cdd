"""Which request is due, and what is known after its answer; nothing is sent or waited for here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from lookout_reader.clocks import Arrival, Clocks, clocks_of
from lookout_reader.feed import (
    Answer,
    FailureCode,
    Feed,
    NoAnswer,
    asked_to_wait_s,
    history_feed,
    live_feed,
    take_answer,
)
from lookout_reader.history import History
from lookout_reader.report import LiveReport
from lookout_reader.status import judge_row
from lookout_reader.statuses import EffectiveStatus

Kind = Literal["live", "history"]
D = TypeVar("D", LiveReport, History)

#: Without an answer at all, a server was not burdened: it may be asked again at once.
_REACHED_NOBODY: Final = ("no-answer", "timeout", "offline")


@dataclass(frozen=True, slots=True)
class Update:
    """The last good documents, whatever their age, and the problems (C9). It is true only at its time.

    ``report_bytes`` is the report as it came.
    """

    report: LiveReport | None
    report_problem: str | None
    history: History | None
    history_problem: str | None
    clock_ahead_ms: float | None
    report_code: FailureCode | None = None
    history_code: FailureCode | None = None
    report_bytes: bytes | str | None = field(default=None, repr=False)
    arrival: Arrival | None = field(default=None, repr=False, compare=False)

    @property
    def now(self) -> float:
        """Of the clock, when you read it."""
        return clocks_of(self.arrival).now

    @property
    def answered_ago_ms(self) -> float | None:
        """How long ago the last request for the live report ended; None before the first."""
        return clocks_of(self.arrival).answered_ago_ms

    @property
    def received_ago_ms(self) -> float | None:
        """How long ago the report first arrived, by a clock that is never set; None without a report."""
        return clocks_of(self.arrival).received_ago_ms


class Machine(NamedTuple):
    """A clock that may be set, one that never is, and chance."""

    now: Callable[[], int]
    monotonic: Callable[[], float]
    chance: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Turn:
    """A request to make now; ``is_wanted`` by a user, and not by the polling."""

    kind: Kind
    url: str
    headers: Mapping[str, str]
    asked_s: float
    is_wanted: bool


State = tuple[int, list[EffectiveStatus]]


class Poller:
    """What is known of both documents. There is one request at a time: each turn has to be taken or given up."""

    def __init__(
        self,
        base_url: str,
        protocol: str,
        user_agent: str,
        machine: Machine,
        *,
        live: float | None,
        history: float | None,
    ) -> None:
        self._endpoint, self._user_agent, self._machine = _endpoint(base_url, protocol), user_agent, machine
        self._live: Feed[LiveReport] | None = None if live is None else live_feed(live)
        self._history: Feed[History] | None = None if history is None else history_feed(history)
        self._due_s: dict[Kind, float] = {"live": float("-inf"), "history": float("-inf")}
        self._floor_s = dict(self._due_s)  # when it may be asked for at the earliest
        self._arrival = self._arrive(None)
        self._answered: tuple[float, int] | None = None  # when the live report was last asked for, by both clocks
        self._answers = 0
        self._is_asking = False
        self._lock = Lock()

    def next_turn(self) -> Turn | None:
        """What is due, unless a request is under way."""
        with self._lock:
            return self._turn("live", self._live, self._due_s) or self._turn("history", self._history, self._due_s)

    def wanted_turn(self) -> Turn | None:
        """The live report, unless it was asked for less than the floor ago (C10) or a request is under way."""
        with self._lock:
            return self._turn("live", self._live, self._floor_s, is_wanted=True)

    def _turn(
        self, kind: Kind, feed: Feed[D] | None, at_s: Mapping[Kind, float], *, is_wanted: bool = False
    ) -> Turn | None:
        now_s = self._machine.monotonic()
        if feed is None or self._is_asking or at_s[kind] > now_s:
            return None
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if feed.etag is not None:
            headers["If-None-Match"] = feed.etag
        self._is_asking = True
        return Turn(kind, f"{self._endpoint}/{feed.path}", headers, now_s, is_wanted)

    def give_up(self, turn: Turn) -> None:
        """The turn ended without an answer that counts. The next request keeps its distance all the same (C10)."""
        with self._lock:
            self._is_asking = False
            feed = self._live if turn.kind == "live" else self._history
            if feed is not None:
                self._floor_s[turn.kind] = self._due_s[turn.kind] = turn.asked_s + feed.floor_s

    def take(self, turn: Turn, answer: Answer | NoAnswer) -> None:
        with self._lock:
            self._is_asking = False
            self._answers += 1
            if turn.kind == "history" and self._history is not None:
                self._history = self._advance(self._history, turn, answer)
            elif self._live is not None:
                self._answered = self._machine.monotonic(), self._machine.now()
                before = self._live
                after = self._advance(before, turn, answer)
                if after.arrivals > before.arrivals:
                    self._arrival = self._arrive(self._machine.monotonic())
                if after.document is not None and after.document is not before.document:
                    after = replace(after, document=after.document.arrived(self._arrival))
                self._live = after

    def _arrive(self, at_s: float | None) -> Arrival:
        """The clocks of a report that came then."""

        def read_clocks() -> Clocks:
            ago_ms = None if at_s is None else max((self._machine.monotonic() - at_s) * 1000, 0.0)
            ahead_ms = self._live.clock_ahead_ms if self._live else None
            return Clocks(self._machine.now(), ago_ms, ahead_ms, self._answered_ago_ms())

        return Arrival(read_clocks)

    def _answered_ago_ms(self) -> float | None:
        """One of the clocks may stand still while a machine sleeps."""
        if self._answered is None:
            return None
        at_s, at = self._answered
        return max((self._machine.monotonic() - at_s) * 1000, self._machine.now() - at, 0.0)

    def _advance(self, feed: Feed[D], turn: Turn, answer: Answer | NoAnswer) -> Feed[D]:
        now, now_s, kind = self._machine.now(), self._machine.monotonic(), turn.kind
        after = take_answer(feed, answer, now, self._machine.chance())
        is_reached = not isinstance(answer, NoAnswer) or answer.code not in _REACHED_NOBODY
        floor_s = max(turn.asked_s + feed.floor_s, now_s + asked_to_wait_s(answer, now)) if is_reached else now_s
        self._floor_s[kind] = floor_s
        if turn.is_wanted and after.problem is not None:  # taps must not lengthen the polling
            self._due_s[kind] = max(self._due_s[kind], floor_s)
            return replace(after, failures=feed.failures)
        self._due_s[kind] = now_s + after.wait_s
        return after

    def news(self, seen: State | None) -> tuple[State, Update] | None:
        """What is new since ``seen``: an answer, or an effective status that time has changed."""
        with self._lock:
            state = (self._answers, self._worth())
            return None if state == seen else (state, self._update())

    def update(self) -> Update:
        with self._lock:
            return self._update()

    def _update(self) -> Update:
        live, history = self._live, self._history
        return Update(
            report=live.document if live else None,
            report_problem=live.problem if live else None,
            history=history.document if history else None,
            history_problem=history.problem if history else None,
            clock_ahead_ms=live.clock_ahead_ms if live else None,
            report_code=live.code if live else None,
            history_code=history.code if history else None,
            report_bytes=live.body if live else None,
            arrival=self._arrival,
        )

    def _worth(self) -> list[EffectiveStatus]:
        if self._live is None or self._live.document is None:
            return []
        clocks = self._arrival.read_clocks()
        return [judge_row(row, clocks) for row in self._live.document.rows]


def _endpoint(base_url: str, protocol: str) -> str:
    if urlsplit(base_url).scheme not in {"http", "https"}:
        raise ValueError(f"{base_url!r} is not an http or https address")
    if not protocol:
        raise ValueError("no protocol given")
    return f"{base_url.rstrip('/')}/api/v1/{quote(protocol, safe='')}"
