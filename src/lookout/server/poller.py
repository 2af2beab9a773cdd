"""Follows the store, and keeps ready-made replies of its documents.

The served documents are a pure function of events (``step``): once loaded, a live report is always served, whatever
fails (A11), and a history until it has been unreadable for some minutes (A12).
"""

import threading
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.documents.document import COMPRESSED, Document, PlainName, assembled_at, etag, unpacks_to
from lookout.server.replies import (
    HISTORY_CACHING,
    LIVE_CACHING,
    NO_HISTORY,
    NO_LIVE,
    NO_TIMED_REPLIES,
    ReplyTable,
    Resource,
    Site,
    TimedReplies,
    endpoint,
)
from lookout.server.shared import OwnCounts
from lookout.store.protocol import Reader, StoreError

_GONE: Final = "the store holds no documents any more"


class Forms(NamedTuple):
    plain: Document
    gzip: Document | None = None


def get_body(forms: Forms | None) -> bytes | None:
    return None if forms is None else forms.plain.body


class PollBegan(NamedTuple):
    """A poll began; it may hang with the store for ever."""

    at_ms: int


class Read(NamedTuple):
    """A document was read, or None if it does not exist. The live report is read before the history."""

    at_ms: int
    name: PlainName
    forms: Forms | None


class ReadFailed(NamedTuple):
    at_ms: int
    name: PlainName
    why: str


class PollEnded(NamedTuple):
    at_ms: int


class TimePassed(NamedTuple):
    at_ms: int


MirrorEvent = PollBegan | Read | ReadFailed | PollEnded | TimePassed


class Mirror(NamedTuple):
    live: Forms | None = None
    live_arrived_ms: int = 0
    generated_at: int | None = None  # when the live report was assembled
    history: Forms | None = None
    has_history_failed: bool = False
    history_unsure_since_ms: int | None = None  # it failed, or a poll hangs, since then
    poll_error: str | None = None  # of the current poll
    error: str | None = None  # why the last poll failed
    is_waiting: bool = False  # for the first report
    store_errors: int = 0


def step(state: Mirror, event: MirrorEvent, history_unreadable_ms: int) -> Mirror:
    """The state after an event; a history is given up after more than ``history_unreadable_ms``."""
    match event:
        case PollBegan(at_ms):
            since_ms = state.history_unsure_since_ms
            return state._replace(history_unsure_since_ms=at_ms if since_ms is None else since_ms, poll_error=None)
        case Read(at_ms, name, None) if (state.live if name == "live" else state.history) is not None:
            return step(state, ReadFailed(at_ms, name, _GONE), history_unreadable_ms)
        case Read(at_ms, "live", forms):
            if forms is None or get_body(state.live) == forms.plain.body:
                return state._replace(live=forms)
            return state._replace(live=forms, live_arrived_ms=at_ms, generated_at=assembled_at(forms.plain.body))
        case Read(at_ms, _, forms):  # the history
            return state._replace(history=forms, has_history_failed=False, history_unsure_since_ms=at_ms)
        case ReadFailed(_, "live", why):
            return state._replace(poll_error=why)
        case ReadFailed(at_ms, _, why):  # the history
            failed = state._replace(has_history_failed=True, poll_error=state.poll_error or why)
            return _withdraw_history(failed, at_ms, history_unreadable_ms)
        case PollEnded():
            return _end_poll(state)
        case TimePassed(at_ms):
            return _withdraw_history(state, at_ms, history_unreadable_ms)


def _end_poll(state: Mirror) -> Mirror:
    has_failed = state.poll_error is not None
    return state._replace(
        history_unsure_since_ms=state.history_unsure_since_ms if state.has_history_failed else None,
        error=state.poll_error,
        is_waiting=state.is_waiting if has_failed else state.live is None,
        store_errors=state.store_errors + has_failed,
    )


def _withdraw_history(state: Mirror, now_ms: int, history_unreadable_ms: int) -> Mirror:
    """Give up a history that may have been unreadable for too long: a poll that hangs is as bad as one that fails."""
    since_ms = state.history_unsure_since_ms
    is_too_long = since_ms is not None and now_ms - since_ms > history_unreadable_ms
    return state._replace(history=None) if is_too_long else state


_READ_AGAIN_MS: Final = 15_000
_CLOCK_SET_MS: Final = 1_000  # a larger difference means that a clock was set
_POLL_EVERY_S: Final = 0.125
_FIRST_POLL_S: Final = 2.0
_LAST_POLL_S: Final = 0.25

log = get_logger()


class _Timed(NamedTuple):
    """Replies that time makes untrue; their sources, and when they were made, by both clocks."""

    replies: TimedReplies
    site: Site
    live: Forms | None
    history: Forms | None
    at: int
    at_ms: int

    def is_true(self, site: Site, state: Mirror, now: int, now_ms: int) -> bool:
        age_ms = now_ms - self.at_ms
        was_clock_set = abs(now - self.at - age_ms) > _CLOCK_SET_MS
        is_over = self.replies.holds_ms is not None and age_ms >= self.replies.holds_ms
        is_same = self.site is site and (self.live, self.history) == (state.live, state.history)
        return is_same and not was_clock_set and not is_over


class Poller:
    """A server's replies. ``resources`` is replaced as a whole, so that requests may keep a reference."""

    def __init__(
        self,
        reader: Reader,
        clock: Clock,
        history_unreadable_ms: int,
        site: Site,
        redescribe: Callable[[bytes], Site] | None = None,
    ) -> None:
        """``redescribe`` gives the site of a stored description of the deployment."""
        self.site = self._own_site = site
        self.state = Mirror()
        self.resources: Mapping[str, Resource] = {}
        self._redescribe = redescribe
        self._about: bytes | None = None  # the stored description that the site follows
        self._reader = reader
        self._clock = clock
        self._history_unreadable_ms = history_unreadable_ms
        self._read_ms: int | None = None
        self._lock = threading.Lock()  # two threads take steps
        self._make_timed_replies()

    def poll(self) -> None:
        """Load changed documents from the store, which may block."""
        began_ms = self._clock.elapsed_ms()
        self._apply(PollBegan(began_ms))
        try:
            if self._is_due(began_ms):
                self._read_ms = began_ms
                self._read_all()
        finally:
            self._apply(PollEnded(self._clock.elapsed_ms()))
        if self._timed.live is None and self.state.live is not None:  # the first report is served at once
            self._make_timed_replies()

    def check_time(self) -> None:
        """Give up a history that is unreadable for too long, and replace outdated replies. Call it in another thread
        than ``poll``, which may hang with the store."""
        self._apply(TimePassed(self._clock.elapsed_ms()))
        if not self._timed.is_true(self.site, self.state, self._clock.now(), self._clock.elapsed_ms()):
            self._make_timed_replies()

    def _is_due(self, now_ms: int) -> bool:
        # Often enough to notice an unreadable history well before it is given up.
        again_ms = min(_READ_AGAIN_MS, self._history_unreadable_ms // 4)
        try:
            has_changed = self._reader.changed()
        except StoreError:
            return True  # the read says why
        is_failing = self.state.error is not None
        return has_changed or is_failing or self._read_ms is None or now_ms - self._read_ms >= again_ms

    def _read_all(self) -> None:
        self._apply(self._read("live"))  # at once: a history that hangs does not delay the report
        history = self._read("history")
        self._apply(history)
        # After the API, so that failures here delay no document.
        if isinstance(history, Read) and history.forms is not None:
            self._read_about(history.forms.plain)

    def _read(self, name: PlainName) -> Read | ReadFailed:
        """Read one document; a failure does not affect the other."""
        served = self.state.live if name == "live" else self.state.history
        try:
            forms = _read_forms(self._reader, name, served)
        except StoreError as error:
            return ReadFailed(self._clock.elapsed_ms(), name, str(error))
        return Read(self._clock.elapsed_ms(), name, forms)

    def _read_about(self, history: Document) -> None:
        """Follow the stored description of the deployment. If it is older than the history, an earlier monitor stored
        it, and the current one stores none. A failed read changes nothing."""
        try:
            stored = self._reader.read("about")
        except StoreError:
            return
        if stored is not None and not _is_whole(stored):
            return
        about = None if stored is None or stored.generated_at < history.generated_at else stored.body
        if about != self._about and self._redescribe is not None:
            self._about = about
            self.site = self._own_site if about is None else self._redescribe(about)

    def _apply(self, event: MirrorEvent) -> Mirror:
        with self._lock:
            before, after = self.state, step(self.state, event, self._history_unreadable_ms)
            self.state = after
            if (before.live, before.history) != (after.live, after.history):
                self.resources = self._build_table()
        _log_changes(before, after)
        return after

    def _make_timed_replies(self) -> None:
        site, state = self.site, self.state
        now, now_ms = self._clock.now(), self._clock.elapsed_ms()
        made = NO_TIMED_REPLIES
        try:
            made = site.feeds(get_body(state.live), get_body(state.history), now, now_ms - state.live_arrived_ms)
        except Exception:
            made = site.feeds(None, None, now, 0)  # after a bug: old replies would be untrue
            raise
        finally:
            with self._lock:
                self._timed = _Timed(made, site, state.live, state.history, now, now_ms)
                self.resources = self._build_table()

    def _build_table(self) -> ReplyTable:
        live, history, timed = self.state.live, self.state.history, self._timed.replies
        replies = (
            NO_LIVE if live is None else endpoint(live.plain, LIVE_CACHING, live.gzip),
            NO_HISTORY if history is None else endpoint(history.plain, HISTORY_CACHING, history.gzip),
        )
        endpoints = dict(zip(self.site.paths, replies, strict=True))
        return ReplyTable({**self.site.others, **timed.ready, **endpoints}, timed.later)


def _read_forms(reader: Reader, name: PlainName, served: Forms | None) -> Forms | None:
    """None if there is no such document; StoreError if it cannot be read, or is damaged. A body that is ``served``
    already is not unpacked again."""
    document = reader.read(name)
    if document is None:
        return None
    if not _is_whole(document):
        raise StoreError(f"the stored {name} document is damaged")
    if served is not None and served.plain == document and served.gzip is not None:
        return served
    return Forms(document, _read_gzip(reader, name, document))


def _read_gzip(reader: Reader, name: PlainName, plain: Document) -> Document | None:
    """The same document as gzip. None if another publication was stored between the two reads: until the next poll
    answers are plain."""
    try:
        packed = reader.read(COMPRESSED[name])
    except StoreError:
        return None
    if packed is None or not _is_whole(packed) or packed.generated_at != plain.generated_at:
        return None
    return packed if unpacks_to(packed.body, plain.body) else None


def _is_whole(stored: object) -> bool:
    """Whether the document is undamaged: a failing disk can change a byte, or the type of a value."""
    match stored:
        case Document(bytes(body), tag, int()):
            return etag(body) == tag
        case _:
            return False


def _log_changes(before: Mirror, after: Mirror) -> None:
    meanwhile = "answering 503" if after.live is None else "serving what was read last"
    if before.error is None and after.error is not None:
        log.error(f"the store cannot be read; {meanwhile}", error=after.error)
    if before.error is not None and after.error is None:
        log.info("the store can be read again")
    if not before.is_waiting and after.is_waiting:
        log.warning("there is no report in the store yet; answering 503")
    if before.is_waiting and not after.is_waiting:
        log.info("the first report was loaded")
    if before.history is not None and after.history is None:
        log.error("the history has been unreadable for too long; answering 503")


class Follower:
    """Polls the store eight times a second, from ``start`` to ``stop``. A second thread checks the time, since the
    first may hang with the store. Both mark this process as alive for the others."""

    def __init__(self, poller: Poller, counts: OwnCounts, clock: Clock) -> None:
        self._poller = poller
        self._counts = counts
        self._clock = clock
        self._store_errors = 0
        self._stopped = threading.Event()
        self._polled = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(name, work), name=name, daemon=True)
            for name, work in (("poll the store", self._poll), ("watch the time", self._check_time))
        ]

    def start(self) -> None:
        """Load the documents before the first request, unless the store hangs."""
        for thread in self._threads:
            thread.start()
        self._polled.wait(_FIRST_POLL_S)

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=_LAST_POLL_S)

    def _poll(self) -> None:
        try:
            self._poller.poll()
            self._counts.mark_present(self._clock.elapsed_ms(), self._poller.state.generated_at)
        finally:
            self._polled.set()

    def _check_time(self) -> None:
        self._poller.check_time()
        state = self._poller.state
        self._counts.count_store_errors(state.store_errors - self._store_errors)
        self._store_errors = state.store_errors
        self._counts.mark_present(self._clock.elapsed_ms(), state.generated_at)

    def _repeat(self, name: str, work: Callable[[], None]) -> None:
        while not self._stopped.is_set():
            try:
                work()
            except Exception:  # a bug; the replies stay, and the next poll may succeed
                log.exception("a thread of the server crashed; it goes on", thread=name)
            self._stopped.wait(_POLL_EVERY_S)
