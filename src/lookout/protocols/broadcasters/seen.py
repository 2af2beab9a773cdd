"""What was seen of broadcasters: who announces on each chain, and how many of them answer."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from lookout.core.model import Members
from lookout.protocols.broadcasters.announcements import Announcement, is_answer, is_from_the_future
from lookout.protocols.broadcasters.table import BroadcastersTable

_NO_MEMBERS: Final[frozenset[str]] = frozenset()


class Sighting(Struct, frozen=True, gc=False):
    """The newest announcement of one broadcaster on one chain."""

    chain_id: int
    announcement: Announcement


class SeenBroadcasters(Struct, frozen=True):
    """What of a service has to survive a restart (M7): at most ``limit`` sightings a chain, or one for each configured
    member."""

    sightings: tuple[Sighting, ...] = ()
    asked_at: dict[int, int] = {}  # by chain: when the store last answered


NOTHING_SEEN: Final = SeenBroadcasters()

# An address alone for a configured member, whatever its identifiers; otherwise with its identifier.
Identity = tuple[str, str | None]


class Sightings:
    """The newest verified announcement of each monitored broadcaster.

    Only as many are kept as can be monitored. That loses nothing: who is pushed out was seen before all that stay, and
    stays behind them until seen again. So a flood of strangers takes no memory.
    """

    def __init__(self, settings: BroadcastersTable, seen: Iterable[Sighting] = ()) -> None:
        self._limit = settings.limit
        self._seen_ms = round(settings.seen_s * 1000)
        self._fresh_ms = round(settings.fresh_s * 1000)
        self._expiry_margin_ms = round(settings.expiry_margin_s * 1000)
        self._members: Mapping[int, frozenset[str]] = {
            int(chain_id): frozenset(address.lower() for address in addresses)
            for chain_id, addresses in settings.members.items()
        }
        self._newest: dict[int, dict[Identity, Announcement]] = {chain_id: {} for chain_id in settings.chains}
        for sighting in sorted(seen, key=lambda each: each.announcement.expires_at):
            self._keep(sighting.chain_id, sighting.announcement)

    def __iter__(self) -> Iterator[Sighting]:
        for chain_id, newest in self._newest.items():
            for announcement in newest.values():
                yield Sighting(chain_id, announcement)

    def is_news(self, chain_id: int, announcement: Announcement, at: int) -> bool:
        """Whether to note it would change anything. One of the future, or of too long ago, does not."""
        newest = self._newest.get(chain_id)
        identity = self._identity(chain_id, announcement)
        if newest is None or identity is None or is_from_the_future(announcement, at):
            return False
        if announcement.sent_at < at - self._seen_ms:
            return False
        known = newest.get(identity)
        if known is None or is_from_the_future(known, at):
            return True
        return announcement != known and self._is_later(announcement, known, at)

    def note(self, chain_id: int, announcement: Announcement, at: int) -> None:
        """Take a verified announcement, if it is news."""
        if self.is_news(chain_id, announcement, at):
            self._forget_the_future(chain_id, at)
            self._keep(chain_id, announcement)

    def members(self, chain_id: int, at: int) -> Members:
        """How many broadcasters are monitored on the chain, and how many of them answer at this instant."""
        counted = [
            each
            for each in self._newest[chain_id].values()
            if each.sent_at >= at - self._seen_ms and not is_from_the_future(each, at)
        ]
        responding = sum(self._is_answer(each, at) for each in counted)
        return Members(responding, len(self._members_of(chain_id)) or len(counted))

    def _forget_the_future(self, chain_id: int, at: int) -> None:
        """After a clock was set back, what was seen before it must not stand in the way of what is seen now."""
        newest = self._newest[chain_id]
        for identity in [identity for identity, each in newest.items() if is_from_the_future(each, at)]:
            del newest[identity]

    def _is_later(self, announcement: Announcement, known: Announcement, at: int) -> bool:
        """Whether it takes the place of what is known of its broadcaster.

        The later expiry is the later announcement's. It is signed and the instant of sending is not: anybody could
        send an earlier one again as if it were the newest. Only once the known one no longer counts as an answer, the
        instant decides: a broadcaster may have been told to let its fees expire sooner. For the same reason it decides
        if the other one is too old to be an answer: older pages are read after newer ones.
        """
        if announcement.expires_at > known.expires_at and announcement.sent_at >= at - self._fresh_ms:
            return True
        if announcement.expires_at < known.expires_at and self._is_answer(known, at):
            return False
        return announcement.sent_at >= known.sent_at

    def _is_answer(self, announcement: Announcement, at: int) -> bool:
        return is_answer(announcement, at, self._fresh_ms, self._expiry_margin_ms)

    def _keep(self, chain_id: int, announcement: Announcement) -> None:
        newest = self._newest.get(chain_id)
        identity = self._identity(chain_id, announcement)
        if newest is None or identity is None:
            return
        newest[identity] = announcement
        if not self._members_of(chain_id) and len(newest) > self._limit:
            del newest[min(newest, key=lambda each: newest[each].sent_at)]

    def _identity(self, chain_id: int, announcement: Announcement) -> Identity | None:
        members = self._members_of(chain_id)
        if not members:
            return announcement.address, announcement.identifier
        return (announcement.address, None) if announcement.address in members else None

    def _members_of(self, chain_id: int) -> frozenset[str]:
        return self._members.get(chain_id, _NO_MEMBERS)
