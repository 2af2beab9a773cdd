"""Broadcasters: their announcements, asked of a waku node's store or read from its relay."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from lookout.core.model import Check, Failed, Found, Nothing
from lookout.settings import Broadcasters
from lookout.sources.announcements import read_announcement
from lookout.sources.answers import decode, entries, table
from lookout.sources.failure import HttpCodeFailed, ProbeFailed, not_understood
from lookout.sources.fetching import MIB, Request, Session, at_most, below, fetch
from lookout.sources.sightings import NOTHING_SEEN, Seen, Sightings
from lookout.sources.source import Now

PAGE_SIZE: Final = 100
MAX_PAGES: Final = 20  # a chain and probe; newest first, so what is left out is the oldest
# An announcement of many tokens' fees takes 20 KB, and a page has a hundred. More than a real network sends is not
# worth the time it takes everybody else: the newest come first.
LIMIT_BYTES: Final = 3 * MIB
MOST_BYTES_A_CHAIN: Final = 2 * LIMIT_BYTES
MOST_MESSAGES: Final = 5_000
_MESSAGES_AT_A_TIME: Final = 32
_NS_PER_MS: Final = 1_000_000


class Message(Struct, frozen=True, gc=False):
    content_topic: str
    payload: str
    sent_at: int


class Page(Struct, frozen=True, gc=False):
    messages: tuple[Message, ...]
    cursor: str | None


class BroadcastersSource:
    """What both ways of listening share."""

    name = "broadcasters"

    def __init__(self, settings: Broadcasters, seen: Seen = NOTHING_SEEN) -> None:
        self.checks = tuple(Check("broadcasters", chain_id) for chain_id in settings.chains)
        self._settings = settings
        self._topics = {settings.content_topic.replace("{chainId}", str(each)): each for each in settings.chains}
        self._sightings = Sightings(settings, seen.sightings)
        self._asked_at = {chain_id: at for chain_id, at in seen.asked_at.items() if chain_id in settings.chains}

    @property
    def seen(self) -> Seen:
        """To be kept, and given back to the next one of these (M7)."""
        return Seen(tuple(self._sightings), dict(self._asked_at))

    def _request(self, path: str, query: str = "", *, post: bytes | None = None) -> Request:
        url = below(self._settings.url, path, query)
        return Request("GET" if post is None else "POST", url, self._settings.headers, post, LIMIT_BYTES)

    async def _note(self, messages: Iterable[Message], now: Now) -> None:
        """Verify and remember. Signatures take time, so others get their turn in between (M6)."""
        for number, message in enumerate(messages, 1):
            chain_id = self._topics.get(message.content_topic)
            announcement = None if chain_id is None else read_announcement(message.payload, message.sent_at)
            if chain_id is not None and announcement is not None:
                self._sightings.note(chain_id, announcement, now())
            if number % _MESSAGES_AT_A_TIME == 0:
                await asyncio.sleep(0)


class StoreBroadcasters(BroadcastersSource):
    """Asks a store for each chain's announcements: at first for all that are still of interest, then for new ones."""

    async def probe(self, session: Session, now: Now, /) -> Mapping[Check, Found]:
        async with asyncio.TaskGroup() as chains:
            asked = {
                Check("broadcasters", chain_id): chains.create_task(self._ask(session, now, topic, chain_id))
                for topic, chain_id in self._topics.items()
            }
        return {check: task.result() for check, task in asked.items()}

    async def _ask(self, session: Session, now: Now, topic: str, chain_id: int) -> Found:
        """What was found on one chain; a failure there is not the other chains'."""
        asked_at = now()
        try:
            async with at_most(session.timeout_s):
                await self._follow(session, now, topic, self._since(chain_id, asked_at))
        except ProbeFailed as failure:
            return Failed(failure.reason)
        self._asked_at[chain_id] = asked_at
        return self._sightings.members(chain_id, now())

    def _since(self, chain_id: int, at: int) -> int:
        """From which instant on to ask. Stores learn of some messages late, so the fresh ones are asked for again."""
        oldest = at - round(self._settings.seen_s * 1000)
        if chain_id not in self._asked_at:
            return oldest
        return max(oldest, min(self._asked_at[chain_id], at) - round(self._settings.fresh_s * 1000))

    async def _follow(self, session: Session, now: Now, topic: str, since_at: int) -> None:
        cursor: str | None = None
        read_bytes = 0
        for _ in range(MAX_PAGES):
            body = await fetch(session, self._query(topic, since_at, cursor))
            read_bytes += len(body)
            page = parse_page(body)
            await self._note(page.messages, now)
            is_last = page.cursor is None or page.cursor == cursor or not page.messages
            if is_last or read_bytes > MOST_BYTES_A_CHAIN:
                return
            cursor = page.cursor

    def _query(self, topic: str, since_at: int, cursor: str | None) -> Request:
        fields = {
            "includeData": "true",
            "pubsubTopic": self._settings.pubsub_topic,
            "contentTopics": topic,
            "startTime": str(max(0, since_at) * _NS_PER_MS),
            "pageSize": str(PAGE_SIZE),
            "ascending": "false",
        }
        if cursor is not None:
            fields["cursor"] = cursor
        return self._request("/store/v3/messages", urlencode(fields, safe="/", quote_via=quote))


class RelayBroadcasters(BroadcastersSource):
    """Reads what a node of one's own relayed since the last time. Reading empties the node's cache."""

    async def probe(self, session: Session, now: Now, /) -> Mapping[Check, Found]:
        async with at_most(session.timeout_s):
            messages, subscribed_now = await self._read(session)
            await self._note(messages, now)
        return {
            Check("broadcasters", chain_id): self._found(chain_id, now(), subscribed_now=subscribed_now)
            for chain_id in self._settings.chains
        }

    async def _read(self, session: Session) -> tuple[tuple[Message, ...], bool]:
        """What came since the last time, and whether the node had to be told only now to listen."""
        topic = self._settings.pubsub_topic
        read = self._request(f"/relay/v1/messages/{quote(topic, safe='')}")
        try:
            return parse_messages(await fetch(session, read)), False
        except HttpCodeFailed as failure:
            if failure.http_code != 404:
                raise
        await fetch(session, self._request("/relay/v1/subscriptions", post=msgspec.json.encode([topic])))
        return parse_messages(await fetch(session, read)), True

    def _found(self, chain_id: int, at: int, *, subscribed_now: bool) -> Found:
        members = self._sightings.members(chain_id, at)
        if subscribed_now and members.responding < members.monitored:
            return Nothing()  # it listens only from now on: silence is no evidence yet
        return members


def broadcasters_source(settings: Broadcasters, seen: Seen = NOTHING_SEEN) -> StoreBroadcasters | RelayBroadcasters:
    return StoreBroadcasters(settings, seen) if settings.via == "store" else RelayBroadcasters(settings, seen)


def parse_page(body: bytes) -> Page:
    """A page of a store's answer, which has a status of its own inside the 200."""
    answer = table(decode(body), "no answer of a store")
    code = answer.get("statusCode")
    if type(code) is not int:
        raise not_understood("no statusCode")
    if code != 200:
        raise ProbeFailed(f"store status {code}" if 0 <= code <= 999 else "store status other than 200")
    cursor = answer.get("paginationCursor")
    if cursor is not None and type(cursor) is not str:
        raise not_understood("paginationCursor")
    return Page(_messages(answer.get("messages")), cursor or None)


def parse_messages(body: bytes) -> tuple[Message, ...]:
    """What a relay has gathered."""
    return _messages(decode(body))


def _messages(value: Any) -> tuple[Message, ...]:
    """Those that are complete. What strangers put into a message is no fault of the node that passes it on."""
    gathered = entries(value, "no messages")
    if len(gathered) > MOST_MESSAGES:
        raise not_understood("too many messages")
    listed = [table(each, "a message") for each in gathered]
    return tuple(filter(None, (_message(each.get("message", each)) for each in listed)))


def _message(value: Any) -> Message | None:
    match value:
        case {"contentTopic": str(topic), "payload": str(payload), "timestamp": sent_ns} if type(sent_ns) is int:
            return Message(topic, payload, sent_ns // _NS_PER_MS)
        case _:
            return None
