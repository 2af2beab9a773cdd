"""Fee announcements, by which broadcasters are seen: a payload in, a verified announcement out.

A broadcaster's address is bech32m with the prefix ``0zk``, and holds the key that signs its announcements.
"""

import base64
import binascii
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Raw, Struct

from lookout.base.text import clean
from lookout.protocols.answers import count
from lookout.protocols.client.failure import ProbeFailed

PREFIX: Final = "0zk"
ADDRESS_LENGTH: Final = 127
_CHARACTERS: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATORS: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32M: Final = 0x2BC830A3
_CHECKSUM_LENGTH: Final = 6
# version, master public key, network id, viewing public key
_VERSION: Final = 1
_ADDRESS_BYTES: Final = 1 + 32 + 8 + 32
_VIEWING_KEY: Final = slice(41, 73)
FUTURE_TOLERANCE_MS: Final = 60_000
# In base64, checked first. A real announcement with the fees of 60 tokens takes 20 KB, a hundred fill a store's page,
# and an announcement three times as long is still read.
LONGEST_PAYLOAD: Final = 65_536


class Announcement(Struct, frozen=True, gc=False):
    address: str
    identifier: str | None
    sent_at: int
    expires_at: int
    available_wallets: int


class Claim(Struct, frozen=True, gc=False):
    """An announcement whose signature is not verified yet."""

    announcement: Announcement
    signature: bytes
    signed: bytes


class _Envelope(Struct, gc=False):
    data: str
    signature: str


class _Fees(Struct, gc=False, rename="camel"):
    railgun_address: str
    fee_expiration: Raw
    available_wallets: Raw
    identifier: str | None = None


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_FEES: Final = msgspec.json.Decoder(_Fees)


def read_claim(payload: str, sent_at: int) -> Claim | None:
    """The announcement in a message's payload (base64), not verified yet; None if it is none.

    ``sent_at`` comes from the message's unsigned envelope. Broadcasters announce no expired fees, so a replayed
    announcement counts as no younger than its expiry.
    """
    if len(payload) > LONGEST_PAYLOAD:
        return None
    try:
        envelope = _ENVELOPE.decode(base64.b64decode(payload, validate=True))
        signed, signature = binascii.unhexlify(envelope.data), binascii.unhexlify(envelope.signature)
        fees = _FEES.decode(signed)
        expires_at = count(fees.fee_expiration, "feeExpiration")
        available_wallets = count(fees.available_wallets, "availableWallets")
    except (ProbeFailed, ValueError, RecursionError):  # base64, hexadecimal, JSON
        return None
    address, identifier = fees.railgun_address.lower(), None if fees.identifier is None else clean(fees.identifier)
    announcement = Announcement(address, identifier, min(sent_at, expires_at), expires_at, available_wallets)
    return Claim(announcement, signature, signed)


def is_signed(claim: Claim) -> bool:
    """Whether the claimed address signed it, which is the slowest check."""
    # Imported here: it takes 7 MB, and servers, which read the configuration too, do not need it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = viewing_key(claim.announcement.address)
    if key is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(claim.signature, claim.signed)
    except InvalidSignature:
        return False
    return True


def is_from_the_future(announcement: Announcement, at: int) -> bool:
    return announcement.sent_at > at + FUTURE_TOLERANCE_MS


def is_answer(announcement: Announcement, at: int, fresh_ms: int, expiry_margin_ms: int) -> bool:
    return (
        announcement.sent_at >= at - fresh_ms
        and not is_from_the_future(announcement, at)
        and announcement.expires_at >= at + expiry_margin_ms
        and announcement.available_wallets > 0
    )


def viewing_key(address: str) -> bytes | None:
    """The 32 bytes of the viewing public key; None if the text is no address."""
    return _viewing_key(address) if len(address) == ADDRESS_LENGTH else None


@lru_cache(maxsize=4096)  # the same few addresses recur four times a minute
def _viewing_key(address: str) -> bytes | None:
    content = decode_bech32m(PREFIX, address)
    if content is None or len(content) != _ADDRESS_BYTES or content[0] != _VERSION:
        return None
    return content[_VIEWING_KEY]


def decode_bech32m(prefix: str, text: str) -> bytes | None:
    """The decoded bytes, if prefix and checksum are right.

    The length is not limited: an address is longer than the 90 characters for which the checksum was made.
    """
    if text not in (text.lower(), text.upper()):  # never mixed
        return None
    text = text.lower()
    values = [_CHARACTERS.find(character) for character in text[len(prefix) + 1 :]]
    if not text.startswith(prefix + "1") or len(values) < _CHECKSUM_LENGTH or -1 in values:
        return None
    expanded = [*(ord(character) >> 5 for character in prefix), 0, *(ord(character) & 31 for character in prefix)]
    if _checksum([*expanded, *values]) != _BECH32M:
        return None
    return _bytes_of(values[:-_CHECKSUM_LENGTH])


def _checksum(values: list[int]) -> int:
    remainder = 1
    for value in values:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_GENERATORS):
            if top >> bit & 1:
                remainder ^= generator
    return remainder


def _bytes_of(values: list[int]) -> bytes | None:
    """Groups of five bits as bytes; padding is shorter than a group, and zero."""
    number = 0
    for value in values:
        number = number << 5 | value
    length, left_over = divmod(len(values) * 5, 8)
    if left_over >= 5 or number & ((1 << left_over) - 1):
        return None
    return (number >> left_over).to_bytes(length, "big")
