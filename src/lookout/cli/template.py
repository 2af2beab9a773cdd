"""The configuration to start from, and what it says about tables and keys."""

import re
from importlib.resources import files
from typing import Final, NamedTuple

_HEADER: Final = re.compile(r"(?:# )?(\[+([a-z.-]+)\]+)")
_KEY: Final = re.compile(r"(?:# )?(\w+) = (?:.*?\s# (.+)|.*)")


class Section(NamedTuple):
    """A table as the template has it."""

    header: str
    paragraph: str
    """The comment above it, with its line breaks."""
    comments: dict[str, str]
    """Beside its keys."""


def read_template() -> str:
    return files("lookout.cli").joinpath("lookout.template.toml").read_text(encoding="utf-8")


def read_sections() -> dict[str, Section]:
    """Every table of the template by its name, in the template's order."""
    sections: dict[str, Section] = {}
    section, paragraph, above = Section("", "", {}), "", ""
    for line in read_template().splitlines():
        if header := _HEADER.fullmatch(line):
            section = sections.setdefault(header[2], Section(header[1], above, {}))
            paragraph = above = ""
        elif not line:
            paragraph, above = "", paragraph
        elif key := _KEY.fullmatch(line):
            section.comments.setdefault(key[1], key[2] or "")
        elif line.startswith("# "):
            paragraph += f"{line}\n"
    return sections
