"""Fee announcements, with which every broadcaster says that it is there: a payload in, a verified announcement out."""

import base64
import binascii
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Raw, Struct

from lookout.protocols.answers import count
from lookout.protocols.broadcasters.addresses import viewing_key
from lookout.protocols.broadcasters.seen import Announcement
from lookout.protocols.client.failure import ProbeFailed

FUTURE_TOLERANCE_MS: Final = 60_000
# In base64, before anything is done with it. Of the real ones, those with the fees of 60 tokens take 20 KB: a hundred
# such fill a store's page, and one three times as long is still read.
LONGEST_PAYLOAD: Final = 65_536
_LONGEST_IDENTIFIER: Final = 128  # it is remembered, and strangers choose it


class Claim(Struct, frozen=True, gc=False):
    """An announcement that its broadcaster may have signed, or somebody else."""

    announcement: Announcement
    written_address: str
    signature: bytes
    signed: bytes


class _Envelope(Struct, gc=False):
    data: str
    signature: str


class _Fees(Struct, gc=False, rename="camel"):
    """What is needed of it. The fees themselves are skipped."""

    railgun_address: str
    fee_expiration: Raw
    available_wallets: Raw
    identifier: str | None = None


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_FEES: Final = msgspec.json.Decoder(_Fees)


def read_claim(payload: str, sent_at: int) -> Claim | None:
    """The announcement in a message's payload (base64), not verified yet; None counts for nobody.

    ``sent_at`` comes from the message's envelope, which nobody signs, but no broadcaster announces fees that have
    expired: an old announcement that somebody sends again is not younger than its expiry.
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
    if fees.identifier is not None and len(fees.identifier) > _LONGEST_IDENTIFIER:
        return None
    address = fees.railgun_address
    announcement = Announcement(
        address.lower(), fees.identifier, min(sent_at, expires_at), expires_at, available_wallets
    )
    return Claim(announcement, address, signature, signed)


def is_signed(claim: Claim) -> bool:
    """Whether the address in it signed it. This takes longer than all the rest."""
    key = viewing_key(claim.written_address)
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
    """Whether a broadcaster whose newest announcement this is counts as responding."""
    return (
        announcement.sent_at >= at - fresh_ms
        and not is_from_the_future(announcement, at)
        and announcement.expires_at >= at + expiry_margin_ms
        and announcement.available_wallets > 0
    )
