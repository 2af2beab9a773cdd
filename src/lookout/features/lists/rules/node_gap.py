"""A ppoi node beside an indexer's list: whether the node has taken in as many transactions as are listed (S21)."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

CONFIRM_MS: Final = 60 * 60_000
_MOST_BETWEEN_MS: Final = 5 * 60_000


class NodeGap(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of a node and a list on one chain. It survives a restart."""

    subject: str
    """A fingerprint of the node and the list: what is known holds for no other pair."""
    since_at: int | None = None
    """Since when every reading found the node behind; None if the last reading did not."""
    read_at: int = 0
    entries: int = 0
    """How many entries the list had at the last reading."""
    gap: int = 0
    """By how many entries the node was behind at the last reading."""
    is_confirmed: bool = False


def confirmed_gap(known: NodeGap) -> int:
    """By how many entries the node is known to be behind; 0 if it is not."""
    return known.gap if known.is_confirmed else 0


def describe_gap(known: NodeGap) -> str:
    """Both numbers; "" while nothing is confirmed. The numbers do not say which side is wrong."""
    if not known.is_confirmed:
        return ""
    return f"{known.entries} entries in the list, {known.entries - known.gap} in the node, {known.gap} apart"


def read_gap(known: NodeGap, entries: int, node_index: int, now: int, *, are_current: bool) -> NodeGap:
    """A reading: the number of final entries, and the node's index of the last one it has, counted from 0.
    ``are_current`` says whether both rows would be current but for what was found wrong with the list."""
    gap = max(0, entries - 1 - node_index)
    known = replace(known, entries=entries)
    if known.is_confirmed:
        return replace(known, read_at=now, gap=gap, is_confirmed=gap > 0, since_at=known.since_at if gap else None)
    if not gap or not are_current:
        return replace(known, since_at=None, read_at=now, gap=gap)
    goes_on = known.since_at is not None and 0 <= now - known.read_at <= _MOST_BETWEEN_MS
    since_at = known.since_at if goes_on and known.since_at is not None else now
    return replace(known, since_at=since_at, read_at=now, gap=gap, is_confirmed=now - since_at >= CONFIRM_MS)


def doubt(known: NodeGap) -> NodeGap:
    """A row is not current, or the clock was set: what is not confirmed begins again."""
    return known if known.is_confirmed or known.since_at is None else replace(known, since_at=None)
