"""``lookout watch``: a live table in the terminal."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from io import TextIOWrapper

import click
from rich.console import Console, RenderableType
from rich.live import Live

from lookout.base.url import BaseUrlError, parse_base_url
from lookout.cli.arguments import NO_LIMIT, NOT_FINE, fail, protocol_option
from lookout.public.about import PATH
from lookout.public.terminal import Shown, draw_screen
from lookout_reader import About, NoAnswer, Update, instant_now, parse_about, poll
from lookout_reader.about import NO_ABOUT
from lookout_reader.urllib_fetch import fetch_with_urllib, in_a_thread

_REDRAW_S = 1.0
_USER_AGENT = "lookout-watch"
_ABOUT_WITHIN_S = 2.0  # so long an update waits to be shown


@click.command()
@click.argument("url")
@protocol_option
@click.option("--once", is_flag=True, help="Show it once and end; exit code 1 if there is no report to show.")
def watch(url: str, protocol: str, once: bool) -> None:
    """Show the rows of the deployment at URL (http://host:port) as they are now, with their last day, until Ctrl-C.

    It asks no more often than readers should, and rows expire by this machine's clock. If the output is not a terminal,
    it shows them once.
    """
    try:
        address = str(parse_base_url(url))
    except BaseUrlError as error:
        fail(str(error))
    is_terminal = sys.stdout.isatty()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 lacks the shapes, and has the words
    console = Console(width=None if is_terminal else NO_LIMIT)
    updates = poll(address, protocol, user_agent=_USER_AGENT)
    if is_terminal and not once:
        _show_live(add_about(updates, address), console)
        return
    shown = next(add_about(filter(_is_whole, updates), address))
    console.print(_draw(shown, console))
    raise SystemExit(0 if shown.update.report is not None else NOT_FINE)


def add_about(updates: Iterable[Update], address: str) -> Iterator[Shown]:
    """With how the deployment describes itself: asked with the first report, and again with each later history, since a
    monitor stores the two together. A deployment without a description is shown all the same."""
    about, history, is_asked = NO_ABOUT, None, False
    for update in updates:
        if update.report is not None and not (is_asked and update.history is history):
            about, is_asked = _read_about(address) or about, True
        history = update.history
        yield Shown(address, about, update)


def _read_about(address: str) -> About | None:
    answer = fetch_with_urllib(f"{address}{PATH}", {"User-Agent": _USER_AGENT}, _ABOUT_WITHIN_S)
    if isinstance(answer, NoAnswer) or answer.http_code != HTTPStatus.OK:
        return None
    about = parse_about(answer.body)
    return about if isinstance(about, About) else None


def _show_live(updates: Iterator[Shown], console: Console) -> None:
    newest: list[Shown] = []

    def follow() -> None:
        for shown in updates:
            newest[:] = [shown]

    following = in_a_thread(follow)
    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while not following.done():
            if newest:
                live.update(_draw(newest[0], console), refresh=True)
            time.sleep(_REDRAW_S)
        following.result()  # its error: nothing new would be shown any more


def _draw(shown: Shown, console: Console) -> RenderableType:
    return draw_screen(shown, instant_now(), console.width)


def _is_whole(update: Update) -> bool:
    """Whether both documents were asked for once."""
    has_report = update.report is not None or update.report_problem is not None
    return has_report and (update.history is not None or update.history_problem is not None)
