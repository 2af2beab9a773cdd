"""What a server has of the store's two documents, as a pure function of what happened.

A live report that was loaded once is served for ever after, whatever fails (A11). A history is served until it has been
unreadable for some minutes (A12)."""

from typing import Final, NamedTuple

from lookout.documents.document import PlainName, assembled_at
from lookout.server.forms import Forms, get_body

_OVERDUE_MS: Final = 5_000  # a look that takes so long is no short one any more
_GONE: Final = "the store holds no documents any more"


class LookBegan(NamedTuple):
    """The store is asked from now on; it may keep that waiting for ever."""

    at_ms: int


class Read(NamedTuple):
    """A document was read; None: there is none. The live report is read first, then the history."""

    at_ms: int
    name: PlainName
    forms: Forms | None


class ReadFailed(NamedTuple):
    at_ms: int
    name: PlainName
    why: str


class LookEnded(NamedTuple):
    """Whatever was read, nobody waits for the store any more."""

    at_ms: int


class TimePassed(NamedTuple):
    at_ms: int


MirrorEvent = LookBegan | Read | ReadFailed | LookEnded | TimePassed


class StoreLook(NamedTuple):
    """A look at the store that is under way."""

    began_ms: int
    is_overdue: bool = False
    live_error: str | None = None


class Mirror(NamedTuple):
    """What a server has of the store, and since when."""

    live: Forms | None = None
    live_arrived_ms: int = 0
    generated_at: int | None = None  # when the live report was assembled
    history: Forms | None = None
    history_unreadable_since_ms: int | None = None
    look: StoreLook | None = None
    error: str | None = None  # why the last look failed
    is_waiting: bool = False  # for the first report
    store_errors: int = 0


def step(state: Mirror, event: MirrorEvent, history_unreadable_ms: int) -> Mirror:
    """The state after an event; a history is given up after more than ``history_unreadable_ms``."""
    match event:
        case LookBegan(at_ms):
            return state._replace(look=StoreLook(at_ms))
        case Read(at_ms, name, None) if (state.live if name == "live" else state.history) is not None:
            return step(state, ReadFailed(at_ms, name, _GONE), history_unreadable_ms)
        case Read(at_ms, "live", forms):
            if forms is None or get_body(state.live) == forms.plain.body:
                return state._replace(live=forms)
            return state._replace(live=forms, live_arrived_ms=at_ms, generated_at=assembled_at(forms.plain.body))
        case ReadFailed(at_ms, "live", why):
            return state._replace(look=(state.look or StoreLook(at_ms))._replace(live_error=why))
        case Read(at_ms, _, forms):  # the history
            return _judge_look(state._replace(history=forms, history_unreadable_since_ms=None), at_ms, None)
        case ReadFailed(at_ms, _, why):  # the history
            began_ms = at_ms if state.look is None else state.look.began_ms
            since_ms = state.history_unreadable_since_ms
            unreadable = state._replace(history_unreadable_since_ms=began_ms if since_ms is None else since_ms)
            return _judge_look(_withdraw_history(unreadable, began_ms, history_unreadable_ms), at_ms, why)
        case LookEnded():
            return state._replace(look=None)
        case TimePassed(at_ms):
            return _withdraw_history(_notice_hang(state, at_ms), at_ms, history_unreadable_ms)


def _judge_look(state: Mirror, at_ms: int, history_error: str | None) -> Mirror:
    """Whether both documents could be read. The look goes on with the description, and may hang from now on."""
    error = (state.look and state.look.live_error) or history_error
    if error is not None:
        return state._replace(look=StoreLook(at_ms), error=error, store_errors=state.store_errors + 1)
    is_waiting = state.live is None if state.error is None else state.is_waiting
    return state._replace(look=StoreLook(at_ms), error=None, is_waiting=is_waiting)


def _notice_hang(state: Mirror, now_ms: int) -> Mirror:
    look = state.look
    if look is None or look.is_overdue or now_ms - look.began_ms < _OVERDUE_MS:
        return state
    return state._replace(look=look._replace(is_overdue=True), store_errors=state.store_errors + 1)


def _withdraw_history(state: Mirror, now_ms: int, history_unreadable_ms: int) -> Mirror:
    """Give up a history that is unreadable for too long. While a look hangs, what was read last is as old as if reading
    failed."""
    since_ms = state.history_unreadable_since_ms
    if since_ms is None and state.look is not None:
        since_ms = state.look.began_ms
    is_too_long = since_ms is not None and now_ms - since_ms > history_unreadable_ms
    return state._replace(history=None) if is_too_long else state
