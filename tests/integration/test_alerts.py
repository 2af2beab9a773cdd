"""A bad night: real monitors on a simulated world, and real receivers of what they tell about it."""

import asyncio
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest

from lookout.app import process
from lookout.base.instants import parse_instant
from tests.commands import a_command, lookout, said
from tests.integration.fast import World, a_config, a_world
from tests.integration.receivers import WITHIN_S, Receiver, a_hook, a_mailbox, samples
from tests.integration.served import a_free_port
from tests.integration.whole_service import PLANTED
from tests.leases import or_skipped
from tests.postgres import Postgres, Programs, a_postgres, from_a_wheel
from tests.wait import until_async

INDEXER = "indexer on c1"
MONITORED = 20


def a_night(base: str, targets: dict[str, str], rule: str, more: str = "", admin: str = "") -> str:
    """A configuration that tells these targets."""
    config = a_config(base).replace('[admin]\nmonitor = ""', f'[admin]\nmonitor = "{admin}"')
    addresses = "".join(f'{name} = "{address}"\n' for name, address in targets.items())
    return f"{config}[alerts]\n{more}\n[alerts.targets]\n{addresses}[[alerts.rules]]\n{rule}\n"


def lived_through(scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(240):
            await scenario

    process.run(bounded())


async def metrics_of(world: World, admin: str) -> str:
    async with world.http.get(f"http://{admin}/metrics") as got:
        return await got.text()


@pytest.mark.first
def test_a_bad_night_is_told_exactly(tmp_path: Path) -> None:
    rule = 'name = "outages"\nfor_s = 5\nremind_s = 10'
    changed = 'name = "outages"\nfor_s = 4\nremind_s = 0'

    async def scenario(mail: Receiver, hook: Receiver) -> None:
        async with a_world(tmp_path) as world:
            targets = {"mail": mail.address, "hook": hook.address}
            (tmp_path / "lookout.toml").write_text(a_night(world.base, targets, rule, "group_s = 3"))
            with ExitStack() as monitors:
                first = monitors.enter_context(a_command(tmp_path, "monitor", "-c", "lookout.toml"))
                await world.until_healthy()
                second = monitors.enter_context(a_command(tmp_path, "monitor", "-c", "lookout.toml"))
                await until_async(lambda: "waiting for the other monitor" in said(tmp_path), "a standby")

                await ill(world, "squid/56", "indexer", 56)  # a blip
                await well(world, "squid/56", "indexer", 56)

                await ill(world, "squid/1", "indexer", 1)
                await both(lambda of: ("Unavailable", INDEXER) in of.told(), "it began")
                await both(lambda of: ("Still unavailable", INDEXER) in of.told(), "it goes on")
                # A message leaves the store with the publication after it was accepted.
                await until_async(lambda: not waiting(tmp_path), "nothing waits")
                first.kill()
                first.wait()
                await until_async(lambda: said(tmp_path).count('"started"') == 2, "a takeover")
                (tmp_path / "lookout.toml").write_text(a_night(world.base, targets, changed, "group_s = 3"))
                second.send_signal(signal.SIGHUP)
                await until_async(lambda: '"reloaded"' in said(tmp_path), "a reload")
                await well(world, "squid/1", "indexer", 1)
                await both(lambda of: ("Recovered", INDEXER) in of.told(), "it recovered")
                single = Counter(
                    {("Unavailable", INDEXER): 1, ("Still unavailable", INDEXER): 1, ("Recovered", INDEXER): 1}
                )
                assert [of.told() for of in (mail, hook)] == [single, single]
                assert hook.titles == [
                    f"Lookout: {INDEXER} {what}" for what in ("is unavailable", "is still unavailable", "recovered")
                ]

                await world.order("*", "status")
                await both(lambda of: count_of(of, "Unavailable") >= MONITORED + 1, "all began")
                await world.order("*", None)
                await both(lambda of: count_of(of, "Recovered", "Improved") >= MONITORED + 1, "all are better")
                await asyncio.sleep(2)  # in which something could come twice

        for of in (mail, hook):
            began = [check for heading, check in of.told().elements() if heading == "Unavailable"]
            better = [check for heading, check in of.told().elements() if heading in ("Recovered", "Improved")]
            assert Counter(began) == Counter(better)
            assert (Counter(began)[INDEXER], len(set(began)), len(began)) == (2, MONITORED, MONITORED + 1)
            assert len(of.accepted) <= 3 + 4 + 4  # 40 that began or ended, gathered
            assert [key for key in of.told() if key[0] == "Still unavailable"] == [("Still unavailable", INDEXER)]
            assert of.told()["Still unavailable", INDEXER] == 1

    async def both(holds: Callable[[Receiver], bool], what: str) -> None:
        await until_async(lambda: holds(mail) and holds(hook), f"{what}; {mail.titles} {hook.titles}")

    with a_mailbox() as mail, a_hook(PLANTED) as hook:
        lived_through(scenario(mail, hook))
    assert mail.told() == hook.told()
    assert PLANTED not in said(tmp_path)
    assert "Traceback" not in said(tmp_path)


@pytest.mark.long
def test_targets_that_do_not_accept_trouble_nobody_else(tmp_path: Path) -> None:
    admin = f"127.0.0.1:{a_free_port()}"

    async def scenario(good: Receiver, flaky: Receiver, hanging: Receiver) -> None:
        flaky.mood, hanging.mood = "500", "hang"
        targets = {
            "good": good.address,
            "flaky": flaky.address,
            "hanging": f"{hanging.address}?rto=1",
            "refusing": f"json://127.0.0.1:{a_free_port()}/{PLANTED}",
        }
        async with a_world(tmp_path) as world:
            more = "group_s = 0\ngive_up_s = 14"
            (tmp_path / "lookout.toml").write_text(a_night(world.base, targets, "for_s = 1", more, admin))
            with a_command(tmp_path, "monitor", "-c", "lookout.toml"):
                await world.until_healthy()
                instants = asyncio.create_task(watch_the_report(world))
                await ill(world, "squid/1", "indexer", 1)
                await until_async(lambda: good.titles == [f"Lookout: {INDEXER} is unavailable"], "the good one is told")
                await until_async(lambda: len(flaky.asked) == 1 and bool(hanging.asked), "the others were tried")
                flaky.mood = "accept"
                await until_async(lambda: flaky.titles == good.titles, "the flaky one is told later")
                await until_async(
                    lambda: said(tmp_path).count("a message was given up") == 2, "the others are given up"
                )
                await until_async(lambda: not waiting(tmp_path), "nothing waits")
                instants.cancel()
                told = await metrics_of(world, admin)
                messages = samples(told, "lookout_alert_messages_total")
                assert messages['{outcome="sent",target="good"}'] == messages['{outcome="sent",target="flaky"}'] == 1
                assert messages['{outcome="retried",target="flaky"}'] == 1
                for name in ("hanging", "refusing"):
                    assert messages[f'{{outcome="given-up",target="{name}"}}'] == 1
                    assert messages[f'{{outcome="retried",target="{name}"}}'] >= 2
                assert samples(told, "lookout_alerts_firing") == {"": 1}
                assert set(samples(told, "lookout_alert_queue").values()) == {0}
                # A heartbeat a second, on a machine that may be busy with other tests.
                assert max(later - earlier for earlier, later in pairwise(seen)) <= 5_000
        assert len(flaky.accepted) == 1

    seen: list[int] = []

    async def watch_the_report(world: World) -> None:
        while True:
            seen.append(parse_instant(world.document()["generatedAt"]))
            await asyncio.sleep(0.1)

    with a_hook(PLANTED) as good, a_hook(PLANTED) as flaky, a_hook(PLANTED) as hanging:
        lived_through(scenario(good, flaky, hanging))
    assert PLANTED not in said(tmp_path)
    assert "Traceback" not in said(tmp_path)


@pytest.mark.parametrize("programs", [from_a_wheel()])
def test_a_monitor_that_thaws_after_a_takeover_sends_nothing(programs: Programs, tmp_path: Path) -> None:
    async def scenario(server: Postgres, hook: Receiver) -> None:
        hook.mood = "500"
        database = server.a_database()
        async with a_world(tmp_path) as world:
            config = a_night(world.base, {"hook": hook.address}, "for_s = 1", "group_s = 0")
            with ExitStack() as processes:
                monitors = {}
                for folder in (tmp_path / "a", tmp_path / "b"):
                    folder.mkdir()
                    (folder / "lookout.toml").write_text(config.replace("sqlite:lookout.db", server.url(database)))
                    monitor = processes.enter_context(a_command(folder, "monitor", "-c", "lookout.toml"))
                    monitors[str(monitor.pid)] = monitor, folder
                await until_async(
                    lambda: "waiting for the other" in said(tmp_path / "a") + said(tmp_path / "b"), "a standby"
                )
                await world.order("squid/1", "status")
                await until_async(lambda: bool(hook.asked), "it is tried")
                ((holder,),) = server.ask(database, "SELECT holder FROM lookout.writer")
                frozen, folder = monitors[holder.split()[-1]]
                frozen.send_signal(signal.SIGSTOP)  # until the next try is due, and the store another's
                hook.mood = "accept"
                await until_async(lambda: bool(hook.accepted), "the other one tells it")
                frozen.send_signal(signal.SIGCONT)
                await until_async(lambda: "standing by" in said(folder).rpartition('"started"')[2], "it stands by")
                await asyncio.sleep(2)  # in which it could come twice
        assert hook.titles == [f"Lookout: {INDEXER} is unavailable"]

    with or_skipped(a_postgres(programs)) as server, a_hook() as hook:
        lived_through(scenario(server, hook))


@pytest.mark.first
def test_a_ping_comes_while_publications_are_stored_and_only_from_who_stores_them(tmp_path: Path) -> None:
    def pings(hook: Receiver, of: str) -> int:
        return sum(path == f"/{PLANTED}/{of}" for path in hook.asked)

    async def scenario(hook: Receiver) -> None:
        async with a_world(tmp_path) as world:
            for name in ("a", "b"):
                url = hook.address.replace("json:", "http:")
                config = f'{a_config(world.base)}[ping]\nurl = "{url}/{name}"\nevery_s = 0.5\n'
                (tmp_path / f"{name}.toml").write_text(config)
            with ExitStack() as monitors:
                first = monitors.enter_context(a_command(tmp_path, "monitor", "-c", "a.toml"))
                await until_async(lambda: pings(hook, "a") >= 3, "pings")
                monitors.enter_context(a_command(tmp_path, "monitor", "-c", "b.toml"))
                await until_async(lambda: "waiting for the other monitor" in said(tmp_path), "a standby")

                (tmp_path / "a note").write_text("this is no store")
                (tmp_path / "lookout.db").rename(tmp_path / "away.db")
                (tmp_path / "a note").rename(tmp_path / "lookout.db")
                await until_silent(hook)
                (tmp_path / "away.db").rename(tmp_path / "lookout.db")
                await until_more(hook, "a")

                hook.mood = "500"
                await until_async(lambda: "the ping fails" in said(tmp_path), "it fails")
                await until_more(hook, "a")
                hook.mood = "accept"
                await until_async(lambda: "the ping works again" in said(tmp_path), "it works")
                assert said(tmp_path).count("the ping fails") == 1

                assert pings(hook, "b") == 0
                first.kill()
                first.wait()
                await until_more(hook, "b")
                count = pings(hook, "a")
                await until_more(hook, "b")
                assert pings(hook, "a") == count

    async def until_more(hook: Receiver, of: str) -> None:
        count = pings(hook, of)
        await until_async(lambda: pings(hook, of) > count + 1, "more pings")

    async def until_silent(hook: Receiver) -> None:
        """Two heartbeats are two seconds."""
        async with asyncio.timeout(WITHIN_S):
            count = -1
            while len(hook.asked) > count:
                count = len(hook.asked)
                await asyncio.sleep(2)

    with a_hook(PLANTED) as hook:
        lived_through(scenario(hook))
    assert PLANTED not in said(tmp_path)


def test_a_test_of_the_targets_says_of_each_whether_it_accepted(tmp_path: Path) -> None:
    def tried(*more: str) -> tuple[int, list[str], str]:
        done = lookout(tmp_path, "alerts", "test", "-c", "lookout.toml", *more)
        return done.returncode, re.sub(r"\d+\.\d s", "N s", done.stdout).splitlines(), done.stderr

    with a_mailbox() as mail, a_hook(PLANTED) as hook:
        refusing = f"json://127.0.0.1:{a_free_port()}/{PLANTED}"
        targets = {"mail": mail.address, "hook": hook.address, "refusing": refusing}
        (tmp_path / "lookout.toml").write_text(a_night("http://127.0.0.1:1", targets, ""))
        refused = "refusing: not accepted after N s; apprise -v -b test ADDRESS tells why"
        assert tried() == (1, ["mail: accepted after N s", "hook: accepted after N s", refused], "")
        assert tried("--target", "hook") == (0, ["hook: accepted after N s"], "")
        assert mail.titles == ["Lookout: a test"]
        assert hook.titles == ["Lookout: a test"] * 2
        assert tried("--target", "pager") == (
            2,
            [],
            "lookout: --target: no target in [alerts.targets] has this name; there is mail, hook, refusing\n",
        )
    (tmp_path / "lookout.toml").write_text("")
    code, _, said = tried()
    assert code == 2
    assert said.endswith("alerts.targets: there is none to send to; add [alerts.targets] and [[alerts.rules]]\n")


async def ill(world: World, target: str, service: str, chain_id: int) -> None:
    await world.order(target, "status")
    await world.until(lambda: world.told(service, chain_id) == "unavailable/unreachable", f"{target} is unavailable")


async def well(world: World, target: str, service: str, chain_id: int) -> None:
    await world.order(target, None)
    await world.until(lambda: world.told(service, chain_id) == "current/synced", f"{target} is current")


def count_of(receiver: Receiver, *headings: str) -> int:
    return sum(count for (heading, _), count in receiver.told().items() if heading in headings)


def waiting(folder: Path) -> list[str]:
    """The stored messages that were not accepted yet, by their names."""
    with closing(sqlite3.connect(folder / "lookout.db")) as store:
        return [name for (name,) in store.execute("SELECT name FROM pieces WHERE name LIKE 'alerts/%'")]
