"""The operator's notes and silences while the monitor runs."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from lookout.base.logger import get_logger
from lookout.core.model import Check
from lookout.core.notices import Notice, NoticeDraft, NoticeKind, Notices, Watched, add_notice, end_notice
from lookout.core.plan import Plan
from lookout.monitor.journal import Journal
from lookout.public.about import Description
from lookout.state.codec import encode_notices

STORED_WITHIN_S: Final = 10.0
_STOPPED: Final = "the monitor ended, or lost its store, before this was stored"

log = get_logger()


class NotStoredError(Exception):
    """The change is not in the store; the text says what follows."""


class NoticeKeeper:
    """Declares and ends notices, and waits until the change is stored. Call it on the event loop; other threads may
    read ``current``."""

    def __init__(self, description: Description, plan: Plan, stored: Notices, journal: Journal) -> None:
        self.current = stored
        self.pieces = encode_notices(self.current)  # the whole stored state of notices
        services = tuple(service.name for service in description.services)
        chains = {chain.id: chain.name for chain in description.chains}
        self.watched = Watched(services, chains, frozenset(plan.checks()))
        self._journal = journal
        self._unstored: list[asyncio.Future[None]] = []  # callers that wait for the next publication to be stored
        self._being_stored: list[asyncio.Future[None]] = []
        self._is_stopped = False

    async def add(self, draft: NoticeDraft) -> Notice:
        """Add a notice, and return once it is stored. NoticeError if it is refused, NotStoredError if it is not
        stored."""
        added = await self._change(lambda at: add_notice(self.current, draft, at, self.watched))
        scope = {"services": added.services, "chains": added.chains}
        log.info("a notice was added", kind=added.kind, id=added.id, text=added.text, **scope)
        return added

    async def end(self, kind: NoticeKind, notice_id: str) -> Notice:
        """End a notice, and return once that is stored. NoticeError if it does not exist, NotStoredError if it is not
        stored."""
        ended = await self._change(lambda at: end_notice(self.current, kind, notice_id, at))
        log.info("a notice was ended", kind=kind, id=ended.id)
        return ended

    def find_silenced(self, at: int, checks: Iterable[Check]) -> frozenset[Check]:
        return self.current.find_silenced(at, checks)

    def begin_write(self) -> None:
        self._being_stored += self._unstored
        self._unstored = []

    def mark_stored(self) -> None:
        for waiting in self._being_stored:
            if not waiting.done():
                waiting.set_result(None)
        self._being_stored = []

    def stop(self) -> None:
        self._is_stopped = True
        for waiting in (*self._being_stored, *self._unstored):
            if not waiting.done():
                waiting.set_exception(NotStoredError(_STOPPED))

    async def _change(self, make: Callable[[int], tuple[Notices, Notice]]) -> Notice:
        if self._is_stopped:
            raise NotStoredError(_STOPPED)
        self.current, changed = make(self._journal.now())
        self.pieces = encode_notices(self.current)
        stored = asyncio.get_running_loop().create_future()
        self._unstored.append(stored)
        self._journal.changed.set()
        try:
            await asyncio.wait_for(stored, STORED_WITHIN_S)
        except TimeoutError:
            what = f"the store did not take it within {STORED_WITHIN_S:g} s: it is in force, but not stored yet"
            raise NotStoredError(f"{what}; it is lost if the monitor ends before the store works again") from None
        return changed
