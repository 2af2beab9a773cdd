"""``lookout demo``: the whole service on simulated upstreams; and ``lookout sim``: the simulated upstreams alone."""

import signal
import tempfile
from pathlib import Path
from typing import NoReturn

import click

from lookout.app.demo import build_demo_store, run_demo
from lookout.app.monitor import CannotServeError
from lookout.app.process import configure_log, run_until_stopped
from lookout.base.sockets import ListenError, bind_briefly
from lookout.base.url import format_host_port, host_and_port
from lookout.cli.arguments import fail, listen_option
from lookout.demo.sim.server import serve_forever
from lookout.documents.api import paths
from lookout.store.protocol import StoreError


@click.command()
@listen_option("127.0.0.1:8080", "Where to serve.")
@click.option("--seed", default=7, show_default=True, help="Which things fail: always the same for the same number.")
def demo(listen: str, seed: int) -> None:
    """Show the whole service on a simulated world in which things fail from time to time.

    First simulates the last 14 days, then runs live. Nothing is kept when it ends.
    """
    try:
        host, port = bind_briefly(listen)
    except ListenError as error:
        fail(f"--listen: {error}")
    if listen.endswith(":0"):
        listen = format_host_port(host, port)
    signal.signal(signal.SIGTERM, _end)  # until the event loop takes over, so that the folder goes with us
    with tempfile.TemporaryDirectory(prefix="lookout-demo-") as name:
        folder = Path(name)
        click.echo("simulating the last 14 days", err=True)
        built = build_demo_store(folder, listen, seed)
        click.echo("starting the service", err=True)
        settings = built.settings
        configure_log(settings.log)
        live, history = paths(settings.protocol)

        def ready() -> None:
            click.echo(f"""
  status page   http://{listen}/
  live report   http://{listen}{live}
  history       http://{listen}{history}
  API           http://{listen}/openapi.json
  metrics       http://{settings.admin.monitor}/metrics (monitor), http://{settings.admin.server}/metrics (server)
  upstreams     http://{built.upstreams}/control (make them fail: CONTRIBUTING.md)

  Ctrl-C ends it.""")

        try:
            run_until_stopped(run_demo(folder, built, ready))
        except CannotServeError as error:
            fail(*filter(None, [str(error)]))
        except (ListenError, StoreError, OSError) as error:
            fail(f"the demo cannot continue: {error}")


def _end(*_: object) -> NoReturn:
    raise SystemExit(0)


@click.command()
@listen_option("127.0.0.1:9900", "Where to listen.")
@click.option("--seed", type=int, help="Let things fail from time to time, always the same for the same number.")
def sim(listen: str, seed: int | None) -> None:
    """Run all upstreams of a small simulated world, in their real protocols, with faults on demand.

    Without --seed nothing fails until you set a fault with POST /control; GET /control lists targets and faults.
    """
    host, port = host_and_port(listen)

    def ready(bound_host: str, bound_port: int) -> None:
        base = f"http://{listen if port else format_host_port(bound_host, bound_port)}"
        click.echo(f"simulated upstreams on {base}/ (faults: {base}/control); Ctrl-C ends them")

    try:
        bind_briefly(listen)
        run_until_stopped(serve_forever(host, port, seed, ready))
    except ListenError as error:
        fail(f"--listen: {error}")
    except OSError as error:  # another process took the address in between
        fail(f"--listen: {listen}: {error.strerror}")
