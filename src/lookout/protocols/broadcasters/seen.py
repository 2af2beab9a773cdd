"""Sightings of broadcasters: which announce on a chain, and how many of them answer."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from lookout.base.setting_types import ByChain, Chains, Duration, DurationOrZero, Positive, Text, Url, must
from lookout.core.model import Members
from lookout.protocols.broadcasters.announcements import (
    ADDRESS_LENGTH,
    Announcement,
    is_answer,
    is_from_the_future,
    viewing_key,
)
from lookout.protocols.client.request import SourceTable

BroadcasterAddress = Annotated[
    str,
    Meta(min_length=1),
    must(
        lambda address: viewing_key(address) is not None,
        f"is not a 0zk1 address, or is mistyped; copy all {ADDRESS_LENGTH} characters",
    ),
]


class BroadcastersTable(SourceTable, frozen=True):
    url: Url
    """The REST address of a waku node; it may be that of `[messaging]`."""
    chains: Chains
    """Where they are monitored."""
    via: Literal["store", "relay"] = "store"
    """Ask a store for the announcements, or read what the node relayed, which empties its cache for others."""
    pubsub_topic: Text = "/waku/2/rs/5/1"
    """The network's topic."""
    content_topic: Annotated[
        str, Meta(min_length=1), must(lambda topic: "{chainId}" in topic, "has to contain {chainId}")
    ] = "/railgun/v2/0-{chainId}-fees/json"
    """Where fees are announced; `{chainId}` is filled in.
    Allowed: text with `{chainId}`"""
    limit: Positive = 20
    """Without `members`: so many are monitored on a chain, the last seen."""
    fresh_s: Duration = 120
    """An announcement this young counts as an answer."""
    expiry_margin_s: DurationOrZero = 40
    """An announcement that expires sooner does not count."""
    seen_s: Duration = 86_400
    """Without `members`: broadcasters seen within this time are monitored, also after a restart."""
    members: ByChain[tuple[BroadcasterAddress, ...]] = field(default_factory=dict)
    """The broadcasters that are monitored, such as `{"1" = ["0zk1…"]}`.
    Allowed: chain, as text, to a list of `0zk1` addresses"""

    def address(self) -> str:
        return self.url

    def by_source(self) -> tuple["BroadcastersTable", ...]:
        """The settings of each source. A store is asked once per chain, so that no chain waits for another (M6). A
        relay has one cache for all chains, which reading empties."""
        if self.via == "relay":
            return (self,)
        return tuple(
            replace(self, chains=(chain,), members={key: of for key, of in self.members.items() if key == str(chain)})
            for chain in self.chains
        )

    def chain_ids(self) -> tuple[int | None, ...]:
        return self.chains


class Sighting(Struct, frozen=True, gc=False):
    chain_id: int
    announcement: Announcement


class SeenBroadcasters(Struct, frozen=True):
    """A service's sightings that survive a restart (M7): at most ``limit`` per chain, or one per configured member."""

    sightings: tuple[Sighting, ...] = ()
    asked_at: dict[int, int] = {}  # by chain: when the store last answered


NOTHING_SEEN: Final = SeenBroadcasters()

# A configured member's address alone, for all its identifiers; otherwise address and identifier.
Identity = tuple[str, str | None]


class Sightings:
    """The newest verified announcement of each monitored broadcaster.

    Only as many are kept as can be monitored. A dropped broadcaster was seen before all kept ones, so it would not be
    monitored until it is seen again. So a flood of unknown broadcasters takes no memory.
    """

    def __init__(self, settings: BroadcastersTable, seen: Iterable[Sighting] = ()) -> None:
        self._limit = settings.limit
        self._seen_ms = round(settings.seen_s * 1000)
        self._fresh_ms = round(settings.fresh_s * 1000)
        self._expiry_margin_ms = round(settings.expiry_margin_s * 1000)
        self._members = {
            chain_id: frozenset(map(str.lower, settings.members.get(str(chain_id), ()))) for chain_id in settings.chains
        }
        self._newest: dict[int, dict[Identity, Announcement]] = {chain_id: {} for chain_id in settings.chains}
        for sighting in sorted(seen, key=lambda sighting: sighting.announcement.expires_at):
            if sighting.chain_id in self._newest:
                self._keep(sighting.chain_id, sighting.announcement)

    def __iter__(self) -> Iterator[Sighting]:
        for chain_id, newest in self._newest.items():
            for announcement in newest.values():
                yield Sighting(chain_id, announcement)

    def is_news(self, chain_id: int, announcement: Announcement, at: int) -> bool:
        """Whether the announcement may change the sightings: not if it is from the future, or too old."""
        identity = self._identity(chain_id, announcement)
        if identity is None or not self._counts(announcement, at):
            return False
        known = self._newest[chain_id].get(identity)
        if known is None or is_from_the_future(known, at):
            return True
        return announcement != known and self._is_later(announcement, known, at)

    def note(self, chain_id: int, announcement: Announcement, at: int) -> None:
        if not self.is_news(chain_id, announcement, at):
            return
        # After a clock was set back, earlier sightings, now in the future, must not block new ones.
        newest = self._newest[chain_id].items()
        self._newest[chain_id] = {identity: seen for identity, seen in newest if not is_from_the_future(seen, at)}
        self._keep(chain_id, announcement)

    def members(self, chain_id: int, at: int) -> Members:
        counted = [announcement for announcement in self._newest[chain_id].values() if self._counts(announcement, at)]
        responding = sum(self._is_answer(announcement, at) for announcement in counted)
        return Members(responding, len(self._members[chain_id]) or len(counted))

    def _counts(self, announcement: Announcement, at: int) -> bool:
        return announcement.sent_at >= at - self._seen_ms and not is_from_the_future(announcement, at)

    def _is_later(self, announcement: Announcement, known: Announcement, at: int) -> bool:
        """Whether it replaces the known announcement of its broadcaster.

        The later announcement has the later expiry, which is signed. The instant of sending is not: any peer could
        replay an earlier announcement as the newest. It decides only if one of the two is too old to count as an
        answer: a broadcaster may have been configured for a shorter expiry, and older pages are read after newer
        ones.
        """
        if announcement.expires_at > known.expires_at and announcement.sent_at >= at - self._fresh_ms:
            return True
        if announcement.expires_at < known.expires_at and self._is_answer(known, at):
            return False
        return announcement.sent_at >= known.sent_at

    def _is_answer(self, announcement: Announcement, at: int) -> bool:
        return is_answer(announcement, at, self._fresh_ms, self._expiry_margin_ms)

    def _keep(self, chain_id: int, announcement: Announcement) -> None:
        newest, identity = self._newest[chain_id], self._identity(chain_id, announcement)
        if identity is None:
            return
        newest[identity] = announcement
        if not self._members[chain_id] and len(newest) > self._limit:
            del newest[min(newest, key=lambda seen: newest[seen].sent_at)]

    def _identity(self, chain_id: int, announcement: Announcement) -> Identity | None:
        """None if the chain has configured members, and the announcement is not from one of them."""
        members = self._members[chain_id]
        if not members:
            return announcement.address, announcement.identifier
        return (announcement.address, None) if announcement.address in members else None
