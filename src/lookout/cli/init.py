"""``lookout init``: from options or an interview to the files that it writes."""

import os
import readline  # noqa: F401  it lets people edit what they type
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from stat import S_ISREG
from typing import Any, Final

import click

from lookout.cli.answers import QUESTIONS, AnswerError, Question, begin, probe_drafts, select_rows
from lookout.cli.arguments import fail, open_private
from lookout.cli.draft import Draft, DraftTable, find_secret
from lookout.cli.probe import explain_row, list_next_steps, show_probed
from lookout.config import DEFAULT_CONFIG
from lookout.config.file import ConfigError
from lookout.config.settings import Settings
from lookout.core.causes import WITHOUT_HEAD, code_of

_BACK: Final = "back"
_STANDARD_OUTPUT: Final = Path("-")


def _entry_options(command: Callable[..., None]) -> Callable[..., None]:
    for question in reversed(QUESTIONS):
        command = click.option(f"--{question.option}", metavar=question.form, multiple=True, help=question.help)(
            command
        )
    return command


@click.command()
@click.argument("path", type=click.Path(allow_dash=True, path_type=Path), default=DEFAULT_CONFIG)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--no-probe", is_flag=True, help="Ask no source; then each indexer needs its KIND.")
@_entry_options
def init(path: Path, *, force: bool, no_probe: bool, **options: Any) -> None:
    """Write a configuration to PATH (default: lookout.toml; - is standard output), which only its owner can read.

    On a terminal it asks, and probes each source as you name it. With options it asks nothing; most of them can be
    repeated. What follows a # in a URL is its JSON pointer, deployment or method.
    """
    is_file, draft = path != _STANDARD_OUTPUT, begin(path, is_probing=not no_probe)
    has_options = any(options.values())
    is_asking = is_file and not has_options and sys.stdin.isatty() and sys.stdout.isatty()
    if is_file:
        _check_place(path, force=force, is_asking=is_asking)
    if not has_options and not is_asking:
        fail("say what to watch by options (lookout init --help), or use it on a terminal, where it asks")
    draft = _interview(draft) if is_asking else _take_options(draft, options)
    try:
        settings = draft.settings()
    except ConfigError as error:
        fail(*error.messages)
    if has_options and draft.is_probing:
        show_probed(probe_drafts(draft)[0], settings, on_stderr=not is_file)
    # The variables first: a configuration without them could not be used.
    if draft.secrets:
        lines = "".join(f"{name}='{value}'\n" for name, value in draft.secrets.items())
        _write_private(draft.environment_path, lines, os.O_APPEND)
    for warning in settings.warnings():
        click.echo(f"lookout: warning: {path}: {warning}", err=True)
    _write(path, draft.text())
    if any(find_secret(text) for given in options.values() for text in given):
        hint = "write '${NAME}' in their place to take them from the environment"
        click.echo(f"lookout: warning: {path}: addresses in it may have secrets in them; {hint}", err=True)
    if is_file:
        _say_what_is_next(draft, settings)


def _check_place(path: Path, *, force: bool, is_asking: bool) -> None:
    if path.is_dir():
        fail(f"{path}: is a folder; name a file in it")
    if not path.parent.is_dir():
        fail(f"{path}: there is no folder {path.parent}; make it first")
    if not path.exists() or force or (is_asking and click.confirm(f"{path} exists. Replace it in the end?")):
        return
    fail(f"{path}: already exists; choose another name, or replace it with --force")


def _take_options(draft: Draft, options: dict[str, Any]) -> Draft:
    """The draft with all options; or the end of the command, with what is wrong with each of them."""
    wrong, known = [], Counter[str]()
    for question in QUESTIONS:
        texts = options[question.option.replace("-", "_")]
        for number, text in enumerate(texts, 1):
            which = f"--{question.option} {number}" if len(texts) > 1 else f"--{question.option}"
            try:
                draft = question.take(draft, text)
            except AnswerError as error:
                wrong.append(f"{which}: {error}")
            problems = Counter(draft.problems())
            wrong += [f"{which}: {problem}" for problem in (problems - known).elements()]
            known = problems
    if wrong:
        fail(*wrong)
    return draft.hide_unmonitored()


def _interview(draft: Draft) -> Draft:
    """Ask every question. Nothing is written meanwhile, so Ctrl-C leaves everything as it was."""
    click.echo("Enter skips a question, or ends a list;", nl=False)
    click.echo(f" {_BACK} returns to the previous question; Ctrl-C ends this, and nothing is written.")
    click.echo("In any answer, ${NAME} stands for the environment variable NAME.")
    number, before, is_warned = 0, list[tuple[int, Draft]](), False
    try:
        while number < len(QUESTIONS):
            question = QUESTIONS[number]
            click.echo()
            answer = click.prompt(f"{question.help}\n{question.form}", "", show_default=False).strip()
            if answer == _BACK:
                number, draft = before.pop() if before else (number, draft)
                continue
            doubts = [] if answer or question.option != "rpc" or is_warned else _doubt_endpoints(draft)
            is_warned = bool(doubts)
            _say(*doubts, *["Enter again goes on with that."] * is_warned)
            taken = _take_answer(draft, question, answer) if answer else None if doubts else draft
            if taken is not None:
                before.append((number, draft))
                number, draft = number + (not (answer and question.repeats)), taken
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nNothing is written.", err=True)
        raise
    draft = draft.without_empty_chains().hide_unmonitored()
    if not any(table.name == "chains" or table.service for table in draft.tables):
        fail("no chain and no service was named, so nothing is written")
    return draft


def _doubt_endpoints(draft: Draft) -> list[str]:
    whole = draft.without_empty_chains()
    if not whole.find("chains"):
        return ["no endpoint is named yet"]
    return [doubt.text for doubt in whole.settings().warnings() if doubt.key.endswith(".rpc")]


def _take_answer(draft: Draft, question: Question, answer: str) -> Draft | None:
    """The draft with an answer; None, after printing why, if the question is to be asked again."""
    before = draft.tables
    secret = find_secret(answer)
    if secret is not None:
        hiding, variable = draft.hide(secret, question.option)
        if click.confirm(f"  This may hold a secret. Keep it out of the file, in {variable}?", default=True):
            draft, answer = hiding, answer.replace(secret, variable)
    try:
        draft = question.take(draft, answer)
    except AnswerError as error:
        _say(str(error))
        return None
    problems = draft.problems()
    _say(*problems)
    is_kept = not problems and all(_keeps(draft, table) for table in draft.tables if table not in before)
    return draft if is_kept else None


def _keeps(draft: Draft, table: DraftTable) -> bool:
    """Ask what a table names, and show what it said; whether the table is to stay in the draft."""
    if draft.is_probing and table.name == "chains" and table.keys["rpc"]:
        return _keeps_endpoint(draft, table)
    return not draft.is_probing or table.service is None or _keeps_source(draft, table)


def _keeps_endpoint(draft: Draft, chain: DraftTable) -> bool:
    """Ask the endpoints of a chain, and say how the newest compares."""
    heads = probe_drafts(draft.narrow_to(chain))[0].chains[0]
    newest = heads.endpoints[-1]
    said = newest.block if len(heads.endpoints) == 1 and newest.block else newest.found
    _say(f"{said} ({newest.took_ms} ms)")
    return newest.is_fine or (newest.cause is None and not heads.has_head) or _keeps_anyway(newest.cause)


def _keeps_source(draft: Draft, table: DraftTable) -> bool:
    rows, names = select_rows(probe_drafts(draft.narrow_to(table))[0], table), draft.chain_names()
    for probed in rows:
        chain_id = probed.row.check.chain_id
        where = "" if chain_id is None else f"{names[chain_id]}: "
        _say(f"{where}{probed.row.status}: {explain_row(probed)}")
    doubts = {code_of(probed.cause or "") for probed in rows if probed.row.status == "unknown"}
    return doubts <= set(WITHOUT_HEAD) or _keeps_anyway(*(probed.cause for probed in rows))


def _keeps_anyway(*causes: str | None) -> bool:
    _say(*list_next_steps(causes))
    return click.confirm("  Keep it anyway?", default=None)


def _say(*lines: str) -> None:
    for line in lines:
        click.echo(f"  {line}")


def _say_what_is_next(draft: Draft, settings: Settings) -> None:
    which = "" if str(draft.path) == DEFAULT_CONFIG else f" -c {quote(str(draft.path))}"
    click.echo(f"\n{draft.path} is written. Next:")
    if draft.secrets:
        file = quote(str(draft.environment_path.absolute()))
        click.echo(f"  export LOOKOUT_ENV_FILE={file}    # in each shell: the secrets that are kept out of it")
    click.echo(f"  lookout check-config{which} && lookout probe{which}")
    if draft.find("alerts"):
        click.echo(f"  lookout alerts test{which}")
    click.echo("  systemctl enable --now lookout" if draft.is_of_unit else f"  lookout run{which}")
    click.echo(f"\nThen the status page is at http://{settings.server.listen}/")


def _write_private(path: Path, text: str, how: int = os.O_TRUNC) -> None:
    """Write or append a file for its owner, and for a group that could read it before."""
    with open_private(path, how) as file:
        before = os.fstat(file.fileno())
        if S_ISREG(before.st_mode):  # and not /dev/null
            os.fchmod(file.fileno(), before.st_mode & 0o640)
        file.write((f"\n{text}" if before.st_size else text).encode())


def _write(path: Path, text: str) -> None:
    if path == _STANDARD_OUTPUT:
        click.echo(text, nl=False)
    else:
        _write_private(path, text)
