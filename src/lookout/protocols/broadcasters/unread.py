"""Which stretches of time a store still has to be read for: from the newest on, over as many probes as it takes."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

MOST_STRETCHES: Final = 8  # a chain; each is left by a probe that could not read all since the one before it


class UnreadStretch(Struct, frozen=True, gc=False, omit_defaults=True):
    """The announcements from ``since_at`` on that are still to be read. It is read from its end.

    ``until_at`` is the oldest instant that was read, None before that. ``cursor`` is where the store goes on; without
    one the stretch is asked for by its instants.
    """

    since_at: int
    until_at: int | None = None
    cursor: str | None = None


Unread = tuple[UnreadStretch, ...]  # the newest first


def begin(unread: Unread, since_at: int, oldest_at: int) -> Unread:
    """What to read in a probe that has to reach back to ``since_at``. Nobody needs what is older than ``oldest_at``."""
    left = [each for each in unread if each.until_at is None or each.until_at >= oldest_at]
    if len(left) == MOST_STRETCHES:
        # What was read between the two is read again: that costs time, and nothing is forgotten.
        *left, newer, older = left
        left.append(replace(newer, since_at=older.since_at))
    return UnreadStretch(since_at), *left


def after_page(unread: Unread, sent_from_at: int | None, cursor: str | None) -> Unread:
    """What is left after a page of the first stretch, whose oldest message is of ``sent_from_at``, and after which the
    store goes on at ``cursor``."""
    first, *others = unread
    is_over = cursor is None or cursor == first.cursor
    if is_over or (sent_from_at is not None and sent_from_at < first.since_at):
        return tuple(others)
    reached = [at for at in (first.until_at, sent_from_at) if at is not None]
    return UnreadStretch(first.since_at, min(reached, default=None), cursor), *others


def begin_again(unread: Unread) -> Unread:
    """The first stretch by its instants: the store may not know its own cursor any more, after a restart say."""
    first, *others = unread
    return replace(first, cursor=None), *others
