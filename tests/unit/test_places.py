"""What people are shown of places that differ or are silent."""

import json
from dataclasses import replace as with_fields
from pathlib import Path

import msgspec
import pytest
from prometheus_client import generate_latest

from lookout.base.admin_port import process_registry
from lookout.base.clock import SystemClock
from lookout.config.settings import around_of
from lookout.core.model import Check, Failed, Metrics, Reason, Row, Status
from lookout.features.alerts.messages import Message
from lookout.features.alerts.settings import AlertRule, AlertsTable
from lookout.features.feature import Around, Verdict
from lookout.features.outcome import EntryKey, Outcome, StandIn
from lookout.features.witnesses.reading import Reading
from lookout.features.witnesses.settings import WitnessTable
from lookout.features.witnesses.shown import (
    WitnessNote,
    describe_places,
    judge_places,
    list_stand_ins,
)
from lookout.features.witnesses.views import Dissent, Standing
from lookout.monitor.board import Board
from lookout.monitor.metrics import Instruments
from lookout.public.about import Description
from tests.alerting import with_sender
from tests.builders import INDEXER, MESSAGING, MINUTE, NOON, SECOND
from tests.unit.running_monitor import FastClock
from tests.unit.simulated_upstreams import settings_of
from tests.unit.test_witnesses import BOTH, SG, SP, Life, Says, a_line, always

POLYGON = Check("hosted-indexer", 137)
WATCHED = """
[messaging]
url = "http://127.0.0.1:1"
[[chains]]
id = 137
rpc = ["http://127.0.0.1:1"]
[[hosted-indexer]]
chain = 137
kind = "squid"
confirmations = 5
url = "http://127.0.0.1:1"
"""


@pytest.fixture
def around(tmp_path: Path) -> Around:
    return with_fields(around_of(settings_of(tmp_path, WATCHED)), place="Frankfurt")


def a_row(check: Check, status: Status = "current", reason: Reason = "synced", **metrics: int) -> Row:
    return Row(check, status, reason, NOON, NOON, NOON + 150 * SECOND, Metrics(**metrics))


def a_dissent(check: Check, status: Status, since_at: int = NOON) -> Dissent:
    return Dissent(a_row(check, status), since_at)


def a_place(name: str, *differs: Dissent, silent_since_at: int | None = None, url: str = "") -> Standing:
    return Standing(name, url, name in ("Frankfurt", ""), differs, silent_since_at)


@pytest.mark.clause("W8")
@pytest.mark.parametrize(
    ("after_s", "differs", "is_silent"),
    [
        pytest.param(59, [], False, id="not before it has lasted for 60 s"),
        pytest.param(60, [("hosted-indexer", 137, "unavailable", "2026-11-05T12:00:00Z")], True, id="from 60 s on"),
    ],
)
def test_the_description_names_what_lasts(after_s: int, differs: list[object], is_silent: bool) -> None:
    places = (
        a_place("Frankfurt"),
        a_place("Singapore", a_dissent(POLYGON, "unavailable"), url="https://sg.example"),
        a_place("Lima", silent_since_at=NOON),
    )
    own, singapore, lima = json.loads(msgspec.json.encode(describe_places(places, NOON + after_s * SECOND)))
    assert own == {"name": "Frankfurt", "own": True, "differs": []}
    assert (singapore["name"], singapore["url"]) == ("Singapore", "https://sg.example")
    assert [tuple(found.values()) for found in singapore["differs"]] == differs
    assert lima == {"name": "Lima", "differs": []} | ({"silentSince": "2026-11-05T12:00:00Z"} if is_silent else {})


@pytest.mark.clause("W1", "W8")
def test_a_monitor_without_witnesses_shows_no_places() -> None:
    assert "places" not in json.loads(Description("p", (), (), "t").encode())
    registry = process_registry()
    Instruments(registry, SystemClock())
    assert b"witness" not in generate_latest(registry)


FROM = {place: StandIn("view", f"hosted-indexer on Polygon from {place}", 137) for place in ("Frankfurt", "Singapore")}
CURRENT = a_row(POLYGON, views=3, agreeing=2)
APART = a_row(POLYGON, "unknown", "not-everywhere", views=2, agreeing=0)
DOWN = a_row(POLYGON, "unavailable", "unreachable", views=3, agreeing=2)


@pytest.mark.clause("W8")
@pytest.mark.parametrize(
    ("places", "published", "place", "said"),
    [
        pytest.param(
            [a_place("Frankfurt"), a_place("Singapore", a_dissent(POLYGON, "unavailable"))],
            CURRENT,
            "Singapore",
            "dissent: Singapore sees it not answering; 2 of 3 places see it working, and the row stays so",
            id="a witness that does not reach what others reach",
        ),
        pytest.param(
            [a_place("Frankfurt", a_dissent(POLYGON, "catching-up")), a_place("Singapore")],
            CURRENT,
            "Frankfurt",
            "own_dissent: this monitor alone sees it behind; 2 of 3 places see it working, and the row stays so",
            id="this monitor alone",
        ),
        pytest.param(
            [a_place("Frankfurt"), a_place("Singapore", a_dissent(POLYGON, "current"))],
            DOWN,
            "Singapore",
            "dissent: Singapore sees it working; 2 of 3 places see it not answering, and the row stays so",
            id="a witness that alone reaches it",
        ),
        pytest.param(
            [
                a_place("Frankfurt", a_dissent(POLYGON, "unavailable")),
                a_place("Singapore", a_dissent(POLYGON, "current")),
            ],
            APART,
            "Frankfurt",
            "own_dissent: this monitor sees it not answering; places see it differently, and the row is unknown",
            id="two that differ",
        ),
        pytest.param(
            [
                a_place("Frankfurt", a_dissent(POLYGON, "unavailable")),
                a_place("Singapore", silent_since_at=NOON),
            ],
            Row(POLYGON, "unknown", "unreachable", NOON, NOON),
            "Frankfurt",
            "own_dissent: this monitor alone sees it not answering; no other place has a view of it now",
            id="this monitor, while all witnesses are silent",
        ),
    ],
)
def test_alerts_say_what_a_place_sees(
    places: list[Standing], published: Row, place: str, said: str, around: Around
) -> None:
    verdicts = dict(judge_places(places, {}, [published], list_stand_ins(("Singapore", "Lima"), around)))
    assert verdicts[FROM[place]] == Verdict("degraded", "not-everywhere", said)


@pytest.mark.clause("W8")
def test_a_place_that_is_silent_is_reported_with_the_cause_and_its_rows_wait(around: Around) -> None:
    places = [a_place("Frankfurt"), a_place("Singapore", silent_since_at=NOON), a_place("Lima", silent_since_at=NOON)]
    verdicts = dict(
        judge_places(
            places, {"Singapore": "refused", "Lima": None}, [CURRENT], list_stand_ins(("Singapore", "Lima"), around)
        )
    )
    witness = {name: verdicts[StandIn("witness", name, None)] for name in ("Singapore", "Lima")}
    assert {name: (said.status, said.cause) for name, said in witness.items()} == {
        "Singapore": ("unavailable", "refused"),
        "Lima": ("unavailable", "silent"),
    }
    assert {place: verdicts[key].status for place, key in FROM.items()} == {
        "Frankfurt": "current",
        "Singapore": "unknown",
    }


@pytest.mark.clause("W8")
def test_every_verdict_is_on_something_that_alerts_report(around: Around) -> None:
    stand_ins = list_stand_ins(("Singapore", "Lima"), around)
    places = [a_place("Frankfurt"), a_place("Singapore"), a_place("Lima")]
    verdicts = dict(judge_places(places, {}, [a_row(POLYGON), a_row(MESSAGING)], stand_ins))
    assert verdicts.keys() == set(stand_ins.values())
    assert StandIn("view", "messaging from Lima", None) in verdicts
    assert list_stand_ins((), around) == {}


@pytest.mark.clause("W8")
def test_sources_shows_a_witness_with_all_that_is_doubted_of_it() -> None:
    views = [a_row(INDEXER), a_row(POLYGON, "unavailable"), Row(MESSAGING, "unknown", "no-observation")]
    place = a_place("Lima", a_dissent(POLYGON, "unavailable"))
    reading = Reading(NOON - 20 * SECOND, 31_500, ("cached: 20 s",))
    note = WitnessNote(
        EntryKey("witness", "Lima"),
        Outcome(NOON, 80),
        reading=reading,
        standing=place,
        views=tuple(views),
    )
    entry = json.loads(msgspec.json.encode(note.describe()))
    assert entry == {
        "name": "Lima",
        "kind": "witness",
        "at": "2026-11-05T12:00:00.000Z",
        "tookMs": 80,
        "outcome": "answered",
        "doubts": ["cached: 20 s"],
        "differs": [
            {"service": "hosted-indexer", "chainId": 137, "status": "unavailable", "since": "2026-11-05T12:00:00Z"}
        ],
        "reportAt": "2026-11-05T11:59:40.000Z",
        "clockBehindS": 31.5,
    }
    assert {(name, *labels): value for name, labels, value in note.samples(NOON + MINUTE)} == {
        ("lookout_witness_rows", "Lima", "agrees"): 1,
        ("lookout_witness_rows", "Lima", "differs"): 1,
        ("lookout_witness_rows", "Lima", "silent"): 1,
        ("lookout_witness_report_age_seconds", "Lima"): 80,
    }


def sees_otherwise(from_s: float, until_s: float) -> Says:
    """A witness that does not reach the service in this time."""

    def say(now: int) -> list[dict[str, object]]:
        is_refused = from_s * SECOND <= now - NOON < until_s * SECOND
        return [a_line("unavailable" if is_refused else "current", now - SECOND)]

    return say


@pytest.mark.clause("W8")
def test_places_that_differ_or_are_silent_are_alerted_once_after_an_hour_and_at_the_end() -> None:
    sent = list[tuple[int, Message]]()
    clock = FastClock()
    features = with_sender(lambda _: lambda message: sent.append((clock.elapsed_ms() // MINUTE, message)))
    alerts = AlertsTable(targets={"ops": "json://127.0.0.1"}, rules=(AlertRule(remind_s=60),))
    says = {SG: sees_otherwise(150, 3_900), SP: always("current"), "lima.test": always("current", since_s=3_900)}
    lima = WitnessTable(name="Lima", url="http://lima.test")
    life = Life(4_100, says, witnesses=(*BOTH, lima), clock=clock, features=features, alerts=alerts)
    assert {row["status"] for second, row in life.rows() if second > 10} == {"current"}
    assert [(minute, message.title) for minute, message in sent] == [
        (60, "Lookout: witness Lima is unavailable"),
        (63, "Lookout: messaging from Singapore is not as published"),
        (65, "Lookout: 1 witness recovered, 1 is as published again"),
    ]
    seen = "Singapore sees it not answering; 2 of 4 places see it working, and the row stays so, for 1 h, since"
    assert f"- messaging from Singapore: {seen} 2026-11-05T12:02:3" in sent[1][1].body
    assert "Next: ask it from there; look for a block or a rate limit." in sent[1][1].body
    assert "This is what one monitor sees from 3 places." in sent[1][1].body  # Lima is silent
    assert "This is what one monitor sees from 4 places." in sent[2][1].body


@pytest.mark.clause("W8")
def test_this_monitor_is_named_where_it_alone_differs() -> None:
    sent = list[Message]()
    alerts = AlertsTable(targets={"ops": "json://127.0.0.1"}, rules=(AlertRule(),))
    says = {SG: always("current"), SP: always("current")}
    life = Life(3_800, says, Failed("refused"), features=with_sender(lambda _: sent.append), alerts=alerts)
    assert life.at(3_700)["status"] == "current"
    (message,) = sent
    assert message.title == "Lookout: messaging from this monitor is not as published"
    assert "this monitor alone sees it not answering; 2 of 3 places see it working, and the row" in message.body
    assert "Next: ask it from another machine; look for a block or a rate limit of this one." in message.body


@pytest.mark.clause("W4", "M16")
def test_our_own_cause_is_not_told_of_what_other_places_see() -> None:
    sent = list[Message]()
    alerts = AlertsTable(targets={"ops": "json://127.0.0.1"}, rules=(AlertRule(for_s=60),))
    says = {SG: always("current"), SP: lambda _: None}
    life = Life(900, says, Failed("refused"), features=with_sender(lambda _: sent.append), alerts=alerts)
    assert (life.at(800)["status"], life.at(800)["reason"]) == ("unknown", "not-everywhere")
    (message,) = sent
    assert "- messaging: places see it differently, for " in message.body


@pytest.mark.clause("W8")
def test_the_description_and_sources_follow_what_is_published() -> None:
    board = Board()
    life = Life(200, {SG: sees_otherwise(60, 7_500), SP: lambda _: None}, board=board)
    described = {at: json.loads(about.body) for at, made in life.kept.written if (about := made.get("about"))}
    _, singapore, lima = max(described.items())[1]["places"]
    assert [(found["service"], found["status"]) for found in singapore["differs"]] == [("messaging", "unavailable")]
    assert lima["name"] == "São Paulo"
    assert lima["silentSince"] < "2026-11-05T12:00:02Z"
    entries = {entry.name: json.loads(msgspec.json.encode(entry)) for entry in board.list_entries()}
    assert [found["status"] for found in entries["Singapore"]["differs"]] == ["unavailable"]
    assert entries["São Paulo"]["cause"] == "timeout"
    samples = {(name, *labels): value for name, labels, value in board.samples(NOON + 500 * SECOND)}
    assert samples["lookout_witness_rows", "Singapore", "silent"] == 1  # what it saw has expired
