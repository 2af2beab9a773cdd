"""Encodes the stored state as a few named documents, and decodes it.

``state`` changes with every publication, and has the hashes of all other documents: ``days`` with the ended buckets,
``heads/ID`` with a chain's heads of the last hour, and those that sources and features name.

No store notices that a disk changed a byte or lost a row, and either could turn a bucket green: the hashes show it.
They detect accidents, not forgery: any process that may write to the store can make them.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from lookout.core.heads import Reading
from lookout.core.history import HistoryProgress, HistoryState, Tally
from lookout.core.ledger import CheckState, State
from lookout.core.model import Check
from lookout.core.notices import Notices
from lookout.documents.document import compress, decompress
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.state.errors import StateError, naming
from lookout.state.former import decode_pieces, is_former

_STATE: Final = "state"
_DAYS: Final = "days"
_HEADS: Final = "heads/"  # followed by a chain's id
_HASH_BYTES: Final = 16
_NOTHING_READ: Final = Reading(0, 0, 0)
_SOURCE: Final = "source/"  # followed by a service
_NOTICES: Final = "notices"
CLAIMED: Final = ("source", _NOTICES)
"""The names, up to a slash, of the documents that are no feature's."""


class _StateDocument(Struct, frozen=True):
    last_answer_at: int | None
    history: HistoryProgress
    checks: tuple[CheckState, ...]
    tallies: tuple[Tally, ...]
    hashes: dict[str, str]  # of all other documents


_Value = TypeVar("_Value")
_Days = tuple[tuple[Check, dict[int, str]], ...]


class EncodedState(NamedTuple):
    """The documents of a state, and what all but ``state`` were made of."""

    documents: dict[str, bytes]
    values: Mapping[str, object]


NOTHING_ENCODED: Final = EncodedState({}, {})


def encode_state(state: State, others: Mapping[str, bytes] = {}, last: EncodedState = NOTHING_ENCODED) -> EncodedState:
    """All documents of the state, with the ``others``, which sources and features have encoded. What did not change
    since the ``last`` state is not encoded again."""
    history = state.history
    if history is None:
        raise ValueError("there is no state to store before the first publication")
    heads = {f"{_HEADS}{chain_id}": readings for chain_id, readings in state.heads.items()}
    values: dict[str, object] = {**others, **heads, _DAYS: tuple(history.days.items())}

    def reuse(name: str, value: _Value, pack: Callable[[_Value], bytes]) -> bytes:
        was = last.values.get(name)
        return last.documents[name] if was is value or was == value else pack(value)

    documents = {
        **{name: reuse(name, document, compress) for name, document in others.items()},
        **{name: reuse(name, readings, _pack_heads) for name, readings in heads.items()},
        _DAYS: reuse(_DAYS, values[_DAYS], _pack),
    }
    hashes = {name: _hash(document).hex() for name, document in documents.items()}
    checks, tallies = tuple(state.checks.values()), tuple(history.tallies.values())
    packed = _pack(_StateDocument(state.last_answer_at, history.progress, checks, tallies, hashes))
    return EncodedState({_STATE: _hash(packed) + packed, **documents}, values)


def decode_state(stored: Mapping[str, bytes]) -> tuple[State | None, dict[str, bytes]]:
    """The ledger's state, or None if nothing is stored, and the documents of sources and features. StateError if a
    document is missing, or is not what was stored."""
    if is_former(stored):
        return decode_pieces(stored)
    if not stored:
        return None, {}
    if _STATE not in stored:
        raise StateError(f"the stored document {_STATE} is missing")
    documents = dict(stored)
    sealed = documents.pop(_STATE)
    if sealed[:_HASH_BYTES] != _hash(sealed[_HASH_BYTES:]):
        raise StateError(f"the stored document {_STATE} is not what was stored")
    found = _unpack(_STATE, sealed[_HASH_BYTES:], _StateDocument)
    _check_hashes(documents, found.hashes)
    days = dict(_unpack(_DAYS, documents.pop(_DAYS), _Days))
    heads = {
        int(name.removeprefix(_HEADS)): _unpack_heads(name, documents.pop(name))
        for name in [*documents]
        if name.startswith(_HEADS)
    }
    history = HistoryState(found.history, {tally.check: tally for tally in found.tallies}, days)
    state = State(found.last_answer_at, {known.row.check: known for known in found.checks}, heads, history)
    return state, {name: decompress(document) for name, document in documents.items()}


def _check_hashes(documents: Mapping[str, bytes], hashes: Mapping[str, str]) -> None:
    for name in hashes.keys() - documents.keys():
        raise StateError(f"the stored document {name} is missing")
    for name, document in documents.items():
        if hashes.get(name) != _hash(document).hex():
            raise StateError(f"the stored document {name} is not what was stored")


def _hash(document: bytes) -> bytes:
    return blake2b(document, digest_size=_HASH_BYTES).digest()


def _pack(value: object) -> bytes:
    return compress(msgspec.json.encode(value))


def _pack_heads(readings: tuple[Reading, ...]) -> bytes:
    """Each reading as its difference from the one before, which takes less than half as many bytes."""
    pairs = pairwise((_NOTHING_READ, *readings))
    return _pack([(b.at - a.at, b.height - a.height, b.block_at - a.block_at) for a, b in pairs])


def _unpack_heads(name: str, document: bytes) -> tuple[Reading, ...]:
    differences = _unpack(name, document, tuple[Reading, ...])
    return tuple(
        accumulate(differences, lambda a, b: Reading(a.at + b.at, a.height + b.height, a.block_at + b.block_at))
    )


def _unpack(name: str, document: bytes, kind: type[_Value]) -> _Value:
    with naming(name):
        return msgspec.json.decode(decompress(document), type=kind)


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
