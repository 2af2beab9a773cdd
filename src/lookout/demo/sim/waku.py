"""The waku node's REST interface: its peers, its health, the store and the relay's cache of broadcasters' messages."""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lookout.demo.sim.ppoi import REQUIRED_LIST
from lookout.demo.sim.upstream import Asked, Upstream, UpstreamReply, json_reply, text_reply
from lookout.demo.sim.world import Heard, World

PUBSUB_TOPIC: Final = "/waku/2/rs/5/1"
_KEPT_MS: Final = 3_600_000  # by the store
_CACHED_MS: Final = 300_000  # by the relay
_NS_PER_MS: Final = 1_000_000
_PAGE_SIZE: Final = 20
_LARGEST_PAGE: Final = 100
_KNOWN_ONLY: Final = 3  # peers that are known and not connected

_LIFETIME_MS: Final = 300_000  # of an announcement
_SHORTEST_PAUSE_MS: Final = 18_000  # between two of a broadcaster
_LONGEST_PAUSE_MS: Final = 22_000
_ANY_NETWORK: Final = bytes([0xFF] * 8)
_TOKEN: Final = "0xdac17f958d2ee523a2206206994597c13d831ec7"  # noqa: S105 - a currency's, not a secret
_RELAY_ADAPT: Final = "0x4025ee6512dbbda97049bcf5aa5d38c54af6be8a"
_PREFIX: Final = "0zk"
_CHARACTERS: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32M: Final = 0x2BC830A3
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


class Broadcaster(NamedTuple):
    key: Ed25519PrivateKey
    address: str
    identifier: str | None
    pause_ms: int
    phase_ms: int


@lru_cache
def broadcasters(seed: int, chain_id: int, count: int) -> tuple[Broadcaster, ...]:
    return tuple(_broadcaster(f"{seed}/{chain_id}/{number}", number) for number in range(count))


def _reply_about_itself(asked: Asked) -> UpstreamReply:
    connected = asked.world.peers(asked.at)
    match asked.method, asked.path:
        case "GET", "/admin/v1/peers/connected":
            return json_reply([_peer(number, "Connected") for number in range(connected)])
        case "GET", "/admin/v1/peers":
            known = [_peer(connected + number, "NotConnected") for number in range(_KNOWN_ONLY)]
            return json_reply([*(_peer(number, "Connected") for number in range(connected)), *known])
        case "GET", "/health":
            health = "READY" if connected else "NOT_READY"
            return json_reply({"nodeHealth": health, "protocolsHealth": [{"Relay": health}, {"Store": "READY"}]})
        case _:
            return _unknown_path()


def _reply_with_messages(asked: Asked) -> UpstreamReply:
    match asked.method, asked.path.split("/", 4):
        case "GET", ["", "store", "v3", "messages"]:
            return _read_store(asked)
        case "POST", ["", "relay", "v1", "subscriptions"]:
            return _subscribe(asked)
        case "GET", ["", "relay", "v1", "messages", topic]:
            return _read_relay(asked, topic)
        case _:
            return _unknown_path()


def _unknown_path() -> UpstreamReply:
    return text_reply("Bad Request", 400)  # as the real one answers


def _read_store(asked: Asked) -> UpstreamReply:
    """A page of the messages of the last hour. Like the real one, it is in the order of time in either direction."""
    query, at = asked.query, asked.at
    try:
        begin_ns = int(query.get("startTime") or 0)
        end_ns = int(query.get("endTime") or at * _NS_PER_MS)
        page_size = min(_LARGEST_PAGE, int(query.get("pageSize") or _PAGE_SIZE) or _PAGE_SIZE)
    except ValueError as problem:
        return text_reply(f"Problem parsing a number [{problem}]", 400)
    if page_size < 0:
        return text_reply("Problem parsing page size", 400)
    messages: list[Heard] = []
    if query.get("pubsubTopic", PUBSUB_TOPIC) == PUBSUB_TOPIC:
        after_at = max(-(-begin_ns // _NS_PER_MS) - 1, at - _KEPT_MS)
        messages = _messages(asked.world, query.get("contentTopics"), after_at, min(at, end_ns // _NS_PER_MS))
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
    with_data = query.get("includeData", "false") == "true"
    answer: dict[str, object] = {
        "requestId": _digest(f"request/{at}").hex()[:32],
        "statusCode": 200,
        "statusDesc": "OK",
    }
    answer["messages"] = [
        _stored(asked.world, heard, with_data=with_data) for heard in (page if ascending else page[::-1])
    ]
    if begin + page_size < len(messages):
        answer["paginationCursor"] = _message_hash(page[-1])
    return json_reply(answer)


def _subscribe(asked: Asked) -> UpstreamReply:
    try:
        topics = json.loads(asked.body)
    except ValueError:
        topics = None
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        return text_reply("Invalid content body, expected an array of topics", 400)
    for topic in topics:
        asked.world.relay_read_at.setdefault(topic, asked.at)
    return text_reply("OK", 200)


def _read_relay(asked: Asked, topic: str) -> UpstreamReply:
    """The messages since the last reading, which empties the cache; the oldest are lost when nobody reads."""
    read_at = asked.world.relay_read_at
    if topic not in read_at:
        return text_reply(f"Not subscribed to topic: {topic}", 404)
    after_at, read_at[topic] = max(read_at[topic], asked.at - _CACHED_MS), asked.at
    heard = _messages(asked.world, None, after_at, asked.at) if topic == PUBSUB_TOPIC else []
    return json_reply([_message(asked.world, one) for one in heard])


def _messages(world: World, topics: str | None, after_at: int, until_at: int) -> list[Heard]:
    wanted = topics.split(",") if topics else None
    return sorted(
        heard
        for chain in world.layout
        if wanted is None or _content_topic(chain.chain_id) in wanted
        for number, broadcaster in enumerate(broadcasters(world.seed, chain.chain_id, chain.members))
        for sent_at in _sent_between(broadcaster, after_at, until_at)
        if (heard := world.heard(chain.chain_id, number, sent_at)) is not None
    )


def _stored(world: World, heard: Heard, *, with_data: bool) -> dict[str, object]:
    stored: dict[str, object] = {"messageHash": _message_hash(heard)}
    return stored | {"message": _message(world, heard), "pubsubTopic": PUBSUB_TOPIC} if with_data else stored


def _message(world: World, heard: Heard) -> dict[str, object]:
    (members,) = (chain.members for chain in world.layout if chain.chain_id == heard.chain_id)
    broadcaster = broadcasters(world.seed, heard.chain_id, members)[heard.number]
    payload = _announcement(broadcaster, heard.sent_at, well_signed=heard.well_signed)
    return {
        "payload": base64.b64encode(payload).decode(),
        "contentTopic": _content_topic(heard.chain_id),
        "version": 0,
        "timestamp": heard.sent_at * _NS_PER_MS,
        "ephemeral": False,
    }


def _content_topic(chain_id: int) -> str:
    return f"/railgun/v2/0-{chain_id}-fees/json"


def _message_hash(heard: Heard) -> str:
    return "0x" + _digest(f"{heard.chain_id}/{heard.number}/{heard.sent_at}").hex()


def _peer(number: int, connected: str) -> dict[str, object]:
    return {
        "multiaddr": f"/ip4/192.0.2.{number + 1}/tcp/30304/p2p/16Uiu2HAm{_digest(f'peer/{number}').hex()[:44]}",
        "protocols": ["/vac/waku/relay/2.0.0", "/vac/waku/store-query/3.0.0"],
        "connected": connected,
        "agent": "nwaku",
    }


def _sent_between(broadcaster: Broadcaster, after_at: int, until_at: int) -> Iterator[int]:
    pause_ms, phase_ms = broadcaster.pause_ms, broadcaster.phase_ms
    first = (after_at - phase_ms) // pause_ms + 1
    yield from range(first * pause_ms + phase_ms, until_at + 1, pause_ms)


def _announcement(broadcaster: Broadcaster, sent_at: int, *, well_signed: bool) -> bytes:
    fields: dict[str, object] = {
        "fees": {_TOKEN: "0x1bc16d674ec80000"},
        "feeExpiration": sent_at + _LIFETIME_MS,
        "feesID": _digest(f"{broadcaster.address}/{sent_at}").hex()[:16],
        "railgunAddress": broadcaster.address,
    }
    if broadcaster.identifier is not None:
        fields["identifier"] = broadcaster.identifier
    fields |= {
        "availableWallets": 2,
        "version": "8.2.3",
        "relayAdapt": _RELAY_ADAPT,
        "requiredPOIListKeys": [REQUIRED_LIST],
        "reliability": 0.99,
    }
    content = json.dumps(fields, separators=(",", ":")).encode()
    signature = broadcaster.key.sign(content if well_signed else b"something else")
    return json.dumps({"data": content.hex(), "signature": signature.hex()}, separators=(",", ":")).encode()


def _broadcaster(name: str, number: int) -> Broadcaster:
    key = Ed25519PrivateKey.from_private_bytes(_digest(f"{name}/viewing key"))
    master_public_key = bytes([0, *_digest(f"{name}/master public key")[1:]])  # below the field's modulus
    chance = int.from_bytes(_digest(f"{name}/pause")[:8])
    pause_ms = _SHORTEST_PAUSE_MS + chance % (_LONGEST_PAUSE_MS - _SHORTEST_PAUSE_MS)
    return Broadcaster(
        key=key,
        address=_address(master_public_key, key.public_key().public_bytes_raw()),
        identifier=f"b{number}" if number % 3 else None,
        pause_ms=pause_ms,
        phase_ms=chance // 65_536 % pause_ms,
    )


def _address(master_public_key: bytes, viewing_public_key: bytes) -> str:
    network = bytes(ours ^ theirs for ours, theirs in zip(_ANY_NETWORK, b"railgun\0", strict=True))
    return _bech32m(b"\x01" + master_public_key + network + viewing_public_key)


def _bech32m(content: bytes) -> str:
    bits = "".join(f"{byte:08b}" for byte in content)
    bits += "0" * (-len(bits) % 5)
    symbols = [int(bits[begin : begin + 5], 2) for begin in range(0, len(bits), 5)]
    expanded = [ord(letter) >> 5 for letter in _PREFIX] + [0] + [ord(letter) & 31 for letter in _PREFIX]
    remainder = _remainder([*expanded, *symbols, 0, 0, 0, 0, 0, 0]) ^ _BECH32M
    checksum = [remainder >> shift & 31 for shift in (25, 20, 15, 10, 5, 0)]
    return _PREFIX + "1" + "".join(_CHARACTERS[symbol] for symbol in [*symbols, *checksum])


def _remainder(symbols: Iterable[int]) -> int:
    remainder = 1
    for symbol in symbols:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << 5 ^ symbol
        for bit, term in enumerate(_GENERATOR):
            if top >> bit & 1:
                remainder ^= term
    return remainder


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


MESSAGES: Final = Upstream("*", "/waku{path:/(?:store|relay)/.*}", "waku/messages", _reply_with_messages)
PEERS: Final = Upstream("*", "/waku{path:(?:/.*)?}", "waku/peers", _reply_about_itself)
