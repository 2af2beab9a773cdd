"""``lookout sim``: the simulated upstreams alone."""

import click

from lookout.cli.arguments import checked_listen, fail
from lookout.host_port import host_and_port, written
from lookout.sim.server import serve_forever
from lookout.wiring.listening import ListenError, free
from lookout.wiring.process import run_until_stopped


@click.command(short_help="Run the upstreams of a simulated world, faults on demand.")
@click.option(
    "--listen",
    default="127.0.0.1:9900",
    show_default=True,
    metavar="HOST:PORT",
    callback=checked_listen,
    help="Where to listen.",
)
@click.option("--seed", type=int, help="Let things go wrong now and then, always the same for the same number.")
def sim(listen: str, seed: int | None) -> None:
    """Run all upstreams of a small simulated world, in their real protocols, with faults on demand.

    Without --seed nothing goes wrong until POST /control says so; GET /control lists the faults.
    """
    host, port = host_and_port(listen)

    def ready(bound_host: str, bound_port: int) -> None:
        at = listen if port else written(bound_host, bound_port)
        click.echo(f"simulated upstreams on http://{at}/ (faults: http://{at}/control); Ctrl-C ends them")

    try:
        free(listen)
        run_until_stopped(serve_forever(host, port, seed, ready))
    except ListenError as error:
        fail(f"--listen: {error}")
    except OSError as error:  # somebody came between
        fail(f"--listen: {listen}: {error.strerror}")
