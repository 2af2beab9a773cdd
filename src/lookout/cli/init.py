"""``lookout init``."""

import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from lookout.cli.arguments import fail

FILL_IN: Final = "FILL IN"
_ABOUT: Final = f"""\
# A configuration to start from: one chain and every service. Replace each "{FILL_IN}" with your own address, or remove
# the table of a service that you do not watch; `lookout check-config -c FILE` says what is left to do.
#
# A key that is commented out has its default. docs/configuration.md explains every key.
# Keep secrets out of this file: ${{NAME}} in a value is the environment variable NAME.
"""
_LIST_OF_TABLES: Final = re.compile(r"^\[\[[a-z.-]+\]\]", re.MULTILINE)
_ADDRESS: Final = re.compile(
    r'^( *(?:\w+ = )?)"https?://[^"]*"(,?)( *# seen in public sources, not tried)?', re.MULTILINE
)
_NOT_OF_ONE_CHAIN: Final = re.compile(
    r" (?:Another is https?://\S+ \([^)]*\)|A chain without one, here \d+, has an unmonitored row)\."
)
_CHAINS: Final = re.compile(r"^chains = \[.*\]", re.MULTILINE)


@click.command(short_help="Write a configuration to start from.")
@click.argument("path", type=click.Path(allow_dash=True, path_type=Path), default="lookout.toml")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(path: Path, force: bool) -> None:
    """Write a configuration to start from, with every table, to PATH (default: lookout.toml; - is standard output).

    Only its owner can read the file.
    """
    text = beginning()
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    if path.is_dir():
        fail(f"{path}: is a folder; name a file in it")
    if not path.parent.is_dir():
        fail(f"{path}: there is no folder {path.parent}; make it first")
    try:
        _write(path, text, replace=force)
    except FileExistsError:
        fail(f"{path}: already exists; choose another name, or replace it with --force")
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    click.echo(f'{path}: replace each "{FILL_IN}" with your own address')


def beginning() -> str:
    """The example, about its first chain alone and without its addresses, also in what its comments say."""
    example = files("lookout.cli").joinpath("lookout.example.toml").read_text(encoding="utf-8")
    seen: set[str] = set()
    kept = [_ABOUT]
    for part in example.rstrip("\n").split("\n\n")[1:]:
        table = _LIST_OF_TABLES.match(part)
        if table is None or table[0] not in seen:
            kept.append(part + "\n")
        if table is not None:
            seen.add(table[0])
    text = _ADDRESS.sub(rf'\1"{FILL_IN}"\2', "\n".join(kept))
    return _CHAINS.sub("chains = [1]", _NOT_OF_ONE_CHAIN.sub("", text))


def _write(path: Path, text: str, *, replace: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replace else os.O_EXCL)
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
