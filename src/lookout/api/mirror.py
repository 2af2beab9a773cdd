"""The two documents of the store, mirrored in memory as ready-made replies."""

from collections.abc import Mapping
from typing import Final

import structlog

from lookout.api.replies import HISTORY_CACHING, LIVE_CACHING, NO_HISTORY, NO_LIVE, Resource, endpoint
from lookout.clock import Clock
from lookout.core.wire import Document
from lookout.store.protocol import DocumentName, Reader, StoreError

_READ_AGAIN_MS: Final = 15_000

log = structlog.get_logger("server")


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
    ) -> None:
        self._reader = reader
        self._clock = clock
        self.paths = paths(protocol)
        self._history_unreadable_ms = history_unreadable_ms
        self._others = others
        # Often enough that an unreadable history is noticed well before its time is over.
        self._read_again_ms = min(_READ_AGAIN_MS, history_unreadable_ms // 4)
        self._read_ms: int | None = None
        self._history_unreadable_since_ms: int | None = None
        self._failing = False
        self._live: Document | None = None
        self._history: Document | None = None
        self.store_errors = 0
        self.resources: Mapping[str, Resource] = self._assembled()

    @property
    def generated_at(self) -> int | None:
        """When the live report that is served was assembled."""
        return None if self._live is None else self._live.generated_at

    def look(self) -> None:
        """Take over what is new in the store."""
        now_ms = self._clock.elapsed_ms()
        if self._is_due(now_ms):
            self._read(now_ms)

    def _is_due(self, now_ms: int) -> bool:
        try:
            changed = self._reader.changed()
        except StoreError:
            return True  # reading tells why
        return changed or self._failing or self._read_ms is None or now_ms - self._read_ms >= self._read_again_ms

    def _read(self, now_ms: int) -> None:
        self._read_ms = now_ms
        live, live_error = self._document("live", self._live)
        history, history_error = self._document("history", self._history)
        self._tell(live_error or history_error)
        if history_error is None:
            self._history_unreadable_since_ms = None
        elif self._history_unreadable_since_ms is None:
            self._history_unreadable_since_ms = now_ms
        elif history is not None and now_ms - self._history_unreadable_since_ms > self._history_unreadable_ms:
            log.error("the history has been unreadable for too long; answering 503")
            history = None
        if (live, history) != (self._live, self._history):
            self._live, self._history = live, history
            self.resources = self._assembled()

    def _document(self, name: DocumentName, last: Document | None) -> tuple[Document | None, str | None]:
        """A document, or the last one and why there is no newer. One that is unreadable hurts the other in nothing."""
        try:
            document = self._reader.read(name)
        except StoreError as error:
            return last, str(error)
        if document is None and last is not None:
            return last, "the store holds no documents any more"
        return document, None

    def _tell(self, error: str | None) -> None:
        """Count every failure, and log where it begins and ends."""
        if error is not None:
            self.store_errors += 1
            if not self._failing:
                log.error("the store cannot be read; serving what was read last", error=error)
        elif self._failing:
            log.info("the store can be read again")
        self._failing = error is not None

    def _assembled(self) -> dict[str, Resource]:
        live = NO_LIVE if self._live is None else endpoint(self._live, LIVE_CACHING)
        history = NO_HISTORY if self._history is None else endpoint(self._history, HISTORY_CACHING)
        return {**self._others, **dict(zip(self.paths, (live, history), strict=True))}


def paths(protocol: str) -> tuple[str, str]:
    """Of the live report and of the history (A1)."""
    return f"/api/v1/{protocol}/liveness", f"/api/v1/{protocol}/liveness/history"
