"""What browsers load: the built scripts, the stylesheet with the rules of each status, the texts of each language, and
the badge for other sites."""

from base64 import b64decode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lookout.core.services import SERVICES
from lookout.public.about import Description
from lookout_reader.statuses import BY_WORD, GREY, KNOWN_STATUSES, STATUSES, Appearance, Palette
from lookout_reader.words import NOTES, OVERVIEW_TEXTS, REASON_TEXTS

EMBED_PATH: Final = "/embed.js"
JAVASCRIPT: Final = "text/javascript; charset=utf-8"
LANGUAGES: Final = ("en", "de", "es", "zh", "ar")  # texts/*.json; the first one is what the others are made from
TEXTS: Final = files(__package__).joinpath("texts")

_FOLDER: Final = "/assets"
_VERSION_LENGTH: Final = 12
_TYPES: Final = {"js": JAVASCRIPT, "css": "text/css; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}
_LINE: Final = ".line { fill: none; stroke: currentColor; stroke-width: 2 }"
# What there is no room for.
_NOT_IN_BADGE: Final = (
    "advice.",
    "also",
    "band.others",
    "band.stale",
    "cause.",
    "end.",
    "list.long",
    "problems.",
    "since",
    "trouble.",
)
_SITE: Final = "LOOKOUT_SITE"  # in the badge's script, for what it has to know of this deployment

PageText = str | dict[str, str]  # with a form for each plural of the language, as CLDR names them


@cache
def load_assets() -> dict[str, tuple[str, bytes]]:
    """What the page loads, by path: media type and content.

    Every file is in a folder named after the content of all files, so that no cache mixes two versions; and outside of
    it for callers that know no version: another site's badge, and reload.js, which has to come when nothing else does.
    """
    plain = _plain_assets()
    return plain | {path.replace(_FOLDER, versioned_folder(), 1): asset for path, asset in plain.items()}


@cache
def versioned_folder() -> str:
    return f"{_FOLDER}/{sha256(repr(_plain_assets()).encode()).hexdigest()[:_VERSION_LENGTH]}"


@cache
def _plain_assets() -> dict[str, tuple[str, bytes]]:
    bodies = {name: text for name, text in _built().items() if name != "embed.js"}
    bodies["page.css"] += status_rules()
    bodies["icon.svg"] = files(__package__).joinpath("icon.svg").read_text(encoding="utf-8")
    bodies |= {f"icon-{status.word}.svg": _draw_icon(status.look) for status in STATUSES}
    bodies |= {f"texts-{code}.js": encode_texts(code) for code in LANGUAGES}
    return {f"{_FOLDER}/{name}": (_TYPES[name.rpartition(".")[2]], text.encode()) for name, text in bodies.items()}


def _draw_icon(look: Appearance) -> str:
    dark = f"@media (prefers-color-scheme: dark) {{ svg {{ color: #{look.dark.text} }} }}"
    style = f"svg {{ color: #{look.light.text}; fill: currentColor }} {dark} {_LINE}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><style>{style}</style>{look.svg}</svg>\n'


@cache
def _built() -> dict[str, str]:
    """What ``make schemas`` built of the scripts and the stylesheet."""
    return msgspec.json.decode(files(__package__).joinpath("built.json").read_bytes(), type=dict[str, str])


def logo_path(picture: str) -> str:
    return f"{_FOLDER}/logo.{picture.partition(':')[0]}" if picture else ""


def read_logo(picture: str) -> dict[str, tuple[str, bytes]]:
    """The operator's picture, as the settings have it."""
    kind, _, encoded = picture.partition(":")
    return {logo_path(picture): (_TYPES[kind], b64decode(encoded))} if picture else {}


def encode_badge(description: Description) -> bytes:
    """The script of the badge, with this deployment in it."""
    about, english = description.read(), read_catalogue(LANGUAGES[0]).texts
    keys = ["chain.unnamed", "means.line", "warning.one-view", "warning.not-a-signal"]
    keys += [key for key in OVERVIEW_TEXTS if not key.startswith(_NOT_IN_BADGE) or key.endswith(".short")]
    site = {
        "protocol": description.protocol,
        "title": description.title,
        "chains": [(str(chain.id), chain.name) for chain in description.chains],
        "testNetworks": sorted(about.test_networks),
        "services": [
            {"name": service.name, "title": service.title, "effect": service.effect} for service in about.services
        ],
        "notes": [],
        "languages": LANGUAGES[1:],
        "texts": {key: english[key] for key in (*keys, *(f"status.{status.word}" for status in STATUSES))},
        # White is readable on the colours of a light page.
        "showUnmonitored": description.show_unmonitored,
        "looks": {status.word: (f"#{status.look.light.text}", status.look.shape) for status in STATUSES},
    }
    return _built()["embed.js"].replace(_SITE, msgspec.json.encode(site).decode()).encode()


# ---- Texts


class Catalogue(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """All texts of one language; ``language`` is its own name for itself, and nobody has reviewed it while
    ``reviewed_by`` is empty."""

    language: str
    locale: str
    direction: Literal["ltr", "rtl"]
    reviewed_by: str
    texts: dict[str, PageText]


@cache
def read_catalogue(code: str) -> Catalogue:
    """A catalogue as its file has it; the English one also with what the reader and the services say in English."""
    catalogue = msgspec.json.decode(TEXTS.joinpath(f"{code}.json").read_bytes(), type=Catalogue)
    return replace(catalogue, texts=_declared_elsewhere() | catalogue.texts) if code == LANGUAGES[0] else catalogue


def encode_texts(code: str) -> str:
    """The catalogue as the page's scripts load it. A service that is still called by its title here was given no other
    by the operator, and is called as the catalogue has it."""
    titles = {service.name: service.title for service in SERVICES}
    catalogue = msgspec.to_builtins(read_catalogue(code)) | {"titles": titles}
    return f"export default {msgspec.json.encode(catalogue).decode()};\n"


def _declared_elsewhere() -> dict[str, PageText]:
    return {
        **{f"service.{service.name}": service.title for service in SERVICES},
        **{f"status.{status.word}": status.name for status in STATUSES},
        **{f"sentence.{status.word}": status.sentence for status in STATUSES},
        **{f"reason.{reason}": text for reason, text in REASON_TEXTS.items()},
        **{f"warning.{note.id}": note.text for note in NOTES},
        **OVERVIEW_TEXTS,
    }


# ---- Colours


def status_rules() -> str:
    """What the stylesheet says of each status, after what stands in page.css."""
    known = [BY_WORD[word] for word in reversed(KNOWN_STATUSES)]
    light = _variables({**{status.word: status.look.light for status in known}, "grey": GREY[0]})
    dark = _variables({**{status.word: status.look.dark for status in known}, "grey": GREY[1]})
    rules = [f":root {{ {light} }}", f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"]
    for status in known:
        bar = f"var(--{status.word}{'' if status.look.light.bar is None else '-bar'})"
        values = f"--tone: var(--{status.word}); --word: var(--tone); --bar: {bar}; --tint: var(--tint-{status.word});"
        rules.append(f'[data-status="{status.word}"] {{ {values} }}')
    return "\n".join(rules) + "\n"


def _variables(palettes: dict[str, Palette]) -> str:
    values: dict[str, str | None] = {}
    for name, palette in palettes.items():
        values |= {name: palette.text, f"{name}-bar": palette.bar, f"tint-{name}": palette.tint}
    return " ".join(f"--{name}: #{colour};" for name, colour in values.items() if colour is not None)
