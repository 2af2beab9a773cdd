"""``lookout note`` and ``lookout silence``: what the operator declares to the running monitor."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from lookout.app.notices import ADD_PATH, ANSWER_WITHIN_S, END_PATH, LIST_PATH, Ending, NoticeEntry, Refusal
from lookout.base.admin_port import CHANGE_HEADER
from lookout.base.instants import parse_second
from lookout.cli.arguments import config_option, fail
from lookout.cli.monitor_port import MonitorPort
from lookout.config.settings import Settings
from lookout.core.notices import NoticeDraft, NoticeKind
from lookout.public.about import scope_text, time_text

_WAIT_S: Final = ANSWER_WITHIN_S + 5

_OPTIONS: Final = (
    config_option,
    click.option(
        "--service", "services", multiple=True, metavar="NAME", help="A service; may be repeated. Default: all."
    ),
    click.option(
        "--chain",
        "chains",
        multiple=True,
        metavar="ID|NAME",
        help="A chain; may be repeated. Default: every chain, and services without one.",
    ),
    click.option("--from", "from_", metavar="INSTANT", help="When it begins, such as 2026-11-17T14:00Z. Default: now."),
    click.option("--until", metavar="INSTANT", help="When it ends, such as 2026-11-17T16:00Z."),
    click.option("--for", "for_", metavar="DURATION", help="How long it lasts, instead: 30min, 2h, 1d."),
)


def _add_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group()
def silence() -> None:
    """Hold back alerts of some services and chains for some time.

    What is still bad when the silence ends is reported then, and what was reported before is still reported when it
    recovers. Nothing public changes. Exit code 1 if the monitor did not do it, 2 if what was asked for is wrong.
    """


@silence.command("add", short_help="Begin a silence.")
@_add_options
@click.option("--why", "text", default="", metavar="TEXT", help="For those who read the list: up to 200 characters.")
def add_silence(config: Path, **asked: Any) -> None:
    """Hold back alerts; without --service and --chain all of them. Either --until or --for is needed.

    \b
    lookout silence add --for 2h --why "moving the squid"
    lookout silence add --service indexer --chain Polygon --until 2026-11-17T16:00Z
    """
    _add(config, NoticeDraft("silence", **asked))


@silence.command("list", short_help="List what is silenced.")
@config_option
def list_silences(config: Path) -> None:
    """List all silences, and the notes that silence alerts, the newest first."""
    _list(config, "there is no silence", lambda each: each.silences)


@silence.command("end", short_help="End a silence.")
@config_option
@click.argument("notice_id", metavar="ID")
def end_silence(config: Path, notice_id: str) -> None:
    """End the silence with this ID now: what is bad is reported at once."""
    _end(config, "silence", notice_id)


@click.group()
def note() -> None:
    """Publish a note, such as planned maintenance, on the page and in the feeds, beside what is measured.

    It changes no measurement. Exit code 1 if the monitor did not do it, 2 if what was asked for is wrong.
    """


@note.command("add", short_help="Publish a note.")
@click.argument("text")
@_add_options
@click.option("--silence", "silences", is_flag=True, help="Hold back alerts of its services and chains meanwhile.")
def add_note(config: Path, **asked: Any) -> None:
    """Publish TEXT, one line of up to 500 characters. Without --until and --for it is shown until you end it.

    \b
    lookout note add "Planned maintenance of the squid on Polygon" --service indexer --chain Polygon \\
        --from 2026-11-17T14:00Z --for 2h --silence
    """
    _add(config, NoticeDraft("note", **asked))


@note.command("list", short_help="List the notes.")
@config_option
def list_notes(config: Path) -> None:
    """List all notes that are not over, the newest first."""
    _list(config, "there is no note", lambda each: each.kind == "note")


@note.command("end", short_help="Take a note away.")
@config_option
@click.argument("notice_id", metavar="ID")
def end_note(config: Path, notice_id: str) -> None:
    """Take the note with this ID away now."""
    _end(config, "note", notice_id)


def _add(config: Path, draft: NoticeDraft) -> None:
    port = _open(config)
    added = _change(port, ADD_PATH, draft)
    click.echo(f"added {added.kind} {added.id}\n{_describe(added, port.settings)}")


def _end(config: Path, kind: NoticeKind, notice_id: str) -> None:
    port = _open(config)
    ended = _change(port, END_PATH, Ending(kind, notice_id))
    click.echo(f"ended {ended.kind} {ended.id}\n{_describe(ended, port.settings)}")


def _list(config: Path, nothing: str, is_listed: Callable[[NoticeEntry], bool]) -> None:
    port = _open(config)
    entries = port.get(LIST_PATH).decode_if(tuple[NoticeEntry, ...], HTTPStatus.OK, "does not list notices")
    lines = [f"{each.kind} {each.id}\n{_describe(each, port.settings)}" for each in entries if is_listed(each)]
    click.echo("\n".join(lines) or nothing)


def _open(config: Path) -> MonitorPort:
    no_port = "notes and silences go through it"
    return MonitorPort(config, _WAIT_S, no_port, nobody="ask on the machine of the monitor that has the store")


def _change(port: MonitorPort, path: str, asked: NoticeDraft | Ending) -> NoticeEntry:
    try:
        body = msgspec.json.encode(asked)
    except UnicodeEncodeError:
        fail("what is given is not text: it has to be UTF-8")
    reply = port.post(path, CHANGE_HEADER, body)
    if reply.http_code == HTTPStatus.UNPROCESSABLE_ENTITY:
        fail(*reply.decode(Refusal).problems)
    return reply.decode_if(NoticeEntry, HTTPStatus.OK, "did not do it")


def _describe(entry: NoticeEntry, settings: Settings) -> str:
    names = {chain.id: chain.name for chain in settings.chains}
    scope = scope_text(entry.services, [names.get(chain_id, f"chain {chain_id}") for chain_id in entry.chains])
    until_at = None if entry.until is None else parse_second(entry.until)
    silences = "; alerts are silenced" if entry.silences and entry.kind == "note" else ""
    when = f"  {scope}, {time_text(parse_second(entry.from_), until_at)}{silences}"
    return f"  {entry.text}\n{when}" if entry.text else when
