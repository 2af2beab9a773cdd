"""Broadcasters: their announcements, from a waku node's store or its relay."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lookout.base.instants import END_AT
from lookout.core.model import Check, Found, Members, Nothing
from lookout.protocols.answers import decode, entries, open_value, table
from lookout.protocols.broadcasters.announcements import FUTURE_TOLERANCE_MS, Claim, is_signed, read_claim
from lookout.protocols.broadcasters.seen import NOTHING_SEEN, BroadcastersTable, SeenBroadcasters, Sightings
from lookout.protocols.client.failure import OwnFault, ProbeFailed, not_understood
from lookout.protocols.client.request import MIB, Request, at_most, below
from lookout.protocols.source import Now, OwnTableProtocol, Source

if TYPE_CHECKING:  # loads ssl and urllib, which reading a configuration does not need
    from lookout.protocols.client.session import Session

PAGE_SIZE: Final = 100
MAX_PAGES: Final = 20  # per chain and probe
# An announcement of many tokens' fees takes 20 KB, and a page has a hundred.
LIMIT_BYTES: Final = 3 * MIB
# Third parties choose the length of messages, but a network forwards none above 150 KB: this many always fit.
SMALL_PAGE_SIZE: Final = 10
LONGEST_CURSOR: Final = 1_024  # becomes a part of an address; real ones have 66 characters
_READING_SHARE: Final = 0.9  # of the probe's time (M3); the rest is to verify the last page
_NS_PER_MS: Final = 1_000_000
_STILL_READING: Final = Nothing("still_reading")


class StoredMessage(Struct, frozen=True, gc=False):
    content_topic: str
    payload: str
    sent_at: int


class MessagePage(Struct, frozen=True, gc=False):
    messages: tuple[StoredMessage, ...]
    cursor: str | None

    def reaches_back_to(self, at: int) -> int:
        """When its oldest message was sent, whatever their order; ``at`` if no message is earlier."""
        return min((message.sent_at for message in self.messages), default=at)


class BroadcastersSource:
    def __init__(self, name: str, service: str, settings: BroadcastersTable) -> None:
        self.name = name
        self.checks = tuple(Check(service, chain_id) for chain_id in settings.chains)
        self._settings = settings
        self._topics = {settings.content_topic.replace("{chainId}", str(chain)): chain for chain in settings.chains}
        self.resume(NOTHING_SEEN)

    def resume(self, seen: SeenBroadcasters) -> None:
        """Go on with what was seen before a restart (M7)."""
        chains = self._settings.chains
        self._sightings = Sightings(self._settings, seen.sightings)
        self._asked_at = {chain_id: at for chain_id, at in seen.asked_at.items() if chain_id in chains}

    @property
    def seen(self) -> SeenBroadcasters:
        """The sightings to store, and to give to the next source of this kind (M7)."""
        return SeenBroadcasters(tuple(self._sightings), dict(self._asked_at))

    def _request(self, path: str, query: str = "", *, post: bytes | None = None) -> Request:
        url = below(self._settings.url, path, query)
        return Request("GET" if post is None else "POST", url, self._settings, post, LIMIT_BYTES)

    async def _note(self, messages: Iterable[StoredMessage], at: int) -> None:
        """Verify new announcements and keep them. Other tasks may run after every message (M6)."""
        claims: list[tuple[int, Claim]] = []
        for message in messages:
            chain_id = self._topics.get(message.content_topic)
            if chain_id is not None and (claim := read_claim(message.payload, message.sent_at)) is not None:
                claims.append((chain_id, claim))
            await asyncio.sleep(0)
        # The newest first: announcements that they replace need no check.
        claims.sort(key=lambda claimed: claimed[1].announcement.sent_at, reverse=True)
        for chain_id, claim in claims:
            if self._sightings.is_news(chain_id, claim.announcement, at) and is_signed(claim):
                self._sightings.note(chain_id, claim.announcement, at)
            await asyncio.sleep(0)


class StoreBroadcasters(BroadcastersSource):
    """Asks a store for one chain's announcements.

    The newest page is the answer. Older pages, back to the last probe or, at first, for as long as broadcasters stay
    monitored, are read while there is time, up to MAX_PAGES.
    """

    def __init__(self, service: str, settings: BroadcastersTable) -> None:
        (self._chain_id,) = settings.chains
        super().__init__(f"{service} {self._chain_id}", service, settings)
        self._fresh_ms = round(settings.fresh_s * 1000)
        self._seen_ms = round(settings.seen_s * 1000)
        self._page_size = PAGE_SIZE

    async def probe(self, session: "Session", now: Now, /) -> Mapping[Check, Found]:
        read_until = asyncio.get_running_loop().time() + _READING_SHARE * session.timeout_s
        asked_at = now()
        since_at = self._since_at(asked_at)
        self._page_size = PAGE_SIZE
        async with at_most(session.timeout_s):
            page = await self._read_page(session, since_at, None)
            at = now()
            await self._note(page.messages, at)
        self._asked_at[self._chain_id] = asked_at
        reached_at = page.reaches_back_to(at)
        # A failure here does not fail the probe, which has its answer. Nor does a clock that is set meanwhile: all is
        # read as of the answer.
        with suppress(TimeoutError, ProbeFailed, OwnFault):
            async with asyncio.timeout_at(read_until):
                for _ in range(MAX_PAGES - 1):
                    if page.cursor is None:
                        break
                    older = await self._read_page(session, since_at, page.cursor)
                    await self._note(older.messages, at)
                    page, reached_at = older, min(reached_at, older.reaches_back_to(at))
        # A broadcaster missing from the pages read may be in the others.
        members = self._sightings.members(self._chain_id, at)
        is_read = page.cursor is None or reached_at <= at - self._fresh_ms
        return {self.checks[0]: members if is_read or members.responding == members.monitored else _STILL_READING}

    def _since_at(self, at: int) -> int:
        """From when on messages are read: at first, and after a clock was set back, the whole monitored time. Later,
        since the last probe, and earlier by the time that announcements stay fresh: stores get some messages late."""
        oldest_at = max(0, at - self._seen_ms)
        asked_at = self._asked_at.get(self._chain_id)
        if asked_at is None or asked_at > at + FUTURE_TOLERANCE_MS:
            return oldest_at
        return max(oldest_at, min(asked_at, at) - self._fresh_ms)

    async def _read_page(self, session: "Session", since_at: int, cursor: str | None) -> MessagePage:
        """Retry a page that is too long as a small page, and ask for small pages from then on."""
        try:
            body = await session.fetch(self._query(since_at, cursor))
        except ProbeFailed as failure:
            if failure.cause != "too_large":
                raise
            self._page_size = SMALL_PAGE_SIZE
            body = await session.fetch(self._query(since_at, cursor))
        page = parse_page(body)
        return replace(page, cursor=None) if page.cursor == cursor else page  # it would lead back to this page

    def _query(self, since_at: int, cursor: str | None) -> Request:
        (topic,) = self._topics
        fields = {
            "includeData": "true",
            "pubsubTopic": self._settings.pubsub_topic,
            "contentTopics": topic,
            "startTime": str(since_at * _NS_PER_MS),
            "pageSize": str(self._page_size),
            "ascending": "false",
        }
        if cursor is not None:
            fields["cursor"] = cursor
        return self._request("/store/v3/messages", urlencode(fields, safe="/", quote_via=quote))


class RelayBroadcasters(BroadcastersSource):
    """Reads the messages that an own node relayed since the last probe. Reading empties the node's cache."""

    def __init__(self, service: str, settings: BroadcastersTable) -> None:
        super().__init__(service, service, settings)
        self._has_just_subscribed = False  # also in a probe that failed afterwards

    async def probe(self, session: "Session", now: Now, /) -> Mapping[Check, Found]:
        async with at_most(session.timeout_s):
            messages = await self._read(session)
            at = now()
            await self._note(messages, at)
        subscribed_now, self._has_just_subscribed = self._has_just_subscribed, False
        return {
            check: self._found(chain_id, at, subscribed_now=subscribed_now)
            for check, chain_id in zip(self.checks, self._settings.chains, strict=True)
        }

    async def _read(self, session: "Session") -> tuple[StoredMessage, ...]:
        topic = self._settings.pubsub_topic
        read = self._request(f"/relay/v1/messages/{quote(topic, safe='')}")
        try:
            return parse_messages(await session.fetch(read))
        except ProbeFailed as failure:
            if failure.code != HTTPStatus.NOT_FOUND:
                raise
        await session.fetch(self._request("/relay/v1/subscriptions", post=msgspec.json.encode([topic])))
        self._has_just_subscribed = True
        return parse_messages(await session.fetch(read))

    def _found(self, chain_id: int, at: int, *, subscribed_now: bool) -> Found:
        members = self._sightings.members(chain_id, at)
        if subscribed_now and members.responding < members.monitored:
            return _STILL_READING  # it is subscribed only from now on: silence is no evidence yet
        return members


def parse_page(body: bytes) -> MessagePage:
    """A page of a store's answer, which has its own status code inside the HTTP 200."""
    answer = table(decode(body), "no answer of a store")
    code = open_value(answer.get("statusCode"))
    if type(code) is not int:
        raise not_understood("no statusCode")
    if code != 200:
        raise ProbeFailed("store_status", str(code) if 0 <= code <= 999 else "")
    cursor = open_value(answer.get("paginationCursor"))
    if cursor is not None and not (type(cursor) is str and len(cursor) <= LONGEST_CURSOR):
        raise not_understood("paginationCursor")
    gathered = entries(answer.get("messages"), "no messages")
    return MessagePage(_messages(gathered), (cursor or None) if gathered else None)


def parse_messages(body: bytes) -> tuple[StoredMessage, ...]:
    return _messages(entries(decode(body), "no messages"))


def _messages(gathered: list[Any]) -> tuple[StoredMessage, ...]:
    """The complete messages. Malformed ones are skipped: they are no fault of the node that forwards them."""
    listed = [table(entry, "a message") for entry in gathered]
    return tuple(filter(None, (_message(entry.get("message", entry)) for entry in listed)))


def _message(value: Any) -> StoredMessage | None:
    message = open_value(value)
    if type(message) is not dict:
        return None
    match [open_value(message.get(name)) for name in ("contentTopic", "payload", "timestamp")]:
        case [str(topic), str(payload), sent_ns] if type(sent_ns) is int and 0 <= sent_ns < END_AT * _NS_PER_MS:
            return StoredMessage(topic, payload, sent_ns // _NS_PER_MS)
        case _:
            return None


def _sources(service: str, settings: BroadcastersTable) -> tuple[Source, ...]:
    listen = StoreBroadcasters if settings.via == "store" else RelayBroadcasters
    return tuple(listen(service, table) for table in settings.by_source())


BROADCASTERS: Final = OwnTableProtocol("broadcasters", Members, BroadcastersTable, _sources)
