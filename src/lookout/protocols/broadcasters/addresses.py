"""Broadcasters' addresses: bech32m with the prefix ``0zk``, in which the key that signs announcements stands."""

from functools import lru_cache
from typing import Final

PREFIX: Final = "0zk"
ADDRESS_LENGTH: Final = 127

_CHARACTERS: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES: Final = {character: value for value, character in enumerate(_CHARACTERS)}
_GENERATORS: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32M: Final = 0x2BC830A3
_CHECKSUM_LENGTH: Final = 6
# version, master public key, network id, viewing public key
_VERSION: Final = 1
_ADDRESS_BYTES: Final = 1 + 32 + 8 + 32
_VIEWING_KEY: Final = slice(41, 73)


def viewing_key(address: str) -> bytes | None:
    """The 32 bytes of the viewing public key; None for anything that is not an address."""
    return _viewing_key(address) if len(address) == ADDRESS_LENGTH else None


@lru_cache(maxsize=4096)  # the same few announce themselves four times a minute
def _viewing_key(address: str) -> bytes | None:
    content = decode_bech32m(PREFIX, address)
    if content is None or len(content) != _ADDRESS_BYTES or content[0] != _VERSION:
        return None
    return content[_VIEWING_KEY]


def decode_bech32m(prefix: str, text: str) -> bytes | None:
    """The bytes that the text stands for, if its prefix and checksum are right.

    Of any length: an address is longer than the 90 characters for which the checksum was made.
    """
    if text not in (text.lower(), text.upper()):  # never mixed
        return None
    text = text.lower()
    if not text.startswith(prefix + "1"):
        return None
    written = text[len(prefix) + 1 :]
    if len(written) < _CHECKSUM_LENGTH or not all(character in _VALUES for character in written):
        return None
    values = [_VALUES[character] for character in written]
    if _checksum([*_expanded(prefix), *values]) != _BECH32M:
        return None
    return _bytes_of(values[:-_CHECKSUM_LENGTH])


def _expanded(prefix: str) -> list[int]:
    return [*(ord(character) >> 5 for character in prefix), 0, *(ord(character) & 31 for character in prefix)]


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
    """Groups of five bits as bytes; what is left over is less than a group, and zero."""
    number = 0
    for value in values:
        number = number << 5 | value
    length, left_over = divmod(len(values) * 5, 8)
    if left_over >= 5 or number & ((1 << left_over) - 1):
        return None
    return (number >> left_over).to_bytes(length, "big")
