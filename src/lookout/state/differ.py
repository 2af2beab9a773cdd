"""What has to be written when the state changed: the two are compared, and what differs is encoded."""

from collections.abc import Hashable, Iterator, Mapping
from functools import reduce
from operator import xor
from typing import Final, NamedTuple, TypeVar

import msgspec

from lookout.base.pieces import Pieces
from lookout.core.heads import PACE_WINDOW_MS, Reading
from lookout.core.history import HistoryState
from lookout.core.ledger import State
from lookout.state.codec import PROGRESS, encode_progress, format_seal, hash_piece, name_piece, split_heads

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _Stored(NamedTuple):
    """What the store holds: a ledger's state, the pieces of others, and the exclusive or of the hashes of all pieces
    but the progress."""

    state: State
    others: Mapping[str, bytes]
    sum: int


_NOTHING: Final = _Stored(State(None, {}, {}, None), {}, 0)


class Differ:
    """Finds the pieces by which the store gets from the state that it holds to the next one.

    If the answer of a write is lost, the store may hold a later state than was marked as stored. It notices by itself
    (StoreBehindError), and has to be written whole: by another differ, whose first pieces replace all.
    """

    def __init__(self) -> None:
        self._stored: _Stored | None = None
        self._next = _NOTHING
        self._hashes: dict[str, int] = {}  # of the stored pieces
        self._next_hashes: dict[str, int | None] = {}  # of those that were found last; None for what is gone

    def find_changes(self, state: State, others: Mapping[str, bytes] = {}) -> Pieces:
        """The pieces to write now, under their seal. ``others`` are those of alerts, notices, sources and
        comparisons."""
        before = self._stored or _NOTHING
        changes = {**dict(_differences(before.others, others)), **_changes_of_state(before.state, state)}
        self._next_hashes = {
            name: None if piece is None else hash_piece(name, piece) for name, piece in changes.items()
        }
        changed = (self._hashes.get(name, 0) ^ (number or 0) for name, number in self._next_hashes.items())
        self._next = _Stored(state, others, reduce(xor, changed, before.sum))
        seal = format_seal(self._next.sum ^ hash_piece(PROGRESS, encode_progress(state)))
        return Pieces(
            {name: piece for name, piece in changes.items() if piece is not None}
            | {PROGRESS: encode_progress(state, seal)},
            tuple(name for name, piece in changes.items() if piece is None),
            replace_all=self._stored is None,
        )

    def mark_stored(self) -> None:
        self._stored = self._next
        for name, number in self._next_hashes.items():
            if number is None:
                self._hashes.pop(name, None)
            else:
                self._hashes[name] = number


def all_pieces(state: State, others: Mapping[str, bytes] = {}) -> Pieces:
    """The whole of it, under its seal."""
    return Differ().find_changes(state, others)


def _changes_of_state(was: State, now: State) -> dict[str, bytes | None]:
    """All pieces of a state that differ, but for the progress, which always does; None for what is gone. What is the
    very same value costs next to nothing."""
    pieces: dict[str, bytes | None] = {}
    for check, entry in _differences(was.checks, now.checks):
        pieces[name_piece("check", check)] = _encode(entry)
    for chain_id, readings in _differences(was.heads, now.heads):
        for part, kept in _changed_parts(was.heads.get(chain_id, ()), readings or ()):
            pieces[name_piece("heads", chain_id, part)] = _encode(kept)
    return {**pieces, **_changes_of_history(was.history, now.history)}


def _changes_of_history(was: HistoryState | None, now: HistoryState | None) -> dict[str, bytes | None]:
    pieces: dict[str, bytes | None] = {}
    for check, tally in _differences(was.tallies if was else {}, now.tallies if now else {}):
        pieces[name_piece("tally", check)] = _encode(tally)
    days_before = was.days if was else {}
    for check, days in _differences(days_before, now.days if now else {}):
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
    left = split_heads(head for head in was if head.at >= now[-1].at - PACE_WINDOW_MS) if has_gone_on else {}
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


def _encode(value: object) -> bytes | None:
    return None if value is None else msgspec.json.encode(value)
