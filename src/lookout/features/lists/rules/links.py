"""The running hash along an indexer's list, checked entry by entry (S20).

An entry's hash is made of the hash of the entry before it and the entry's own value. A list that lost or changed an
entry after its hashes were made has a break there, although every entry that is left may be right. Two neighbours are
compared only within one answer: behind a balancer, two answers may come from two replicas. A link is the step from one
entry to the next.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from typing import Final, Literal

from Crypto.Hash import keccak
from msgspec import Struct
from msgspec.structs import replace

from lookout.core.model import ListEntry

CONFIRM_MS: Final = 60_000
"""How long after it was first seen a suspected pair can be confirmed."""
_SWEEP_MS: Final = 20 * 3_600_000
"""How often all entries are read: once a day, less the time that a sweep takes."""
_MOST_BREAKS: Final = 1_000
_MOST_READ_AGAIN: Final = 20
_MOST_NAMED: Final = 2
_PLACES_BEFORE: Final = 5
_HASH_BYTES: Final = 32


class Break(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Two neighbours of which the second's hash does not follow from the first's."""

    first: ListEntry
    second: ListEntry
    from_id: str
    """Where the list is read again from: the id of an entry a little before."""
    seen_at: int
    is_confirmed: bool = False


class Links(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is known of one list, and has to survive a restart."""

    subject: str
    """A fingerprint of the list: what is known holds for no other list."""
    newest_id: str = ""
    """The id of the last final entry."""
    tail_id: str = ""
    """The id from which the newest entries are read: of an entry a little before them."""
    cursor: str = ""
    """The id from which the sweep under way continues; "" if there is no sweep, or it begins at the first entry."""
    sweep_at: int | None = None
    """When the last sweep began; None before the first."""
    swept_at: int | None = None
    """When all entries had been read last."""
    is_shorter: bool = False
    """The list ends before an entry that it had: it is being rebuilt, and nothing is judged."""
    has_held: bool = False
    """A link of the list held. Until then its hashes may be made in another way, and nothing is judged."""
    breaks: tuple[Break, ...] = ()
    """In the list's order, confirmed and suspected."""
    unsupported: str = ""
    """Why the list, or a part of it, cannot be checked."""


class Read(Struct, frozen=True, gc=False):
    """A request for all entries from ``from_id`` on, as many as one answer has. ``to_id`` is the id of the newest known
    entry, or of a break's second entry."""

    what: Literal["newest", "sweep", "again"]
    from_id: str
    to_id: str = ""


def confirmed_breaks(links: Links) -> tuple[Break, ...]:
    return tuple(found for found in links.breaks if found.is_confirmed)


def describe_breaks(links: Links) -> str:
    """Between which entries the running hash breaks: the first few of them."""
    confirmed = confirmed_breaks(links)
    if not confirmed:
        return ""
    named = ", ".join(f"between {_name(found.first)} and {_name(found.second)}" for found in confirmed[:_MOST_NAMED])
    others = len(confirmed[_MOST_NAMED:])
    breaks = f"{len(confirmed)} break{'s' * (len(confirmed) > 1)} of the running hash"
    return f"{breaks} {named}{f' and {others} more' if others else ''}"


def _name(entry: ListEntry) -> str:
    transaction = f", transaction {entry.transaction}" if entry.transaction else ""
    return f"the entry {entry.id} (block {entry.block}{transaction}, hash {entry.hash})"


def is_hurried(links: Links) -> bool:
    """Whether the first sweep is under way: then pages are asked for without a pause."""
    return links.swept_at is None and bool(links.cursor)


def choose_reads(links: Links, now: int) -> list[Read]:
    """What to ask for this minute: the newest entries, each break again, and a page of all entries."""
    reads = [Read("newest", links.tail_id, links.newest_id)] if links.newest_id else []
    reads += [Read("again", found.from_id, found.second.id) for found in links.breaks[:_MOST_READ_AGAIN]]
    if links.cursor or links.sweep_at is None or now - links.sweep_at >= _SWEEP_MS:
        reads.append(Read("sweep", links.cursor))
    return reads


Rank = Callable[[str], tuple[int, str]]
Checked = tuple[Sequence[int], Sequence[int]]
"""The places of wrong links and of unjudged ones, each ascending."""


def take_answer(links: Links, read: Read, entries: Sequence[ListEntry], now: int, final: int) -> Links:
    """What is known after an answer. Only its entries up to the block ``final`` count."""
    rank = _find_order(entries)
    if rank is None:
        return replace(links, unsupported="its entries are not in the order of their ids")
    if read.what == "newest":
        links = replace(links, is_shorter=not entries or rank(entries[-1].id) < rank(read.to_id))
    if links.is_shorter:
        return links
    # Entries that are neighbours only because one between them is not final prove nothing.
    settled = list(takewhile(lambda entry: entry.block <= final, entries))
    wrong, unjudged = _check_links(settled)
    fault = _find_fault(settled)
    if links.has_held or len(wrong) + len(unjudged) < len(settled) - 1:
        breaks = _update_breaks(links.breaks, settled, (wrong, unjudged), rank, now, is_whole=not read.from_id)
        links = replace(links, has_held=True, breaks=breaks)
    elif wrong:
        fault = "the hash of no entry follows from the entry before it"
    begins_sweep = read == Read("sweep", "")
    links = replace(links, unsupported=fault or ("" if begins_sweep else links.unsupported))
    if settled and read.what == "newest":
        return replace(links, newest_id=settled[-1].id, tail_id=_find_tail(settled))
    return _advance_sweep(links, read, settled, now) if read.what == "sweep" else links


def _advance_sweep(links: Links, read: Read, settled: Sequence[ListEntry], now: int) -> Links:
    if not settled:  # the list became shorter: it is read from its beginning
        return replace(links, cursor="", sweep_at=None)
    tail_id = _find_tail(settled)
    if not read.from_id:
        links = replace(links, sweep_at=now)
    if tail_id != read.from_id:
        return replace(links, cursor=tail_id)
    newest = links if links.newest_id else replace(links, newest_id=settled[-1].id, tail_id=tail_id)
    return replace(newest, cursor="", swept_at=now)


def _find_tail(settled: Sequence[ListEntry]) -> str:
    """Where to read on: a few entries are read again, since some of them may be replaced."""
    return _go_back(settled, len(settled) - 1)


def resume(links: Links, now: int) -> Links:
    """After a start or a set clock: what is suspected begins its wait again, and no stored instant is in the future."""
    return replace(
        links,
        breaks=tuple(
            replace(found, seen_at=min(now, found.seen_at) if found.is_confirmed else now) for found in links.breaks
        ),
        sweep_at=None if links.sweep_at is None else min(now, links.sweep_at),
        swept_at=None if links.swept_at is None else min(now, links.swept_at),
    )


def make_hash(previous: str, value: str) -> str:
    """The hash of an entry with this value, if the entry before it has the hash ``previous``."""
    digest = keccak.new(digest_bits=8 * _HASH_BYTES, data=bytes.fromhex(previous[2:] + value[2:]))
    return f"0x{digest.hexdigest()}"


def _check_links(settled: Sequence[ListEntry]) -> Checked:
    """A link is wrong if an entry's hash does not follow from the entry before, and unjudged if one of both lacks a
    field. Its place is the second entry's."""
    wrong, unjudged = list[int](), list[int]()
    for place, (before, entry) in enumerate(pairwise(settled), 1):
        if before.hash is None or entry.hash is None or entry.value is None:
            unjudged.append(place)
        elif make_hash(before.hash, entry.value) != entry.hash:
            wrong.append(place)
    return wrong, unjudged


def _find_fault(settled: Sequence[ListEntry]) -> str:
    lacking = next((entry for entry in settled if entry.hash is None or entry.value is None), None)
    return "" if lacking is None else f"the entry {lacking.id} has no hash or no value"


def _update_breaks(
    known: Sequence[Break], settled: Sequence[ListEntry], checked: Checked, rank: Rank, now: int, *, is_whole: bool
) -> tuple[Break, ...]:
    """All breaks after an answer. A wrong place inside a known break is that break; any other one is suspected from now
    on. ``is_whole`` says that the answer begins with the list's first entry."""
    wrong, unjudged = checked
    ranks = [rank(entry.id) for entry in settled]
    breaks, new = [], list(wrong)
    for found in known:
        # The entries of the answer that enclose the break: the last one not after its first entry, and the first one
        # not before its second. Before the first entry of a whole list there is none.
        begin = bisect_right(ranks, rank(found.first.id)) - 1
        end = bisect_left(ranks, rank(found.second.id))
        begin = max(begin, 0) if is_whole else begin
        if not 0 <= begin <= end < len(settled):  # the answer does not reach over it
            breaks.append(found)
            continue
        inside = _select_places(new, begin, end)
        if places := new[inside]:
            breaks.append(_follow_break(found, _make_break(settled, places[0], now), rank))
            del new[inside]
        elif unjudged[_select_places(unjudged, begin, end)]:
            breaks.append(found)
    breaks += [_make_break(settled, place, now) for place in new]
    return tuple(sorted(breaks, key=lambda found: rank(found.second.id))[:_MOST_BREAKS])


def _select_places(places: Sequence[int], begin: int, end: int) -> slice:
    """Which of the ascending places belong to links between these two entries."""
    return slice(bisect_right(places, begin), bisect_right(places, end))


def _follow_break(found: Break, again: Break, rank: Rank) -> Break:
    """The known break as it was found again: confirmed if it is the same pair as a minute ago."""
    is_same = (again.first.id, again.second.id) == (found.first.id, found.second.id)
    is_confirmed = found.is_confirmed or (is_same and again.seen_at - found.seen_at >= CONFIRM_MS)
    seen_at = found.seen_at if is_same or found.is_confirmed else again.seen_at
    from_id = min(found.from_id, again.from_id, key=rank)
    return replace(again, from_id=from_id, seen_at=seen_at, is_confirmed=is_confirmed)


def _make_break(settled: Sequence[ListEntry], place: int, seen_at: int) -> Break:
    from_id = _go_back(settled, place - 1)
    return Break(first=settled[place - 1], second=settled[place], from_id=from_id, seen_at=seen_at)


def _go_back(settled: Sequence[ListEntry], place: int) -> str:
    """The id of an entry a few places before this one."""
    return settled[max(0, place - _PLACES_BEFORE)].id


def _find_order(entries: Sequence[ListEntry]) -> Rank | None:
    """How the ids of an answer are ordered: as numbers if all are decimal, or as text; None if in neither order."""
    ids = [entry.id for entry in entries]
    orders = (_as_number, _as_text) if all(map(str.isdecimal, ids)) else (_as_text,)
    return next((rank for rank in orders if all(rank(one) < rank(other) for one, other in pairwise(ids))), None)


def _as_number(text: str) -> tuple[int, str]:
    return len(text.lstrip("0")), text.lstrip("0")


def _as_text(text: str) -> tuple[int, str]:
    return 0, text
