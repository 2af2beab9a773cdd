"""One bucket's character, and uptime from buckets (H5 to H7, H9 to H11)."""

from collections.abc import Mapping
from typing import Final

from lookout_reader.statuses import CHARACTERS as CHARACTERS
from lookout_reader.statuses import KNOWN_CHARACTERS, TROUBLE_CHARACTERS
from lookout_reader.statuses import NO_DATA as NO_DATA

KNOWN: Final = frozenset(KNOWN_CHARACTERS)
_CURRENT: Final = CHARACTERS["current"]
_UNKNOWN: Final = CHARACTERS["unknown"]
_UNMONITORED: Final = CHARACTERS["unmonitored"]


def bucket_character(seen_ms: Mapping[str, int], counts_from_ms: int) -> str:
    """The character of a bucket in which these statuses were seen, each for so long (H6, H7).

    A status that was published last and has not lasted yet is there with 0. Short trouble alone is too little to tell:
    nothing is shown as current that was not seen so.
    """
    if not KNOWN.isdisjoint(seen_ms):
        total_ms = 0
        for character in TROUBLE_CHARACTERS:  # the worst first
            total_ms += seen_ms.get(character, 0)  # time in a worse status counts toward a milder one
            if total_ms >= counts_from_ms:
                return character
        return _CURRENT if _CURRENT in seen_ms else _UNKNOWN
    return _UNKNOWN if _UNKNOWN in seen_ms else _UNMONITORED if _UNMONITORED in seen_ms else NO_DATA


def uptime(current: int, known: int, min_known: int) -> float | None:
    """The share of ``current`` buckets among the ``known``, to 4 decimals, half to even (H9, H10)."""
    if known < min_known:
        return None
    share, rest = divmod(current * 10_000, known)
    if rest * 2 > known or (rest * 2 == known and share % 2 == 1):
        share += 1
    if current < known:
        share = min(share, 9_999)  # 1 is for a window without a single other bucket (H11)
    return share / 10_000
