"""``lookout sim``: the simulated upstreams alone."""

import click

from lookout.cli.arguments import checked_listen, fail
from lookout.sim.server import serve_forever
from lookout.wiring.listening import host_and_port
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
    click.echo(f"simulated upstreams on http://{listen}/ (faults: http://{listen}/control); Ctrl-C ends them")
    try:
        run_until_stopped(serve_forever(host, port, seed))
    except OSError as error:
        fail(f"--listen: {listen}: {error.strerror}")
