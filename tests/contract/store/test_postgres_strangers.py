"""Other roles of the same PostgreSQL: what they lock, prepare and notify."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
import pytest
from structlog.testing import capture_logs

from lookout.app.stores import writer_of
from lookout.base.pieces import Pieces
from lookout.config.settings import Settings
from lookout.config.tables import StoreTable
from lookout.store.postgres.backup import read_database
from lookout.store.postgres.reader import PostgresReader
from lookout.store.postgres.schema import STEPS
from lookout.store.postgres.writer import PostgresWriter, open_writer
from lookout.store.protocol import StoreBusyError, StoreError
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened, write_again
from tests.leases import or_skipped
from tests.postgres import Postgres, a_postgres, from_a_wheel
from tests.stores import once_free
from tests.wait import until, until_async

LOCK: Final = 0x4C6F6F6B6F7574  # the only one of version 0.1.0
OTHER_LOCKS: Final = 0x4C6F6F6B
TAKEN: Final = "a role that may not write to the store holds the monitors' lock; this monitor has taken another one"


class Roles(NamedTuple):
    """A database's: the monitor's, which may make the schema, and a server's, which only reads."""

    monitor: str
    server: str


@pytest.fixture
def roles(server: Postgres, database: str) -> Roles:
    roles = Roles(f"{database}_monitor", f"{database}_server")
    for role in roles:
        server.ask(database, f"CREATE ROLE {role} LOGIN")
    server.ask(database, f"GRANT CREATE ON DATABASE {database} TO {roles.monitor}")
    return roles


@pytest.fixture
def made(server: Postgres, database: str, roles: Roles) -> str:
    """The address of a store that is there, for the monitor; the server may read it."""
    url = server.url(database, roles.monitor)
    open_writer(url).close()
    server.ask(database, f"GRANT USAGE ON SCHEMA lookout TO {roles.server}")
    server.ask(database, f"GRANT SELECT ON lookout.schema_version, lookout.documents TO {roles.server}")
    there = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'lookout monitor'"
    until(lambda: not server.ask(database, there), "the writer has ended")
    return url


@contextmanager
def holding(url: str, *locks: int) -> Iterator[int]:
    """Hold the lock, and others; the process that does."""
    with psycopg.connect(url, autocommit=True) as session:
        assert session.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,)).fetchone() == (True,)
        for lock in locks:
            session.execute("SELECT pg_try_advisory_lock(%s, %s)", (OTHER_LOCKS, lock))
        yield session.info.backend_pid


@pytest.mark.clause("M7")
@pytest.mark.parametrize("is_there", [True, False], ids=["of a store", "of a store that is to be made"])
def test_a_role_that_may_only_read_keeps_no_monitor_out(
    is_there: bool, server: Postgres, database: str, roles: Roles, request: pytest.FixtureRequest, opened: Opened
) -> None:
    url: str = request.getfixturevalue("made") if is_there else server.url(database, roles.monitor)
    with holding(server.url(database, roles.server), *range(100)) as process, capture_logs() as logged:
        writer = opened(open_writer(url))
        writer.write({"live": LIVE}, Pieces({"a": b"1"}))
        assert logged == [{"event": TAKEN, "log_level": "error", "role": roles.server, "process": process}]
        for _ in range(3):
            with pytest.raises(StoreBusyError, match="another monitor is writing to it"):
                open_writer(url)
        server.end_session(database)
        standby = opened(once_free(lambda: open_writer(url)))
        assert standby.load() == {"a": b"1"}
        standby.write({"live": HISTORY}, NOTHING)
        with pytest.raises(StoreError, match="another monitor has taken over"):
            write_again(writer)
    with pytest.raises(StoreBusyError):  # although the usual lock is free now
        open_writer(url)


@pytest.mark.clause("M7")
@pytest.mark.usefixtures("made")
def test_a_monitor_whose_right_to_write_comes_by_set_role_is_one(
    server: Postgres, database: str, roles: Roles, opened: Opened
) -> None:
    """It has no right of its own, but becomes the owner with each session."""
    first, second = (f"{database}_{name}" for name in ("first", "second"))
    for role in (first, second):
        server.ask(database, f"CREATE ROLE {role} LOGIN NOINHERIT IN ROLE {roles.monitor}")
        server.ask(database, f"ALTER ROLE {role} SET role = {roles.monitor}")
    opened(once_free(lambda: open_writer(server.url(database, first))))
    with pytest.raises(StoreBusyError):
        open_writer(server.url(database, second))


@pytest.mark.parametrize("is_there", [True, False], ids=["of a store", "of a store that is to be made"])
def test_of_many_monitors_that_start_at_once_while_a_reader_holds_the_lock_one_is_let_in(
    is_there: bool, server: Postgres, database: str, roles: Roles, request: pytest.FixtureRequest, opened: Opened
) -> None:
    url: str = request.getfixturevalue("made") if is_there else server.url(database, roles.monitor)

    def attempt(_: int) -> PostgresWriter | None:
        try:
            return open_writer(url)
        except StoreBusyError:
            return None

    with holding(server.url(database, roles.server)), ThreadPoolExecutor(8) as pool:
        (writer,) = (each for each in pool.map(attempt, range(8)) if each is not None)
    opened(writer)
    writer.write({"live": LIVE}, NOTHING)
    assert server.ask(database, "SELECT count(*) FROM lookout.former_writers") == [(2 if is_there else 1,)]


def test_locks_that_the_monitor_did_not_need_are_not_spoken_of(
    server: Postgres, database: str, roles: Roles, made: str
) -> None:
    with psycopg.connect(server.url(database, roles.server), autocommit=True) as session, capture_logs() as logged:
        session.execute("SELECT pg_advisory_lock(%s, 1)", (OTHER_LOCKS,))
        open_writer(made).close()
    assert logged == []


def test_a_monitor_of_an_earlier_version_keeps_one_of_today_out_and_the_other_way_round(
    server: Postgres, database: str, made: str
) -> None:
    with holding(made), pytest.raises(StoreBusyError, match="another monitor is writing to it"):
        open_writer(made)
    with closing(once_free(lambda: open_writer(made))):
        assert server.ask(database, "SELECT pg_try_advisory_lock(%s)", LOCK) == [(False,)]


def test_a_monitor_waits_for_another_role_that_may_write_and_says_which_it_is(
    server: Postgres, database: str, roles: Roles, made: str, tmp_path: Path
) -> None:
    async def waits() -> None:
        starting = asyncio.create_task(writer_of(Settings(store=StoreTable(url=made)), tmp_path))
        await until_async(lambda: bool(logged), "it is said")
        ended.close()
        writer, has_stood_by = await starting
        writer.close()
        assert has_stood_by

    ended = psycopg.connect(server.url(database), autocommit=True)  # by a superuser
    ended.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
    process = ended.info.backend_pid
    with capture_logs() as logged:
        asyncio.run(waits())
    (said,) = logged
    assert said == {
        "event": "another role holds the store's lock; waiting for it to end",
        "log_level": "error",
        "error": f"PostgreSQL {database} on {server.folder}: its lock is held by the role postgres (process {process}),"
        f" which may write to it, and this monitor's role is {roles.monitor}",
    }


# More than fits: each commit adds some.
FLOOD: Final = """
DO $$ BEGIN FOR n IN 1..200 LOOP PERFORM pg_notify('x', n || repeat('x', 7900)); COMMIT; END LOOP; END $$
"""


@pytest.mark.parametrize("programs", [from_a_wheel()])
def test_a_full_queue_of_notifications_keeps_no_publication_back(programs: object, opened: Opened) -> None:
    """PostgreSQL 17 is the first whose queue can be made small."""
    with or_skipped(a_postgres(programs, None, "--set", "max_notify_queue_pages=64")) as server:  # type: ignore[arg-type]
        database = server.a_database()
        server.ask(database, "CREATE ROLE stranger LOGIN")
        writer = opened(open_writer(server.url(database)))
        reader = opened(PostgresReader(server.url(database)))
        with psycopg.connect(server.url(database, "stranger"), autocommit=True) as idle:
            idle.execute("LISTEN anything")
            idle.execute("BEGIN")
            idle.execute("SELECT 1")
            with pytest.raises(psycopg.OperationalError, match="too many notifications"):
                server.ask(database, FLOOD)
            with capture_logs() as logged:
                for document in (LIVE, HISTORY):
                    writer.write({"live": document}, NOTHING)
                    until(reader.changed, "it asks")
                    assert reader.read("live") == document
            (said,) = logged
            assert said["event"] == "servers cannot be notified; they ask every second anyway"
            assert "too many notifications" in said["error"]
        assert server.ask(database, "SELECT writes FROM lookout.writer") == [(2,)]


def test_what_strangers_notify_ends_no_reader_even_if_it_is_no_text(server: Postgres, opened: Opened) -> None:
    database = server.a_database("ENCODING SQL_ASCII TEMPLATE template0")
    url = server.url(database)
    writer = opened(open_writer(url))
    reader = opened(PostgresReader(url))
    reader.changed()
    for document in (LIVE, HISTORY):
        server.ask(database, r"SELECT pg_notify('lookout', E'live \xff'), pg_notify('lookout', E'\xff')")
        writer.write({"live": document}, NOTHING)
        until(reader.changed, "it is noticed")
        assert reader.read("live") == document


# What a stranger owns: a function that does harm with the rights of the role that calls it.
FUNCTIONS: Final = """
CREATE SCHEMA {mallory};
CREATE TABLE {mallory}.caught (who text);
GRANT ALL ON SCHEMA {mallory} TO PUBLIC;
GRANT ALL ON {mallory}.caught TO PUBLIC;
CREATE FUNCTION {mallory}.called(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
    AS 'BEGIN INSERT INTO {mallory}.caught VALUES (current_user); RETURN true; END';
CREATE FUNCTION {mallory}.fired() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN INSERT INTO {mallory}.caught VALUES (current_user); RETURN NEW; END';
"""
TRIGGER: Final = "CREATE TRIGGER t BEFORE INSERT ON lookout.documents FOR EACH ROW EXECUTE FUNCTION {mallory}.fired();"
WHOLE: Final = ";".join((*STEPS, "UPDATE lookout.schema_version SET version = 1;"))
A_VIEW: Final = """
ALTER TABLE lookout.pieces RENAME TO p;
CREATE VIEW lookout.pieces AS SELECT * FROM lookout.p WHERE {mallory}.called('x');
"""
ALL_ALLOWED: Final = "GRANT ALL ON SCHEMA lookout TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA lookout TO PUBLIC;"
USES: Final = "function {mallory}.called(text), which %s uses, belongs to the role {mallory}, which the monitor's role"

# Of a store that is not there: what the stranger does, and what is said.
PREPARED: Final = {
    "an empty schema": (
        f"CREATE SCHEMA lookout; {ALL_ALLOWED}",
        (
            "schema lookout belongs to the role {mallory}, which the monitor's role {monitor} is no member of: it could"
            " run anything with the monitor's rights; drop it, make {monitor} its owner, or use another database"
        ),
    ),
    "a whole store with a trigger": (
        f"CREATE SCHEMA lookout; {WHOLE} {TRIGGER} {ALL_ALLOWED}",
        "schema lookout belongs to the role {mallory}, which",
    ),
    "a view": (
        f"CREATE SCHEMA lookout; {WHOLE} {A_VIEW.replace('pieces', 'writer')} {ALL_ALLOWED}",
        "view lookout.writer is no ordinary table, so Lookout does not use it; drop it, or use another database",
    ),
}
# Of a store that the monitor made: what is done to it then.
ATTACHED: Final = {
    "a table of another's": (
        "ALTER TABLE lookout.pieces OWNER TO {mallory}",
        "table lookout.pieces belongs to the role {mallory}, which",
    ),
    "a trigger": (
        TRIGGER,
        "function {mallory}.fired(), which trigger t on table lookout.documents uses, belongs to the role {mallory}",
    ),
    "a trigger's condition": (
        (
            "CREATE TRIGGER t BEFORE UPDATE ON lookout.documents FOR EACH ROW WHEN ({mallory}.called(NEW.name))"
            " EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        ),
        USES % "trigger t on table lookout.documents",
    ),
    "a rule": (
        "CREATE RULE r AS ON UPDATE TO lookout.writer DO ALSO SELECT {mallory}.called('x')",
        USES % "rule r on table lookout.writer",
    ),
    "a default": (
        "ALTER TABLE lookout.former_writers ALTER holder SET DEFAULT {mallory}.called('x')::text",
        USES % "default value for column holder of table lookout.former_writers",
    ),
    "a check": (
        "ALTER TABLE lookout.pieces ADD CONSTRAINT c CHECK ({mallory}.called(name)) NOT VALID",
        USES % "constraint c on table lookout.pieces",
    ),
    "an index": ("CREATE INDEX i ON lookout.pieces ({mallory}.called(name))", USES % "index lookout.i"),
    "row security": (
        "ALTER TABLE lookout.pieces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "table lookout.pieces hides rows by row security, so Lookout does not use it; drop it, or use another",
    ),
    "a table that inherits": (
        "CREATE TABLE {mallory}.child () INHERITS (lookout.pieces)",
        "table lookout.pieces is no ordinary table, so Lookout does not use it; drop it, or use another database",
    ),
}


@pytest.fixture
def mallory(server: Postgres, database: str) -> str:
    """A role that may make schemas in the same database, and has made a trap."""
    name = f"{database}_mallory"
    server.ask(database, f"CREATE ROLE {name} LOGIN")
    server.ask(database, f"GRANT CREATE ON DATABASE {database} TO {name}")
    act(server, database, name, FUNCTIONS.format(mallory=name))
    return name


def act(server: Postgres, database: str, role: str, statements: str) -> None:
    with psycopg.connect(server.url(database, role), autocommit=True) as connection:
        connection.execute(statements)


def check_refusal(server: Postgres, database: str, role: str, mallory: str, said: str) -> None:
    with pytest.raises(StoreError, match=re.escape(said.format(mallory=mallory, monitor=role))) as caught:
        open_writer(server.url(database, role))
    assert str(caught.value).startswith(f"PostgreSQL {database} on {server.folder}: ")
    assert server.ask(database, f"TABLE {mallory}.caught") == []


@pytest.mark.parametrize("as_superuser", [False, True], ids=["an ordinary role", "a superuser"])
@pytest.mark.parametrize(("prepared", "said"), PREPARED.values(), ids=PREPARED)
def test_what_another_role_prepared_is_not_used_by(
    prepared: str, said: str, as_superuser: bool, server: Postgres, database: str, roles: Roles, mallory: str
) -> None:
    act(server, database, mallory, prepared.format(mallory=mallory))
    check_refusal(server, database, "postgres" if as_superuser else roles.monitor, mallory, said)


@pytest.mark.parametrize(("attached", "said"), ATTACHED.values(), ids=ATTACHED)
@pytest.mark.usefixtures("made")
def test_a_store_that_would_run_what_another_role_made_is_not_used(
    attached: str, said: str, server: Postgres, database: str, roles: Roles, mallory: str
) -> None:
    server.ask(database, attached.format(mallory=mallory))
    server.ask(database, f"TRUNCATE {mallory}.caught")
    check_refusal(server, database, roles.monitor, mallory, said)


@pytest.mark.usefixtures("made")
def test_a_backup_does_not_read_views(server: Postgres, database: str, mallory: str) -> None:
    server.ask(database, A_VIEW.format(mallory=mallory))
    with pytest.raises(StoreError, match=r"view lookout.pieces is no ordinary table"):
        read_database(server.url(database))


ACCEPTED: Final = {
    "tables and schema of a group that the monitor belongs to": """
        CREATE ROLE {group}; GRANT {group} TO {owners}; GRANT {owners} TO {monitor};
        ALTER SCHEMA lookout OWNER TO {group}; ALTER TABLE lookout.pieces OWNER TO {group};
    """,
    "a schema of a superuser's": "ALTER SCHEMA lookout OWNER TO postgres; GRANT ALL ON SCHEMA lookout TO {monitor};",
    "a trigger by a superuser, for an audit": """
        CREATE TABLE public.audit (etag text);
        GRANT INSERT ON public.audit TO {monitor};
        CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN INSERT INTO public.audit VALUES (NEW.etag); RETURN NEW; END';
        CREATE TRIGGER note AFTER INSERT ON lookout.documents FOR EACH ROW EXECUTE FUNCTION public.note();
    """,
    "a stranger's view of the documents": """
        GRANT USAGE ON SCHEMA lookout TO {mallory}; GRANT SELECT ON lookout.documents TO {mallory};
        SET ROLE {mallory};
        CREATE VIEW {mallory}.seen AS SELECT etag FROM lookout.documents WHERE {mallory}.called(name);
    """,
    "row security that leaves its owner alone": "ALTER TABLE lookout.pieces ENABLE ROW LEVEL SECURITY;",
}


@pytest.mark.parametrize("arranged", ACCEPTED.values(), ids=ACCEPTED)
def test_a_store_is_used_that_has(
    arranged: str, server: Postgres, database: str, roles: Roles, made: str, mallory: str, opened: Opened
) -> None:
    names = {"monitor": roles.monitor, "mallory": mallory, "group": f"{database}_group", "owners": f"{database}_owners"}
    server.ask(database, f"CREATE ROLE {names['owners']}")
    server.ask(database, arranged.format(**names))
    writer = opened(open_writer(made))
    writer.write({"live": LIVE}, Pieces({"a": b"1"}))
    assert writer.load() == {"a": b"1"}
    reader = opened(PostgresReader(server.url(database, roles.server)))
    assert reader.read("live") == LIVE
