"""What was seen of broadcasters, in the form in which it is stored."""

from typing import Final

from msgspec import Struct

from lookout.protocols.broadcasters.unread import Unread


class Announcement(Struct, frozen=True, gc=False):
    """What a broadcaster signed, and when its message says it was sent."""

    address: str
    identifier: str | None
    sent_at: int
    expires_at: int
    available_wallets: int


class Sighting(Struct, frozen=True, gc=False):
    """The newest announcement of one broadcaster on one chain."""

    chain_id: int
    announcement: Announcement


class SeenBroadcasters(Struct, frozen=True):
    """What of a service has to survive a restart (M7): at most ``limit`` sightings a chain, or one for each configured
    member."""

    sightings: tuple[Sighting, ...] = ()
    asked_at: dict[int, int] = {}  # by chain: when the store last answered
    unread: dict[int, Unread] = {}  # by chain: what of the time before that is still to be read


NOTHING_SEEN: Final = SeenBroadcasters()
