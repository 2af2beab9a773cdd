"""The state of one endpoint, and its change by an answer; without network, clock or randomness of its own."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isnan
from typing import Final, Generic, Literal, TypeVar

from lookout_reader.document import WRONG_VERSION, Unreadable
from lookout_reader.history import History, parse_history
from lookout_reader.instants import parse_http_date
from lookout_reader.report import LiveReport, parse_report
from lookout_reader.status import FUTURE_MS, OLD_MS

_LIVE_FLOOR_S: Final = 15.0
_HISTORY_FLOOR_S: Final = 60.0
_EVERY_MOST_S: Final = 86_400.0
_JITTER: Final = 0.1
_BACKOFF_JITTER: Final = 0.5
_BACKOFF_MOST_S: Final = 200.0  # C15
_RETRY_AFTER_MOST_S: Final = 60.0  # C15
_HISTORY_KEPT_MS: Final = 600_000  # C14
#: The longest answer that is read, by the feed's path.
BODIES_MOST: Final = {"liveness": 2 * 1024 * 1024, "liveness/history": 16 * 1024 * 1024}
_PRINTABLE: Final = re.compile(r"[ -~]+")  # what can be sent back
_SECONDS: Final = re.compile(r"[0-9]{1,9}")

# Limits for the reader's clock.
_AHEAD_MS: Final = 90_000  # a cache may explain 60 s of it
_REPORTS_AHEAD_MS: Final = 150_000  # a report is made every 30 s
_APART_MOST_MS: Final = 120_000
_STEADY_MS: Final = 60_000

D = TypeVar("D", LiveReport, History)

#: What is wrong, for programs; the problem beside it is for people.
FailureCode = Literal[
    "offline",
    "no-answer",
    "timeout",
    "too-long",
    "too-many-requests",
    "not-available",
    "wrong-version",
    "unreadable",
    "no-copy",
    "unexpected",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: its code, its body and the headers that matter, as they were sent."""

    http_code: int
    body: str | bytes = b""
    etag: str | None = None
    retry_after: str | None = None
    date: str | None = None
    age: str | None = None


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A request without an answer, and why."""

    problem: str = "no answer"
    code: FailureCode = "no-answer"


TIMED_OUT: Final = NoAnswer("no answer in time", "timeout")
TOO_LONG: Final = NoAnswer("an answer that is too long", "too-long")


@dataclass(frozen=True, slots=True)
class Feed(Generic[D]):
    """The last good document of one endpoint, of a report also as it came, the problem since, and the wait before the
    next request."""

    path: str
    parse: Callable[[str | bytes], D | Unreadable]
    every_s: float
    floor_s: float
    document: D | None = None
    body: str | bytes | None = None
    etag: str | None = None
    problem: str | None = None
    failures: int = 0
    wait_s: float = 0.0
    arrivals: int = 0
    code: FailureCode | None = None
    arrived_at: float | None = None
    clock_ahead_ms: float | None = None


def live_feed(every_s: float) -> Feed[LiveReport]:
    """The live report, requested at most every 15 s (C10)."""
    return Feed("liveness", parse_report, _between(_LIVE_FLOOR_S, every_s), _LIVE_FLOOR_S)


def history_feed(every_s: float) -> Feed[History]:
    """The history, requested at most every 60 s (C10)."""
    return Feed("liveness/history", parse_history, _between(_HISTORY_FLOOR_S, every_s), _HISTORY_FLOOR_S)


def take_answer(feed: Feed[D], answer: Answer | NoAnswer, now: float, chance: float) -> Feed[D]:
    """The feed after an answer; ``chance`` is random, from 0 to 1.

    A failure of any kind leaves the last good document as it is, and lengthens the wait (C9). ``arrivals`` grows only
    with a document that differs from the last one.
    """
    document = _document(feed, answer)
    if isinstance(document, NoAnswer):
        ahead_ms = clock_ahead_ms(answer, now)
        failures = feed.failures + 1
        asked_s = asked_to_wait_s(answer, now)
        return replace(
            feed,
            problem=document.problem,
            failures=failures,
            wait_s=max(_backoff_s(feed, failures, chance), asked_s + max(asked_s * _JITTER * chance, 0.0)),
            code=document.code,
            clock_ahead_ms=feed.clock_ahead_ms if ahead_ms is None else ahead_ms,
        )
    wait_s = feed.every_s + max(feed.every_s * _JITTER * chance, 0.0)
    answered = replace(feed, problem=None, failures=0, wait_s=wait_s, code=None)
    return answered if _is_older_copy(feed, document, now) else _take_document(answered, document, answer, now)


def _take_document(feed: Feed[D], document: D, answer: Answer | NoAnswer, now: float) -> Feed[D]:
    etag, body = feed.etag, feed.body
    if isinstance(answer, Answer) and answer.http_code != 304:
        etag, body = _sendable(answer.etag), answer.body
    is_new = not _is_same(feed, document, etag)
    ahead_ms = clock_ahead_ms(answer, now)
    if ahead_ms is None:
        ahead_ms = _guess_clock_ahead_ms(feed, document, now) if is_new else feed.clock_ahead_ms
    return replace(
        feed,
        document=document,
        body=body if feed.path == "liveness" else None,  # a history is long
        etag=etag,
        arrivals=feed.arrivals + is_new,
        arrived_at=now if is_new else feed.arrived_at,
        clock_ahead_ms=ahead_ms,
    )


def _backoff_s(feed: Feed[D], failures: int, chance: float) -> float:
    """The wait after so many failures in a row (C15)."""
    least_s = min(max(feed.floor_s, feed.every_s * 2.0 ** (min(failures, 10) - 2)), _BACKOFF_MOST_S)
    wait_s = least_s + max(least_s * _BACKOFF_JITTER * chance, 0.0)
    return min(wait_s, 2 * _BACKOFF_MOST_S - wait_s)  # beyond the most, chance shortens: all readers wait differently


def _is_older_copy(feed: Feed[D], document: D, now: float) -> bool:
    """Whether it is older than the held document, as a cache may have that serves after an error (C14).

    A held document that is old, or of another time by this clock, is given up for any other.
    """
    held = feed.document
    if held is None or held.generated_at is None:
        return False
    if document.generated_at is not None and document.generated_at >= held.generated_at:
        return False
    if isinstance(held, History):
        return feed.arrived_at is not None and 0 <= now - feed.arrived_at < _HISTORY_KEPT_MS
    return now - held.generated_at < OLD_MS and held.generated_at - now <= FUTURE_MS


def clock_ahead_ms(answer: Answer | NoAnswer, now: float) -> float | None:
    """How far this reader's clock seems to be ahead of the server's; None if unknown.

    From the answer's ``Date``. ``Age`` only explains an old date: some caches send it with a new date.
    """
    if isinstance(answer, NoAnswer) or (date_at := parse_http_date(answer.date)) is None:
        return None
    ahead_ms = now - date_at
    return max(ahead_ms - _seconds(answer.age) * 1000, min(ahead_ms, 0))


def _guess_clock_ahead_ms(held: Feed[D], document: D, now: float) -> float | None:
    """The same without a ``Date``: from a report that just arrived.

    A report from the future shows a clock that is behind. An old report is no old copy if it and the previous report
    arrived as far apart as they were made.
    """
    if document.generated_at is None:
        return None
    ahead_ms = now - document.generated_at
    if ahead_ms < -FUTURE_MS:
        return ahead_ms
    if held.document is None or held.document.generated_at is None or held.arrived_at is None:
        return None
    apart_ms = now - held.arrived_at
    made_apart_ms = document.generated_at - held.document.generated_at
    is_steady = apart_ms < _APART_MOST_MS and abs(apart_ms - made_apart_ms) < _STEADY_MS
    return ahead_ms if ahead_ms > _REPORTS_AHEAD_MS and is_steady else None


def wrong_clock(clock_ahead_ms: float | None) -> Literal["ahead", "behind"] | None:
    """How the clock is wrong, if no cache can explain the difference."""
    if clock_ahead_ms is None:
        return None
    return "ahead" if clock_ahead_ms > _AHEAD_MS else "behind" if clock_ahead_ms < -FUTURE_MS else None


def _is_same(held: Feed[D], document: D, etag: str | None) -> bool:
    """Whether it is the held document again: then nothing about it may be renewed."""
    if held.document is None or held.document is document:
        return held.document is document
    if etag is not None and etag == held.etag:
        return True
    # Without a date and an ETag they count as the same.
    dated = document.generated_at is not None or etag is not None or held.etag is not None
    same_date = document.generated_at == held.document.generated_at
    return same_date and (document.generated_at is not None or not dated)


def _document(feed: Feed[D], answer: Answer | NoAnswer) -> D | NoAnswer:
    """The new last good document, or the problem."""
    if isinstance(answer, NoAnswer):
        return answer
    if answer.http_code == 200:
        if len(answer.body) > BODIES_MOST[feed.path]:
            return TOO_LONG
        document = feed.parse(answer.body)
        if not isinstance(document, Unreadable):
            return document
        is_version = document.problem == WRONG_VERSION
        return NoAnswer(f"unreadable: {document.problem}", "wrong-version" if is_version else "unreadable")
    if answer.http_code == 304:
        return feed.document or NoAnswer("unchanged, but there is no copy here", "no-copy")
    if answer.http_code == 429:
        return NoAnswer("too many requests", "too-many-requests")
    if answer.http_code == 503:
        return NoAnswer("not available yet", "not-available")
    return NoAnswer(f"an unexpected answer, HTTP {answer.http_code}", "unexpected")


def asked_to_wait_s(answer: Answer | NoAnswer, now: float) -> float:
    """The seconds that an answer asks to wait for."""
    if isinstance(answer, NoAnswer):
        return 0.0
    until_at = parse_http_date(answer.retry_after)
    if until_at is None:
        return min(_seconds(answer.retry_after), _RETRY_AFTER_MOST_S)
    answered_at = parse_http_date(answer.date)
    return min(max(0.0, (until_at - (now if answered_at is None else answered_at)) / 1000), _RETRY_AFTER_MOST_S)


def _sendable(etag: str | None) -> str | None:
    return etag if etag is not None and _PRINTABLE.fullmatch(etag) else None


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and _SECONDS.fullmatch(text) else 0.0


def _between(floor_s: float, every_s: float) -> float:
    if isnan(every_s):
        raise ValueError(f"{every_s} is not a number of seconds")
    return min(max(every_s, floor_s), _EVERY_MOST_S)
