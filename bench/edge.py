"""What the edge answers from its copies in a second, beside nginx with the same bytes as static files, each on one
core."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figure
from bench.processes import a_folder, kept_to, program
from bench.serve import (
    GZIP,
    HISTORY,
    LIVE,
    NEEDED,
    NO_LIMIT,
    Question,
    a_server,
    an_nginx,
    compare,
    fill_a_store,
    first_answer,
    measure_rates,
)
from lookout.base.sockets import a_free_port
from tests.integration.edged import VARNISHD, VSTHROTTLE

QUESTIONS = (
    Question("live 200 of the edge", LIVE, headers=(GZIP,)),
    Question("live 304 of the edge", LIVE, conditional=True, headers=(GZIP,)),
    Question("history 200 of the edge", HISTORY, headers=(GZIP,)),
    Question("live 200 of the edge, not compressed", LIVE),
    Question("history 200 of the edge, not compressed", HISTORY),
)


def measure() -> Iterator[Figure]:
    missing = [*missing_varnish(), *(name for name in NEEDED if program(name) is None)]
    if missing:
        yield Figure("requests a second of the edge", "not measured", f"apt-get install {' '.join(missing)}")
        return
    with a_folder() as folder:
        fill_a_store(folder)
        with (
            a_server(folder, 0) as (_, origin),
            an_edge(folder, origin, 0, core=0) as (_, free),
            an_edge(folder, origin, NO_LIMIT, core=0) as (_, limited),
            an_nginx(folder, core=0) as nginx,
        ):
            for question in QUESTIONS:
                theirs, ours, counted = measure_rates(question, nginx, free, limited)
                yield compare(question.name, ours, theirs)
                yield compare(f"{question.name}, with the rate limit", counted, theirs)


def missing_varnish() -> list[str]:
    """The packages that would have to be installed."""
    return [] if VARNISHD and VSTHROTTLE else ["varnish", "varnish-modules"]


@contextmanager
def an_edge(
    folder: Path, origin: int, limit: int, core: int | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """``make edge`` in front of a server, on one core if asked for."""
    port, config = a_free_port(), folder / f"edge-{limit}.toml"
    config.write_text(f"[server]\nrate_limit_per_minute = {limit}\n")
    command = [sys.executable, "-m", "tools.edge", "-c", str(config)]
    command += ["--listen", f"127.0.0.1:{port}", "--origin", f"127.0.0.1:{origin}"]
    with (folder / f"edge-{limit}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=kept_to(core))
    try:
        first_answer(port)
        yield process, port
    finally:
        process.terminate()
        process.wait()
