"""All that is stored, as named pieces of bytes and back.

A day of a check's ended buckets is a piece of its own, and so are its tally, its memory with its row, and five minutes
of a chain's heads: the hour may come to hundreds of heads, and a new one changes but the last part. So storing costs as
much as what changed.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from lookout.base.instants import END_AT
from lookout.base.pieces import StateError
from lookout.core.buckets import CHARACTERS, NO_DATA
from lookout.core.heads import Reading, of_the_hour
from lookout.core.history import DAY_MS, HistoryProgress, HistoryState
from lookout.core.ledger import CheckState, State
from lookout.core.model import LARGEST_METRIC, Check
from lookout.core.strip import Tally
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.state.seal import seal_of

PART_MS: Final = 300_000
PROGRESS: Final = "progress"
PieceKind = Literal["check", "tally", "heads", "day"]
_SOURCE: Final = "source/"  # and a service
_STATUSES: Final = frozenset((*CHARACTERS.values(), NO_DATA))
_INSTANTS: Final = range(END_AT)
_SHIFTED_INSTANTS: Final = range(-END_AT, END_AT)  # a clock that is set back to 1970 takes them along
_COUNTS: Final = range(LARGEST_METRIC + 1)


# A field of another name would be a seal that is damaged, and taken for one that was never made.
class _Progress(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    last_answer_at: int | None
    history: HistoryProgress = field(name="reached")
    seal: str | None = None  # over all pieces, this one being without it; an earlier version made none


def name_piece(kind: PieceKind, *parts: Check | int) -> str:
    return "/".join((kind, *(str(part) if isinstance(part, int) else _id(part) for part in parts)))


def encode_value(value: CheckState | Tally | tuple[Reading, ...] | None) -> bytes | None:
    """None for what is not there any more."""
    return None if value is None else msgspec.json.encode(value)


def encode_progress(state: State, seal: str | None = None) -> bytes:
    if state.history is None:
        raise ValueError("there is no state to store before the first publication")
    return msgspec.json.encode(_Progress(state.last_answer_at, state.history.progress, seal))


def split_heads(readings: Iterable[Reading]) -> dict[int, tuple[Reading, ...]]:
    """A chain's heads in the parts in which they are stored."""
    parts: dict[int, list[Reading]] = defaultdict(list)
    for reading in readings:
        parts[reading.at // PART_MS].append(reading)
    return {part: tuple(kept) for part, kept in parts.items()}


def encode_sightings(seen: Mapping[str, SeenBroadcasters]) -> dict[str, bytes]:
    return {_SOURCE + service: msgspec.json.encode(each) for service, each in seen.items()}


def decode_state(pieces: Mapping[str, bytes]) -> State | None:
    """The state that stored pieces make, None if there are none; pieces of other kinds are somebody else's. StateError
    if they are not what was stored, or make no state."""
    if PROGRESS not in pieces:
        if any(map(is_ledgers, pieces)):
            raise StateError(f"the stored piece {PROGRESS} is missing")
        return None
    with naming(PROGRESS):
        progress = msgspec.json.decode(pieces[PROGRESS], type=_Progress)
        _check_progress(progress)
    unsealed = msgspec.json.encode(replace(progress, seal=None))
    if progress.seal not in (None, seal_of({**pieces, PROGRESS: unsealed})):
        raise StateError("the stored pieces are not what was stored")
    bucket_ms = progress.history.bucket_ms
    checks: list[CheckState] = []
    tallies: list[Tally] = []
    heads: dict[int, dict[int, tuple[Reading, ...]]] = defaultdict(dict)
    days: dict[str, dict[int, str]] = defaultdict(dict)
    for name, piece in pieces.items():
        with naming(name):
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
                    _check_all(
                        _SHIFTED_INSTANTS, *(at for reading in readings for at in (reading.at, reading.block_at))
                    )
                    _check_all(_COUNTS, *(reading.height for reading in readings))
                case ["day", day, check]:
                    days[check][int(day)] = piece.decode("ascii")
                    _check_day(int(day), days[check][int(day)], bucket_ms)
    history = HistoryState(
        progress.history,
        {tally.check: tally for tally in tallies},
        {tally.check: days.get(_id(tally.check), {}) for tally in tallies},
    )
    hours = {
        chain_id: of_the_hour([reading for part in sorted(parts) for reading in parts[part]])
        for chain_id, parts in heads.items()
    }
    return State(progress.last_answer_at, {entry.row.check: entry for entry in checks}, hours, history)


def decode_sightings(pieces: Mapping[str, bytes]) -> dict[str, SeenBroadcasters]:
    """The broadcasters that were seen, by service. StateError if they cannot be read."""
    seen = {}
    for name, piece in pieces.items():
        if name.startswith(_SOURCE):
            with naming(name):
                seen[name.removeprefix(_SOURCE)] = msgspec.json.decode(piece, type=SeenBroadcasters)
    return seen


def is_ledgers(name: str) -> bool:
    """Whether a piece of this name holds a part of the ledger's state."""
    return name == PROGRESS or name.partition("/")[0] in get_args(PieceKind)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """What goes wrong inside is a StateError about the piece of this name."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise StateError(f"the stored piece {name} cannot be read: {error}") from None


# A damaged disk may leave what is of the right type and still no state: going on with it would end later, in a bug.
def _check_progress(progress: _Progress) -> None:
    reached = progress.history
    _check_all(_INSTANTS, reached.published_at)
    _check_all(range(1, DAY_MS + 1), reached.bucket_ms)
    _check_all(range(END_AT // reached.bucket_ms), reached.first, reached.newest)
    _check_all(_INSTANTS, reached.watched_ms)  # longer than a bucket, where the clock was set back in it
    _check_all(_SHIFTED_INSTANTS, progress.last_answer_at)


def _check_judgement(entry: CheckState) -> None:
    memory, row = entry.memory, entry.row
    _check_all(_INSTANTS, row.observed_at, row.last_success_at, row.expires_at, memory.last_success_at)
    _check_all(_SHIFTED_INSTANTS, memory.trailing_since_at, *(at for at, _ in memory.heads_seen))
    _check_all(
        _COUNTS,
        memory.failures,
        memory.far_behind,
        memory.gaps.missing,
        memory.gaps.extra,
        *(head for _, head in memory.heads_seen),
    )


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


def check_instants(*values: int | None) -> None:
    _check_all(_INSTANTS, *values)


def check_counts(*values: int | None) -> None:
    _check_all(_COUNTS, *values)


def _check_all(allowed: Container[object], *values: object) -> None:
    """ValueError if one of the values that are there is none of these."""
    for value in values:
        if value is not None and value not in allowed:
            raise ValueError(f"{str(value)[:40]} cannot be")


def _id(check: Check) -> str:
    return f"{check.service}/{'-' if check.chain_id is None else check.chain_id}"
