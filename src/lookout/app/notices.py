"""The operator's requests on the monitor's admin port: notes, silences, and rechecks of sources."""

from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from lookout.app.reloader import Reloader
from lookout.base.admin_port import CHANGE_HEADER, AdminReply, AdminRoutes, Change, error_reply, json_reply
from lookout.base.clock import Clock
from lookout.base.problem import Problem
from lookout.core.notices import Notice, NoticeDraft, NoticeError, NoticeKind, find_scope
from lookout.monitor.assembly import Succession
from lookout.monitor.monitor import Monitor
from lookout.monitor.notice_keeper import STORED_WITHIN_S, NotStoredError
from lookout.monitor.watcher import Rechecked
from lookout.public.about import NoteDescription, describe_note, scope_text

LIST_PATH: Final = "/notices"
ADD_PATH: Final = "/notices"
END_PATH: Final = "/notices/end"
RECHECK_PATH: Final = "/recheck"
ANSWER_WITHIN_S: Final = STORED_WITHIN_S + 5

A = TypeVar("A", NoticeDraft, "Ending", "Recheck")


class NoticeEntry(NoteDescription, frozen=True, kw_only=True, rename="camel"):
    kind: NoticeKind
    silences: bool
    scope: str
    """Its services and chains in words."""


class Ending(Struct, frozen=True, forbid_unknown_fields=True):
    kind: NoticeKind
    id: str


class Recheck(Struct, frozen=True, forbid_unknown_fields=True):
    """The services and chains to ask now, chains by their ids or names; an empty list means all."""

    services: tuple[str, ...] = ()
    chains: tuple[str | int, ...] = ()


class RecheckAnswer(Struct, frozen=True):
    sources: tuple[Rechecked, ...]
    chains: Mapping[int, str]
    """The names of all chains."""


class Refusal(Struct, frozen=True):
    """All problems of a refused request."""

    problems: tuple[str, ...]


class NoticeDesk:
    def __init__(self, succession: Succession, clock: Clock, reloader: Reloader) -> None:
        self._succession = succession
        self._clock = clock
        self._reloader = reloader

    def add_routes(self, routes: AdminRoutes) -> AdminRoutes:
        applied = {ADD_PATH: self.add, END_PATH: self.end, RECHECK_PATH: self.recheck}
        changes = {path: Change(CHANGE_HEADER, apply) for path, apply in applied.items()}
        return routes._replace(reads={**routes.reads, LIST_PATH: self.list_all}, changes={**routes.changes, **changes})

    def list_all(self) -> AdminReply:
        monitor = self._succession.monitor
        valid = monitor.notices.current.list_valid(self._clock.now())
        return json_reply(HTTPStatus.OK, [_describe(notice, monitor) for notice in valid])

    async def add(self, body: bytes, meant: str | None) -> AdminReply:
        async def add(monitor: Monitor, draft: NoticeDraft) -> NoticeEntry:
            return _describe(await monitor.notices.add(draft), monitor)

        return await self._change(body, meant, NoticeDraft, add)

    async def end(self, body: bytes, meant: str | None) -> AdminReply:
        async def end(monitor: Monitor, ending: Ending) -> NoticeEntry:
            return _describe(await monitor.notices.end(ending.kind, ending.id), monitor)

        return await self._change(body, meant, Ending, end)

    async def recheck(self, body: bytes, meant: str | None) -> AdminReply:
        async def recheck(monitor: Monitor, asked: Recheck) -> RecheckAnswer:
            problems: list[Problem] = []
            watched = monitor.notices.watched
            services, chains = find_scope(asked.services, asked.chains, watched, problems)
            if problems:
                raise NoticeError(*problems)
            return RecheckAnswer(tuple(await monitor.watcher.recheck(services, chains)), watched.chains)

        return await self._change(body, meant, Recheck, recheck)

    async def _change(
        self,
        body: bytes,
        meant: str | None,
        kind: type[A],
        change: Callable[[Monitor, A], Coroutine[Any, Any, Any]],
    ) -> AdminReply:
        reloader = self._reloader
        if not reloader.is_meant(meant):
            another = f"the monitor has another configuration, {reloader.path}; nothing was changed"
            return error_reply(HTTPStatus.CONFLICT, another)
        try:
            asked = msgspec.json.decode(body, type=kind)
        except (ValueError, RecursionError) as error:
            return error_reply(HTTPStatus.BAD_REQUEST, f"cannot be read: {error}")
        try:
            return json_reply(HTTPStatus.OK, await change(self._succession.monitor, asked))
        except NoticeError as error:
            return json_reply(HTTPStatus.UNPROCESSABLE_ENTITY, Refusal(tuple(map(str, error.problems))))
        except NotStoredError as error:
            return error_reply(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


def _describe(notice: Notice, monitor: Monitor) -> NoticeEntry:
    names = monitor.notices.watched.chains
    return NoticeEntry(
        **asdict(describe_note(notice)),
        kind=notice.kind,
        silences=notice.silences,
        scope=scope_text(notice.services, [names.get(chain_id, f"chain {chain_id}") for chain_id in notice.chains]),
    )
