"""Badges: a label and a status in a small picture, and the same for shields.io to draw."""

from html import escape
from typing import Final

import msgspec

from lookout.base.text import shorten
from lookout_reader.statuses import STATUSES, EffectiveStatus

# As on the status page: white text is readable on each of them.
COLOURS: Final[dict[EffectiveStatus, str]] = {status.word: status.look.light.text for status in STATUSES}
MESSAGES: Final[dict[EffectiveStatus, str]] = {status.word: status.name for status in STATUSES}

_LABEL_COLOUR: Final = "444b54"
_LONGEST: Final = 60
_SIZE: Final = 11  # of the font, in pixels
_PADDING: Final = 6
# How wide a character is drawn, in pixels, about as in Verdana. A text gets exactly the width that is made room for,
# whatever the font.
_WIDTHS: Final = dict.fromkeys("'!(),-./:;I[]fijlrt| ", 4.3) | dict.fromkeys("#%+<=>@DGHMNOQWmw", 9.0)
_LETTER: Final = 6.6
_WIDEST: Final = 12.0  # of a character that is not ASCII


class Shield(msgspec.Struct, frozen=True, rename="camel"):
    """What shields.io reads from an endpoint."""

    schema_version: int
    label: str
    message: str
    color: str
    cache_seconds: int


def encode_shield(label: str, status: EffectiveStatus, max_age_s: int) -> bytes:
    return msgspec.json.encode(Shield(1, _short(label), MESSAGES[status], COLOURS[status], max_age_s))


def draw_badge(label: str, status: EffectiveStatus, title: str) -> bytes:
    """An SVG picture that needs nothing else; ``title`` is what it says in full."""
    label, message = _short(label), MESSAGES[status]
    left, right = _width(label), _width(message)
    split, whole = left + 2 * _PADDING, left + right + 4 * _PADDING
    name = escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{name}">'
        f"<title>{escape(title)}</title>"
        f'<clipPath id="r"><rect width="{whole}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{split}" height="20" fill="#{_LABEL_COLOUR}"/>'
        f'<rect x="{split}" width="{whole - split}" height="20" fill="#{COLOURS[status]}"/></g>'
        f'<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="{_SIZE}">'
        f'<text x="{_PADDING}" y="14" textLength="{left}">{escape(label)}</text>'
        f'<text x="{split + _PADDING}" y="14" textLength="{right}">{message}</text></g></svg>\n'
    ).encode()


def _short(label: str) -> str:
    return shorten(label, _LONGEST, "\N{HORIZONTAL ELLIPSIS}")


def _width(text: str) -> int:
    widths = (_WIDTHS.get(character, _LETTER if character.isascii() else _WIDEST) for character in text)
    return max(1, round(sum(widths)))
