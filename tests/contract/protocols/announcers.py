"""Broadcasters for tests: keys, addresses and signed announcements, made by code of its own."""

import base64
import json
from functools import cache
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lookout.protocols.broadcasters.announcements import Announcement, is_signed, read_claim
from tests.builders import NOON
from tests.contract.protocols.recorded import recorded

VECTORS: list[dict[str, Any]] = json.loads(recorded("broadcaster-fees.json"))
_CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
EXPIRY_MS = 300_000


class Broadcaster(NamedTuple):
    address: str
    key: Ed25519PrivateKey


@cache
def broadcaster(number: int) -> Broadcaster:
    key = Ed25519PrivateKey.from_private_bytes(number.to_bytes(32, "big"))
    content = bytes([1]) + bytes(32) + b"railgun\0" + key.public_key().public_bytes_raw()
    return Broadcaster(encode_bech32m("0zk", content), key)


def encode_bech32m(prefix: str, content: bytes, constant: int = 0x2BC830A3) -> str:
    bits = "".join(f"{byte:08b}" for byte in content)
    bits += "0" * (-len(bits) % 5)
    values = [int(bits[at : at + 5], 2) for at in range(0, len(bits), 5)]
    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    remainder = 1
    for value in [*expanded, *values, 0, 0, 0, 0, 0, 0]:
        top = remainder >> 25
        remainder = ((remainder & 0x1FFFFFF) << 5) ^ value
        for bit, generator in enumerate([0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3]):
            remainder ^= generator if (top >> bit) & 1 else 0
    remainder ^= constant
    checksum = [(remainder >> 5 * (5 - at)) & 31 for at in range(6)]
    return prefix + "1" + "".join(_CHARSET[value] for value in [*values, *checksum])


def envelope(who: Broadcaster, fees: dict[str, Any]) -> bytes:
    signed = json.dumps({"railgunAddress": who.address, **fees}).encode()
    return json.dumps({"data": signed.hex(), "signature": who.key.sign(signed).hex()}).encode()


def payload(
    number: int = 1,
    *,
    identifier: str | None = None,
    sent_at: int = NOON,
    expires_at: int | None = None,
    wallets: int = 2,
) -> str:
    fees: dict[str, Any] = {
        "fees": {"0xdac1": "0x1b"},
        "feeExpiration": sent_at + EXPIRY_MS if expires_at is None else expires_at,
        "feesID": "fee",
        "availableWallets": wallets,
        "version": "8.2.3",
        "reliability": 0.99,
    }
    if identifier is not None:
        fees["identifier"] = identifier
    return base64.b64encode(envelope(broadcaster(number), fees)).decode()


def read_announcement(payload: str, sent_at: int) -> Announcement | None:
    """What is believed of a payload."""
    claim = read_claim(payload, sent_at)
    return claim.announcement if claim is not None and is_signed(claim) else None


def a_message(number: int = 1, *, chain_id: int = 1, sent_at: int = NOON, **announced: Any) -> dict[str, Any]:
    """A message as a relay gives it."""
    return {
        "payload": payload(number, sent_at=sent_at, **announced),
        "contentTopic": f"/railgun/v2/0-{chain_id}-fees/json",
        "version": 0,
        "timestamp": sent_at * 1_000_000 + 123_456,
        "ephemeral": True,
    }


def a_page(*messages: dict[str, Any], cursor: str | None = None, status_code: int = 200) -> bytes:
    """A page as a store gives it."""
    page: dict[str, Any] = {
        "requestId": "r",
        "statusCode": status_code,
        "statusDesc": "",
        "messages": [
            {"messageHash": f"0x{number:064x}", "message": message, "pubsubTopic": "/waku/2/rs/5/1"}
            for number, message in enumerate(messages)
        ],
    }
    if cursor is not None:
        page["paginationCursor"] = cursor
    return json.dumps(page).encode()
