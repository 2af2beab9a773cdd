"""Packages with a protocol, as an installer leaves them: a module and its dist-info, in a folder of the path."""

import os
from pathlib import Path
from typing import Final

# Reads {"block": 17}; a test replaces what it wants to be wrong.
GOOD: Final = """
from lookout.protocols.api import AccessTable, Blocks, KindTable, Protocol, Request, count, decode, table

def make_request(settings):
    return Request("GET", settings.url, settings)

def parse(body, settings):
    return Blocks(count(table(decode(body), "no status").get("block"), "no block"))

PROTOCOL = Protocol("tidal", Blocks, KindTable, make_request, parse)
"""


def with_parse(*lines: str) -> str:
    """A package whose ``parse`` does this."""
    return _with_function("def parse(body, settings):", lines)


def with_request(*lines: str) -> str:
    return _with_function("def make_request(settings):", lines)


def _with_function(start: str, lines: tuple[str, ...]) -> str:
    before, _, after = GOOD.partition(start)
    return "\n    ".join([before + start, *lines]) + "\n" + after.partition("\n\n")[2]


def install(folder: Path, code: str = GOOD, kind: str = "tidal", distribution: str = "lookout-tidal") -> str:
    """Put a package into a folder; where its protocol is."""
    module = distribution.replace("-", "_")
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / f"{module}.py").write_text(code)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[lookout.protocols]\n{kind} = {module}:PROTOCOL\n")
    return f"{module}:PROTOCOL"


def path_with(folder: Path) -> dict[str, str]:
    """The variable by which Python finds what is in a folder."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}
