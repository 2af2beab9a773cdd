"""The two documents of the store, mirrored in memory as ready-made replies."""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final, NamedTuple

import structlog

from lookout.base.clock import Clock
from lookout.documents.document import COMPRESSED, Document, PlainName, assembled_at, etag, unpacks_to
from lookout.documents.routes import paths
from lookout.server.replies import (
    HISTORY_CACHING,
    LIVE_CACHING,
    NO_HISTORY,
    NO_LIVE,
    NOTHING_PASSING,
    Passing,
    Resource,
    Table,
    endpoint,
)
from lookout.store.protocol import Reader, StoreError

_READ_AGAIN_MS: Final = 15_000
_OVERDUE_MS: Final = 5_000  # a look that takes so long is no short one any more
_CLOCK_SET_MS: Final = 1_000  # by so much two clocks do not differ unless one was set
_TOO_LONG: Final = "the history has been unreadable for too long; answering 503"

# What is made of both documents' bytes, at an instant, so long after the live report arrived.
Feeds = Callable[[bytes | None, bytes | None, int, int], Passing]

log = structlog.get_logger("server")


class Forms(NamedTuple):
    """A document, and the same as gzip, if the store has that."""

    plain: Document
    gzip: Document | None


class Mirror:
    """What a server answers with. ``resources`` is replaced as a whole; whoever took it may go on using it.

    A live report that was loaded once is served for ever after, whatever fails (A11). A history is served until it has
    been unreadable for some minutes (A12).
    """

    def __init__(
        self,
        reader: Reader,
        clock: Clock,
        protocol: str,
        history_unreadable_ms: int,
        others: Mapping[str, Resource],
        page: Callable[[bytes | None], Resource] | None = None,
        feeds: Feeds = lambda *_: NOTHING_PASSING,
    ) -> None:
        """``page`` makes the status page of a live report, or of none; it is called once per report. ``feeds`` makes
        what time makes untrue; it is called after each publication, and whenever that is over."""
        self._reader = reader
        self._clock = clock
        self.paths = paths(protocol)
        self._history_unreadable_ms = history_unreadable_ms
        self._others = others
        self._page = page
        self._feeds = feeds
        # Often enough that an unreadable history is noticed well before its time is over.
        self._read_again_ms = min(_READ_AGAIN_MS, history_unreadable_ms // 4)
        self._read_ms: int | None = None
        self._began_ms: int | None = None  # the look that is under way
        self._taking = Lock()
        self._is_overdue = False
        self._is_waiting = False
        self._history_unreadable_since_ms: int | None = None
        self._failing = False
        self._live: Forms | None = None
        self.generated_at: int | None = None  # when the live report that is served was assembled
        self._history: Forms | None = None
        self._arrived_ms = 0  # the live report
        self.store_errors = 0
        self._pages = self._made_pages()
        self._passing = NOTHING_PASSING
        self._passing_of: tuple[Forms | None, Forms | None] = (None, None)
        self._passing_at = (0, 0)  # by both clocks
        self.resources: Mapping[str, Resource] = {}
        self._make_passing()

    def look(self) -> None:
        """Take over what is new in the store."""
        now_ms = self._began_ms = self._clock.elapsed_ms()
        try:
            if self._is_due(now_ms):
                self._read(now_ms)
        finally:
            self._began_ms = None
        if self._passing_of[0] is None and self._live is not None:  # the first is there at once
            self._make_passing()
        if self._is_overdue:
            self._is_overdue = False
            log.info("the store answers again")

    def look_at_the_time(self) -> None:
        """To be called by another thread than the one that looks, which a store may keep waiting for ever: what was
        read last is then as old as if reading failed. And what says how things are must not say it for too long."""
        now_ms = self._clock.elapsed_ms()
        self._notice_a_store_that_hangs(now_ms)
        self._withdraw_an_unreadable_history(now_ms)
        if not self._is_passing_true():
            self._make_passing()

    def _notice_a_store_that_hangs(self, now_ms: int) -> None:
        began_ms = self._began_ms
        if began_ms is None or now_ms - began_ms < _OVERDUE_MS or self._is_overdue:
            return
        self._is_overdue = True
        self.store_errors += 1
        log.error(f"the store does not answer; {_meanwhile(self._live)}", for_s=(now_ms - began_ms) / 1000)

    def _withdraw_an_unreadable_history(self, now_ms: int) -> None:
        with self._taking:
            since_ms = self._history_unreadable_since_ms  # it may have been unreadable before the look under way
            if since_ms is None:
                since_ms = self._began_ms
            too_long = since_ms is not None and now_ms - since_ms > self._history_unreadable_ms
            if too_long and self._history is not None:
                log.error(_TOO_LONG)
                self._take(self._live, None)

    def _is_passing_true(self) -> bool:
        if self._passing_of != (self._live, self._history):
            return False
        now, elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        made_at, made_ms = self._passing_at
        age_ms = elapsed_ms - made_ms
        was_clock_set = abs(now - made_at - age_ms) > _CLOCK_SET_MS
        return not was_clock_set and (self._passing.holds_ms is None or age_ms < self._passing.holds_ms)

    def _make_passing(self) -> None:
        with self._taking:
            live, history, arrived_ms = self._live, self._history, self._arrived_ms
        now, elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        made = NOTHING_PASSING  # what is left if there is a bug in what follows: what is old would be a lie
        try:
            made = self._feeds(_body(live), _body(history), now, elapsed_ms - arrived_ms)
        finally:
            with self._taking:
                self._passing, self._passing_of, self._passing_at = made, (live, history), (now, elapsed_ms)
                self.resources = self._assembled(self._live, self._history)

    def _is_due(self, now_ms: int) -> bool:
        try:
            changed = self._reader.changed()
        except StoreError:
            return True  # reading tells why
        return changed or self._failing or self._read_ms is None or now_ms - self._read_ms >= self._read_again_ms

    def _read(self, now_ms: int) -> None:
        self._read_ms = now_ms
        live, live_error = self._forms("live")
        is_new_report = live is not None and _body(live) != _body(self._live)
        with self._taking:  # at once: a history that hangs keeps no report back
            self._take(live or self._live, self._history)
        history, history_error = self._forms("history")
        self._tell(live_error or history_error)
        with self._taking:
            self._began_ms = None  # from here on nobody waits for the store
            history = history or self._history  # which may have been withdrawn while this look hung
            if history_error is None:
                self._history_unreadable_since_ms = None
            elif self._history_unreadable_since_ms is None:
                self._history_unreadable_since_ms = now_ms
            elif history is not None and now_ms - self._history_unreadable_since_ms > self._history_unreadable_ms:
                log.error(_TOO_LONG)
                history = None
            self._take(self._live, history)
            if is_new_report:  # after the API: nothing that happens to the page keeps a document back
                self._pages = self._made_pages()
                self.resources = self._assembled(self._live, self._history)

    def _take(self, live: Forms | None, history: Forms | None) -> None:
        if (live, history) == (self._live, self._history):
            return
        self.resources = self._assembled(live, history)
        if _body(live) != _body(self._live):
            self._arrived_ms = self._clock.elapsed_ms()
            self.generated_at = None if live is None else assembled_at(live.plain.body)
        self._live, self._history = live, history

    def _forms(self, name: PlainName) -> tuple[Forms | None, str | None]:
        document, error = self._document(name)
        return None if document is None else Forms(document, self._compressed(name, document)), error

    def _compressed(self, name: PlainName, plain: Document) -> Document | None:
        """The document as gzip, if it is nothing else: between the two readings another publication may have been
        stored. The next look finds that, and until then the answers are plain."""
        served = self._live if name == "live" else self._history
        if served is not None and served.plain == plain and served.gzip is not None:
            return served.gzip
        try:
            packed = self._reader.read(COMPRESSED[name])
        except StoreError:
            return None
        if packed is None or not _is_whole(packed) or packed.generated_at != plain.generated_at:
            return None
        return packed if unpacks_to(packed.body, plain.body) else None

    def _document(self, name: PlainName) -> tuple[Document | None, str | None]:
        """A document, or None and why there is none. One that is unreadable hurts the other in nothing."""
        try:
            document = self._reader.read(name)
        except StoreError as error:
            return None, str(error)
        if document is None:
            is_served = (self._live if name == "live" else self._history) is not None
            return None, "the store holds no documents any more" if is_served else None
        if not _is_whole(document):
            return None, f"the stored {name} document is damaged"
        return document, None

    def _tell(self, error: str | None) -> None:
        """Count every failure, and log where it begins and ends."""
        if error is not None:
            self.store_errors += 1
            if not self._failing:
                log.error(f"the store cannot be read; {_meanwhile(self._live)}", error=error)
        elif self._failing:
            log.info("the store can be read again")
        elif self._live is None and not self._is_waiting:
            self._is_waiting = True
            log.warning("there is no report in the store yet; answering 503")
        elif self._live is not None and self._is_waiting:
            self._is_waiting = False
            log.info("the first report was loaded")
        self._failing = error is not None

    def _assembled(self, live: Forms | None, history: Forms | None) -> Table:
        replies = (
            NO_LIVE if live is None else endpoint(live.plain, LIVE_CACHING, live.gzip),
            NO_HISTORY if history is None else endpoint(history.plain, HISTORY_CACHING, history.gzip),
        )
        endpoints = dict(zip(self.paths, replies, strict=True))
        return Table({**self._others, **self._pages, **self._passing.ready, **endpoints}, self._passing.later)

    def _made_pages(self) -> dict[str, Resource]:
        if self._page is None:
            return {}
        return {"/": self._page(_body(self._live))}


def _meanwhile(live: Forms | None) -> str:
    return "answering 503" if live is None else "serving what was read last"


def _body(document: Forms | None) -> bytes | None:
    return None if document is None else document.plain.body


def _is_whole(stored: object) -> bool:
    """Whether it is as a monitor wrote it: a flipped bit on a disk can make a text of bytes, or a number none."""
    match stored:
        case Document(bytes(body), tag):
            return etag(body) == tag
        case _:
            return False
