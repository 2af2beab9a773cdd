"""``lookout init``."""

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final

import click
from msgspec.structs import replace

from lookout.cli.arguments import fail
from lookout.cli.draft import Draft
from lookout.cli.interview import Interview
from lookout.cli.option_draft import OptionError, build_draft
from lookout.cli.probe import show_probed
from lookout.cli.template import read_template
from lookout.cli.trial import probe_draft
from lookout.config import CONFIG_VARIABLE, DEFAULT_CONFIG
from lookout.config.file import ConfigError
from lookout.store.kinds import ADDRESS_FORM

_STANDARD_OUTPUT: Final = Path("-")


def _repeated(name: str, form: str, text: str) -> Callable[[Any], Any]:
    return click.option(name, multiple=True, metavar=form, help=text)


@click.command()
@click.argument("path", type=click.Path(allow_dash=True, path_type=Path), default=DEFAULT_CONFIG)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--no-probe", is_flag=True, help="Ask no source; then each indexer needs its KIND.")
@_repeated("--rpc", "CHAIN=URL", "An RPC endpoint of a chain, which is named or given by its id; three for each chain.")
@_repeated("--chain", "ID,NAME,SECONDS[,test]", "A chain that is not known, and the time between its blocks.")
@_repeated("--indexer", "CHAIN=[KIND:]URL", "Your own indexer of a chain; without KIND, the known kinds are tried.")
@_repeated("--hosted-indexer", "CHAIN=[KIND:]URL", "The indexer of a chain that others run.")
@click.option("--ppoi", metavar="[CHAIN,CHAIN=]URL", help="The ppoi node; on all chains that it has a name for.")
@click.option("--messaging", metavar="URL", help="Your waku node.")
@click.option(
    "--broadcasters", metavar="[CHAIN,CHAIN=]URL", help="The waku node that hears broadcasters; on all chains."
)
@click.option("--store", metavar="URL", help=f"The store's address; it has to {ADDRESS_FORM}.")
@click.option("--store-read", metavar="URL", help="The address for servers, if the store is a database.")
@_repeated("--alert", "[NAME=]ADDRESS", "An address of Apprise that gets messages.")
def init(path: Path, *, force: bool, no_probe: bool, **options: Any) -> None:
    """Write a configuration to PATH (default: lookout.toml; - is standard output), which only its owner can read.

    On a terminal it asks, and probes each source as you name it. With options it asks nothing; most of them can be
    repeated. What follows a # in an indexer's URL is its JSON pointer or deployment. With neither, it writes a file to
    start from, with every table.
    """
    if path != _STANDARD_OUTPUT:
        _check_place(path)
    if any(options.values()):
        _take_options(path, options, force=force, is_probing=not no_probe)
    elif path != _STANDARD_OUTPUT and sys.stdin.isatty() and sys.stdout.isatty():
        _interview(path, force=force, is_probing=not no_probe)
    else:
        _write_or_fail(path, read_template(), force=force)
        if path != _STANDARD_OUTPUT:
            click.echo(f'{path}: replace each "FILL IN" with your own address')


def _check_place(path: Path) -> None:
    if path.is_dir():
        fail(f"{path}: is a folder; name a file in it")
    if not path.parent.is_dir():
        fail(f"{path}: there is no folder {path.parent}; make it first")


def _take_options(path: Path, options: dict[str, Any], *, force: bool, is_probing: bool) -> None:
    if path != _STANDARD_OUTPUT and path.exists() and not force:  # before anybody is asked
        fail(_explain_existing(path))
    try:
        draft = build_draft(path, options, is_probing=is_probing)
        settings = draft.settings()
    except (ConfigError, OptionError) as error:
        fail(*error.messages)
    if is_probing and draft.has_sources():
        show_probed(probe_draft(draft), settings, on_stderr=path == _STANDARD_OUTPUT)
    _write_or_fail(path, draft.text(), force=force)
    for warning in settings.warnings():
        click.echo(f"lookout: warning: {path}: {warning}", err=True)
    if draft.may_have_secrets():
        hint = "write '${NAME}' in their place to take them from the environment"
        click.echo(f"lookout: warning: {path}: addresses in it may have secrets in them; {hint}", err=True)
    if path != _STANDARD_OUTPUT:
        _say_written(draft)


def _interview(path: Path, *, force: bool, is_probing: bool) -> None:
    """Ask, and write in the end; until then, Ctrl-C leaves everything as it was."""
    try:
        if not force and path.exists():
            force = click.confirm(f"{path} exists. Replace it in the end?", default=False)
            if not force:
                fail(_explain_existing(path))
        draft = Interview(Draft(path), is_probing=is_probing).run()
        if not draft.has_sources():
            fail("no chain and no service was named, so nothing is written")
        draft = _write_somewhere(draft, force=force)
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nNothing is written.", err=True)
        raise KeyboardInterrupt from None
    for warning in draft.settings().warnings():
        click.echo(f"Warning: {warning}")
    _say_written(draft)


def _write_somewhere(draft: Draft, *, force: bool) -> Draft:
    """Under another name, if it cannot be written under this one: the answers are not to be lost."""
    while True:
        try:
            # The variables first: alone they harm nobody, while a configuration without them cannot be used.
            if variables := draft.environment():
                _append(draft.environment_path, variables)
            _write(draft.path, draft.text(), force=force)
        except FileExistsError:
            click.echo(f"{draft.path} exists by now.")
        except OSError as error:
            click.echo(f"{error.filename or draft.path}: {error.strerror}")
        else:
            return draft
        draft, force = _ask_place(draft), False


def _ask_place(draft: Draft) -> Draft:
    while True:
        moved = replace(draft, path=Path(click.prompt("Write it to", type=str)))
        taken = moved.find_overridden()
        if not taken:
            return moved
        click.echo(f"{moved.environment_path} has another {', '.join(taken)}.")


def _say_written(draft: Draft) -> None:
    """With what to do next."""
    is_found = str(draft.path) == DEFAULT_CONFIG and CONFIG_VARIABLE not in os.environ
    which = "" if is_found else f" -c {quote(str(draft.path))}"
    click.echo(f"\n{draft.path} is written; only you can read it. Next:")
    if draft.environment():
        file = quote(str(draft.environment_path.absolute()))
        click.echo(f"  export LOOKOUT_ENV_FILE={file}    # in each shell: the secrets that are kept out of it")
    click.echo(f"  lookout check-config{which} && lookout probe{which}")
    if draft.find("alerts"):
        click.echo(f"  lookout alerts test{which}")
    click.echo(f"  lookout run{which}")
    click.echo(f"\nThen the status page is at http://{draft.settings().server.listen}/")
    if draft.environment():
        click.echo(f"For systemd, add {draft.environment_path} to /etc/lookout/environment: docs/deployment.md.")


def _write_or_fail(path: Path, text: str, *, force: bool) -> None:
    if path == _STANDARD_OUTPUT:
        click.echo(text, nl=False)
        return
    try:
        _write(path, text, force=force)
    except FileExistsError:
        fail(_explain_existing(path))
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def _write(path: Path, text: str, *, force: bool) -> None:
    """For the owner alone, and whole or not at all. FileExistsError unless it may be replaced."""
    if force and path.exists() and not path.is_file():  # a device or a pipe
        path.write_text(text, encoding="utf-8")
    elif force and path.exists():
        _replace(path.resolve(), text)
    else:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _fill(file, text)
        except BaseException:
            path.unlink()
            raise


def _replace(path: Path, text: str) -> None:
    file, name = tempfile.mkstemp(prefix=".lookout-", dir=path.parent)
    try:
        with suppress(PermissionError):  # root may write a file that somebody else is to read
            os.fchown(file, path.stat().st_uid, path.stat().st_gid)
        _fill(file, text)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _fill(file: int, text: str) -> None:
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)


def _append(path: Path, text: str) -> None:
    """For the owner alone; and for its group, if that could read it before and not everybody could."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as file:
        mode = os.fstat(file.fileno()).st_mode
        os.fchmod(file.fileno(), mode & (0o600 if mode & 0o004 else 0o640))
        file.write(f"\n{text}" if os.fstat(file.fileno()).st_size else text)


def _explain_existing(path: Path) -> str:
    return f"{path}: already exists; choose another name, or replace it with --force"
