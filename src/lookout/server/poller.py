"""Polls the store, and caches ready-made replies of its documents.

Once loaded, a live report is always served, whatever fails (A11), and a history until it has been unreadable for some
minutes (A12).
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeGuard

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.documents.document import COMPRESSED, Document, PlainName, etag
from lookout.server.replies import HISTORY_CACHING, LIVE_CACHING, NO_HISTORY, NO_LIVE, Counts, Resource, endpoint
from lookout.server.site import NO_TIMED_REPLIES, ReplyTable, Site, TimedReplies
from lookout.store.protocol import Reader, StoreError

_READ_AGAIN_MS: Final = 15_000
_POLL_EVERY_S: Final = 0.125
_START_WAIT_S: Final = 2.0
_STOP_WAIT_S: Final = 0.25

log = get_logger()


class Forms(NamedTuple):
    plain: Document
    gzip: Document | None


class _Timed(NamedTuple):
    """Replies that go stale, what they were made from, and when, by both clocks."""

    replies: TimedReplies
    sources: tuple[Site, Forms | None, Forms | None]
    at: int
    at_ms: int

    def is_true(self, sources: tuple[Site, Forms | None, Forms | None], now: int, now_ms: int) -> bool:
        age_ms, holds_ms = max(now - self.at, now_ms - self.at_ms), self.replies.holds_ms
        is_over = holds_ms is not None and age_ms >= holds_ms
        return self.sources == sources and not is_over and now >= self.at


class Poller:
    """A server's replies. ``resources`` is replaced as a whole, so that requests may keep a reference."""

    def __init__(
        self,
        reader: Reader,
        clock: Clock,
        history_unreadable_ms: int,
        site: Site,
        redescribe: Callable[[bytes], Site],
    ) -> None:
        """``redescribe`` builds the site from a stored description of the deployment."""
        self.site = site
        self.generated_at: int | None = None  # when the live report was assembled
        self.resources: Mapping[str, Resource] = {}
        self._redescribe = redescribe
        self._about: bytes | None = None  # the stored description that the site follows
        self._reader = reader
        self._clock = clock
        self._history_unreadable_ms = history_unreadable_ms
        self._live: Forms | None = None
        self._live_arrived_ms = 0
        self._history: Forms | None = None
        self._history_good_ms = 0  # it was not known to be unreadable then
        self._has_history_failed = False
        self._read_ms: int | None = None
        self._error: str | None = None  # why the last poll failed
        self._is_waiting = False  # for the first report
        self._lock = threading.Lock()  # of both documents and the replies, which two threads change
        self._make_timed_replies()

    def poll(self) -> bool:
        """Load changed documents from the store, which may block; false while it fails."""
        began_ms = self._clock.elapsed_ms()
        if not self._has_history_failed:
            self._history_good_ms = began_ms
        if self._is_due(began_ms):
            self._read_ms = began_ms
            self._note_outcome(self._read_all())
        if self._timed.sources[1] is None and self._live is not None:  # the first report is served at once
            self._make_timed_replies()
        return self._error is None

    def check_time(self) -> None:
        """Give up a history that is unreadable for too long, and replace outdated replies. Call it in another thread
        than ``poll``, which may hang with the store."""
        now, now_ms = self._clock.now(), self._clock.elapsed_ms()
        with self._lock:
            if self._history is not None and now_ms - self._history_good_ms > self._history_unreadable_ms:
                log.error("the history has been unreadable for too long; answering 503")
                self._history = None
                self.resources = self._build_table()
        if not self._timed.is_true((self.site, self._live, self._history), now, now_ms):
            self._make_timed_replies()

    def _is_due(self, now_ms: int) -> bool:
        # Often enough to notice an unreadable history well before it is given up.
        again_ms = min(_READ_AGAIN_MS, self._history_unreadable_ms // 4)
        try:
            has_changed = self._reader.changed()
        except StoreError:
            return True  # reading raises it
        is_failing = self._error is not None
        return has_changed or is_failing or self._read_ms is None or now_ms - self._read_ms >= again_ms

    def _read_all(self) -> str | None:
        """Read both documents, of which one may fail alone; returns the first failure."""
        live_error = self._load("live")  # served at once: a history that hangs does not delay the report
        history_error = self._load("history")
        self._has_history_failed = history_error is not None
        self._read_about()  # after the documents, so that it delays neither
        return live_error or history_error

    def _load(self, name: PlainName) -> str | None:
        served = self._live if name == "live" else self._history
        try:
            forms = _read_forms(self._reader, name, served)
        except StoreError as error:
            return str(error)
        if forms is None:
            return None if served is None else f"the {name} document is gone"
        now_ms = self._clock.elapsed_ms()
        with self._lock:
            before = self._live, self._history
            if name == "history":
                self._history, self._history_good_ms = forms, now_ms
            else:
                if served is None or served.plain.body != forms.plain.body:
                    self._live_arrived_ms, self.generated_at = now_ms, forms.plain.generated_at
                self._live = forms
            if before != (self._live, self._history):
                self.resources = self._build_table()
        return None

    def _read_about(self) -> None:
        """Follow the stored description of the deployment. A failed read changes nothing."""
        try:
            stored = self._reader.read("about")
        except StoreError:
            return
        if _is_whole(stored) and stored.body != self._about:
            self._about = stored.body
            self.site = self._redescribe(stored.body)

    def _note_outcome(self, error: str | None) -> None:
        if error is not None and self._error is None:
            meanwhile = "answering 503" if self._live is None else "serving what was read last"
            log.error(f"the store cannot be read; {meanwhile}", error=error)
        if error is None and self._error is not None:
            log.info("the store can be read again")
        self._error = error
        if error is None and self._is_waiting != (self._live is None):
            self._is_waiting = self._live is None
            if self._is_waiting:
                log.warning("there is no report in the store yet; answering 503")
            else:
                log.info("the first report was loaded")

    def _make_timed_replies(self) -> None:
        site, live, history = sources = (self.site, self._live, self._history)
        now, now_ms = self._clock.now(), self._clock.elapsed_ms()
        made = NO_TIMED_REPLIES
        try:
            made = site.feeds(_get_body(live), _get_body(history), now, now_ms - self._live_arrived_ms)
        except Exception:
            made = site.feeds(None, None, now, 0)  # after a bug: old replies would be untrue
            raise
        finally:
            with self._lock:
                self._timed = _Timed(made, sources, now, now_ms)
                self.resources = self._build_table()

    def _build_table(self) -> ReplyTable:
        live, history, timed = self._live, self._history, self._timed.replies
        replies = (
            NO_LIVE if live is None else endpoint(live.plain, LIVE_CACHING, live.gzip),
            NO_HISTORY if history is None else endpoint(history.plain, HISTORY_CACHING, history.gzip),
        )
        endpoints = dict(zip(self.site.paths, replies, strict=True))
        return ReplyTable({**self.site.others, **timed.ready, **endpoints}, timed.later)


def _get_body(forms: Forms | None) -> bytes | None:
    return None if forms is None else forms.plain.body


def _read_forms(reader: Reader, name: PlainName, served: Forms | None) -> Forms | None:
    """None if there is no such document; StoreError if it cannot be read, or is damaged. The gzip form is left out if
    another publication was stored between the two reads: until the next poll answers are plain."""
    document = reader.read(name)
    if document is None:
        return None
    if not _is_whole(document):
        raise StoreError(f"the stored {name} document is damaged")
    if served is not None and served.plain == document and served.gzip is not None:
        return served
    try:
        packed = reader.read(COMPRESSED[name])
    except StoreError:
        packed = None
    matches = _is_whole(packed) and packed.generated_at == document.generated_at
    return Forms(document, packed if matches else None)


def _is_whole(stored: object) -> TypeGuard[Document]:
    """Whether the document is undamaged: a failing disk can change a byte, or the type of a value."""
    match stored:
        case Document(bytes(body), tag, int()):
            return etag(body) == tag
        case _:
            return False


@contextmanager
def polling(poller: Poller, counts: Counts) -> Iterator[None]:
    """Poll the store eight times a second inside the block, which begins with the documents, or after two seconds.
    Another thread checks the time, since the first may hang with the store."""
    stopped, polled = threading.Event(), threading.Event()

    def poll() -> None:
        try:
            counts.store_errors += not poller.poll()
        finally:
            polled.set()

    def repeat(name: str, work: Callable[[], None]) -> None:
        while not stopped.is_set():
            try:
                work()
            except Exception:  # a bug; the replies stay, and the next poll may succeed
                log.exception("a thread of the server crashed; it goes on", thread=name)
            stopped.wait(_POLL_EVERY_S)

    works = {"poll the store": poll, "watch the time": poller.check_time}
    threads = [threading.Thread(target=repeat, args=work, name=work[0], daemon=True) for work in works.items()]
    for thread in threads:
        thread.start()
    try:
        polled.wait(_START_WAIT_S)
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join(timeout=_STOP_WAIT_S)
