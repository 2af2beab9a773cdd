"""A bad night: real monitors on a simulated world, and real receivers of the messages about it."""

import asyncio
import re
import resource
import shlex
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import Popen

import pytest

from tests.commands import a_command, lookout_here, said
from tests.integration.fast import a_config, a_world
from tests.integration.receivers import Receiver, a_hook, a_mailbox
from tests.integration.served import a_free_port
from tests.integration.whole_service import PLANTED
from tests.leases import or_skipped
from tests.postgres import Programs, a_postgres, from_a_wheel
from tests.wait import until_async

INDEXER = "indexer on c1"
MONITORED = 20
BETTER = ("Recovered", "Degraded now", "Catching-up now")


def a_night(base: str, targets: dict[str, str], rule: str, more: str = "", admin: str = "") -> str:
    """A configuration that alerts these targets."""
    config = a_config(base).replace('[admin]\nmonitor = ""', f'[admin]\nmonitor = "{admin}"')
    addresses = "".join(f'{name} = "{address}"\n' for name, address in targets.items())
    return f"{config}[alerts]\n{more}\n[alerts.targets]\n{addresses}[[alerts.rules]]\n{rule}\n"


@pytest.mark.first
async def test_of_a_bad_night_each_target_gets_every_message_once(tmp_path: Path) -> None:
    rule = 'name = "outages"\nfor_s = 2\nremind_s = 4'
    without_reminders = 'name = "outages"\nfor_s = 2\nremind_s = 0'
    with a_mailbox() as mail, a_hook(PLANTED) as hook:
        targets = {"mail": mail.address, "hook": hook.address}

        async def both(holds: Callable[[Receiver], bool], what: str) -> None:
            await until_async(lambda: holds(mail) and holds(hook), f"{what}; {mail.titles} {hook.titles}")

        async with a_world(tmp_path) as world:
            (tmp_path / "lookout.toml").write_text(a_night(world.base, targets, rule, "group_s = 2"))
            with ExitStack() as monitors:
                first = monitors.enter_context(a_command(tmp_path, "monitor", "-c", "lookout.toml"))
                await world.until_healthy()
                second = monitors.enter_context(a_command(tmp_path, "monitor", "-c", "lookout.toml"))
                await until_async(lambda: "waiting for the other monitor" in said(tmp_path), "a standby")

                await world.order("squid/1", "status")
                await both(lambda of: ("Unavailable", INDEXER) in of.listed(), "it began")
                await both(lambda of: ("Still unavailable", INDEXER) in of.listed(), "it goes on")
                # A message leaves the store with the publication after it was accepted.
                await until_async(lambda: not waiting(tmp_path), "nothing waits")
                first.kill()
                first.wait()
                await until_async(lambda: said(tmp_path).count('"started"') == 2, "a takeover")
                (tmp_path / "lookout.toml").write_text(a_night(world.base, targets, without_reminders, "group_s = 2"))
                second.send_signal(signal.SIGHUP)
                await until_async(lambda: '"reloaded"' in said(tmp_path), "a reload")
                await world.order("squid/1", None)
                await both(lambda of: ("Recovered", INDEXER) in of.listed(), "it recovered")
                for of in (mail, hook):
                    # On a busy machine there may be another reminder before the reload.
                    titles = list(dict.fromkeys(of.titles))
                    ends = ("is unavailable", "is still unavailable", "recovered")
                    assert titles == [f"Lookout: {INDEXER} {what}" for what in ends]
                    assert of.listed()["Unavailable", INDEXER] == of.listed()["Recovered", INDEXER] == 1

                messages = len(hook.accepted)
                await world.order("*", "status")
                await both(lambda of: count_of(of, "Unavailable") >= MONITORED + 1, "all began")
                await world.order("*", None)
                await both(lambda of: count_of(of, *BETTER) >= MONITORED + 1, "all are better")
                await asyncio.sleep(2)  # in which something could come twice
    for of in (mail, hook):
        began = Counter(check for heading, check in of.listed().elements() if heading == "Unavailable")
        better = Counter(check for heading, check in of.listed().elements() if heading in BETTER)
        assert began == better
        assert (began[INDEXER], len(began), began.total()) == (2, MONITORED, MONITORED + 1)
        assert len(of.accepted) <= messages + 5 + 5  # 40 that began or ended, gathered
        assert {check for heading, check in of.listed() if heading == "Still unavailable"} == {INDEXER}
    assert mail.listed() == hook.listed()
    assert PLANTED not in said(tmp_path)
    assert "Traceback" not in said(tmp_path)


@pytest.mark.first
@pytest.mark.clause("M16", "S13")
async def test_a_chain_that_lost_its_endpoints_is_one_message_that_says_so_and_not_that_its_indexers_are_down(
    tmp_path: Path,
) -> None:
    rules = (
        'unknown = true\nreasons = ["incompatible-reference"]\nfor_s = 1\n[[alerts.rules]]\nunknown = false\nfor_s = 1'
    )
    with a_hook() as hook:
        async with a_world(tmp_path) as world:
            config = a_night(
                world.base, {"hook": hook.address}, rules, 'group_s = 3\nlink = "https://status.example.org"'
            )
            (tmp_path / "lookout.toml").write_text(config.replace("[policy]", "[policy]\nhead_max_age_s = 12"))
            with a_command(tmp_path, "monitor", "-c", "lookout.toml"):
                await world.until_healthy()
                await world.order("rpc/137", "status", code=503)
                await until_async(lambda: bool(hook.accepted), "it began")
                await world.order("rpc/137", None)
                await until_async(lambda: len(hook.accepted) == 2, "it is over")
    began, over = hook.accepted
    assert began.title == "Lookout: 2 checks on c137 cannot be judged"
    assert began.body.startswith("Cannot be judged:\n- indexer on c137: no RPC endpoint of this chain answers, ")
    for number in (1, 2, 3):
        assert f"\n  rpc {number} of c137: no usable answer: HTTP 503\n" in began.body
    assert "unavailable" not in began.body
    assert "\nThe status page: https://status.example.org\n" in began.body
    assert over.title == "Lookout: 2 checks on c137 recovered"
    assert [(item["kind"], item["service"], item["chain"], item["status"]) for item in hook.items()] == [
        ("began", "indexer", "c137", "unknown"),
        ("began", "hosted-indexer", "c137", "unknown"),
        ("ended", "indexer", "c137", "current"),
        ("ended", "hosted-indexer", "c137", "current"),
    ]
    assert all(item["cause"] == {"code": "no_endpoint", "detail": None} for item in hook.items()[:2])
    assert all({"position", "head"} == item["lastMetrics"].keys() for item in hook.items())


@pytest.mark.long
@pytest.mark.clause("M17")
@pytest.mark.parametrize("programs", [pytest.param(None, id="a full disk"), from_a_wheel()])
async def test_while_nothing_can_be_stored_an_outage_is_reported_and_so_is_the_store(
    tmp_path: Path, programs: Programs | None
) -> None:
    with ExitStack() as meanwhile, a_hook() as hook:
        url = "sqlite:lookout.db"
        if programs is not None:
            server = meanwhile.enter_context(or_skipped(a_postgres(programs)))
            url = server.url(server.a_database(), password=PLANTED)

        def break_store(process: Popen[bytes]) -> None:
            if programs is None:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (8_192, resource.RLIM_INFINITY))
            else:
                server.stop("immediate")

        def repair_store(process: Popen[bytes]) -> None:
            if programs is None:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            else:
                server.start()

        async def until_sent(title: str, within_s: float) -> None:
            await until_async(lambda: f"Lookout: {title}" in hook.titles, f"{title}; {hook.titles}", within_s)

        async with a_world(tmp_path) as world:
            config = a_night(world.base, {"hook": hook.address}, "for_s = 2\nremind_s = 0", "group_s = 1")
            (tmp_path / "lookout.toml").write_text(config.replace("sqlite:lookout.db", url))
            with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
                await until_async(lambda: said(tmp_path).count('"was": "unknown"') >= MONITORED, "all was asked")
                break_store(process)
                await until_async(lambda: "not stored" in said(tmp_path), "the store is broken")
                await until_sent("the store is unavailable", 180)
                await world.order("waku/peers", "status")
                await until_sent("messaging is unavailable", 60)
                repair_store(process)
                await until_sent("the store recovered", 60)
                await world.order("waku/peers", None)
                await until_sent("messaging recovered", 60)
    assert all(hook.titles.count(title) == 1 for title in hook.titles)
    (why,) = (item["cause"] for item in hook.items() if (item["service"], item["kind"]) == ("the store", "began"))
    assert why["code"] == "not_stored"
    assert PLANTED not in str(hook.accepted) + said(tmp_path)


async def test_the_commands_that_messages_print_silence_what_they_are_about(tmp_path: Path) -> None:
    nobody, names = f"http://127.0.0.1:{a_free_port()}", [f"own{n}" for n in range(3)]
    config = tmp_path / "my lookout.toml"
    with a_hook() as hook:
        config.write_text(
            f'[admin]\nmonitor = "127.0.0.1:{a_free_port()}"\nserver = ""\n'
            "[policy]\nrecheck_s = 0.5\njitter_s = 0.1\nbackoff_cap_s = 1\n"
            f'[alerts]\ngroup_s = 3\n[alerts.targets]\nhook = "{hook.address}"\n'
            "[[alerts.rules]]\nfor_s = 0\nremind_s = 0\n"
            + "".join(
                f'[[services]]\nname = "{name}"\nchecks = [{{kind = "http", url = "{nobody}"}}]\n' for name in names
            )
        )
        with a_command(tmp_path, "monitor", "-c", config):
            await until_async(lambda: {item["service"] for item in hook.items()} == set(names), "all began")
            bodies = "\n".join(message.body for message in hook.accepted)
            commands = re.findall("^To silence this: lookout (.*)$", bodies, re.MULTILINE)
            elsewhere = tmp_path / "elsewhere"
            elsewhere.mkdir()
            for command in commands:
                done = lookout_here(elsewhere, *shlex.split(command))
                assert (done.returncode, done.stderr) == (0, "")
            listed = lookout_here(elsewhere, "silence", "list", "-c", config).stdout
    assert set(re.findall(r"own\d+", listed)) == set(names)
    assert "Next: first look at this machine's own network: " in bodies


@pytest.mark.first
async def test_a_ping_comes_while_publications_are_stored_and_only_from_the_monitor_that_stores_them(
    tmp_path: Path,
) -> None:
    def count(name: str) -> int:
        return sum(path == f"/{PLANTED}/{name}" for path in hook.asked)

    async def until_more(name: str) -> None:
        before = count(name)
        await until_async(lambda: count(name) > before + 1, "more pings")

    async def until_silent() -> None:
        """Two heartbeats are two seconds."""
        before = -1
        while len(hook.asked) > before:
            before = len(hook.asked)
            await asyncio.sleep(2)

    with a_hook(PLANTED) as hook:
        async with a_world(tmp_path) as world:
            url = hook.address.replace("json:", "http:")
            for name in ("a", "b"):
                config = f'{a_config(world.base)}[ping]\nurl = "{url}/{name}"\nevery_s = 0.5\n'
                (tmp_path / f"{name}.toml").write_text(config)
            with ExitStack() as monitors:
                first = monitors.enter_context(a_command(tmp_path, "monitor", "-c", "a.toml"))
                await until_async(lambda: count("a") >= 3, "pings")
                monitors.enter_context(a_command(tmp_path, "monitor", "-c", "b.toml"))
                await until_async(lambda: "waiting for the other monitor" in said(tmp_path), "a standby")

                (tmp_path / "a note").write_text("this is no store")
                (tmp_path / "lookout.db").rename(tmp_path / "away.db")
                (tmp_path / "a note").rename(tmp_path / "lookout.db")
                await until_silent()
                (tmp_path / "away.db").rename(tmp_path / "lookout.db")
                await until_more("a")

                hook.mood = "500"
                await until_async(lambda: "the ping fails" in said(tmp_path), "it fails")
                await until_more("a")
                hook.mood = "accept"
                await until_async(lambda: "the ping works again" in said(tmp_path), "it works")
                assert said(tmp_path).count("the ping fails") == 1

                assert count("b") == 0
                first.kill()
                first.wait()
                await until_more("b")
                before = count("a")
                await until_more("b")
                assert count("a") == before
    assert PLANTED not in said(tmp_path)


def test_a_test_of_the_targets_says_of_each_whether_it_accepted(tmp_path: Path) -> None:
    def tried(*more: str) -> tuple[int, list[str], str]:
        done = lookout_here(tmp_path, "alerts", "test", "-c", "lookout.toml", *more)
        return done.returncode, re.sub(r"\d+\.\d s", "N s", done.stdout).splitlines(), done.stderr

    with a_mailbox() as mail, a_hook(PLANTED) as hook:
        refusing = f"json://127.0.0.1:{a_free_port()}/{PLANTED}"
        targets = {"mail": mail.address, "hook": hook.address, "refusing": refusing}
        (tmp_path / "lookout.toml").write_text(a_night("http://127.0.0.1:1", targets, ""))
        refused = "refusing: not accepted after N s; not reached: nothing listens at its address"
        assert tried() == (1, ["mail: accepted after N s", "hook: accepted after N s", refused], "")
        assert tried("--target", "hook") == (0, ["hook: accepted after N s"], "")
        assert mail.titles == ["Lookout: a test"]
        assert hook.titles == ["Lookout: a test"] * 2
        assert tried("--target", "pager") == (
            2,
            [],
            "lookout: --target: no target in [alerts.targets] has this name; there is mail, hook, refusing\n",
        )
    (tmp_path / "lookout.toml").write_text('[messaging]\nurl = "http://127.0.0.1:1"\n')
    code, _, said = tried()
    assert code == 2
    assert said.endswith("alerts.targets: there is no target; add [alerts.targets] and [[alerts.rules]]\n")


def count_of(receiver: Receiver, *headings: str) -> int:
    return sum(count for (heading, _), count in receiver.listed().items() if heading in headings)


def waiting(folder: Path) -> list[str]:
    """The stored messages that were not accepted yet, by their names."""
    with closing(sqlite3.connect(folder / "lookout.db")) as store:
        return [name for (name,) in store.execute("SELECT name FROM pieces WHERE name LIKE 'alerts/%'")]
