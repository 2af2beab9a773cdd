"""What a server has of the store's two documents, as a pure function of what happened.

A live report that was loaded once is served for ever after, whatever fails (A11). A history is served until it has been
unreadable for some minutes (A12)."""

from typing import Final, NamedTuple

from lookout.documents.document import Document, PlainName, assembled_at

_GONE: Final = "the store holds no documents any more"


class Forms(NamedTuple):
    """A document, and the same as gzip, if the store has that."""

    plain: Document
    gzip: Document | None = None


def get_body(forms: Forms | None) -> bytes | None:
    return None if forms is None else forms.plain.body


class PollBegan(NamedTuple):
    """The store may keep the poll waiting for ever."""

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


class PollEnded(NamedTuple):
    at_ms: int


class TimePassed(NamedTuple):
    at_ms: int


MirrorEvent = PollBegan | Read | ReadFailed | PollEnded | TimePassed


class Mirror(NamedTuple):
    """What a server has of the store, and since when."""

    live: Forms | None = None
    live_arrived_ms: int = 0
    generated_at: int | None = None  # when the live report was assembled
    history: Forms | None = None
    has_history_failed: bool = False
    history_unsure_since_ms: int | None = None  # since when it may be unreadable: it failed, or a poll goes on
    poll_error: str | None = None  # of the poll that goes on
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
