"""Two monitors and two servers on one PostgreSQL, and everything that can happen to the one that writes."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.commands import a_command, said
from tests.integration.fast import a_world
from tests.integration.served import HISTORY, LIVE, a_free_port
from tests.integration.whole_service import PLANTED, TAKEN_OVER_WITHIN_S, a_place, answer
from tests.leases import or_skipped
from tests.postgres import Postgres, a_postgres, from_a_wheel, from_debian
from tests.wait import until_async


@pytest.fixture(scope="module", params=[from_a_wheel(), from_debian(pytest.mark.long)])
def server(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with or_skipped(a_postgres(request.param)) as server:
        yield server


@pytest.mark.long
@pytest.mark.clause("M7", "H16", "A11")
async def test_a_writer_that_is_killed_or_frozen_is_replaced_and_nothing_is_lost(
    server: Postgres, tmp_path: Path
) -> None:
    """That no two ever write is proved of the lease, in tests/contract/store."""
    url, port = server.url(server.a_database(), password=PLANTED), a_free_port()
    async with a_world(tmp_path) as world:
        for name in ("a", "b", "serve"):
            a_place(tmp_path / name, world.base, url, port if name == "serve" else 0)

        async def published(path: str = LIVE) -> Any:
            found = await answer(world.http, f"http://127.0.0.1:{port}{path}")
            assert found is not None
            return found

        async def until_published_after(newest: str) -> None:
            async def is_later() -> bool:
                return bool((await published())["generatedAt"] > newest)

            await until_async(is_later, "a takeover", TAKEN_OVER_WITHIN_S)

        async def until_standing_by(name: str) -> None:
            waiting = "waiting for the other monitor to end"
            await until_async(lambda: waiting in said(tmp_path / name).rpartition('"stopped"')[2], f"{name} stands by")

        with ExitStack() as processes:
            first = processes.enter_context(a_command(tmp_path / "a", "monitor", "-c", "lookout.toml"))
            processes.enter_context(a_command(tmp_path / "serve", "serve", "-c", "lookout.toml"))

            async def has_buckets() -> bool:
                history = await answer(world.http, f"http://127.0.0.1:{port}{HISTORY}")
                return history is not None and "cc" in history["rows"][0]["buckets"]

            await until_async(has_buckets, "a history")
            second = processes.enter_context(a_command(tmp_path / "b", "monitor", "-c", "lookout.toml"))
            await until_standing_by("b")
            before = (await published(HISTORY))["rows"]
            newest = (await published())["generatedAt"]
            first.kill()
            await until_published_after(newest)
            processes.enter_context(a_command(tmp_path / "a", "monitor", "-c", "lookout.toml"))
            await until_standing_by("a")
            newest = (await published())["generatedAt"]
            second.send_signal(signal.SIGSTOP)
            await until_published_after(newest)
            second.send_signal(signal.SIGCONT)
            await until_standing_by("b")
            after = (await published(HISTORY))["rows"]
        for was, now in zip(before, after, strict=True):
            assert now["buckets"].startswith(was["buckets"][:-1])
    logs = [said(tmp_path / name) for name in ("a", "b", "serve")]
    assert not [text for text in logs if PLANTED in text or "Traceback" in text]


async def test_a_standby_on_another_machine_has_an_admin_port_until_it_takes_over(
    server: Postgres, tmp_path: Path
) -> None:
    database, admin = server.a_database(), f"127.0.0.1:{a_free_port()}"
    async with a_world(tmp_path) as world:
        for name in ("a", "b"):
            a_place(tmp_path / name, world.base, server.url(database, password=PLANTED), 0)
        config = tmp_path / "b" / "lookout.toml"
        config.write_text(config.read_text().replace('monitor = ""', f'monitor = "{admin}"'))

        async def asked(path: str) -> tuple[int, str]:
            with suppress(aiohttp.ClientConnectionError):
                async with world.http.get(f"http://{admin}{path}") as got:
                    return got.status, await got.text()
            return 0, ""

        async def is_standby(value: str) -> bool:
            return f"\nlookout_standby {value}\n" in (await asked("/metrics"))[1]

        with a_command(tmp_path / "a", "monitor", "-c", "lookout.toml") as first:
            await until_async(lambda: "started" in said(tmp_path / "a"), "the first writes")
            with a_command(tmp_path / "b", "monitor", "-c", "lookout.toml"):
                await until_async(lambda: "waiting for the other" in said(tmp_path / "b"), "the second stands by")
                assert await asked("/healthz") == (0, "")  # both are on this machine, and could share the address
                server.ask(database, "UPDATE lookout.lease SET holder = 'elsewhere 7' RETURNING 1")
                await until_async(lambda: is_standby("1.0"), "it has a port")
                assert [(await asked(path))[0] for path in ("/healthz", "/readyz")] == [200, 503]
                first.kill()
                await until_async(lambda: is_standby("0.0"), "it takes over", TAKEN_OVER_WITHIN_S)


@pytest.mark.first
@pytest.mark.clause("A11")
@pytest.mark.parametrize("server", [from_a_wheel()], indirect=True)
async def test_a_database_that_is_down_at_the_start_is_waited_for(server: Postgres, tmp_path: Path) -> None:
    port, url = a_free_port(), server.url(server.a_database(), password=PLANTED)
    server.stop()
    async with a_world(tmp_path) as world:
        places = {name: a_place(tmp_path / name, world.base, url, port) for name in ("monitor", "serve")}
        config = places["serve"] / "lookout.toml"
        config.write_text(config.read_text().replace(f'url = "{url}"', f'url = "${{WRITER}}"\nread_url = "{url}"'))
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
                await asyncio.sleep(6)  # in which it is tried again, and nothing is said
            finally:
                server.start()
            await until_async(is_answered, "a report")
    events = {
        "monitor": "the store cannot be used; it is tried again",
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
