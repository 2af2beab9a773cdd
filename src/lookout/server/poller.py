"""Follows the store, and keeps ready-made replies of what is in it."""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.documents.document import Document, PlainName
from lookout.server.forms import Forms, get_body, is_whole, read_forms
from lookout.server.mirror import LookBegan, LookEnded, Mirror, MirrorEvent, Read, ReadFailed, TimePassed, step
from lookout.server.replies import (
    HISTORY_CACHING,
    LIVE_CACHING,
    NO_HISTORY,
    NO_LIVE,
    NO_TIMED_REPLIES,
    ReplyTable,
    Resource,
    TimedReplies,
    endpoint,
)
from lookout.server.site import DescribedSite, Site
from lookout.store.protocol import Reader, StoreError

_READ_AGAIN_MS: Final = 15_000
_CLOCK_SET_MS: Final = 1_000  # by so much two clocks do not differ unless one was set

log = get_logger("server")


class _Timed(NamedTuple):
    """Replies that time makes untrue; what they were made of, and when, by both clocks."""

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
    """What a server answers with. ``resources`` is replaced as a whole; a request that took it may go on using it.
    Several attributes are what was made last: to make them again for every table would take too long."""

    def __init__(
        self,
        reader: Reader,
        clock: Clock,
        history_unreadable_ms: int,
        site: Site,
        redescribe: Callable[[bytes], Site] | None = None,
    ) -> None:
        """``redescribe`` gives the site of a stored description of the deployment."""
        self._site = DescribedSite(site, redescribe or (lambda _: site))
        self.state = Mirror()
        self.resources: Mapping[str, Resource] = {}
        self._reader = reader
        self._clock = clock
        self._history_unreadable_ms = history_unreadable_ms
        self._read_ms: int | None = None
        self._lock = Lock()  # two threads take steps
        self._make_timed_replies()

    @property
    def site(self) -> Site:
        return self._site.current

    @property
    def store_errors(self) -> int:
        return self.state.store_errors

    @property
    def generated_at(self) -> int | None:
        """When the live report that is served was assembled."""
        return self.state.generated_at

    def look(self) -> None:
        """Take over what is new in the store, which may keep this waiting."""
        began_ms = self._clock.elapsed_ms()
        self._apply(LookBegan(began_ms))
        try:
            if self._is_due(began_ms):
                self._read_ms = began_ms
                self._read_both()
        finally:
            self._apply(LookEnded(self._clock.elapsed_ms()))
        if self._timed.live is None and self.state.live is not None:  # the first is there at once
            self._make_timed_replies()

    def check_time(self) -> None:
        """To be called by another thread than the one that looks: it notices a store that hangs, gives up a history
        that is unreadable for too long, and replaces what is no longer true."""
        self._apply(TimePassed(self._clock.elapsed_ms()))
        if not self._timed.is_true(self.site, self.state, self._clock.now(), self._clock.elapsed_ms()):
            self._make_timed_replies()

    def _is_due(self, now_ms: int) -> bool:
        # Often enough that an unreadable history is noticed well before its time is over.
        again_ms = min(_READ_AGAIN_MS, self._history_unreadable_ms // 4)
        try:
            has_changed = self._reader.changed()
        except StoreError:
            return True  # reading says why
        is_failing = self.state.error is not None
        return has_changed or is_failing or self._read_ms is None or now_ms - self._read_ms >= again_ms

    def _read_both(self) -> None:
        self._apply(self._read("live"))  # at once: a history that hangs keeps no report back
        history = self._read("history")
        self._apply(history)
        # After the API: nothing that happens to the rest keeps a document back.
        if isinstance(history, Read) and history.forms is not None:
            self._read_about(history.forms.plain)

    def _read_about(self, history: Document) -> None:
        """Follow the store's description of the deployment. One that is older than the history is that of a former
        monitor: the last one stores none. What cannot be read changes nothing."""
        try:
            stored = self._reader.read("about")
        except StoreError:
            return
        if stored is None or (is_whole(stored) and _is_older(stored.generated_at, history.generated_at)):
            self._site.follow(None)
        elif is_whole(stored):
            self._site.follow(stored.body)

    def _apply(self, event: MirrorEvent) -> Mirror:
        with self._lock:
            before, after = self.state, step(self.state, event, self._history_unreadable_ms)
            self.state = after
            if (before.live, before.history) != (after.live, after.history):
                self.resources = self._build_table()
        _log_changes(before, after, event.at_ms)
        return after

    def _read(self, name: PlainName) -> Read | ReadFailed:
        """One document that is unreadable hurts the other in nothing."""
        served = self.state.live if name == "live" else self.state.history
        try:
            forms = read_forms(self._reader, name, served)
        except StoreError as error:
            return ReadFailed(self._clock.elapsed_ms(), name, str(error))
        return Read(self._clock.elapsed_ms(), name, forms)

    def _make_timed_replies(self) -> None:
        site, state = self.site, self.state
        now, now_ms = self._clock.now(), self._clock.elapsed_ms()
        made = NO_TIMED_REPLIES
        try:
            made = site.feeds(get_body(state.live), get_body(state.history), now, now_ms - state.live_arrived_ms)
        except Exception:
            made = site.feeds(None, None, now, 0)  # after a bug, those without a report: what is old would be a lie
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


def _is_older(at: object, than: object) -> bool:
    return isinstance(at, int) and isinstance(than, int) and at < than  # no ETag covers a document's instant


def _log_changes(before: Mirror, after: Mirror, at_ms: int) -> None:
    """Log where a failure begins and where it ends."""
    meanwhile = "answering 503" if after.live is None else "serving what was read last"
    if before.error is None and after.error is not None:
        log.error(f"the store cannot be read; {meanwhile}", error=after.error)
    if before.error is not None and after.error is None:
        log.info("the store can be read again")
    if not before.is_waiting and after.is_waiting:
        log.warning("there is no report in the store yet; answering 503")
    if before.is_waiting and not after.is_waiting:
        log.info("the first report was loaded")
    was_overdue = before.look is not None and before.look.is_overdue
    is_overdue = after.look is not None and after.look.is_overdue
    if after.look is not None and is_overdue and not was_overdue:
        log.error(f"the store does not answer; {meanwhile}", for_s=(at_ms - after.look.began_ms) / 1000)
    if before.history is not None and after.history is None:
        log.error("the history has been unreadable for too long; answering 503")
    if was_overdue and not is_overdue:
        log.info("the store answers again")
