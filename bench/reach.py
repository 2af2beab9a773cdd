"""How soon what a monitor observed is in a server's answers, through PostgreSQL beside SQLite, at two publications a
second.

Both run at the same time, so that what else the machine does falls on each of them.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

from bench.databases import a_postgres
from bench.figures import Figure, percentile, spread
from bench.processes import a_folder, a_process, an_upstream
from bench.watch import MONITOR, Delays, a_config, from_server, observe
from lookout.base.sockets import a_free_port
from tests.leases import NotHereError

CHAINS = 5
WATCH_S = 110
ASK_EVERY_S = 0.004
P99_S = 0.7  # through either store
# So often that there is nearly always something to publish, and not twice between two publications: that would hide the
# first of them.
POLICY = "[policy]\nrecheck_s = 0.6\njitter_s = 0.4\n"


def measure() -> Iterator[Figure]:
    try:
        with a_postgres() as postgres, a_folder() as folder:
            stores = {"sqlite": "sqlite:lookout.db", "postgres": postgres.url(postgres.a_database())}
            delays = watch(folder, stores)
    except NotHereError as why:
        yield Figure("observed to served through PostgreSQL", "not measured", str(why))
        return
    ours, other = delays["postgres"], delays["sqlite"]
    for what, through_postgres, through_sqlite in (
        ("observed (observedAt)", ours.delays_s, other.delays_s),
        ("published (generatedAt)", ours.reports_s, other.reports_s),
    ):
        late, other_late = percentile(through_postgres, 99), percentile(through_sqlite, 99)
        yield Figure(
            f"{what} to served through PostgreSQL, {len(through_postgres):,} times",
            spread(through_postgres),
            f"SQLite: {spread(through_sqlite)}",
            late / other_late,
            f"p99 of both under {P99_S} s",
            max(late, other_late) >= P99_S,
        )


def watch(folder: Path, stores: dict[str, str]) -> dict[str, Delays]:
    """A monitor, a server and somebody who asks it all the time, on each of the stores."""
    delays = {name: Delays() for name in stores}
    with ExitStack() as running:
        base = running.enter_context(an_upstream(CHAINS))
        threads = []
        for name, url in stores.items():
            port = a_free_port()
            place = folder / name
            place.mkdir()
            (place / "lookout.toml").write_text(
                f'[server]\nlisten = "127.0.0.1:{port}"\n' + a_config(base, CHAINS, url) + POLICY
            )
            running.enter_context(a_process(place, "serve", "-c", "lookout.toml"))
            running.enter_context(a_process(place, *MONITOR))
            threads.append(Thread(target=observe, args=(from_server(port), delays[name], WATCH_S, ASK_EVERY_S)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return delays
