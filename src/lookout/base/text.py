"""Shortens text, and makes it safe to show."""

import unicodedata
from typing import Final

# Between letters of Persian and Arabic and parts of emoji; and marks of direction, which end with their word.
_JOINERS_AND_MARKS: Final = "\u200c\u200d\u200e\u200f\u061c"


def shorten(text: str, longest: int, mark: str = "...") -> str:
    return text if len(text) <= longest else text[: longest - len(mark)] + mark


def clean(text: str, longest: int = 200) -> str:
    """A stranger's text as it is kept and shown: short, of one line, and without control characters."""
    text = shorten(text, longest)
    return text if text.isprintable() else "".join(letter if can_be_shown(letter) else "?" for letter in text)


def can_be_shown(character: str) -> bool:
    """Whether it belongs in a line of text: no control character, and none that changes the order of others."""
    return character.isprintable() or unicodedata.category(character) == "Zs" or character in _JOINERS_AND_MARKS
