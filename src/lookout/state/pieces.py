"""The state in named pieces of bytes, so that storing it costs as much as what changed.

A store keeps pieces by their names and knows nothing of what is in them. A day of a check's ended buckets is a piece
of its own, and so are its tally, its memory with its row, and five minutes of a chain's heads.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lookout.base.instants import END_AT
from lookout.core.buckets import CHARACTERS, NO_DATA
from lookout.core.heads import Reading, of_the_hour
from lookout.core.history import DAY_MS, HistoryState, Reached
from lookout.core.ledger import Changes, CheckState, State
from lookout.core.model import LARGEST_METRIC, Check
from lookout.core.strip import StripState, Tally
from lookout.state.seal import Seal, seal_of

_PROGRESS: Final = "progress"
_KINDS: Final = frozenset(("check", "tally", "heads", "day"))
_STATUSES: Final = frozenset((*CHARACTERS.values(), NO_DATA))
_INSTANTS: Final = range(END_AT)
_WAITED_SINCE: Final = range(-END_AT, END_AT)  # a clock that is set back to 1970 takes them along
_COUNTS: Final = range(LARGEST_METRIC + 1)


class Pieces(Struct, frozen=True):
    """Pieces to put and names of pieces to delete; if ``whole``, all that is not put is to be deleted."""

    put: dict[str, bytes]
    delete: tuple[str, ...]
    whole: bool


class StateError(Exception):
    """Stored pieces that do not make a state; the text says why, and of which piece if it is a single one."""


# A field of another name would be a seal that is damaged, and taken for one that was never made.
class _Progress(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    last_answer_at: int | None
    reached: Reached
    seal: str | None = None  # over all pieces, this one being without it; an earlier version made none


def encode_changes(changes: Changes) -> Pieces:
    """The pieces that these changes touch."""
    history = changes.history
    put = {_PROGRESS: msgspec.json.encode(_Progress(changes.last_answer_at, history.reached))}
    heads = {f"heads/{chain}/{part}": new for chain, parts in changes.heads.items() for part, new in parts.items()}
    put |= {name: msgspec.json.encode(readings) for name, readings in heads.items() if readings}
    put |= {f"check/{_id(entry.row.check)}": msgspec.json.encode(entry) for entry in changes.checks}
    put |= {f"tally/{_id(tally.check)}": msgspec.json.encode(tally) for tally in history.tallies}
    put |= {f"day/{day}/{_id(check)}": characters.encode() for check, day, characters in history.days}
    forgotten = (
        *(name for name, readings in heads.items() if not readings),
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


def sealed(pieces: Pieces, seal: Seal) -> Pieces:
    """The same, with the seal over all that is stored once they are. One of them is always the progress."""
    progress = msgspec.json.decode(pieces.put[_PROGRESS], type=_Progress)
    over = seal.over({**pieces.put, _PROGRESS: _unsealed(progress)}, pieces.delete, whole=pieces.whole)
    put = {**pieces.put, _PROGRESS: msgspec.json.encode(replace(progress, seal=over))}
    return Pieces(put, pieces.delete, pieces.whole)


def _unsealed(progress: _Progress) -> bytes:
    return msgspec.json.encode(replace(progress, seal=None))


def decode_state(pieces: Mapping[str, bytes]) -> State | None:
    """The state that stored pieces make, None if there are none; pieces of other kinds are somebody else's. StateError
    if they are not what was stored, or make no state."""
    if _PROGRESS not in pieces:
        if any(name.partition("/")[0] in _KINDS for name in pieces):
            raise StateError(f"the stored piece {_PROGRESS} is missing")
        return None
    with _naming(_PROGRESS):
        progress = msgspec.json.decode(pieces[_PROGRESS], type=_Progress)
        _check_progress(progress)
    if progress.seal not in (None, seal_of({**pieces, _PROGRESS: _unsealed(progress)})):
        raise StateError("the stored pieces are not what was stored")
    bucket_ms = progress.reached.bucket_ms
    checks: list[CheckState] = []
    tallies: list[Tally] = []
    heads: dict[int, dict[int, tuple[Reading, ...]]] = defaultdict(dict)
    days: dict[str, dict[int, str]] = defaultdict(dict)
    for name, piece in pieces.items():
        with _naming(name):
            match name.split("/", 2):
                case ["check", *_]:
                    checks.append(msgspec.json.decode(piece, type=CheckState))
                    _check_judgement(checks[-1])
                case ["tally", *_]:
                    tallies.append(msgspec.json.decode(piece, type=Tally))
                    _check_tally(tallies[-1])
                case ["heads", chain_id, *part]:  # without a part: the hour in one, as it once was stored
                    readings = msgspec.json.decode(piece, type=tuple[Reading, ...])
                    heads[int(chain_id)][int(*part)] = readings
                    _check_all(_WAITED_SINCE, *(at for reading in readings for at in (reading.at, reading.block_at)))
                    _check_all(_COUNTS, *(reading.height for reading in readings))
                case ["day", day, check]:
                    days[check][int(day)] = piece.decode("ascii")
                    _check_day(int(day), days[check][int(day)], bucket_ms)
    strips = tuple(StripState(tally, days[_id(tally.check)]) for tally in tallies)
    hours = {chain_id: _joined(parts) for chain_id, parts in heads.items()}
    return State(progress.last_answer_at, tuple(checks), hours, HistoryState(progress.reached, strips))


def _joined(parts: Mapping[int, tuple[Reading, ...]]) -> tuple[Reading, ...]:
    return of_the_hour([reading for part in sorted(parts) for reading in parts[part]])


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise StateError(f"the stored piece {name} cannot be read: {error}") from None


# A damaged disk may leave what is of the right type and still no state: going on with it would end later, in a bug.
def _check_progress(progress: _Progress) -> None:
    reached = progress.reached
    _check_all(_INSTANTS, reached.published_at)
    _check_all(range(1, DAY_MS + 1), reached.bucket_ms)
    _check_all(range(END_AT // reached.bucket_ms), reached.first, reached.newest)
    _check_all(_INSTANTS, reached.watched_ms)  # longer than a bucket, where the clock was set back in it
    _check_all(_WAITED_SINCE, progress.last_answer_at)


def _check_judgement(entry: CheckState) -> None:
    memory, row = entry.memory, entry.row
    _check_all(_INSTANTS, row.observed_at, row.last_success_at, row.expires_at, memory.last_success_at)
    _check_all(_WAITED_SINCE, memory.trailing_since_at, *(at for at, _ in memory.heads_seen))
    _check_all(_COUNTS, memory.failures, memory.far_behind, *(head for _, head in memory.heads_seen))


def _check_tally(tally: Tally) -> None:
    _check_all(_STATUSES, tally.counted)
    _check_all(_INSTANTS, tally.since_ms)
    for lasted_ms in (tally.lasted_ms, *tally.later.values()):
        _check_all(_STATUSES, *lasted_ms)
        _check_all(_INSTANTS, *lasted_ms.values())


def _check_day(day: int, characters: str, bucket_ms: int) -> None:
    _check_all(range(END_AT // DAY_MS), day)
    _check_all(range(DAY_MS // bucket_ms + 1), len(characters))
    _check_all(_STATUSES, *characters)


def _check_all(allowed: Container[object], *values: object) -> None:
    """ValueError if one of the values that are there is none of these."""
    for value in values:
        if value is not None and value not in allowed:
            raise ValueError(f"{str(value)[:40]} cannot be")


def _id(check: Check) -> str:
    return f"{check.service}/{'-' if check.chain_id is None else check.chain_id}"
