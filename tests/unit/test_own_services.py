"""A service of the operator's own is watched, published, replayed and shown like those of the contract (R14)."""

import io
import json
from pathlib import Path
from typing import Final

import pytest

from lookout.config.file import read_config
from lookout.config.settings import Settings, upstreams_of
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Check, Failed, Found, Indexes, MissingList, Nothing, Observation, Responding
from lookout.core.services import all_checks
from lookout.documents.reports import documents_of
from lookout.replay.replay import Replay, read_log, run_log
from lookout.state.log import Event, HeadRead, Started, format_event
from tests.builders import NOON, SECOND
from tests.cases import text_of

CHAINS: Final = """
[[chains]]
id = 1
rpc = ["http://127.0.0.1:1/a", "http://127.0.0.1:1/b", "http://127.0.0.1:1/c"]

[[chains]]
id = 137
rpc = ["http://127.0.0.1:1/d", "http://127.0.0.1:1/e", "http://127.0.0.1:1/f"]
"""
OWN: Final = text_of("settings/own-service-of-each-shape.toml")
FIRST, SECOND_ROW, THIRD = Check("second-indexer", 1), Check("second-indexer", 137), Check("another", 1)


def settings_of(text: str, folder: Path) -> Settings:
    path = folder / "lookout.toml"
    path.write_text(text)
    return read_config(path, {})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(CHAINS + OWN, tmp_path)


def a_life(*found: tuple[Check, Found]) -> list[Event]:
    """A monitor starts, reads a head of both chains, and then finds these."""
    heads = (HeadRead(NOON, chain_id, Reading(NOON, 1000, NOON)) for chain_id in (1, 137))
    seen = (Observation(check, NOON + number * SECOND, what) for number, (check, what) in enumerate(found))
    return [Started(NOON), *heads, *seen]


def replayed(settings: Settings, events: list[Event]) -> Replay:
    replay = Replay(settings.plan())
    run_log(read_log(io.BytesIO(b"".join(map(format_event, events))), []), replay)
    return replay


def rows_in(document: bytes, of: str = "checks") -> dict[Check, dict[str, object]]:
    return {Check(row["service"], row["chainId"]): row for row in json.loads(document)[of]}


@pytest.mark.clause("R12", "R14")
def test_its_rows_come_after_the_five_in_the_order_of_the_configuration_and_then_of_chains(settings: Settings) -> None:
    plan = settings.plan()
    assert plan.checks() == (*all_checks([1, 137]), FIRST, SECOND_ROW, THIRD)
    assert plan.monitored == {FIRST, SECOND_ROW, THIRD}
    assert plan.confirmations == {FIRST: 0, SECOND_ROW: 20, THIRD: 0}
    assert [source.name for source in upstreams_of(settings).sources] == [
        "second-indexer 137",
        "second-indexer 1",
        "another 1",
    ]


@pytest.mark.clause("R14")
def test_it_is_judged_like_the_five_and_both_documents_have_it(settings: Settings) -> None:
    replay = replayed(settings, a_life((FIRST, Blocks(999)), (SECOND_ROW, Blocks(3)), (THIRD, Failed("timeout"))))
    documents = documents_of(replay.ledger)
    live = rows_in(documents["live"].body)
    assert {check: live[check]["status"] for check in (FIRST, SECOND_ROW, THIRD)} == {
        FIRST: "current",
        SECOND_ROW: "catching-up",
        THIRD: "unknown",
    }
    assert live[SECOND_ROW]["metrics"] == {"position": 3, "head": 980}
    assert list(rows_in(documents["history"].body, "rows"))[-3:] == [FIRST, SECOND_ROW, THIRD]


@pytest.mark.parametrize("found", [Responding(), Indexes(1, 2), MissingList()])
def test_a_line_of_the_time_when_its_kind_was_another_is_skipped(found: Found, settings: Settings) -> None:
    replay = replayed(settings, a_life((FIRST, found), (FIRST, Nothing()), (FIRST, Failed("timeout"))))
    assert replay.skipped == 1
    assert replayed(settings, a_life((FIRST, Blocks(7)))).skipped == 0
