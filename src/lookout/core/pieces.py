"""The state in named pieces of bytes, so that storing it costs as much as what changed.

A store keeps pieces by their names and knows nothing of what is in them. A day of a check's ended buckets is a piece
of its own, and so are its tally, its memory with its row, and a chain's heads.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from lookout.core.heads import Reading
from lookout.core.history import HistoryState, Reached
from lookout.core.ledger import Changes, CheckState, State
from lookout.core.model import Check
from lookout.core.strip import StripState, Tally

_PROGRESS: Final = "progress"


class Pieces(Struct, frozen=True):
    """Pieces to put and names of pieces to delete; if ``whole``, all that is not put is to be deleted."""

    put: dict[str, bytes]
    delete: tuple[str, ...]
    whole: bool


class StateError(Exception):
    """Stored pieces that do not make a state; the text names the piece."""


class _Progress(Struct, frozen=True):
    last_answer_at: int | None
    reached: Reached


def encode_changes(changes: Changes) -> Pieces:
    """The pieces that these changes touch."""
    history = changes.history
    put = {_PROGRESS: msgspec.json.encode(_Progress(changes.last_answer_at, history.reached))}
    put |= {f"heads/{chain_id}": msgspec.json.encode(readings) for chain_id, readings in changes.heads.items()}
    put |= {f"check/{_id(entry.row.check)}": msgspec.json.encode(entry) for entry in changes.checks}
    put |= {f"tally/{_id(tally.check)}": msgspec.json.encode(tally) for tally in history.tallies}
    put |= {f"day/{day}/{_id(check)}": characters.encode() for check, day, characters in history.days}
    forgotten = (
        *(f"day/{day}/{_id(check)}" for check, day in history.forgotten_days),
        *(f"tally/{_id(check)}" for check in history.forgotten_checks),
    )
    return Pieces(put, forgotten, changes.whole)


def merge(older: Pieces, newer: Pieces) -> Pieces:
    """What both say together, for a store that could not be written to in between."""
    if newer.whole:
        return newer
    put = {name: piece for name, piece in (older.put | newer.put).items() if name not in newer.delete}
    delete = (*(name for name in older.delete if name not in newer.put), *newer.delete)
    return Pieces(put, delete, older.whole)


def decode_state(pieces: Mapping[str, bytes]) -> State | None:
    """The state that stored pieces make, None if there are none; pieces of other kinds are somebody else's."""
    if _PROGRESS not in pieces:
        return None
    checks: list[CheckState] = []
    tallies: list[Tally] = []
    heads: dict[int, tuple[Reading, ...]] = {}
    days: dict[str, dict[int, str]] = defaultdict(dict)
    for name, piece in pieces.items():
        try:
            match name.split("/", 2):
                case ["check", *_]:
                    checks.append(msgspec.json.decode(piece, type=CheckState))
                case ["tally", *_]:
                    tallies.append(msgspec.json.decode(piece, type=Tally))
                case ["heads", chain_id]:
                    heads[int(chain_id)] = msgspec.json.decode(piece, type=tuple[Reading, ...])
                case ["day", day, check]:
                    days[check][int(day)] = piece.decode("ascii")
        except ValueError as error:
            raise StateError(f"the stored piece {name} cannot be read: {error}") from None
    try:
        progress = msgspec.json.decode(pieces[_PROGRESS], type=_Progress)
    except ValueError as error:
        raise StateError(f"the stored piece {_PROGRESS} cannot be read: {error}") from None
    strips = tuple(StripState(tally, days[_id(tally.check)]) for tally in tallies)
    return State(progress.last_answer_at, tuple(checks), heads, HistoryState(progress.reached, strips))


def _id(check: Check) -> str:
    return f"{check.service}/{'-' if check.chain_id is None else check.chain_id}"
