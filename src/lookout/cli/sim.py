"""``lookout sim``: the simulated upstreams alone."""

import click

from lookout.cli.arguments import fail
from lookout.sim.server import serve_forever
from lookout.wiring import run_until_stopped


@click.command()
@click.option("--listen", default="127.0.0.1:9900", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option("--seed", type=int, help="Let things go wrong now and then, always the same for the same number.")
def sim(listen: str, seed: int | None) -> None:
    """Run all upstreams of a small simulated world, in their real protocols, with faults on demand.

    Without --seed nothing goes wrong until POST /control says so; GET /control lists the faults.
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        fail(f"--listen: {listen!r} is not HOST:PORT")
    click.echo(f"simulated upstreams on http://{listen}/ (faults: http://{listen}/control); Ctrl-C ends them")
    try:
        run_until_stopped(serve_forever(host.strip("[]"), int(port), seed))
    except OSError as error:
        fail(f"--listen: {listen}: {error.strerror}")
