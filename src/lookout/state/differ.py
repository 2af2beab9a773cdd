"""What has to be written when the state changed: the two are compared, and what differs is encoded."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from lookout.base.pieces import Pieces
from lookout.core.heads import PACE_WINDOW_MS, Reading
from lookout.core.history import HistoryState
from lookout.core.ledger import State
from lookout.state.codec import PROGRESS, Seal, encode_progress, encode_value, name_piece, split_heads

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Kept(NamedTuple):
    """All that a monitor keeps: its ledger's state, and the pieces of its alerts, notices, sources and comparisons."""

    state: State
    others: Mapping[str, bytes] = {}


_NOTHING: Final = Kept(State(None, {}, {}, None))


class Backlog:
    """What has to be written so that the store holds what the monitor keeps.

    A write that failed may have been done all the same, if only its answer was lost. So its pieces are written again
    with the next, even those that are by now as they were before it.
    """

    def __init__(self) -> None:
        self._last: Kept | None = None
        self._unwritten = Pieces({})
        self._seal = Seal()

    @property
    def is_empty(self) -> bool:
        return not self._unwritten.put

    def add(self, now: Kept) -> Pieces:
        """The pieces to write now, under their seal; they are in the backlog until it is cleared. The first replace
        all that is stored."""
        pieces = self._unwritten.then(changed_pieces(self._last, now))
        seal = self._seal.over(_with_progress(pieces, now.state))
        self._last, self._unwritten = now, _with_progress(pieces, now.state, seal)
        return self._unwritten

    def clear(self) -> None:
        """All of it was written, or somebody else has to."""
        self._unwritten = Pieces({})


def all_pieces(state: State, others: Mapping[str, bytes] = {}) -> Pieces:
    """The whole of it, under its seal."""
    return Backlog().add(Kept(state, others))


def changed_pieces(before: Kept | None, now: Kept) -> Pieces:
    """What to write where ``before`` is stored, but for the progress, which always changes. What is the very same
    value costs next to nothing."""
    was, new = (before or _NOTHING).state, now.state
    pieces = dict(_differences((before or _NOTHING).others, now.others))
    for check, entry in _differences(was.checks, new.checks):
        pieces[name_piece("check", check)] = encode_value(entry)
    for chain_id, readings in _differences(was.heads, new.heads):
        for part, kept in _changed_parts(was.heads.get(chain_id, ()), readings or ()):
            pieces[name_piece("heads", chain_id, part)] = encode_value(kept)
    pieces |= _changed_history(was.history, new.history)
    put = {name: piece for name, piece in pieces.items() if piece is not None}
    return Pieces(put, tuple(name for name, piece in pieces.items() if piece is None), replace_all=before is None)


def _with_progress(pieces: Pieces, state: State, seal: str | None = None) -> Pieces:
    return replace(pieces, put={**pieces.put, PROGRESS: encode_progress(state, seal)})


def _changed_history(was: HistoryState | None, new: HistoryState | None) -> dict[str, bytes | None]:
    pieces: dict[str, bytes | None] = {}
    for check, tally in _differences(was.tallies if was else {}, new.tallies if new else {}):
        pieces[name_piece("tally", check)] = encode_value(tally)
    days_before = was.days if was else {}
    for check, days in _differences(days_before, new.days if new else {}):
        for day, characters in _differences(days_before.get(check, {}), days or {}):
            pieces[name_piece("day", day, check)] = None if characters is None else characters.encode()
    return pieces


def _changed_parts(
    was: tuple[Reading, ...], now: tuple[Reading, ...]
) -> Iterator[tuple[int, tuple[Reading, ...] | None]]:
    """The parts of a chain's heads that have to be written. One that only ages out is not, before all of it is gone:
    reading leaves out what is older than an hour. If the clock was set back, that may not be what was left out before:
    then all are written."""
    parts_before, parts = split_heads(was), split_heads(now)
    has_gone_on = bool(was and now) and now[-1].at >= was[-1].at
    left = split_heads(each for each in was if each.at >= now[-1].at - PACE_WINDOW_MS) if has_gone_on else {}
    for part, readings in parts.items():
        if left.get(part) != readings:
            yield part, readings
    for part in parts_before:
        if part not in parts:
            yield part, None


def _differences(was: Mapping[_Key, _Value], now: Mapping[_Key, _Value]) -> Iterator[tuple[_Key, _Value | None]]:
    """What is new or another one now; None for what is gone."""
    for key, value in now.items():
        before = was.get(key)
        if before is not value and before != value:
            yield key, value
    for key in was:
        if key not in now:
            yield key, None
