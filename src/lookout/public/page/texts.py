"""The texts of the page: one catalogue for each language. A browser loads one, so each is whole by itself."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lookout.core.services import SERVICES
from lookout_reader.statuses import STATUSES
from lookout_reader.words import NOTES, REASON_TEXTS

LANGUAGES: Final = ("en", "de", "es", "zh", "ar")  # texts/*.json; the first one is what the others are made from
FOLDER: Final = files(__package__).joinpath("texts")

PageText = str | dict[str, str]  # with a form for each plural of the language, as CLDR names them


class Catalogue(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The texts of one language; ``language`` is its own name for itself, and nobody has reviewed it while
    ``reviewed_by`` is empty."""

    language: str
    locale: str
    direction: Literal["ltr", "rtl"]
    reviewed_by: str
    texts: dict[str, PageText]


def read_catalogue(code: str, folder: Traversable = FOLDER) -> Catalogue:
    """A catalogue as its file has it; the English one also with what the reader and the services say in English."""
    catalogue = msgspec.json.decode(folder.joinpath(f"{code}.json").read_bytes(), type=Catalogue)
    return replace(catalogue, texts=_declared_elsewhere() | catalogue.texts) if code == LANGUAGES[0] else catalogue


def complete_catalogue(code: str, folder: Traversable = FOLDER) -> Catalogue:
    """A catalogue with the English text where there is no other."""
    catalogue = read_catalogue(code, folder)
    return replace(catalogue, texts=read_catalogue(LANGUAGES[0], folder).texts | catalogue.texts)


def encode_script(code: str) -> bytes:
    """The catalogue as the page's scripts load it. A service that is still called by its title here was given no other
    by the operator, and is called as the catalogue has it."""
    titles = {service.name: service.title for service in SERVICES}
    catalogue = msgspec.to_builtins(complete_catalogue(code)) | {"titles": titles}
    return b"export default " + msgspec.json.encode(catalogue) + b";\n"


def _declared_elsewhere() -> dict[str, PageText]:
    return {
        **{f"service.{service.name}": service.title for service in SERVICES},
        **{f"status.{status.word}": status.name for status in STATUSES},
        **{f"sentence.{status.word}": status.sentence for status in STATUSES},
        **{f"reason.{reason}": text for reason, text in REASON_TEXTS.items()},
        **{f"warning.{note.id}": note.text for note in NOTES},
    }
