"""What a monitor is put together from: everything that is stored, and everything that is configured."""

import asyncio
import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from lookout.base.clock import SystemClock
from lookout.base.instants import parse_instant
from lookout.core.ledger import Ledger
from lookout.core.model import Peers
from lookout.core.notices import Notice, Notices
from lookout.documents.document import Document, DocumentName
from lookout.features.alerts.alerts import StoredAlerts, encode_alerts
from lookout.features.alerts.outbox import Queued
from lookout.features.alerts.rules import AlertState, Episode
from lookout.features.lists.known import COVERAGE, LINKS, NODE_GAP, Known
from lookout.features.lists.rules.coverage import Coverage
from lookout.features.lists.rules.links import Links
from lookout.features.lists.rules.node_gap import NodeGap
from lookout.features.registry import decode_all
from lookout.monitor.assembly import build_monitor
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.state.codec import encode_notices, encode_sightings, encode_state
from lookout.store.protocol import StoreError
from tests.builders import INDEXER, MESSAGING, NOON, PPOI, an_observation
from tests.machines import a_machine
from tests.unit.running_monitor import KeptInMemory
from tests.unit.simulated_upstreams import BASE, Life, Stored, live, settings_of
from tools.omissions import find_problems, read_omissions

EVERYTHING = f"""
[page]
title = "Acorn"
[policy]
recheck_s = 7
[history]
write_every_s = 5
[[chains]]
id = 1
rpc = ["{BASE}/rpc/1/a"]
[messaging]
url = "{BASE}/waku"
[broadcasters]
url = "{BASE}/waku"
chains = [1]
"""


def test_every_part_that_the_assembly_passes_on_is_left_out_by_an_omission() -> None:
    """`make mutants` checks that each of them is noticed."""
    assert list(find_problems(read_omissions())) == []


@pytest.mark.clause("M7")
def test_all_that_is_stored_is_there_again_when_a_monitor_is_built(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, EVERYTHING)
    ledger = Ledger(settings.plan())
    ledger.start(NOON)
    ledger.judge(an_observation(Peers(7)))
    ledger.publish(NOON)
    known = Known(
        {
            (COVERAGE, INDEXER): Coverage(subject="a", began_at=NOON),
            (LINKS, INDEXER): Links(subject="a"),
            (NODE_GAP, PPOI): NodeGap(subject="a"),
        }
    )
    alerts = StoredAlerts(
        AlertState(NOON, 5, (Episode("a rule", MESSAGING, NOON, "unavailable", "unreachable"),)),
        next_number=3,
        messages={2: Queued("ops", "title", "body", 5)},
    )
    kept = {
        **known.documents(),
        **encode_alerts(alerts),
        **encode_notices(Notices(2, (Notice("1", "note", "Maintenance", NOON, NOON, None),))),
        **encode_sightings({"broadcasters": SeenBroadcasters((), {1: NOON})}),
        "weather/1": b"a feature's that this version does not have",
    }
    stored = encode_state(ledger.state(), kept).documents
    monitor = build_monitor(settings, stored, a_machine(KeptInMemory(), SystemClock()))
    assert decode_all(monitor.publisher.state_documents()) == decode_all(stored)


@pytest.mark.clause("M1", "S16")
def test_what_is_configured_reaches_what_it_is_about(tmp_path: Path) -> None:
    async def watch(life: Life) -> None:
        await life.wait(100)

    store = Stored()
    life = live(tmp_path, EVERYTHING, watch, store)
    asked = [request.second for request in life.place.asked if request.address == "waku/peers"]
    assert {round(later - earlier) for earlier, later in pairwise(asked)} == {
        9
    }  # 7 s, half of 3 s of jitter, and the answer
    histories = [json.loads(documents["history"].body) for documents in store.documents if "history" in documents]
    written = [parse_instant(history["generatedAt"]) for history in histories]
    assert max(later - earlier for earlier, later in pairwise(written)) < 30_000  # with the next publication after 5 s
    assert {json.loads(documents["about"].body)["title"] for documents in store.documents if "about" in documents} == {
        "Acorn"
    }


class FullFrom(Stored):
    """A store whose disk is full from this second on."""

    def __init__(self, second: float) -> None:
        super().__init__()
        self._second = second

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        if asyncio.get_running_loop().time() >= self._second:
            raise StoreError("the disk is full")
        super().write(documents, state)


def test_a_ping_ends_two_heartbeats_after_the_last_publication_that_was_stored(tmp_path: Path) -> None:
    async def watch(life: Life) -> None:
        await life.wait(100)

    config = EVERYTHING.replace("[policy]", f'[ping]\nurl = "{BASE}/json/1"\nevery_s = 10\n[policy]\nheartbeat_s = 4')
    life = live(tmp_path, config, watch, FullFrom(50))
    pings = [request.second for request in life.place.asked if request.address == "json/1"]
    assert 45 < max(pings) < 60
