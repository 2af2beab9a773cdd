"""``lookout demo``: the whole service on simulated upstreams."""

import signal
import tempfile
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from lookout.admin import AdminError
from lookout.cli.arguments import checked_listen, fail
from lookout.core.wire import paths
from lookout.host_port import written
from lookout.store.protocol import StoreError
from lookout.wiring.demo import live_on, live_through_the_past
from lookout.wiring.listening import ListenError, free
from lookout.wiring.log import configure_log
from lookout.wiring.process import run_until_stopped
from lookout.wiring.together import ServerEndedError


@click.command(short_help="Show the whole service on a simulated world.")
@click.option(
    "--listen",
    default="127.0.0.1:8080",
    show_default=True,
    metavar="HOST:PORT",
    callback=checked_listen,
    help="Where to serve.",
)
@click.option("--seed", default=7, show_default=True, help="What goes wrong: always the same for the same number.")
def demo(listen: str, seed: int) -> None:
    """Show the whole service on a simulated world in which things now and then go wrong.

    First lives through a simulated past fortnight, then runs live. Nothing is kept when it ends.
    """
    try:
        host, port = free(listen)
    except ListenError as error:
        fail(f"--listen: {error}")
    if listen.endswith(":0"):
        listen = written(host, port)
    signal.signal(signal.SIGTERM, _end)  # until the event loop takes over, so that the folder goes with us
    with tempfile.TemporaryDirectory(prefix="lookout-demo-") as name:
        folder = Path(name)
        with _a_bar() as bar:
            task = bar.add_task("living through a simulated fortnight", total=1)
            lived = live_through_the_past(folder, listen, seed, lambda done: bar.update(task, completed=done))
        settings = lived.settings
        configure_log(settings.log)
        live, history = paths(settings.protocol)

        def ready() -> None:
            click.echo(f"""
  status page   http://{listen}/
  live report   http://{listen}{live}
  history       http://{listen}{history}
  API           http://{listen}/openapi.json
  metrics       http://{settings.admin.monitor}/metrics (monitor), http://{settings.admin.server}/metrics (server)
  upstreams     http://{lived.upstreams}/control (make them fail: docs/simulation.md)

  Ctrl-C ends it.""")

        try:
            run_until_stopped(live_on(folder, lived, ready))
        except ServerEndedError as ended:
            raise SystemExit(ended.exit_code) from None
        except (AdminError, ListenError, StoreError, OSError) as error:
            fail(f"the demo cannot go on: {error}")


def _end(*_: object) -> NoReturn:
    raise SystemExit(0)


def _a_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
