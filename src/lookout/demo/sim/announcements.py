"""Broadcasters: who they are, when they announce their fees, and the signed announcements themselves."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"

_LIFETIME_MS: Final = 300_000
_SHORTEST_PAUSE_MS: Final = 18_000
_LONGEST_PAUSE_MS: Final = 22_000
_ANY_NETWORK: Final = bytes([0xFF] * 8)
_TOKEN: Final = "0xdac17f958d2ee523a2206206994597c13d831ec7"  # noqa: S105 - a currency's, not a secret
_RELAY_ADAPT: Final = "0x4025ee6512dbbda97049bcf5aa5d38c54af6be8a"

_PREFIX: Final = "0zk"
_CHARACTERS: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32M: Final = 0x2BC830A3
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


class Broadcaster(NamedTuple):
    """One broadcaster on one chain, announcing every ``pause_ms``."""

    key: Ed25519PrivateKey
    address: str
    identifier: str | None
    pause_ms: int
    phase_ms: int


def broadcasters(seed: int, chain_id: int, count: int) -> tuple[Broadcaster, ...]:
    """A chain's broadcasters, the same for the same seed."""
    return tuple(_broadcaster(f"{seed}/{chain_id}/{number}", number) for number in range(count))


def sent_between(broadcaster: Broadcaster, after_at: int, until_at: int) -> Iterator[int]:
    """When it announces later than the first instant and not later than the second."""
    pause_ms, phase_ms = broadcaster.pause_ms, broadcaster.phase_ms
    first = (after_at - phase_ms) // pause_ms + 1
    yield from range(first * pause_ms + phase_ms, until_at + 1, pause_ms)


def announcement(broadcaster: Broadcaster, sent_at: int) -> bytes:
    """The message's payload."""
    told: dict[str, object] = {
        "fees": {_TOKEN: "0x1bc16d674ec80000"},
        "feeExpiration": sent_at + _LIFETIME_MS,
        "feesID": _digest(f"{broadcaster.address}/{sent_at}").hex()[:16],
        "railgunAddress": broadcaster.address,
    }
    if broadcaster.identifier is not None:
        told["identifier"] = broadcaster.identifier
    told |= {
        "availableWallets": 2,
        "version": "8.2.3",
        "relayAdapt": _RELAY_ADAPT,
        "requiredPOIListKeys": [REQUIRED_LIST],
        "reliability": 0.99,
    }
    content = json.dumps(told, separators=(",", ":")).encode()
    return _envelope(content, broadcaster.key.sign(content))


def ill_signed(payload: bytes) -> bytes:
    """The same announcement with a signature that does not verify."""
    envelope = json.loads(payload)
    signature = bytearray.fromhex(envelope["signature"])
    signature[0] ^= 1
    return _envelope(bytes.fromhex(envelope["data"]), bytes(signature))


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


def _envelope(content: bytes, signature: bytes) -> bytes:
    return json.dumps({"data": content.hex(), "signature": signature.hex()}, separators=(",", ":")).encode()


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
