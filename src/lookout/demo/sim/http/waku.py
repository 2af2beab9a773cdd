"""The waku node's REST interface: its peers, its health, the store, and the relay's cache."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Final

from lookout.demo.sim.announcements import announcement, ill_signed
from lookout.demo.sim.http.reply import UpstreamReply, json_reply, text_reply
from lookout.demo.sim.upstreams import Heard, Upstreams

PUBSUB_TOPIC: Final = "/waku/2/rs/5/1"
_KEPT_MS: Final = 3_600_000
_CACHED_MS: Final = 300_000
_NS_PER_MS: Final = 1_000_000
_PAGE_SIZE: Final = 20
_LARGEST_PAGE: Final = 100
_KNOWN_ONLY: Final = 3  # peers that are known and not connected
_PROTOCOLS: Final = ("/vac/waku/relay/2.0.0", "/vac/waku/store-query/3.0.0", "/vac/waku/metadata/1.0.0")


def content_topic(chain_id: int) -> str:
    return f"/railgun/v2/0-{chain_id}-fees/json"


def peers_reply(path: str, connected: int) -> UpstreamReply | None:
    """What the node says of itself; None for a path that is not about that."""
    match path:
        case "/admin/v1/peers/connected":
            return json_reply([_peer(number, "Connected") for number in range(connected)])
        case "/admin/v1/peers":
            known = [_peer(connected + number, "NotConnected") for number in range(_KNOWN_ONLY)]
            return json_reply([*(_peer(number, "Connected") for number in range(connected)), *known])
        case "/health":
            health = "READY" if connected else "NOT_READY"
            return json_reply({"nodeHealth": health, "protocolsHealth": [{"Relay": health}, {"Store": "READY"}]})
        case _:
            return None


def store_reply(query: Mapping[str, str], upstreams: Upstreams, at: int) -> UpstreamReply:
    """A page of the messages of the last hour. Like the real one, it is in the order of time in either direction."""
    try:
        begin_ns = int(query.get("startTime") or 0)
        end_ns = int(query.get("endTime") or at * _NS_PER_MS)
        page_size = min(_LARGEST_PAGE, int(query.get("pageSize") or _PAGE_SIZE) or _PAGE_SIZE)
    except ValueError as problem:
        return text_reply(f"Problem parsing a number [{problem}]", 400)
    if page_size < 0:
        return text_reply("Problem parsing page size", 400)
    if query.get("pubsubTopic", PUBSUB_TOPIC) == PUBSUB_TOPIC:
        after_at = max(-(-begin_ns // _NS_PER_MS) - 1, at - _KEPT_MS)
        messages = _messages(upstreams, query.get("contentTopics"), after_at, min(at, end_ns // _NS_PER_MS))
    else:
        messages = []
    ascending = query.get("ascending", "true") == "true"
    if not ascending:
        messages.reverse()
    begin = 0
    if cursor := query.get("cursor"):
        hashes = [_message_hash(heard) for heard in messages]
        if cursor not in hashes:
            return text_reply("Problem parsing cursor", 400)
        begin = hashes.index(cursor) + 1
    page = messages[begin : begin + page_size]
    answer: dict[str, object] = {"requestId": _digest(f"request/{at}")[:32], "statusCode": 200, "statusDesc": "OK"}
    in_order = page if ascending else page[::-1]
    answer["messages"] = [_stored(upstreams, heard, query.get("includeData", "false")) for heard in in_order]
    if begin + page_size < len(messages):
        answer["paginationCursor"] = _message_hash(page[-1])
    return json_reply(answer)


class Relay:
    """What was heard on the topics that are subscribed to, and not read yet."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._read_at: dict[str, int] = {}

    def subscribe(self, body: bytes, at: int) -> UpstreamReply:
        try:
            topics = json.loads(body)
        except ValueError:
            return text_reply("Invalid content body, could not decode", 400)
        if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
            return text_reply("Invalid content body, expected an array of topics", 400)
        for topic in topics:
            self._read_at.setdefault(topic, at)
        return text_reply("OK", 200)

    def read(self, topic: str, at: int) -> UpstreamReply:
        """The messages since the last reading, and the cache is empty; the oldest are lost when nobody reads."""
        if topic not in self._read_at:
            return text_reply(f"Not subscribed to topic: {topic}", 404)
        after_at, self._read_at[topic] = max(self._read_at[topic], at - _CACHED_MS), at
        heard = _messages(self._upstreams, None, after_at, at) if topic == PUBSUB_TOPIC else []
        return json_reply([_message(self._upstreams, each) for each in heard])


def _messages(upstreams: Upstreams, topics: str | None, after_at: int, until_at: int) -> list[Heard]:
    wanted = set(topics.split(",")) if topics else None
    chain_ids = [
        chain_id
        for chain_id, members in upstreams.broadcasters.items()
        if members and (wanted is None or content_topic(chain_id) in wanted)
    ]
    return sorted(heard for chain_id in chain_ids for heard in upstreams.heard(chain_id, after_at, until_at))


def _stored(upstreams: Upstreams, heard: Heard, include_data: str) -> dict[str, object]:
    stored: dict[str, object] = {"messageHash": _message_hash(heard)}
    if include_data == "true":
        stored |= {"message": _message(upstreams, heard), "pubsubTopic": PUBSUB_TOPIC}
    return stored


def _message(upstreams: Upstreams, heard: Heard) -> dict[str, object]:
    payload = announcement(upstreams.broadcasters[heard.chain_id][heard.number], heard.sent_at)
    return {
        "payload": base64.b64encode(payload if heard.well_signed else ill_signed(payload)).decode(),
        "contentTopic": content_topic(heard.chain_id),
        "version": 0,
        "timestamp": heard.sent_at * _NS_PER_MS,
        "ephemeral": False,
    }


def _message_hash(heard: Heard) -> str:
    return "0x" + _digest(f"{heard.chain_id}/{heard.number}/{heard.sent_at}")


def _peer(number: int, connected: str) -> dict[str, object]:
    return {
        "multiaddr": f"/ip4/192.0.2.{number + 1}/tcp/30304/p2p/16Uiu2HAm{_digest(f'peer/{number}')[:44]}",
        "protocols": list(_PROTOCOLS),
        "shards": [1],
        "connected": connected,
        "agent": "nwaku",
        "origin": "Discv5",
    }


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
