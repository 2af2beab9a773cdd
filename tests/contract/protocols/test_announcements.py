"""Which announcements are believed, and which of those count as an answer."""

import base64
import json
from typing import Any

import pytest
from msgspec.structs import replace

from lookout.protocols.broadcasters.announcements import Announcement, decode_bech32m, is_answer, viewing_key
from tests.builders import NOON
from tests.cases import cases
from tests.contract.protocols.announcers import (
    VECTORS,
    broadcaster,
    envelope,
    payload,
    read_announcement,
)

FINE = Announcement("0zk1x", None, NOON, NOON + 300_000, 2)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.clause("M9")
@pytest.mark.parametrize("vector", VECTORS, ids=["no identifier", "no wallets", "an address of one chain"])
def test_an_announcement_of_the_networks_own_library_is_believed(vector: dict[str, Any]) -> None:
    fees = vector["decoded"]
    assert viewing_key(vector["address"]) == bytes.fromhex(vector["viewingPublicKey"])
    assert read_announcement(encoded(vector["payload"].encode()), 1_794_708_000_000) == Announcement(
        vector["address"],
        fees.get("identifier"),
        1_794_708_000_000,
        fees["feeExpiration"],
        fees["availableWallets"],
    )


@pytest.mark.clause("M9")
@pytest.mark.parametrize("part", ["data", "signature"])
@pytest.mark.parametrize("vector", VECTORS, ids=["first", "second", "third"])
def test_one_flipped_bit_and_it_counts_for_nobody(vector: dict[str, Any], part: str) -> None:
    whole = json.loads(vector["payload"])
    content = bytearray.fromhex(whole[part])
    for position in range(0, len(content) * 8, 7):
        content[position // 8] ^= 1 << position % 8
        flipped = json.dumps({**whole, part: content.hex()}).encode()
        assert read_announcement(encoded(flipped), NOON) is None
        content[position // 8] ^= 1 << position % 8


def test_what_another_key_signed_counts_for_nobody() -> None:
    honest, impostor = broadcaster(1), broadcaster(2)
    fees = {"feeExpiration": NOON, "availableWallets": 2}
    assert read_announcement(encoded(envelope(honest, fees)), NOON) is not None
    claimed = {**fees, "railgunAddress": honest.address}
    assert read_announcement(encoded(envelope(impostor, claimed)), NOON) is None


@pytest.mark.parametrize(
    "fees",
    [
        {"feeExpiration": NOON, "availableWallets": True},
        {"feeExpiration": NOON, "availableWallets": 2.0},
        {"feeExpiration": NOON, "availableWallets": -1},
        {"feeExpiration": NOON},
        {"feeExpiration": str(NOON), "availableWallets": 2},
        {"feeExpiration": 2**53, "availableWallets": 2},
        {"availableWallets": 2},
        {"feeExpiration": NOON, "availableWallets": 2, "identifier": 7},
        {"feeExpiration": NOON, "availableWallets": 2, "railgunAddress": None},
    ],
)
def test_a_signed_announcement_of_another_shape_counts_for_nobody(fees: dict[str, Any]) -> None:
    assert read_announcement(encoded(envelope(broadcaster(1), fees)), NOON) is None


@pytest.mark.parametrize(
    "text",
    ["", "not base64", "e30", "e30=", "W10=", encoded(b'{"data":"zz","signature":"00"}'), encoded(b"[" * 100_000), "é"],
)
def test_a_payload_that_is_no_envelope_counts_for_nobody(text: str) -> None:
    assert read_announcement(text, NOON) is None


def test_an_announcement_sent_again_is_no_younger_than_its_expiry() -> None:
    again = read_announcement(payload(sent_at=NOON), NOON + 3_600_000)
    assert again is not None
    assert again.sent_at == NOON + 300_000


@pytest.mark.clause("S10")
@pytest.mark.parametrize(
    ("announcement", "expected"),
    [
        pytest.param(FINE, True, id="sent now"),
        pytest.param(replace(FINE, sent_at=NOON - 120_000), True, id="sent just long enough ago to be fresh"),
        pytest.param(replace(FINE, sent_at=NOON - 120_001), False, id="sent too long ago"),
        pytest.param(replace(FINE, sent_at=NOON + 60_000), True, id="sent by a clock a minute ahead"),
        pytest.param(replace(FINE, sent_at=NOON + 60_001), False, id="sent in the future"),
        pytest.param(replace(FINE, expires_at=NOON + 40_000), True, id="expiring just late enough"),
        pytest.param(replace(FINE, expires_at=NOON + 39_999), False, id="expiring too soon"),
        pytest.param(replace(FINE, available_wallets=1), True, id="with one wallet"),
        pytest.param(replace(FINE, available_wallets=0), False, id="without wallets"),
    ],
)
def test_an_answer_is_fresh_unexpired_and_has_wallets(announcement: Announcement, *, expected: bool) -> None:
    assert is_answer(announcement, NOON, fresh_ms=120_000, expiry_margin_ms=40_000) is expected


def test_an_address_with_any_wrong_character_is_none() -> None:
    address = VECTORS[0]["address"]
    for place in range(len(address)):
        wrong = "q" if address[place] != "q" else "p"
        assert viewing_key(address[:place] + wrong + address[place + 1 :]) is None


@pytest.mark.parametrize("address", cases("announcements", "what is no address has no key"))
def test_what_is_no_address_has_no_key(address: str) -> None:
    assert viewing_key(address) is None


def test_an_address_means_the_same_in_capitals() -> None:
    address = VECTORS[0]["address"]
    assert viewing_key(address.upper()) == viewing_key(address)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("a1lqfn3a", b""),  # from BIP 350
        (
            "split1checkupstagehandshakeupstreamerranterredcaperredlc445v",
            "c5f38b70305f519bf66d85fb6cf03058f3dde463ecd7918f2dc743918f2d",
        ),
        ("a1lqfn3b", None),
        ("abcdef1l7aum6echk45nj3s0wdvt2fg8x9yrzpqzd3ryx", "ffbbcdeb38bdab49ca307b9ac5a928398a418820"),
    ],
)
def test_bech32m_is_read_as_bip_350_has_it(text: str, content: str | bytes | None) -> None:
    prefix = text.rpartition("1")[0]
    expected = bytes.fromhex(content) if isinstance(content, str) else content
    assert decode_bech32m(prefix, text) == expected
