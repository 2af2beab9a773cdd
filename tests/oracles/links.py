"""The suspected and confirmed breaks of a running hash by S20's sentences, pair by pair."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from Crypto.Hash import keccak

from lookout.core.model import ListEntry

_MINUTE_MS: Final = 60_000


class Suspect(NamedTuple):
    first: str
    second: str
    since_at: int
    is_confirmed: bool = False


def follow(known: Sequence[Suspect], answer: Sequence[ListEntry], at: int, *, is_whole: bool) -> list[Suspect]:
    """What is held against a list after an answer of final entries; ``is_whole``: it begins with the list's first."""
    verdicts = {(one.id, other.id): _holds(one, other) for one, other in pairwise(answer)}
    new = [pair for pair, holds in verdicts.items() if holds is False]
    after = []
    for suspect in known:
        before = [entry.id for entry in answer if entry.id <= suspect.first] or [entry.id for entry in answer][
            :is_whole
        ]
        behind = [entry.id for entry in answer if entry.id >= suspect.second]
        if not before or not behind:
            after.append(suspect)
            continue
        inside = {pair: holds for pair, holds in verdicts.items() if before[-1] <= pair[0] and pair[1] <= behind[0]}
        wrong = [pair for pair in inside if pair in new]
        if wrong:
            after.append(_see_again(suspect, wrong[0], at))
            new = [pair for pair in new if pair not in wrong]
        elif None in inside.values():
            after.append(suspect)
    return sorted(after + [Suspect(*pair, at) for pair in new])


def _see_again(suspect: Suspect, pair: tuple[str, str], at: int) -> Suspect:
    is_same = pair == (suspect.first, suspect.second)
    if suspect.is_confirmed or (is_same and at - suspect.since_at >= _MINUTE_MS):
        return Suspect(*pair, suspect.since_at, is_confirmed=True)
    return Suspect(*pair, suspect.since_at if is_same else at)


def _holds(one: ListEntry, other: ListEntry) -> bool | None:
    if one.hash is None or other.hash is None or other.value is None:
        return None
    made = keccak.new(digest_bits=256, data=bytes.fromhex(one.hash[2:] + other.value[2:]))
    return f"0x{made.hexdigest()}" == other.hash
