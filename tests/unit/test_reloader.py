"""Reading the configuration again: what is built anew, what a reload says of itself, and who may ask for one."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from lookout.app.monitor import prepare_server
from lookout.app.reloader import Reloaded, Reloader, compare_settings
from lookout.base.clock import SystemClock
from lookout.config.environment_file import Environment
from lookout.config.services import OwnService
from lookout.config.settings import Settings, Upstreams, upstreams_of
from lookout.config.tables import (
    AdminTable,
    ChainTable,
    EdgeTable,
    HistoryTable,
    LogTable,
    MonitorTable,
    PageTable,
    PolicyTable,
    RpcEndpoint,
    ServerSettings,
    ServerTable,
    StoreTable,
)
from lookout.core.model import Members
from lookout.core.services import SERVICES, Service
from lookout.features.lists.readers import choose_lists
from lookout.monitor.metrics import Instruments
from lookout.protocols.broadcasters.announcements import Announcement
from lookout.protocols.broadcasters.seen import BroadcastersTable, SeenBroadcasters, Sighting
from lookout.protocols.broadcasters.source import BroadcastersSource
from lookout.protocols.client.request import KindTable, SourceTable
from lookout.protocols.generic import HttpTable
from lookout.protocols.lists import CompleteTable, ListTable
from lookout.protocols.messaging import MessagingTable
from lookout.protocols.ppoi import PpoiTable
from lookout.state.codec import decode_sightings, encode_sightings
from lookout.state.errors import StateError
from tests.builders import NOON
from tests.declared import including
from tests.logs import capture_logs

CHAINS = (
    ChainTable(id=1, name="Ethereum", block_time_s=12, rpc=(RpcEndpoint("http://a"), RpcEndpoint("http://b"))),
    ChainTable(id=137, name="Polygon", block_time_s=2, rpc=(RpcEndpoint("http://c"),)),
)
OWN = OwnService(name="relayer", checks=(HttpTable(None, "http", "http://r"),))
SETTINGS = Settings(
    chains=CHAINS,
    services=(OWN,),
    sources={
        "ppoi": (PpoiTable("http://p", "list", (1, 137)),),
        "indexer": (KindTable(1, "squid", "http://i", 5), KindTable(137, "squid", "http://j", 5)),
        "messaging": (MessagingTable("http://m"),),
        "broadcasters": (BroadcastersTable("http://w", (1, 137)),),
    },
)
INDEXERS = SETTINGS.sources["indexer"]
SIGHTINGS = tuple(Sighting(chain_id, Announcement("0zk1", "a", NOON, NOON, 1)) for chain_id in (1, 137))


ENDPOINT_KEYS: dict[str, dict[str, Any]] = {
    "name": {"name": "own node"},
    "headers": {"headers": {"k": "v"}},
    "ca_file": {"ca_file": "other certificates"},
    "proxy": {"proxy": "http://p"},
}


def watching(**tables: SourceTable) -> dict[str, tuple[SourceTable, ...]]:
    """The tables of the settings, with others in the place of these."""
    return SETTINGS.sources | {service: (table,) for service, table in tables.items()}


@pytest.mark.clause("S17")
def test_a_list_to_compare_that_comes_changes_or_goes_is_of_its_indexer_alone() -> None:
    table = ListTable(1, "squid", "http://i", 5)
    complete = CompleteTable(contracts=("0x1",), events=("0x2",), first_block=0, query="q", pointer="/*")
    without, first, second = (
        replace(SETTINGS, sources=SETTINGS.sources | {"indexer": (replace(table, complete=each), INDEXERS[1])})
        for each in (None, complete, replace(complete, limit=500))
    )
    for old, new, limit in ((without, first, 1000), (first, second, 500), (second, without, None)):
        assert compare_settings("f", old, new, None) == Reloaded("f", "applied", changed=("indexer 1",))
        assert [
            each.table.limit for each in choose_lists(new.sources_by_check(), ListTable.transaction_list).values()
        ] == ([limit] if limit else [])


def listening(upstreams: Upstreams) -> list[BroadcastersSource]:
    return [source for source in upstreams.sources if isinstance(source, BroadcastersSource)]


@pytest.mark.clause("M7")
def test_each_service_of_broadcasters_is_given_back_what_it_saw_itself() -> None:
    with including(SERVICES, Service("relayers", Members)):
        settings = replace(SETTINGS, sources=watching(relayers=BroadcastersTable("http://r", (1,))))
        seen = {"broadcasters": SeenBroadcasters(SIGHTINGS, {1: NOON}), "relayers": SeenBroadcasters((), {1: NOON + 1})}
        before, after = upstreams_of(settings), upstreams_of(settings)
        before.resume(seen)
        stored = encode_sightings(before.seen())
        assert list(stored) == ["source/broadcasters", "source/relayers"]
        after.resume(decode_sightings(stored))
        assert after.seen() == seen


@pytest.mark.parametrize(
    ("new", "with_server", "expected"),
    [
        pytest.param(SETTINGS, True, Reloaded("f", "applied"), id="nothing"),
        pytest.param(
            replace(
                SETTINGS,
                chains=CHAINS[:1],
                sources=watching(broadcasters=BroadcastersTable("http://w", (1,)), indexer=INDEXERS[0]) | {"ppoi": ()},
            ),
            True,
            Reloaded(
                "f",
                "applied",
                removed=("ppoi 1", "ppoi 137", "broadcasters 137", "indexer 137", "chain 137"),
            ),
            id="a chain and a source taken out",
        ),
        pytest.param(
            replace(
                SETTINGS,
                chains=(*CHAINS, ChainTable(id=56, name="BNB", block_time_s=1, rpc=(RpcEndpoint("http://e"),))),
                sources=SETTINGS.sources | {"hosted-indexer": INDEXERS[:1]},
            ),
            True,
            Reloaded("f", "applied", added=("hosted-indexer 1", "chain 56")),
            id="a chain and a source put in",
        ),
        pytest.param(
            replace(
                SETTINGS,
                chains=(replace(CHAINS[0], block_time_s=13, rpc=(RpcEndpoint("http://b"),)), CHAINS[1]),
                sources=watching(messaging=MessagingTable("http://n"), ppoi=PpoiTable("http://q", "list", (1, 137))),
                policy=PolicyTable(recheck_s=60),
                history=HistoryTable(hold_s=61),
                monitor=MonitorTable("log.jsonl"),
            ),
            True,
            Reloaded(
                "f",
                "applied",
                changed=(
                    *("messaging", "ppoi 1", "ppoi 137", "chain 1"),
                    *("monitor.record", "policy.recheck_s", "history.hold_s"),
                ),
            ),
            id="other settings",
        ),
        pytest.param(
            replace(SETTINGS, services=(replace(OWN, effect="sending may fail"),)),
            True,
            Reloaded("f", "applied", changed=("relayer",)),
            id="other words for a service of one's own",
        ),
        *(
            pytest.param(
                replace(SETTINGS, chains=(CHAINS[0], replace(CHAINS[1], rpc=(RpcEndpoint("http://c", **other),)))),
                True,
                Reloaded("f", "applied", changed=("chain 137",)),
                id=f"another {key} of an endpoint",
            )
            for key, other in ENDPOINT_KEYS.items()
        ),
        pytest.param(
            replace(
                SETTINGS,
                protocol="other",
                server=ServerTable(ban_s=2),
                admin=AdminTable("127.0.0.1:1", "127.0.0.1:2"),
                store=StoreTable("sqlite:other.db"),
                edge=EdgeTable("127.0.0.1:3"),
                page=PageTable("Status"),
                log=LogTable("debug"),
            ),
            True,
            Reloaded(
                "f",
                "applied",
                changed=("protocol", "log.level"),
                needs_restart=(
                    *("admin.monitor", "store.url", "server.ban_s", "admin.server", "page.title"),
                    *("protocol of the server", "log.level of the server"),
                ),
            ),
            id="what needs a restart where there is a server",
        ),
        pytest.param(
            replace(
                SETTINGS,
                protocol="other",
                server=ServerTable(ban_s=2),
                admin=AdminTable("", ""),
                page=PageTable("Status"),
                log=LogTable("debug"),
            ),
            False,
            Reloaded("f", "applied", changed=("protocol", "log.level"), needs_restart=("admin.monitor",)),
            id="what needs a restart where there is none",
        ),
    ],
)
def test_a_reload_says_what_it_changes_and_what_it_cannot(new: Settings, with_server: bool, expected: Reloaded) -> None:
    assert compare_settings("f", SETTINGS, new, ServerSettings() if with_server else None) == expected


def test_a_page_that_the_server_does_not_have_yet_needs_a_restart_at_every_reload() -> None:
    changed = replace(SETTINGS, page=PageTable(run_by_others=("indexer",)))
    assert compare_settings("f", changed, changed, ServerSettings()).needs_restart == ("page.run_by_others",)


WATCHED = MessagingTable(url="http://127.0.0.1:1")
WATCHING = Settings(sources={"messaging": (WATCHED,)})


def a_file(folder: Path, recheck_s: int, more: str = "") -> Path:
    path = folder / "lookout.toml"
    watched = "" if "[messaging]" in more else f'[messaging]\nurl = "{WATCHED.url}"\n'
    path.write_text(f"{watched}[policy]\nrecheck_s = {recheck_s}\n{more}")
    return path


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


class Applying:
    """A monitor that keeps what is applied to it."""

    def __init__(self, registry: CollectorRegistry, why_not: str = "") -> None:
        self.applied: list[Settings] = []
        self.instruments = Instruments(registry, SystemClock())
        self._why_not = why_not

    async def replace(self, new: Settings, /) -> None:
        if self._why_not:
            raise StateError(self._why_not)
        self.applied.append(new)


async def test_a_server_that_was_started_again_has_what_the_file_said_then(tmp_path: Path) -> None:
    path = a_file(tmp_path, 60, '[page]\ntitle = "Status"\n[server]\nban_s = 2\n')
    reloader = Reloader(path, WATCHING, SystemClock())
    settings, _ = prepare_server(path)
    reloader.note_server_start(settings)
    assert (await reloader.reload()).needs_restart == ()
    a_file(tmp_path, 60)
    assert (await reloader.reload()).needs_restart == ("server.ban_s", "page.title")


async def test_a_good_file_is_applied_to_the_monitor_and_no_other(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    monitor = Applying(registry)

    def count(outcome: str) -> float | None:
        return registry.get_sample_value("lookout_reloads_total", {"outcome": outcome})

    def is_in_force() -> float | None:
        return registry.get_sample_value("lookout_config_last_reload_successful")

    path = a_file(tmp_path, 60, '[store]\nurl = "sqlite:other.db"')
    reloader = Reloader(path, WATCHING, SystemClock())
    with reloader.attached(monitor.replace, monitor.instruments):
        assert (count("applied"), count("refused")) == (0, 0)
        assert is_in_force() == 1
        began_at = registry.get_sample_value("lookout_config_loaded_timestamp_seconds")
        reloaded = await reloader.reload()
        assert reloaded == Reloaded(str(path), "applied", changed=("policy.recheck_s",), needs_restart=("store.url",))
        assert monitor.applied == [reloader.settings] == [replace(WATCHING, policy=PolicyTable(recheck_s=60))]
        path.write_text("[policy]\nrecheck = 3\njitter_s = -1\n")
        reloaded = await reloader.reload()
        assert (reloaded.outcome, len(reloaded.problems)) == ("refused", 2)
        assert is_in_force() == 0
        a_file(tmp_path, 30, "[history]\nbucket_s = 100\n")
        reloaded = await reloader.reload()
        what = "the stored history has buckets of 300 s; set it back, or begin another store with 100"
        assert reloaded.problems == (f"{path}: history.bucket_s: {what}",)
        assert monitor.applied == [reloader.settings]
        assert (count("applied"), count("refused")) == (1, 2)
        loaded_at = registry.get_sample_value("lookout_config_loaded_timestamp_seconds")
        assert began_at is not None
        assert loaded_at is not None
        assert loaded_at >= began_at
        a_file(tmp_path, 30)
        assert (await reloader.reload()).outcome == "applied"
        assert is_in_force() == 1


async def test_a_reload_reads_the_files_of_variables_again_and_names_those_that_it_cannot(tmp_path: Path) -> None:
    monitor, secrets = Applying(CollectorRegistry()), tmp_path / "environment"
    path = a_file(tmp_path, 60, '[messaging]\nurl = "http://127.0.0.1/${TOKEN}"\n[page]\ntitle = "${TITLE}"\n')
    environment = Environment({"TOKEN": "own", "TITLE": "Status"}, (secrets,))
    reloader = Reloader(path, WATCHING, SystemClock(), environment)
    with reloader.attached(monitor.replace, monitor.instruments):
        for token in ("first", "second"):
            secrets.write_text(f"TOKEN={token}\n")
            assert (await reloader.reload()).kept_variables == ("TITLE",)
            assert reloader.variables["TOKEN"] == token
        secrets.write_text("TOKEN\n")
        assert (await reloader.reload()).problems[0].startswith(f"{secrets}: line 1: is not NAME=value")
    urls = [table.address() for new in monitor.applied for table in new.sources_by_check().values()]
    assert urls == ["http://127.0.0.1/first", "http://127.0.0.1/second"]


async def test_a_standby_that_refused_a_file_says_so_when_it_takes_over(tmp_path: Path) -> None:
    reloader = Reloader(a_file(tmp_path, -1), WATCHING, SystemClock())
    assert (await reloader.reload()).outcome == "refused"
    registry = CollectorRegistry()
    monitor = Applying(registry)
    with reloader.attached(monitor.replace, monitor.instruments):
        assert registry.get_sample_value("lookout_config_last_reload_successful") == 0


@pytest.mark.clause("M8")
async def test_a_reload_that_leaves_a_chain_with_fewer_than_three_endpoints_is_warned_of(tmp_path: Path) -> None:
    chain = "[[chains]]\nid = 1\nname = 'E'\nblock_time_s = 12\nrpc = ['http://a', 'http://b']\n"
    reloader = Reloader(a_file(tmp_path, 30, chain), WATCHING, SystemClock())
    with capture_logs() as said:
        await reloader.reload()
    (warning,) = (line for line in said if line["log_level"] == "warning")
    assert "chain 1 has only 2 endpoints" in warning["doubt"]


async def test_a_file_that_the_monitor_cannot_use_is_refused(tmp_path: Path) -> None:
    monitor = Applying(CollectorRegistry(), "monitor.record: seen.jsonl: is taken")
    path = a_file(tmp_path, 60, '[monitor]\nrecord = "seen.jsonl"\n')
    reloader = Reloader(path, WATCHING, SystemClock())
    with reloader.attached(monitor.replace, monitor.instruments):
        reloaded = await reloader.reload()
    refused = Reloaded(str(path), "refused", (f"{path}: monitor.record: seen.jsonl: is taken",))
    assert (reloaded, monitor.applied, reloader.settings) == (refused, [], WATCHING)


class Buggy(Applying):
    async def replace(self, _new: Settings, /) -> None:
        raise LookupError("hunter2")


async def test_a_reload_that_dies_of_a_bug_is_refused_and_counts_as_such(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    path = a_file(tmp_path, 60)
    reloader = Reloader(path, WATCHING, SystemClock())
    monitor = Buggy(registry)
    with reloader.attached(monitor.replace, monitor.instruments):
        reloaded = await reloader.reload()
    assert (reloaded.outcome, reloader.settings) == ("refused", WATCHING)
    assert "LookupError" in reloaded.problems[0]
    assert "hunter2" not in reloaded.problems[0]
    assert registry.get_sample_value("lookout_config_last_reload_successful") == 0


@pytest.mark.parametrize("meant", ["%00", "%ff%fe", "", "/no/such/file"])
async def test_another_file_than_the_monitors_is_refused_before_anything_is_read(meant: str, tmp_path: Path) -> None:
    path = a_file(tmp_path, 60)
    path.write_text("this is not read")
    assert (await Reloader(path, WATCHING, SystemClock()).answer(b"", meant)).http_code == 409


async def test_reloads_wait_for_one_another_and_each_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "lookout.toml"
    os.mkfifo(path)
    reloader = Reloader(path, WATCHING, SystemClock())
    both = [asyncio.create_task(reloader.reload()) for _ in range(2)]
    for recheck_s in (60, 90):
        text = f'[messaging]\nurl = "{WATCHED.url}"\n[policy]\nrecheck_s = {recheck_s}\n'
        await asyncio.to_thread(path.write_text, text)
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        assert done.pop().result().changed == ("policy.recheck_s",)
        assert reloader.settings.policy.recheck_s == recheck_s
        both = [task for task in both if not task.done()]
