"""All that is stored, as named pieces of bytes and back.

A day of a check's ended buckets is a piece of its own, and so are its tally, its memory with its row, and five minutes
of a chain's heads: the hour may come to hundreds of heads, and a new one changes but the last part. So storing costs as
much as what changed.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from itertools import pairwise
from typing import Final, Literal, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from lookout.alerts.outbox import Queued
from lookout.base.instants import END_AT
from lookout.base.pieces import Pieces, StateError
from lookout.core.buckets import CHARACTERS, NO_DATA
from lookout.core.completeness.coverage import DIGEST_BYTES, Coverage
from lookout.core.episodes import AlertState, Instant, Lasted
from lookout.core.heads import Reading, of_the_hour
from lookout.core.history import DAY_MS, HistoryProgress, HistoryState
from lookout.core.ledger import CheckState, State
from lookout.core.model import LARGEST_METRIC, Check
from lookout.core.notices import Notices
from lookout.core.strip import Tally
from lookout.protocols.broadcasters.seen import SeenBroadcasters

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


class Seal:
    """Keeps up with what is stored, from the first pieces on, which have to be all."""

    def __init__(self) -> None:
        self._hashes: dict[str, int] = {}
        self._all = 0

    def over(self, pieces: Pieces) -> str:
        """The seal of what is stored once these are written. To write them again changes nothing."""
        if pieces.replace_all:
            self._hashes, self._all = {}, 0
        for name, piece in pieces.put.items():
            new = _hash(name, piece)
            self._all ^= self._hashes.get(name, 0) ^ new
            self._hashes[name] = new
        for name in pieces.delete:
            self._all ^= self._hashes.pop(name, 0)
        return f"{self._all:016x}"


def seal_of(pieces: Mapping[str, bytes]) -> str:
    return Seal().over(Pieces(dict(pieces), replace_all=True))


def _hash(name: str, piece: bytes) -> int:
    return int.from_bytes(blake2b(b"%b\0%b" % (name.encode(), piece), digest_size=8).digest())


_STATE: Final = "alerts"
_MESSAGE: Final = "alerts/"


class StoredAlerts(Struct, frozen=True):
    """All that has to survive a restart or a takeover."""

    state: AlertState = AlertState()
    next_number: int = 0
    messages: dict[int, Queued] = field(default_factory=dict)  # by their numbers, the oldest first
    restored_at: int | None = None  # when the backup was made that this is, until the messages say so


class _Kept(Struct, frozen=True, omit_defaults=True):
    state: AlertState
    next_id: Lasted
    restored_at: Instant | None = None


def encode_alerts(alerts: StoredAlerts) -> dict[str, bytes]:
    """All pieces. A quiet night makes the same ones, or none, each time: the time matters only to what is under way."""
    state = alerts.state if alerts.state.episodes or alerts.state.gathered or alerts.messages else AlertState()
    kept = _Kept(state, alerts.next_number, alerts.restored_at)
    if kept == _Kept(AlertState(), 0):
        return {}
    messages = {f"{_MESSAGE}{number}": msgspec.json.encode(queued) for number, queued in alerts.messages.items()}
    return {_STATE: msgspec.json.encode(kept), **messages}


def decode_alerts(pieces: Mapping[str, bytes]) -> StoredAlerts:
    """What is in the stored pieces, of which others are skipped. StateError if it cannot be read."""
    kept, messages = _Kept(AlertState(), 0), dict[int, Queued]()
    for name, piece in select_alerts(pieces).items():
        try:
            if name == _STATE:
                kept = msgspec.json.decode(piece, type=_Kept)
            else:
                messages[int(name.removeprefix(_MESSAGE))] = msgspec.json.decode(piece, type=Queued)
        except (ValueError, RecursionError) as error:
            raise StateError(f"the stored piece {name} cannot be read: {error}") from None
    return StoredAlerts(kept.state, kept.next_id, dict(sorted(messages.items())), kept.restored_at)


def select_alerts(pieces: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those of the stored pieces that are about alerts."""
    return {name: piece for name, piece in pieces.items() if name == _STATE or name.startswith(_MESSAGE)}


def mark_restored(pieces: Mapping[str, bytes], at: int) -> dict[str, bytes]:
    """The pieces of a backup of this instant, with a mark by which the monitor finds that it was restored: it does not
    know which alerts were sent since then, and says so."""
    return {**pieces, **encode_alerts(msgspec.structs.replace(decode_alerts(pieces), restored_at=at))}


_NOTICES: Final = "notices"


def encode_notices(notices: Notices) -> dict[str, bytes]:
    """The piece; none, if there never was a notice."""
    return {} if notices == Notices() else {_NOTICES: msgspec.json.encode(notices)}


def decode_notices(pieces: Mapping[str, bytes]) -> Notices:
    """What is in the stored pieces, of which others are skipped. StateError if it cannot be read."""
    try:
        return msgspec.json.decode(pieces[_NOTICES], type=Notices) if _NOTICES in pieces else Notices()
    except (ValueError, RecursionError) as error:
        raise StateError(f"the stored piece {_NOTICES} cannot be read: {error}") from None


def skip_used_numbers(pieces: Mapping[str, bytes], stored: Mapping[str, bytes]) -> dict[str, bytes]:
    """The notices of a backup, for a store that has these: an id that it gave since is not given again."""
    restored = decode_notices(pieces)
    number = max(restored.next_number, decode_notices(stored).next_number)
    return {**pieces, **encode_notices(replace(restored, next_number=number))}


_COVERAGE: Final = "coverage/"  # and a check
_HASH: Final = re.compile(r"0x[0-9a-f]{64}", re.ASCII)


def name_coverage(check: Check) -> str:
    return f"{_COVERAGE}{check.service}/{check.chain_id}"


def encode_coverage(coverage: Coverage) -> bytes:
    return msgspec.json.encode(coverage)


def decode_coverages(pieces: Mapping[str, bytes]) -> dict[Check, Coverage]:
    """What is in the stored pieces, of which others are skipped. StateError if it cannot be read."""
    coverages = {}
    for name, piece in pieces.items():
        if name.startswith(_COVERAGE):
            with naming(name):
                service, chain_id = name.removeprefix(_COVERAGE).split("/")
                coverage = coverages[Check(service, int(chain_id))] = msgspec.json.decode(piece, type=Coverage)
                _check(coverage)
    return coverages


def _check(coverage: Coverage) -> None:
    """ValueError for what is of the right type and cannot be: the comparison would go on from it."""
    findings = {**coverage.missing, **coverage.extra}.values()
    check_instants(coverage.began_at, coverage.newest_at, coverage.checked_at)
    check_instants(coverage.list_until_at, coverage.had_some_at)
    check_instants(*(at for each in coverage.stretches for at in (each.compared_at, each.doubted_at)))
    check_instants(*(at for each in findings for at in (each.seen_at, each.looked_at, each.proved_at)))
    check_counts(
        *(number for each in coverage.stretches for number in (each.first, each.last, each.count, each.entries))
    )
    check_counts(*(number for each in findings for number in (each.first, each.last, each.block)))
    check_counts(*(number for each in coverage.put_off for number in (each.first, each.last, each.times)))
    reaches = (coverage.list_reach, *coverage.reaches.values())
    check_counts(coverage.longest_list, *(number for each in reaches for number in (each.blocks, each.refused)))
    known = coverage.controls if coverage.oldest is None else (coverage.oldest, *coverage.controls)
    check_counts(coverage.most_entries, coverage.list_failures, *(each.block for each in known))
    for transaction in (*coverage.missing, *coverage.extra, *(each.hash for each in known)):
        if not _HASH.fullmatch(transaction):
            raise ValueError(f"{transaction[:40]} is not a transaction's hash")
    if any(some[key].hash != key for some in (coverage.missing, coverage.extra) for key in some):
        raise ValueError("a transaction stands under another one's hash")
    if any(len(each.digest) != DIGEST_BYTES or each.first > each.last for each in coverage.stretches):
        raise ValueError("a stretch cannot be")
    if any(one.last >= other.first for one, other in pairwise(coverage.stretches)):
        raise ValueError("stretches are out of order")
