"""Another plan while the monitor runs: in the ledger, and for the tasks that ask and publish."""

import asyncio
import json
import threading
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from lookout.base.clock import SystemClock
from lookout.base.pieces import Pieces
from lookout.config.alerts import AlertsTable
from lookout.config.settings import Settings
from lookout.config.tables import PingTable, PolicyTable
from lookout.core.heads import Pace, Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Blocks, Check, Observation, Peers
from lookout.core.plan import Plan
from lookout.documents.document import Document, DocumentName
from lookout.documents.reports import history_document, live_document
from lookout.monitor.monitor import Monitor
from lookout.monitor.recorder import LogFile, Recorder
from lookout.monitor.sources import sources_of
from lookout.replay.replay import read_log
from lookout.state.codec import decode_state
from lookout.state.log import Event, HeadRead, Started, Stopped
from tests.builders import INDEXER, LAUNCH, LAUNCH_SPAN, MESSAGING, MINUTE, NOON, PPOI, SECOND, a_plan
from tests.contract.protocols.upstreams import answering
from tests.property.events import logs
from tests.unit.kept_pieces import AStore
from tests.unit.running_monitor import (
    Asked,
    Happening,
    KeptInMemory,
    Read,
    given_settings,
    lived,
    reloading,
    running,
    some_resources,
)
from tests.wait import until_async

POLYGON = Check("indexer", 137)


def a_ledger(plan: Plan) -> Ledger:
    ledger = Ledger(plan)
    ledger.start(NOON)
    ledger.publish(NOON)
    return ledger


def buckets(ledger: Ledger) -> dict[Check, str]:
    return {row.check: row.buckets for row in ledger.view().rows}


@pytest.mark.clause("H15")
def test_a_chain_taken_out_and_put_back_before_anything_was_published_never_left() -> None:
    ledger = a_ledger(a_plan(chains=(1, 137)))
    ledger.replan(a_plan())
    ledger.replan(a_plan(chains=(1, 137)))
    ledger.publish(NOON + 90 * SECOND)
    ledger.publish(NOON + 5 * MINUTE)
    assert set(buckets(ledger).values()) == {"??"}


def test_buckets_of_another_length_are_refused() -> None:
    ledger = a_ledger(a_plan())
    with pytest.raises(ValueError, match="has buckets of 300 s, the configuration of 60 s"):
        ledger.replan(a_plan(span=replace(LAUNCH_SPAN, bucket_ms=MINUTE)))


PLANS = (
    a_plan(),
    a_plan(MESSAGING, INDEXER),
    a_plan(chains=(1, 137)),
    replace(a_plan(), chains={1: Pace(2_000, 1)}),
    a_plan(limits=replace(LAUNCH, row_lifetime_ms=20 * SECOND, failures_for_unavailable=1)),
    a_plan(span=replace(LAUNCH_SPAN, retention_days=1, counts_from_ms=SECOND, hold_ms=MINUTE)),
)


def happen(ledger: Ledger, plan: Plan, event: Event) -> None:
    match event:
        case Started(at):
            ledger.start(at)
        case Observation(check, _, _) if check in plan.monitored:
            ledger.judge(event)
        case HeadRead(_, chain_id, reading) if chain_id in plan.chains:
            ledger.read_head(chain_id, reading)
    ledger.publish(event.at)


@pytest.mark.clause("M7", "M14", "H15")
@settings(max_examples=15)
@given(logs(), st.lists(st.sampled_from(PLANS), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_another_plan_while_it_runs_is_a_start_under_it_with_all_that_is_known(
    log: list[Event], plans: list[Plan], chance: Random
) -> None:
    """And what is stored of it, which is only what changed, is all of it."""
    ledger = Ledger(PLANS[0])
    stored = AStore()
    plan = PLANS[0]
    for event in log:
        if isinstance(event, Stopped):
            continue
        happen(ledger, plan, event)
        stored.write(ledger)
        if chance.random() < 0.3:
            plan = chance.choice(plans)
            anew = Ledger(plan, ledger.state())
            ledger.replan(plan)
            for each in (anew, ledger):
                each.publish(event.at)
            assert (live_document(ledger.report()), history_document(ledger.view()), ledger.state()) == (
                live_document(anew.report()),
                history_document(anew.view()),
                anew.state(),
            )
            stored.write(ledger)
        restarted = Ledger(plan, decode_state(stored.pieces))
        restarted.publish(event.at)
        assert (live_document(ledger.report()), history_document(ledger.view())) == (
            live_document(restarted.report()),
            history_document(restarted.view()),
        )


@pytest.mark.clause("M7", "M8")
@pytest.mark.parametrize("height", [2, 3], ids=["its very last head", "another head"])
def test_a_chain_that_leaves_and_returns_at_once_has_only_the_heads_read_since_then(height: int) -> None:
    stored, ledger = AStore(), a_ledger(a_plan(chains=(1, 137)))
    for each in (1, 2):
        ledger.read_head(137, Reading(NOON, each, NOON))
    ledger.publish(NOON)
    stored.write(ledger)
    ledger.replan(a_plan())
    ledger.replan(a_plan(chains=(1, 137)))
    assert (ledger.heads(137).readings, ledger.heads(137).newest_of_run) == ((), None)
    ledger.read_head(137, Reading(NOON, height, NOON))
    ledger.publish(NOON + SECOND)
    stored.write(ledger)
    again = Ledger(a_plan(chains=(1, 137)), decode_state(stored.pieces))
    assert again.state().heads == ledger.state().heads == {137: (Reading(NOON, height, NOON),)}


@pytest.mark.clause("M1", "M2", "M6", "M8")
def test_who_is_not_touched_is_asked_at_the_very_same_instants() -> None:
    def untouched() -> tuple[list[Asked], list[Read]]:
        return [Asked(MESSAGING), Asked(INDEXER, Blocks(95))], [Read()]

    def instants(sources: list[Asked], endpoints: list[Read]) -> list[list[int]]:
        return [*(source.asked for source in sources), *(endpoint.asked for endpoint in endpoints)]

    plan, wide = a_plan(), a_plan(chains=(1, 137))
    calm = untouched()
    lived(600, plan, *calm)
    sources, endpoints = untouched()
    there = reloading(wide, [*sources, Asked(POLYGON)], [*endpoints, Read(137)])
    back = reloading(plan, sources, endpoints)
    # While they are being asked, while they wait, one right after the other, and before they were asked at all.
    at = [0.2, 0.2, 2.5, 2.5, 10, 31.6, 33.1, 50, 50.1, 200, 201, 333.3, 400, 400]
    lived(600, plan, sources, endpoints, *((s, back if n % 2 else there) for n, s in enumerate(at)))
    assert instants(sources, endpoints) == instants(*calm)
    assert len(sources[0].asked) > 4


@pytest.mark.clause("M5", "H2", "H15")
def test_who_is_new_is_asked_at_once_and_who_left_never_again_and_both_documents_tell_of_it_at_once() -> None:
    old, new = Asked(PPOI), Asked(POLYGON, Blocks(95))
    wide, narrow = a_plan(MESSAGING, PPOI), a_plan(MESSAGING, POLYGON, chains=(137,))
    sources = [Asked(MESSAGING, Peers(1)), old]
    writer = lived(100, wide, sources, [Read()], (40.0, reloading(narrow, [sources[0], new], [Read(137)])))
    assert max(old.asked) < 40_000 < min(new.asked) < 45_000  # after its chain's head, or the wait for it
    at, documents = next(each for each in writer.written if each[0] >= 40_000)
    assert at <= 40_500
    for name, rows in (("live", "checks"), ("history", "rows")):
        assert {row["chainId"] for row in json.loads(documents[cast("DocumentName", name)].body)[rows]} == {None, 137}
    heartbeats = [at for at, _ in writer.written]
    assert max(later - earlier for earlier, later in pairwise(heartbeats)) <= 30_000


def test_a_source_that_is_replaced_while_it_is_asked_is_never_heard() -> None:
    old, new = Asked(MESSAGING, Peers(1)), Asked(MESSAGING, Peers(2))
    plan = a_plan()
    writer = lived(20, plan, [old], [], (1.8, reloading(plan, [new], [])))
    assert (old.asked, new.asked) == ([1_500], [3_300])
    assert not [1 for _, documents in writer.written if b'"peers":1' in documents["live"].body]
    assert b'"peers":2' in writer.written[-1][1]["live"].body


@pytest.mark.clause("M8")
def test_another_greatest_age_of_heads_asks_the_endpoints_anew_and_nobody_else() -> None:
    plan = a_plan()
    source, endpoint = Asked(MESSAGING, Peers(1)), Read()
    older = replace(plan, limits=replace(LAUNCH, head_max_age_ms=90_000))
    lived(60, plan, [source], [endpoint], (20.0, reloading(older, [source], [endpoint])))
    assert [at for at in endpoint.asked if 20_000 <= at < 21_000] == [20_750]
    assert source.asked == [1_500, 34_000]


def test_a_monitor_that_began_with_nobody_to_ask_asks_whom_it_is_given() -> None:
    plan, source = a_plan(), Asked(MESSAGING, Peers(1))
    lived(60, plan, [], [], (10.0, reloading(plan, [source], [])))
    assert source.asked == [11_500, 44_000]


def test_a_record_moves_to_another_file_and_both_can_be_replayed(tmp_path: Path) -> None:
    plan, source = a_plan(), Asked(MESSAGING, Peers(1))
    first, second = (Recorder(LogFile(tmp_path / name, 1_000_000)) for name in ("first", "second"))

    def to(recorder: Recorder) -> Happening:
        return lambda monitor: monitor.apply_settings(given_settings(plan, [source]), recorder)

    lived(60, plan, [source], [], (0.5, to(first)), (10.0, to(second)), (20.0, to(second)))
    kinds = []
    for recorder, name in ((first, "first"), (second, "second")):
        recorder.close()
        with (tmp_path / name).open("rb") as lines:
            kinds.append([type(event) for _, event in read_log(lines, [])])
    assert kinds == [[Started, Observation, Stopped]] * 2


class Stuck(KeptInMemory):
    """A writer that waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.may_go_on = threading.Event(), threading.Event()

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self.began.set()
        self.may_go_on.wait(60)
        super().write(documents, pieces)


async def test_a_reload_while_the_store_hangs_shows_once_it_works_again() -> None:
    writer, narrow, wide = Stuck(), given_settings(a_plan()), given_settings(a_plan(chains=(1, 137)))
    monitor = Monitor(narrow, {}, some_resources(writer, SystemClock()))
    async with running(monitor.run()):
        await asyncio.to_thread(writer.began.wait, 60)
        for each in (wide, narrow, wide):
            monitor.apply_settings(each, None)
            await asyncio.sleep(0)
        assert writer.documents == []
        writer.may_go_on.set()
        await until_async(lambda: len(writer.documents) > 1, "the store works again")
    for name in ("live", "history"):
        bodies = [documents[name].body for documents in writer.documents[:2]]
        assert [b'"chainId":137' in body for body in bodies] == [False, True]


async def test_a_reload_reaches_the_alerts_and_the_ping() -> None:
    registry, policy = CollectorRegistry(), PolicyTable(heartbeat_s=0.5)

    def is_there(name: str, **labels: str) -> bool:
        return registry.get_sample_value(name, labels) is not None

    resources = some_resources(KeptInMemory(), SystemClock(), registry)._replace(build_sources=sources_of)
    monitor = Monitor(Settings(policy=policy), {}, resources)
    async with answering(lambda _: (200, b"")) as (url, _), running(monitor.run()):
        await until_async(lambda: is_there("lookout_publication_age_seconds"), "it runs")
        assert not is_there("lookout_alert_queue", target="desk")
        monitor.apply_settings(Settings(policy=policy, alerts=AlertsTable({"desk": "json://127.0.0.1:9"})), None)
        await until_async(lambda: is_there("lookout_alert_queue", target="desk"), "there is another target")
        monitor.apply_settings(Settings(policy=policy, ping=PingTable(url, every_s=0.1)), None)
        assert not is_there("lookout_alert_queue", target="desk")
        await until_async(lambda: is_there("lookout_pings_total", outcome="answered"), "it pings")
        assert registry.get_sample_value("lookout_pings_total", {"outcome": "failed"}) == 0


def test_a_scrape_says_nothing_of_what_a_reload_removed() -> None:
    registry = CollectorRegistry()
    span = replace(LAUNCH_SPAN, min_known_buckets=1)
    sources = [Asked(check, Blocks(95)) for check in (INDEXER, POLYGON)]
    said: list[set[str]] = []

    def scrape(_monitor: Monitor) -> None:
        samples = (sample for family in registry.collect() for sample in family.samples)
        said.append({sample.name for sample in samples if sample.labels.get("chain") == "137"})

    fewer = reloading(a_plan(INDEXER, span=span), sources[:1], [Read()])
    both = a_plan(INDEXER, POLYGON, chains=(1, 137), span=span)
    lived(90, both, sources, [Read(), Read(137)], (80, scrape), (81, fewer), (84, scrape), registry=registry)
    before, after = said
    assert before >= {
        *(
            f"lookout_row_{name}"
            for name in ("status", "position", "head", "lag_blocks", "lag_seconds", "uptime_ratio")
        ),
        *("lookout_head_agreed", "lookout_head_height", "lookout_probe_duration_seconds_count"),
    }
    assert {name for name in after if not name.endswith(("_total", "_created"))} == set()
