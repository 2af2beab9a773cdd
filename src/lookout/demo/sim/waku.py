"""The waku node's REST interface: its peers, and the store of broadcasters' messages."""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lookout.demo.sim.upstreams import REQUIRED_LIST, Asked, Upstream, UpstreamReply, json_reply
from lookout.demo.sim.world import Heard, World

PUBSUB_TOPIC: Final = "/waku/2/rs/5/1"
_KEPT_MS: Final = 3_600_000  # by the store
_NS_PER_MS: Final = 1_000_000
_LARGEST_PAGE: Final = 100

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


def _reply_with_peers(asked: Asked) -> UpstreamReply:
    return json_reply([_peer(number) for number in range(asked.world.peers(asked.at))])


def _reply_with_messages(asked: Asked) -> UpstreamReply:
    """A page of the messages of the last hour. The first page is the newest; within a page, as in a real node's, the
    oldest message is first."""
    query, at = asked.query, asked.at
    after_at = max(-(-int(query["startTime"]) // _NS_PER_MS) - 1, at - _KEPT_MS)
    messages = _messages(asked.world, query["contentTopics"].split(","), after_at, at)[::-1]
    hashes = [_message_hash(heard) for heard in messages]
    begin = hashes.index(query["cursor"]) + 1 if "cursor" in query else 0
    end = begin + min(_LARGEST_PAGE, int(query["pageSize"]))
    answer: dict[str, object] = {
        "requestId": _digest(f"request/{at}").hex()[:32],
        "statusCode": 200,
        "statusDesc": "OK",
        "messages": [_stored(asked.world, heard) for heard in messages[begin:end][::-1]],
    }
    if end < len(messages):
        answer["paginationCursor"] = hashes[end - 1]
    return json_reply(answer)


def _messages(world: World, topics: list[str], after_at: int, until_at: int) -> list[Heard]:
    return sorted(
        heard
        for chain in world.layout
        if _content_topic(chain.chain_id) in topics
        for number, broadcaster in enumerate(broadcasters(world.seed, chain.chain_id, chain.members))
        for sent_at in _sent_between(broadcaster, after_at, until_at)
        if (heard := world.heard(chain.chain_id, number, sent_at)) is not None
    )


def _stored(world: World, heard: Heard) -> dict[str, object]:
    return {
        "messageHash": _message_hash(heard),
        "message": _message(world, heard),
        "pubsubTopic": PUBSUB_TOPIC,
    }


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


def _peer(number: int) -> dict[str, object]:
    return {
        "multiaddr": f"/ip4/192.0.2.{number + 1}/tcp/30304/p2p/16Uiu2HAm{_digest(f'peer/{number}').hex()[:44]}",
        "protocols": ["/vac/waku/relay/2.0.0", "/vac/waku/store-query/3.0.0"],
        "connected": "Connected",
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


MESSAGES: Final = Upstream("GET", "/waku/store/v3/messages", "waku/messages", _reply_with_messages)
PEERS: Final = Upstream("GET", "/waku/admin/v1/peers/connected", "waku/peers", _reply_with_peers)
