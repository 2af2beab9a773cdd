"""The badge that other sites show by a script tag."""

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from lookout.public.about import Description
from lookout.public.page.sources import strip_source
from lookout.public.page.texts import LANGUAGES, read_catalogue
from lookout_reader.statuses import STATUSES

PATH: Final = "/embed.js"
_SLOT: Final = b'"SITE"'  # in the script, for what it has to know of this deployment


def encode_embed(description: Description) -> bytes:
    """The script, with this deployment in it."""
    about, english = description.read(), read_catalogue(LANGUAGES[0]).texts
    keys = ("chain.unnamed", "means.line", "headline.current.part", "warning.one-view", "warning.not-a-signal")
    site = {
        "protocol": description.protocol,
        "title": description.title,
        "chains": [(str(chain.id), chain.name) for chain in description.chains],
        "testNetworks": sorted(about.test_networks),
        "languages": LANGUAGES[1:],
        "texts": {key: english[key] for key in (*keys, *(f"status.{status.word}" for status in STATUSES))},
        # White is readable on the colours of a light page.
        "looks": {status.word: (f"#{status.look.light.text}", status.look.shapes[0]) for status in STATUSES},
    }
    return _script().replace(_SLOT, msgspec.json.encode(site))


@cache
def _script() -> bytes:
    return strip_source(files(__package__).joinpath("embed.js").read_text(encoding="utf-8")).encode()
