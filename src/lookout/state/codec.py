"""Encodes the stored state as named pieces of bytes, and decodes it.

A write costs as much as what changed. So a check has a piece for its tally, one for its memory with its row, and one
per day of ended buckets; a chain has one per five minutes of heads, since an hour may have hundreds.

A seal covers all pieces, since no store detects that a disk changed a byte or lost a piece, and either could turn a
bucket green. The seal is the exclusive or of the pieces' hashes, so updating it is cheap too. It detects accidents, not
forgery: any process that may write to the store can make a seal.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from hashlib import blake2b
from operator import xor
from typing import Final, Literal, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from lookout.core.heads import PACE_WINDOW_MS, Reading, of_the_hour
from lookout.core.history import HistoryProgress, HistoryState, Tally
from lookout.core.ledger import CheckState, State
from lookout.core.model import Check
from lookout.core.notices import Notices
from lookout.documents.document import Pieces, StateError
from lookout.protocols.broadcasters.seen import SeenBroadcasters

PART_MS: Final = 300_000
PROGRESS: Final = "progress"
PieceKind = Literal["check", "tally", "heads", "day"]
_SOURCE: Final = "source/"  # followed by a service
_NOTICES: Final = "notices"


# Unknown fields are forbidden: a damaged name of the seal would look like a missing seal.
class _Progress(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    last_answer_at: int | None
    history: HistoryProgress = field(name="reached")
    seal: str | None = None  # over all pieces, with this field empty; None from 0.1.0


def name_piece(kind: PieceKind, *parts: Check | int) -> str:
    return "/".join((kind, *(str(part) if isinstance(part, int) else _id(part) for part in parts)))


def encode_progress(state: State, seal: str | None = None) -> bytes:
    if state.history is None:
        raise ValueError("there is no state to store before the first publication")
    return msgspec.json.encode(_Progress(state.last_answer_at, state.history.progress, seal))


def hash_piece(name: str, piece: bytes) -> int:
    return int.from_bytes(blake2b(b"%b\0%b" % (name.encode(), piece), digest_size=8).digest())


def format_seal(hashes: int) -> str:
    """The seal for this exclusive or of the pieces' hashes."""
    return f"{hashes:016x}"


def split_heads(readings: Iterable[Reading]) -> dict[int, tuple[Reading, ...]]:
    parts: dict[int, list[Reading]] = defaultdict(list)
    for reading in readings:
        parts[reading.at // PART_MS].append(reading)
    return {part: tuple(kept) for part, kept in parts.items()}


def decode_state(pieces: Mapping[str, bytes]) -> State | None:
    """The ledger's state, or None if it is not in the pieces; other kinds of pieces are skipped. StateError if the
    pieces are damaged."""
    if PROGRESS not in pieces:
        if any(map(is_ledgers, pieces)):
            raise StateError(f"the stored piece {PROGRESS} is missing")
        return None
    with naming(PROGRESS):
        progress = msgspec.json.decode(pieces[PROGRESS], type=_Progress)
    _check_seal(pieces, progress)
    checks: list[CheckState] = []
    tallies: list[Tally] = []
    heads: dict[int, dict[int, tuple[Reading, ...]]] = defaultdict(dict)
    days: dict[str, dict[int, str]] = defaultdict(dict)
    for name, piece in pieces.items():
        with naming(name):
            match name.split("/", 2):
                case ["check", *_]:
                    checks.append(msgspec.json.decode(piece, type=CheckState))
                case ["tally", *_]:
                    tallies.append(msgspec.json.decode(piece, type=Tally))
                case ["heads", chain_id, *part]:  # without a part: the whole hour, from 0.1.0
                    heads[int(chain_id)][int(*part)] = msgspec.json.decode(piece, type=tuple[Reading, ...])
                case ["day", day, check]:
                    days[check][int(day)] = piece.decode("ascii")
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


def is_ledgers(name: str) -> bool:
    return name == PROGRESS or name.partition("/")[0] in get_args(PieceKind)


def encode_sightings(seen: Mapping[str, SeenBroadcasters]) -> dict[str, bytes]:
    return {_SOURCE + service: msgspec.json.encode(sightings) for service, sightings in seen.items()}


def decode_sightings(pieces: Mapping[str, bytes]) -> dict[str, SeenBroadcasters]:
    """The stored sightings of broadcasters, by service. StateError if they cannot be read."""
    seen = {}
    for name, piece in pieces.items():
        if name.startswith(_SOURCE):
            with naming(name):
                seen[name.removeprefix(_SOURCE)] = msgspec.json.decode(piece, type=SeenBroadcasters)
    return seen


def encode_notices(notices: Notices) -> dict[str, bytes]:
    return {} if notices == Notices() else {_NOTICES: msgspec.json.encode(notices)}


def decode_notices(pieces: Mapping[str, bytes]) -> Notices:
    with naming(_NOTICES):
        return msgspec.json.decode(pieces[_NOTICES], type=Notices) if _NOTICES in pieces else Notices()


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Raise errors of the block as StateError about the piece of this name."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise StateError(f"the stored piece {name} cannot be read: {error}") from None


def _check_seal(pieces: Mapping[str, bytes], progress: _Progress) -> None:
    unsealed = {**pieces, PROGRESS: msgspec.json.encode(replace(progress, seal=None))}
    hashes = reduce(xor, (hash_piece(name, piece) for name, piece in unsealed.items()))
    if progress.seal not in (None, format_seal(hashes)):
        raise StateError("the stored pieces are not what was stored")


def _id(check: Check) -> str:
    return f"{check.service}/{'-' if check.chain_id is None else check.chain_id}"


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _Stored(NamedTuple):
    """The content of the store: a ledger's state, other pieces, and the hashes of all pieces but the progress."""

    state: State
    others: Mapping[str, bytes]
    hashes: Mapping[str, int]


_NOTHING: Final = _Stored(State(None, {}, {}, None), {}, {})


class Differ:
    """Finds the pieces that change from the stored state to the next one.

    If the answer of a write is lost, the store may hold a later state than the one marked as stored. The next write
    then raises StoreBehindError, and another differ has to write everything: its first pieces replace all.
    """

    def __init__(self) -> None:
        self._stored: _Stored | None = None
        self._next = _NOTHING

    def find_changes(self, state: State, others: Mapping[str, bytes] = {}) -> Pieces:
        """The changed pieces with their seal. ``others`` are the pieces of alerts, notices, sources and comparisons."""
        before = self._stored or _NOTHING
        changes = {**dict(_differences(before.others, others)), **_changes_of_state(before.state, state)}
        put = {name: piece for name, piece in changes.items() if piece is not None}
        hashes = {name: number for name, number in before.hashes.items() if name not in changes}
        hashes |= {name: hash_piece(name, piece) for name, piece in put.items()}
        self._next = _Stored(state, others, hashes)
        seal = format_seal(reduce(xor, hashes.values(), hash_piece(PROGRESS, encode_progress(state))))
        return Pieces(
            put | {PROGRESS: encode_progress(state, seal)},
            tuple(name for name, piece in changes.items() if piece is None),
            replace_all=self._stored is None,
        )

    def mark_stored(self) -> None:
        self._stored = self._next


def all_pieces(state: State, others: Mapping[str, bytes] = {}) -> Pieces:
    return Differ().find_changes(state, others)


def _changes_of_state(was: State, now: State) -> dict[str, bytes | None]:
    """The pieces that differ, except the progress, which always does; None for a removed piece. Identical objects cost
    next to nothing."""
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
    """The parts of a chain's heads to write. A part that loses heads by age alone is written only when it is empty,
    since decoding drops heads older than an hour. After a clock was set back, decoding would drop fewer, so all parts
    are written."""
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
    for key, value in now.items():
        before = was.get(key)
        if before is not value and before != value:
            yield key, value
    for key in was:
        if key not in now:
            yield key, None


def _encode(value: object) -> bytes | None:
    return None if value is None else msgspec.json.encode(value)
