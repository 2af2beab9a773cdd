"""The commands that ask a running monitor: reload, recheck, silence, note."""

import http.client
import os
import socket
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import click
import msgspec
from msgspec import Struct

from lookout.app import reloader
from lookout.app.notices import (
    ADD_PATH,
    ANSWER_WITHIN_S,
    END_PATH,
    LIST_PATH,
    RECHECK_PATH,
    Ending,
    NoticeEntry,
    Recheck,
    RecheckAnswer,
    Refusal,
)
from lookout.base.admin_port import CHANGE_HEADER, CONFIG_HEADER, RELOAD_HEADER
from lookout.base.instants import parse_second
from lookout.base.sockets import can_be_asked, is_unix, path_of, resolve
from lookout.base.url import host_and_port
from lookout.cli.arguments import NOT_FINE, WRONG_USE, config_option, fail, settings_of
from lookout.config.file import read_admin_config
from lookout.core.causes import describe_cause
from lookout.core.notices import NoticeDraft, NoticeKind
from lookout.public.about import time_text

_GRACE_S: Final = 5  # beyond the time in which a monitor answers

T = TypeVar("T")


@click.command()
@config_option
def reload(config: Path) -> None:
    """Make the running monitor read its configuration again, without a gap, and show what changed.

    The monitor checks the file first, with its own environment. Exit code 1 if nothing was reloaded.
    """
    port = _MonitorPort(config, reloader.ANSWER_WITHIN_S, "send the monitor SIGHUP instead")
    reloaded = port.ask("/reload", reloader.Reloaded, RELOAD_HEADER, refused=NOT_FINE)
    lists = {
        "added": reloaded.added,
        "removed": reloaded.removed,
        "changed": reloaded.changed,
        "needs a restart": reloaded.needs_restart,
    }
    changes = [f"  {what}: {', '.join(names)}" for what, names in lists.items() if names]
    click.echo("\n".join([f"reloaded {config}" + ("" if changes else ": nothing changed"), *changes]))
    if reloaded.kept_variables:
        click.echo(f"  needs a restart if it was changed: {', '.join(f'${name}' for name in reloaded.kept_variables)}")


@click.command()
@config_option
@click.argument("service", default="")
@click.argument("chain", default="")
def recheck(config: Path, service: str, chain: str) -> None:
    """Make the running monitor ask its sources now: those of SERVICE, on CHAIN (an id or a name), or all of them if you
    name none. After a repair you need not wait for the back-off of up to two minutes.

    It counts like any other probe. A source is asked at most once in 10 seconds. Exit code 1 if a row is not current,
    or if the monitor could not ask because its machine lacks a resource.
    """
    port = _open_for_notices(config)
    asked = Recheck((service,) if service else (), (chain,) if chain else ())
    answer = port.ask(RECHECK_PATH, RecheckAnswer, CHANGE_HEADER, asked)
    if not answer.sources:
        fail("no source is configured for this service and chain", exit_code=NOT_FINE)
    for source in answer.sources:
        is_recent = "" if source.is_asked else "asked less than 10 s ago"
        note = f"not asked: {source.not_asked}" if source.not_asked else is_recent
        for row in source.rows:
            where = row.service if row.chain_id is None else f"{row.service} on {answer.chains[row.chain_id]}"
            why = f": {describe_cause(row.cause)}" if row.cause else ""
            click.echo(f"{where}: {row.status}{why}{f' ({note})' if note else ''}")
    if any(source.not_asked or row.status != "current" for source in answer.sources for row in source.rows):
        raise SystemExit(NOT_FINE)


_NOTICE_OPTIONS: Final = (
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


def _notice_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_NOTICE_OPTIONS):
        command = option(command)
    return command


@click.group()
def silence() -> None:
    """Hold back alerts of some services and chains for some time.

    What is still bad when the silence ends is reported then, and what was reported before is still reported when it
    recovers. Nothing public changes. Exit code 1 if the monitor could not do it, 2 if the request is wrong.
    """


@silence.command("add", short_help="Begin a silence.")
@_notice_options
@click.option("--why", "text", default="", metavar="TEXT", help="The reason, for the list: up to 200 characters.")
def add_silence(config: Path, **asked: Any) -> None:
    """Hold back alerts; without --service and --chain all of them. Either --until or --for is needed.

    \b
    lookout silence add --for 2h --why "moving the squid"
    lookout silence add --service indexer --chain Polygon --until 2026-11-17T16:00Z
    """
    _change("added", config, ADD_PATH, NoticeDraft("silence", **asked))


@silence.command("list", short_help="List what is silenced.")
@config_option
def list_silences(config: Path) -> None:
    """List all silences, and the notes that silence alerts, the newest first."""
    _list("silence", config, lambda entry: entry.silences)


@silence.command("end", short_help="End a silence.")
@config_option
@click.argument("notice_id", metavar="ID")
def end_silence(config: Path, notice_id: str) -> None:
    """End the silence with this ID now: what is bad is reported at once."""
    _change("ended", config, END_PATH, Ending("silence", notice_id))


@click.group()
def note() -> None:
    """Publish a note, such as planned maintenance, on the page and in the feeds, beside what is measured.

    It changes no measurement. Exit code 1 if the monitor could not do it, 2 if the request is wrong.
    """


@note.command("add", short_help="Publish a note.")
@click.argument("text")
@_notice_options
@click.option("--silence", "silences", is_flag=True, help="Hold back alerts of its services and chains meanwhile.")
def add_note(config: Path, **asked: Any) -> None:
    """Publish TEXT, one line of up to 500 characters. Without --until and --for it is shown until you end it.

    \b
    lookout note add "Planned maintenance of the squid on Polygon" --service indexer --chain Polygon \\
        --from 2026-11-17T14:00Z --for 2h --silence
    """
    _change("added", config, ADD_PATH, NoticeDraft("note", **asked))


@note.command("list", short_help="List the notes.")
@config_option
def list_notes(config: Path) -> None:
    """List all notes that are not over, the newest first."""
    _list("note", config, lambda entry: entry.kind == "note")


@note.command("end", short_help="Take a note away.")
@config_option
@click.argument("notice_id", metavar="ID")
def end_note(config: Path, notice_id: str) -> None:
    """Take the note with this ID away now."""
    _change("ended", config, END_PATH, Ending("note", notice_id))


def _change(done: str, config: Path, path: str, asked: NoticeDraft | Ending) -> None:
    entry = _open_for_notices(config).ask(path, NoticeEntry, CHANGE_HEADER, asked)
    ended = f"ended now, at {entry.until[11:19]} UTC" if path == END_PATH and entry.until else ""
    click.echo(f"{done} {_describe(entry, ended)}")


def _list(kind: NoticeKind, config: Path, is_listed: Callable[[NoticeEntry], bool]) -> None:
    entries = _open_for_notices(config).ask(LIST_PATH, tuple[NoticeEntry, ...])
    listed = [_describe(entry) for entry in entries if is_listed(entry)]
    click.echo("\n".join(listed) or f"there is no {kind}")


def _describe(entry: NoticeEntry, ended: str = "") -> str:
    until_at = None if entry.until is None else parse_second(entry.until)
    silences = "; alerts are silenced" if entry.silences and entry.kind == "note" else ""
    when = f"{entry.scope}, {ended or f'{time_text(parse_second(entry.from_), until_at)}{silences}'}"
    return "\n  ".join(filter(None, (f"{entry.kind} {entry.id}", entry.text, when)))


def _open_for_notices(config: Path) -> "_MonitorPort":
    return _MonitorPort(config, ANSWER_WITHIN_S, "ask on the machine of the monitor that has the store")


class _Error(Struct, frozen=True):
    error: str


class _MonitorPort:
    """The admin port that a configuration names; a request without an answer ends the command with what to do
    instead."""

    def __init__(self, config: Path, answer_within_s: float, instead: str) -> None:
        self._config = config
        self._wait_s = answer_within_s + _GRACE_S
        self._instead = instead
        self.address = resolve(settings_of(config, read_admin_config).monitor, config.parent)
        if not can_be_asked(self.address):
            fail(f"{config}: admin.monitor: names no port to ask; {instead}")

    def ask(
        self, path: str, kind: type[T], header: str = "", asked: Struct | None = None, refused: int = WRONG_USE
    ) -> T:
        """The answer to a GET, or to a POST with the ``header`` that keeps browsers from asking this; or the end of the
        command, with ``refused`` as the exit code of a refusal."""
        try:
            body = b"" if asked is None else msgspec.json.encode(asked)
        except UnicodeEncodeError:
            fail("the arguments are not valid UTF-8")
        http_code, answered = self._request(path, header, body)
        try:
            if http_code == HTTPStatus.OK:
                return msgspec.json.decode(answered, type=kind)
            if http_code == HTTPStatus.UNPROCESSABLE_ENTITY:
                fail(*msgspec.json.decode(answered, type=Refusal).problems, exit_code=refused)
            why = msgspec.json.decode(answered, type=_Error).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            why = "it is not a monitor"
        return fail(f"{self.address} refused: {why}", exit_code=NOT_FINE)

    def _request(self, path: str, header: str, body: bytes) -> tuple[int, bytes]:
        meant = quote(os.fsencode(self._config.absolute()))
        connection = self._connect()
        try:
            connection.request(
                "POST" if header else "GET", path, body, {header: "1", CONFIG_HEADER: meant} if header else {}
            )
            response = connection.getresponse()
            return response.status, response.read()
        except TimeoutError:
            fail(f"the monitor at {self.address} did not answer within {self._wait_s:g} s", exit_code=NOT_FINE)
        except (OSError, http.client.HTTPException) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not HTTP"
            silent = f"no monitor answers at {self.address}, which admin.monitor names: {why}"
            fail(f"{silent}; a standby cannot do this: {self._instead}", exit_code=NOT_FINE)
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if is_unix(self.address):
            return _UnixConnection(path_of(self.address), self._wait_s)
        host, port = host_and_port(self.address)
        return http.client.HTTPConnection(host, port, timeout=self._wait_s)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, wait_s: float) -> None:
        super().__init__("localhost", timeout=wait_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
