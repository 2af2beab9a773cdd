"""``lookout init``."""

import os
from importlib.resources import files
from pathlib import Path

import click

from lookout.cli.arguments import fail


@click.command()
@click.argument("path", type=click.Path(allow_dash=True, path_type=Path), default="lookout.toml")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(path: Path, force: bool) -> None:
    """Write a configuration to start from, with every table, to PATH (default: lookout.toml; - is standard output).

    Only its owner can read the file.
    """
    text = read_template()
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
    click.echo(f'{path}: replace each "FILL IN" with your own address')


def read_template() -> str:
    return files("lookout.cli").joinpath("lookout.template.toml").read_text(encoding="utf-8")


def _write(path: Path, text: str, *, replace: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replace else os.O_EXCL)
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
