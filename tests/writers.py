"""A record of all that ever held a PostgreSQL store's lease, kept by the database itself."""

from datetime import datetime
from typing import Final, NamedTuple

from lookout.store.postgres import open_writer
from tests.postgres import Postgres

_RECORD: Final = """
CREATE TABLE public.writers AS SELECT epoch, holder, renewed_at AS taken_at, writes,
    CASE WHEN writes > 0 THEN renewed_at END AS last_write_at FROM lookout.lease;
ALTER TABLE public.writers ADD PRIMARY KEY (epoch);
CREATE FUNCTION public.record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO public.writers AS w VALUES (NEW.epoch, NEW.holder, clock_timestamp(), NEW.writes)
    ON CONFLICT (epoch) DO UPDATE SET writes = NEW.writes,
        last_write_at = CASE WHEN NEW.writes > w.writes THEN clock_timestamp() ELSE w.last_write_at END;
    RETURN NEW;
END $$;
CREATE TRIGGER record AFTER UPDATE ON lookout.lease FOR EACH ROW EXECUTE FUNCTION public.record();
"""


class Writer(NamedTuple):
    """An epoch, as the database has it."""

    epoch: int
    holder: str | None
    taken_at: datetime
    writes: int
    last_write_at: datetime | None


def record_writers(server: Postgres, database: str) -> None:
    """Begin the record, before there is a monitor or while one writes."""
    if server.ask(database, "SELECT to_regclass('lookout.lease')") == [(None,)]:
        open_writer(server.url(database)).close()
    server.ask(database, _RECORD)


def recorded_writers(server: Postgres, database: str) -> list[Writer]:
    """All there have been, the one of now included."""
    return [Writer(*row) for row in server.ask(database, "SELECT * FROM public.writers ORDER BY epoch")]
