"""Two monitors and two servers on one PostgreSQL, and everything that can happen to the one that writes."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path

import aiohttp
import psycopg
import pytest

from tests.commands import TIME_S, a_command, said
from tests.integration.fast import a_world
from tests.integration.receivers import a_hook
from tests.integration.served import LIVE, a_free_port
from tests.integration.whole_service import PLANTED, Deployment, a_place, answer, deployed
from tests.leases import or_skipped
from tests.postgres import Postgres, a_postgres, from_a_wheel, from_debian
from tests.wait import until_async
from tests.writers import record_writers, recorded_writers

AUDIT = """
CREATE TABLE audit (n bigserial, epoch bigint, name text, etag text, generated_at bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO public.audit (epoch, name, etag, generated_at) VALUES (NEW.epoch, NEW.name, NEW.etag, NEW.generated_at);
    RETURN NEW;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON lookout.documents FOR EACH ROW EXECUTE FUNCTION note();
"""


@pytest.fixture(scope="module", params=[from_a_wheel(), from_debian(pytest.mark.long)])
def server(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with or_skipped(a_postgres(request.param)) as server:
        yield server


@pytest.mark.long
@pytest.mark.clause("M7", "H16", "A11")
async def test_whatever_happens_to_the_writer_there_is_one_and_soon_again(server: Postgres, tmp_path: Path) -> None:
    async def takeover(of: Deployment, what: str, harm: Callable[[], object]) -> None:
        """Do harm to the writer; there has to be another epoch and a publication in it, soon."""
        epoch = of.epoch()
        await recovery(of, what, harm)
        await of.until_epoch(epoch, what)

    async def recovery(of: Deployment, what: str, harm: Callable[[], object]) -> None:
        newest = of.readers.newest
        harm()
        await of.until_published(newest, what)

    def restart() -> None:
        server.stop()
        server.start()

    async with a_world(tmp_path) as world, deployed(server, tmp_path, world.base) as of:
        server.ask(of.database, AUDIT)
        record_writers(server, of.database)
        monitors = of.monitors
        of.start("b")
        await of.until_standing_by("b", tmp_path)
        assert of.writing() == "a"

        await takeover(of, "kill -9", monitors["a"].kill)
        assert of.writing() == "b"
        of.start("a")
        await of.until_standing_by("a", tmp_path)

        frozen = monitors["b"]
        await takeover(of, "freeze", lambda: os.kill(frozen.pid, signal.SIGSTOP))
        assert of.writing() == "a"
        epoch = of.epoch()
        os.kill(frozen.pid, signal.SIGCONT)
        await of.until_standing_by("b", tmp_path)
        assert (of.writing(), of.epoch()) == ("a", epoch)

        await recovery(of, "end of session", lambda: server.end_session(of.database))
        await recovery(of, "restart of PostgreSQL", restart)
        await until_async(lambda: max(n for _, _, n in of.readers.buckets) >= 5, "some buckets ended")
        for process in monitors.values():
            process.send_signal(signal.SIGTERM)
        for process in monitors.values():
            assert process.wait(TIME_S) == 0
        await until_async(
            lambda: len({json.dumps(report) for report in of.readers.reports.values()}) == 1, "both serve the last"
        )
        assert of.readers.wrong == []
        check_that_never_two_wrote(of)
    logs = [said(tmp_path / name) for name in (*monitors, "server0", "server1")]
    assert not [text for text in logs if PLANTED in text or "Traceback" in text]


def check_that_never_two_wrote(of: Deployment) -> None:
    """At most one writer ever, by the database's own record: no epoch wrote after the next one had begun."""
    wrote = [writer for writer in recorded_writers(of.server, of.database) if writer.last_write_at is not None]
    assert len(wrote) >= 3
    for earlier, later in pairwise(wrote):
        assert earlier.last_write_at is not None
        assert earlier.last_write_at < later.taken_at
    audit = of.server.ask(of.database, "SELECT epoch, name, etag, generated_at FROM audit ORDER BY n")
    epochs = [epoch for epoch, *_ in audit]
    assert epochs == sorted(epochs)
    instants = [generated_at for _, name, _, generated_at in audit if name == "live"]
    assert instants == sorted(instants)
    assert {etag for _, name, etag, _ in audit if name == "live.gzip"} & of.readers.bodies.keys()


@pytest.mark.clause("M7", "H16")
@pytest.mark.parametrize("server", [from_a_wheel()], indirect=True)
async def test_a_database_put_back_under_a_running_monitor_loses_neither_buckets_nor_the_end_of_an_outage(
    server: Postgres, tmp_path: Path
) -> None:
    database, saved = server.a_database(), server.folder.with_name("saved")

    def buckets() -> str:
        """Of the indexer of chain 1, those that ended."""
        with suppress(psycopg.Error):
            for (body,) in server.ask(database, "SELECT body FROM lookout.documents WHERE name = 'history'"):
                rows = json.loads(body)["rows"]
                (row,) = (row for row in rows if (row["service"], row["chainId"]) == ("indexer", 1))
                return str(row["buckets"][:-1])
        return ""

    def restart(*copied: Path) -> None:
        server.stop()
        shutil.rmtree(copied[1], ignore_errors=True)
        subprocess.run(["/bin/cp", "-a", *copied], check=True)
        server.start()

    with a_hook() as hook:
        async with a_world(tmp_path) as world:
            place = a_place(tmp_path / "monitor", world.base, server.url(database), 0)
            with (place / "lookout.toml").open("a") as config:
                config.write(f'[alerts]\ngroup_s = 0\n[alerts.targets]\nhook = "{hook.address}"\n')
                config.write('[[alerts.rules]]\nservices = ["indexer"]\nfor_s = 1\n')
            with a_command(place, "monitor", "-c", "lookout.toml"):
                await until_async(lambda: "cc" in buckets(), "a history")
                restart(server.folder, saved)
                await world.order("squid/1", "status")
                await until_async(lambda: bool(hook.accepted) and "uu" in buckets(), "an outage, and its message")
                restart(saved, server.folder)
                await world.order("squid/1", None)
                await until_async(lambda: len(hook.items()) > 1 and buckets().endswith("cc"), "its end")
                row = buckets()
    assert re.fullmatch(".c+[^-]*uu+[^-]*cc", row), row
    assert [item["kind"] for item in hook.items()] == ["began", "ended"]
    log = said(place)
    assert "the store is not as it was left; writing everything into it" in log
    assert "standing by" not in log
    assert "Traceback" not in log


@pytest.mark.first
@pytest.mark.clause("A11")
@pytest.mark.parametrize("server", [from_a_wheel()], indirect=True)
async def test_a_database_that_is_down_at_the_start_is_waited_for(server: Postgres, tmp_path: Path) -> None:
    port, url = a_free_port(), server.url(server.a_database(), password=PLANTED)
    server.stop()
    async with a_world(tmp_path) as world:
        places = {name: a_place(tmp_path / name, world.base, url, port) for name in ("monitor", "serve")}
        with ExitStack() as processes:
            for name, place in places.items():
                processes.enter_context(a_command(place, name, "-c", "lookout.toml"))

            async def is_unavailable() -> bool:
                with suppress(aiohttp.ClientConnectionError):
                    async with world.http.get(f"http://127.0.0.1:{port}{LIVE}") as got:
                        return got.status == 503 and "liveness report is unavailable" in await got.text()
                return False

            async def is_answered() -> bool:
                return await answer(world.http, f"http://127.0.0.1:{port}{LIVE}") is not None

            try:
                await until_async(is_unavailable, "503")
                await until_async(lambda: all("cannot be" in said(place) for place in places.values()), "why is logged")
                await asyncio.sleep(2.5)  # in which it is tried again, and nothing is said
            finally:
                server.start()
            await until_async(is_answered, "a report")
    events = {
        "monitor": "the store cannot be used; trying again every second",
        "serve": "the store cannot be read; answering 503",
    }
    reason = "failed: No such file or directory Is the server running locally and accepting connections"
    for name, place in places.items():
        log = said(place)
        first, *others = (json.loads(line) for line in log.splitlines() if "cannot be" in line)
        assert first["event"] == events[name]
        assert reason in first["error"]
        # A database that starts slowly may be unusable for another reason, and once more.
        assert all(reason not in each.get("error", "") for each in others), "it is not said twice"
        assert PLANTED not in log
        assert "Traceback" not in log
