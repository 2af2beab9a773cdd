"""``lookout watch``: a live table in the terminal."""

import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import click
from rich.console import Console, RenderableType
from rich.live import Live

from lookout.base.base_url import BaseUrlError, parse_base_url
from lookout.cli.arguments import NOT_FINE, fail, protocol_option
from lookout.public.terminal import View, draw_screen
from lookout_reader import Update, instant_now, poll
from lookout_reader.urllib_fetch import in_a_thread

_REDRAW_S = 1.0
_NO_LIMIT = 10_000  # columns: a file or a pipe has any number


@click.command(short_help="Show a deployment's rows in the terminal, live.")
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
    console = Console(width=None if is_terminal else _NO_LIMIT)
    updates = poll(address, protocol, user_agent="lookout-watch")
    if is_terminal and not once:
        _show_live(updates, address, console)
        return
    update = next(filter(_is_whole, updates))
    console.print(_draw(update, address, console))
    raise SystemExit(0 if update.report is not None else NOT_FINE)


def _show_live(updates: Iterator[Update], address: str, console: Console) -> None:
    newest: list[tuple[Update, float]] = []

    def follow() -> None:
        for update in updates:
            newest[:] = [(update, time.monotonic())]

    following = in_a_thread(follow)
    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while not following.done():
            if newest:
                update, at_s = newest[0]
                waited_ms = (time.monotonic() - at_s) * 1000
                live.update(_draw(update, address, console, console.height, waited_ms), refresh=True)
            time.sleep(_REDRAW_S)
        following.result()  # its error: nothing new would be shown any more


def _draw(
    update: Update, address: str, console: Console, height: int | None = None, waited_ms: float = 0
) -> RenderableType:
    view = View(console.width, height, not console.encoding.startswith("utf"))
    return draw_screen(update, instant_now(), address, view, waited_ms)


def _is_whole(update: Update) -> bool:
    """Whether both documents were asked for once."""
    has_report = update.report is not None or update.report_problem is not None
    return has_report and (update.history is not None or update.history_problem is not None)
