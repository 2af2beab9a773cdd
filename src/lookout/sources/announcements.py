"""Fee announcements, with which every broadcaster says that it is there: a payload in, a verified announcement out."""

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct

from lookout.sources.addresses import viewing_key
from lookout.sources.answers import count, decode, table
from lookout.sources.failure import ProbeFailed

FUTURE_TOLERANCE_MS: Final = 60_000
_LONGEST_IDENTIFIER: Final = 128  # it is remembered, and strangers choose it


class Announcement(Struct, frozen=True, gc=False):
    """What a broadcaster signed, and when its message says it was sent."""

    address: str
    identifier: str | None
    sent_at: int
    expires_at: int
    available_wallets: int


class Freshness(Struct, frozen=True, gc=False):
    """When an announcement counts as an answer."""

    fresh_ms: int
    expiry_margin_ms: int


def read_announcement(
    payload: str, sent_at: int, is_news: Callable[[Announcement], bool] = lambda _: True
) -> Announcement | None:
    """The announcement in a message's payload (base64), if the address in it signed it; None counts for nobody.

    Verifying takes longer than all the rest, and most of what a store has kept is old: only news are verified.

    ``sent_at`` comes from the message's envelope, which nobody signs, but no broadcaster announces fees that have
    expired: an old announcement that somebody sends again is not younger than its expiry.
    """
    try:
        envelope = table(decode(base64.b64decode(payload, validate=True)), "envelope")
        signed = _unhex(envelope.get("data"))
        signature = _unhex(envelope.get("signature"))
        fees = table(decode(signed), "fees")
        address = fees.get("railgunAddress")
        identifier = fees.get("identifier")
        expires_at = count(fees.get("feeExpiration"), "feeExpiration")
        available_wallets = count(fees.get("availableWallets"), "availableWallets")
    except (ProbeFailed, ValueError):  # base64, hexadecimal
        return None
    if type(address) is not str or not _is_identifier(identifier):
        return None
    claimed = Announcement(address.lower(), identifier, min(sent_at, expires_at), expires_at, available_wallets)
    return claimed if is_news(claimed) and _is_signed_by(address, signature, signed) else None


def is_from_the_future(announcement: Announcement, at: int) -> bool:
    return announcement.sent_at > at + FUTURE_TOLERANCE_MS


def is_answer(announcement: Announcement, at: int, freshness: Freshness) -> bool:
    """Whether a broadcaster whose newest announcement this is counts as responding."""
    return (
        announcement.sent_at >= at - freshness.fresh_ms
        and not is_from_the_future(announcement, at)
        and announcement.expires_at >= at + freshness.expiry_margin_ms
        and announcement.available_wallets > 0
    )


def _unhex(value: Any) -> bytes:
    if type(value) is not str:
        raise ValueError("not a string")
    return binascii.unhexlify(value)


def _is_identifier(value: Any) -> bool:
    return value is None or (type(value) is str and len(value) <= _LONGEST_IDENTIFIER)


def _is_signed_by(address: str, signature: bytes, signed: bytes) -> bool:
    key = viewing_key(address)
    if key is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)
    except InvalidSignature:
        return False
    return True
