"""Badges: a label and a status in a small picture, and the same for shields.io to draw."""

from html import escape
from typing import Final
from unicodedata import normalize

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
# How wide Verdana's characters are, in hundredths of an em; DejaVu Sans, which stands in for it, is as wide. A text is
# drawn to exactly the width that is made room for, whatever the font.
_WIDTHS: Final[dict[str, int]] = {
    character: width
    for width, characters in {
        27: "'il",
        35: " fj",
        37: ",.",
        39: "!t",
        43: "Ir",
        45: "()-/:;J[\\]|",
        46: '"',
        52: "csz",
        55: "?L",
        59: "Fkvxy",
        61: "PTYae",
        63: "Ebdghnopqu_`{}",
        64: "$*0123456789",
        69: "ABCKRSVXZ",
        73: "&U",
        75: "DHN",
        79: "GOQ",
        82: "#+<=>^w~",
        85: "M",
        98: "mW",
        100: "@",
        108: "%",
    }.items()
    for character in characters
}
_WIDEST: Final = 108  # of a character that is not listed


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
    plain = (normalize("NFD", character)[0] for character in text)  # an accent makes no letter wider
    hundredths = sum(_WIDTHS.get(character, _WIDEST) for character in plain)
    return max(1, round(hundredths * _SIZE / 100))
