"""Reads the state that 0.1.0, 1.0.0 and 2.0.0 stored: a piece for each check, tally, day of buckets and part of a
chain's heads, with a seal over all of them, which 0.1.0 did not have."""

from collections import defaultdict
from collections.abc import Mapping
from functools import reduce
from hashlib import blake2b
from operator import xor
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from lookout.core.heads import Reading, of_the_hour
from lookout.core.history import HistoryProgress, HistoryState, Tally
from lookout.core.ledger import CheckState, State
from lookout.state.errors import StateError, naming

_PROGRESS: Final = "progress"


# Unknown fields are forbidden: a damaged name of the seal would look like a missing seal.
class _Progress(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    last_answer_at: int | None
    history: HistoryProgress = field(name="reached")
    seal: str | None = None  # the exclusive or of all pieces' hashes, with this field empty


def is_former(stored: Mapping[str, bytes]) -> bool:
    return _PROGRESS in stored


def decode_pieces(pieces: Mapping[str, bytes]) -> tuple[State, dict[str, bytes]]:
    """The ledger's state, and the documents of sources and features. StateError if the pieces are damaged."""
    with naming(_PROGRESS):
        progress = msgspec.json.decode(pieces[_PROGRESS], type=_Progress)
    _check_seal(pieces, progress)
    checks: list[CheckState] = []
    tallies: list[Tally] = []
    heads: dict[int, dict[int, tuple[Reading, ...]]] = defaultdict(dict)
    days: dict[str, dict[int, str]] = defaultdict(dict)
    others: dict[str, bytes] = {}
    for name, piece in pieces.items():
        with naming(name):
            match name.split("/", 2):
                case ["progress"]:
                    pass
                case ["check", *_]:
                    checks.append(msgspec.json.decode(piece, type=CheckState))
                case ["tally", *_]:
                    tallies.append(msgspec.json.decode(piece, type=Tally))
                case ["heads", chain_id, *part]:  # without a part: the whole hour, from 0.1.0
                    heads[int(chain_id)][int(*part)] = msgspec.json.decode(piece, type=tuple[Reading, ...])
                case ["day", day, check]:
                    days[check][int(day)] = piece.decode("ascii")
                case _:
                    others[name] = piece
    history = HistoryState(
        progress.history,
        {tally.check: tally for tally in tallies},
        {tally.check: days.get(_name_check(tally), {}) for tally in tallies},
    )
    hours = {
        chain_id: of_the_hour([reading for part in sorted(parts) for reading in parts[part]])
        for chain_id, parts in heads.items()
    }
    return State(progress.last_answer_at, {known.row.check: known for known in checks}, hours, history), others


def _check_seal(pieces: Mapping[str, bytes], progress: _Progress) -> None:
    unsealed = {**pieces, _PROGRESS: msgspec.json.encode(replace(progress, seal=None))}
    hashes = reduce(xor, (_hash_piece(name, piece) for name, piece in unsealed.items()))
    if progress.seal not in (None, f"{hashes:016x}"):
        raise StateError("the stored pieces are not what was stored")


def _hash_piece(name: str, piece: bytes) -> int:
    return int.from_bytes(blake2b(b"%b\0%b" % (name.encode(), piece), digest_size=8).digest())


def _name_check(tally: Tally) -> str:
    service, chain_id = tally.check
    return f"{service}/{'-' if chain_id is None else chain_id}"
