"""``lookout watch``: a live table in the terminal."""

import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from threading import Event

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
    stop, first = Event(), Event()
    newest: list[tuple[Update, float]] = []

    def follow() -> None:
        for update in poll(address, protocol, stop=stop, user_agent="lookout-watch"):
            newest[:] = [(update, time.monotonic())]
            if _is_whole(update):
                first.set()

    def drawn(height: int | None) -> RenderableType:
        update, at_s = newest[0]
        view = View(console.width, height, not console.encoding.startswith("utf"))
        return draw_screen(update, instant_now(), address, view, (time.monotonic() - at_s) * 1000)

    console = Console(width=None if sys.stdout.isatty() else _NO_LIMIT)
    following = in_a_thread(follow)
    following.add_done_callback(lambda _: first.set())
    if once or not sys.stdout.isatty():
        first.wait()
        _raise_if_ended(following)
        stop.set()
        console.print(drawn(None))
        raise SystemExit(0 if newest[0][0].report is not None else NOT_FINE)
    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            _raise_if_ended(following)
            if newest:
                live.update(drawn(console.height), refresh=True)
            stop.wait(_REDRAW_S)


def _raise_if_ended(following: "Future[None]") -> None:
    """With its error: nothing new would be shown any more."""
    if following.done():
        following.result()


def _is_whole(update: Update) -> bool:
    """Whether both documents were asked for once."""
    has_report = update.report is not None or update.report_problem is not None
    return has_report and (update.history is not None or update.history_problem is not None)
