"""A monitor beside its witnesses: on a clock that does not wait, with reports that a test gives."""

import asyncio
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final, cast

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest

from lookout.base.instants import format_instant
from lookout.config.settings import Upstreams, around_of
from lookout.config.tables import HistoryTable
from lookout.core.model import Check, Found, Indexes, Peers
from lookout.documents.reports import history_document, live_document
from lookout.features.alerts.settings import AlertRule
from lookout.features.feature import Feature
from lookout.features.registry import FEATURES
from lookout.features.witnesses.settings import WitnessTable
from lookout.features.witnesses.witnesses import Witnesses
from lookout.monitor.assembly import Succession
from lookout.protocols.client.connection import RawAnswer
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import Session
from lookout.replay.replay import Replay, read_log, run_log
from lookout.state.errors import StateError
from lookout.state.log import Event, Started, Viewed, format_event
from tests.alerting import sending_into
from tests.builders import LAUNCH, MESSAGING, NOON, PPOI, SECOND, a_plan
from tests.commands import lookout_here
from tests.logs import capture_logs
from tests.unit.running_monitor import (
    FAILED,
    Asked,
    FastClock,
    Kept,
    Record,
    given_settings,
    lived,
    reloading,
    setting,
)

SINGAPORE: Final = WitnessTable(name="Singapore", url="http://sg.test:8080", public_url="https://sg.example")
SAO_PAULO: Final = WitnessTable(name="São Paulo", url="http://sp.test")
BOTH: Final = (SINGAPORE, SAO_PAULO)
# What a witness's report has of a row, by the second of the monitor's life; None: no report.
Says = Callable[[int], "Sequence[dict[str, Any]] | RawAnswer | Exception | None"]
PEERS: Final = Peers(5)


def a_line(status: str, at: int, check: Check = MESSAGING, **changes: Any) -> dict[str, Any]:
    """A row as a report has it, observed at this instant."""
    known = status in ("current", "catching-up", "degraded", "unavailable")
    reason = {"current": "responding", "unavailable": "unreachable", "unmonitored": "not-configured"}
    return {
        "service": check.service,
        "chainId": check.chain_id,
        "status": status,
        "reason": reason.get(status, "behind"),
        "observedAt": format_instant(at),
        "lastSuccessAt": format_instant(at),
        "expiresAt": format_instant(at + LAUNCH.row_lifetime_ms) if known else None,
        "metrics": {"peers": 9} if status == "current" else {},
    } | changes


def always(status: str, until_s: float = 10_000, since_s: float = 0) -> Says:
    """A witness that saw this a second ago, whenever it is asked; it does not answer outside this time."""

    def say(now: int) -> Sequence[dict[str, Any]] | None:
        is_there = since_s * SECOND <= now - NOON < until_s * SECOND
        return [a_line(status, now - SECOND)] if is_there else None

    return say


@dataclass(frozen=True)
class Wire(Session):
    """Answers for every witness, by its host."""

    says: Mapping[str, Says] = field(default_factory=dict)
    requests: list[tuple[int, Request]] = field(default_factory=list)
    clock: FastClock = field(default_factory=FastClock)

    async def ask(self, request: Request) -> RawAnswer:
        self.requests.append((self.clock.elapsed_ms(), request))
        await asyncio.sleep(0.05)
        host = request.url.split("/")[2]
        said = self.says[host](self.clock.now())
        if isinstance(said, RawAnswer):
            return said
        if isinstance(said, Exception):
            raise said.with_traceback(None)
        if said is None:
            await asyncio.sleep(9.9)
            raise ProbeFailed("timeout")
        report = {"schemaVersion": 1, "generatedAt": format_instant(self.clock.now()), "checks": list(said)}
        date = formatdate(self.clock.now() / 1000, usegmt=True).encode()
        return RawAnswer(200, {b"date": date}, json.dumps(report).encode())


class Life:
    """What a monitor published, and what it wrote into its log."""

    def __init__(
        self,
        seconds: float,
        says: Mapping[str, Says],
        *found: Found,
        witnesses: tuple[WitnessTable, ...] = BOTH,
        check: Check = MESSAGING,
        happenings: Sequence[tuple[float, Callable[[Succession], None]]] = (),
        clock: FastClock | None = None,
        stored: Mapping[str, bytes] | None = None,
        **tables: Any,
    ) -> None:
        clock = clock or FastClock()
        self.record = Record()
        self.wire = Wire(cast("Any", None), 10, says=says, clock=clock)
        self.logs: list[Any] = []
        self.witnesses: Witnesses | None = None

        def see(succession: Succession) -> None:
            features = succession.monitor.journal.features
            self.witnesses = next(feature for feature in features if isinstance(feature, Witnesses))
            self.standings = self.witnesses.standings()
            self.notes = dict(self.witnesses.notes)

        self.kept: Kept = lived(
            seconds,
            a_plan(check),
            [Asked(check, *(found or (PEERS,)), takes_s=0.1)],
            [],
            (seconds - 0.01, see),
            *happenings,
            clock=clock,
            record=self.record,
            session=self.wire,
            stored=stored,
            witnesses=witnesses,
            history=HistoryTable(write_every_s=1),
            **tables,
        )

    def rows(self) -> list[tuple[float, dict[str, Any]]]:
        """The row of each publication, with its second."""
        reports = [
            (at, json.loads(live.body)) for at, documents in self.kept.written if (live := documents.get("live"))
        ]
        return [(at / 1000, report["checks"][0]) for at, report in reports]

    def at(self, second: float) -> dict[str, Any]:
        """The row as it was published then."""
        return next(row for at, row in reversed(self.rows()) if at <= second)


SG, SP = "sg.test:8080", "sp.test"


@pytest.mark.clause("W4", "W7")
def test_three_places_that_agree_say_so_in_the_row() -> None:
    life = Life(60, {SG: always("current"), SP: always("current")})
    row = life.at(60)
    assert (row["status"], row["metrics"]) == ("current", {"peers": 5, "views": 3, "agreeing": 3})


@pytest.mark.clause("W2", "C10", "M6")
def test_a_witness_is_read_every_five_seconds_from_its_own_server_and_delays_nobody() -> None:
    life = Life(61, {SG: always("current"), SP: lambda _: None})
    times = [at for at, request in life.wire.requests if SG in request.url]
    assert times == list(range(0, 61_000, 5_000))
    assert len([at for at, request in life.wire.requests if SP in request.url]) == 6  # each takes ten seconds
    assert {request.url for _, request in life.wire.requests} == {
        "http://sg.test:8080/api/v1/protocol/liveness",
        "http://sp.test/api/v1/protocol/liveness",
    }
    assert [at for at, _ in life.rows()][:2] == pytest.approx([0, 0.5], abs=0.2)  # the own probe took 0.1 s


@pytest.mark.clause("W4", "W8")
def test_one_place_of_three_changes_no_row_and_is_named() -> None:
    life = Life(120, {SG: always("current"), SP: always("unavailable", since_s=40)})
    assert {row["status"] for at, row in life.rows() if at > 6} == {"current"}
    assert life.at(120)["metrics"] == {"peers": 5, "views": 3, "agreeing": 2}
    own, singapore, sao_paulo = life.standings
    assert (own.differs, singapore.differs) == ((), ())
    (dissent,) = sao_paulo.differs
    assert dissent.row.status == "unavailable"
    assert 40_000 < dissent.since_at - NOON < 46_000


@pytest.mark.clause("W4")
def test_a_monitor_that_is_cut_off_publishes_what_the_others_see() -> None:
    life = Life(400, {SG: always("current"), SP: always("current")}, PEERS, FAILED)
    assert {row["status"] for at, row in life.rows() if at > 6} == {"current"}
    own, *_ = life.standings
    assert [dissent.row.status for dissent in own.differs] == ["unavailable"]


@pytest.mark.clause("W4")
def test_a_monitor_that_is_wholly_cut_off_blames_nobody() -> None:
    life = Life(600, {SG: always("current", until_s=30), SP: always("current", until_s=30)}, PEERS, FAILED)
    assert "unavailable" not in {row["status"] for _, row in life.rows()}
    assert (life.at(600)["status"], life.at(600)["reason"]) == ("unknown", "unreachable")


@pytest.mark.clause("W4", "W3")
def test_a_first_start_while_cut_off_is_unknown() -> None:
    life = Life(400, {SG: lambda _: None, SP: lambda _: None}, FAILED)
    assert {row["status"] for _, row in life.rows()} == {"unknown"}


@pytest.mark.clause("W4", "W7")
def test_two_places_change_the_row() -> None:
    life = Life(120, {SG: always("unavailable", since_s=60), SP: always("unavailable", since_s=60)})
    assert life.at(59)["status"] != "unavailable"
    row = life.at(67)
    assert (row["status"], row["reason"]) == ("unavailable", "unreachable")
    assert row["metrics"] == {"views": 3, "agreeing": 2}


@pytest.mark.clause("W7")
def test_a_view_that_expires_changes_the_row_without_a_probe() -> None:
    """The own probe fails, and waits up to two minutes before the next one."""
    life = Life(400, {SG: always("current", until_s=100), SP: always("current", until_s=100)}, FAILED)
    ended = [at for at, row in life.rows() if row["status"] == "current"]
    expired_at = 99 + LAUNCH.row_lifetime_ms / 1000  # the last report was of a second before
    first = next(at for at, row in life.rows() if at > ended[-1])
    assert expired_at - 6 < first < expired_at + LAUNCH.heartbeat_ms / 1000


@pytest.mark.clause("W7", "M7")
def test_views_survive_a_restart_with_their_age() -> None:
    before = Life(60, {SG: always("current"), SP: always("current")}, FAILED)
    clock = FastClock()
    clock.ahead_ms = 70 * SECOND
    after = Life(300, {SG: lambda _: None, SP: lambda _: None}, FAILED, clock=clock, stored=before.kept.state)
    assert after.at(1)["status"] == "current"
    expires_at = after.at(1)["expiresAt"]
    assert expires_at < format_instant(NOON + 60 * SECOND + LAUNCH.row_lifetime_ms)
    assert after.at(200)["status"] == "unknown"
    started, *views = after.record[:3]
    assert isinstance(started, Started)
    assert [view.witness for view in views if isinstance(view, Viewed)] == ["Singapore", "São Paulo"]


def moved(by_ms: int) -> FastClock:
    clock = FastClock()
    clock.ahead_ms = by_ms
    return clock


@pytest.mark.clause("W7", "W3")
@pytest.mark.parametrize(
    ("witnesses", "ahead_ms"),
    [
        ((replace(SINGAPORE, name="Tokyo"), replace(SAO_PAULO, name="Lima")), 70 * SECOND),
        ((replace(SINGAPORE, url="http://sg.test:9"), replace(SAO_PAULO, url="http://sp.test:9")), 70 * SECOND),
        (BOTH, 30 * SECOND),
        (BOTH, -3_600 * SECOND),
    ],
    ids=["with other names", "with other addresses", "by a clock set back a little", "by a clock set back an hour"],
)
def test_views_are_forgotten_over_a_restart(witnesses: tuple[WitnessTable, ...], ahead_ms: int) -> None:
    before = Life(60, {SG: always("current"), SP: always("current")}, FAILED)
    silent: dict[str, Says] = {host: lambda _: None for host in (SG, SP, "sg.test:9", "sp.test:9")}
    after = Life(20, silent, FAILED, clock=moved(ahead_ms), stored=before.kept.state, witnesses=witnesses)
    assert {row["status"] for _, row in after.rows()} == {"unknown"}
    assert not [event for event in after.record if isinstance(event, Viewed)]


@pytest.mark.clause("W7", "M12")
@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000], ids=["back", "forward"])
def test_a_set_clock_forgets_views(by_ms: int) -> None:
    clock = FastClock()
    said = {SG: always("current", until_s=60), SP: always("current", until_s=60)}

    def say(host: str) -> Says:
        return lambda now: said[host](now) if now - NOON < 60 * SECOND and clock.ahead_ms == 0 else None

    happening = (60.0, setting(clock, by_ms))
    life = Life(90, {SG: say(SG), SP: say(SP)}, FAILED, happenings=[happening], clock=clock)
    assert life.at(59)["status"] == "current"
    assert life.at(62)["status"] == "unknown"
    silences = [standing.silent_since_at for standing in life.standings[1:]]
    assert all(at is not None and 0 <= at - NOON - 60 * SECOND - by_ms < SECOND for at in silences)


@pytest.mark.clause("W7", "W1")
def test_a_reload_without_witnesses_publishes_our_own_rows_again() -> None:
    check = MESSAGING
    source = Asked(check, PEERS, takes_s=0.1)
    reload = reloading(a_plan(check), [source], [], witnesses=())
    life = Life(60, {SG: always("current"), SP: always("current")}, happenings=[(30.0, reload)])
    assert "views" in life.at(29)["metrics"]
    assert "views" not in life.at(60)["metrics"]
    assert "witnesses" not in life.kept.others


@pytest.mark.clause("W3")
def test_a_witness_that_leaves_a_service_out_is_no_place_of_its_rows() -> None:
    without = (replace(SINGAPORE, services=("indexer",)), SAO_PAULO)
    life = Life(30, {SG: always("current"), SP: always("current")}, witnesses=without)
    assert life.at(30)["metrics"] == {"peers": 5, "views": 2, "agreeing": 2}


@pytest.mark.clause("W3")
def test_a_witness_whose_report_lacks_the_row_is_no_place_of_it() -> None:
    life = Life(30, {SG: lambda _: [], SP: always("unmonitored")})
    assert life.at(30)["metrics"] == {"peers": 5}
    assert life.notes["Singapore"].reading.doubts == ("no_rows",)


def an_answer(report: object, **headers: str) -> RawAnswer:
    body = report if isinstance(report, bytes) else json.dumps(report).encode()
    return RawAnswer(200, {name.encode(): text.encode() for name, text in headers.items()}, body)


def a_report(*lines: dict[str, Any], generated_at: int = NOON) -> dict[str, Any]:
    return {"schemaVersion": 1, "generatedAt": format_instant(generated_at), "checks": list(lines)}


A_COMBINED = a_line("current", NOON, metrics={"peers": 9, "views": 3, "agreeing": 3})


@pytest.mark.clause("W2", "C6")
@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (an_answer(a_report(A_COMBINED)), "combined"),
        (an_answer(a_report(a_line("current", NOON)) | {"schemaVersion": 2}), "other_version"),
        (an_answer(b"<html>"), "not_a_report: unreadable: it is not JSON"),
        (an_answer(b"[" * 100_000), "not_a_report: unreadable: it is not JSON"),
        (ProbeFailed("http_status", code=503), "http_status: 503"),
        (ProbeFailed("refused"), "refused"),
    ],
    ids=["combined", "another version", "not JSON", "nested too deeply", "not ready", "not there"],
)
def test_a_report_that_is_refused_is_no_view_and_its_cause_is_known(said: RawAnswer | Exception, cause: str) -> None:
    with capture_logs() as logs:
        life = Life(30, {SG: lambda _: said, SP: always("current")})
    assert life.at(30)["metrics"]["agreeing"] == 2
    assert life.notes["Singapore"].outcome.cause == cause
    assert [line["witness"] for line in logs if line["event"] == "the witness cannot be read"] == ["Singapore"]


@pytest.mark.clause("W2", "R10", "C7")
def test_a_row_with_a_metric_that_is_no_count_does_not_count_and_others_do() -> None:
    lines = [a_line("current", NOON, metrics={"peers": -1})]
    life = Life(30, {SG: lambda _: an_answer(a_report(*lines)), SP: always("current")})
    assert life.at(30)["metrics"] == {"peers": 5, "views": 3, "agreeing": 2}


@pytest.mark.clause("W2", "R9", "S18")
@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": {"responding": 9, "monitored": 3}},
        {"metrics": {"responding": 3}},
        {"metrics": {"peers": 9, "missing": 5}},
        {"reason": "incomplete", "metrics": {"missing": 5}},
        {"status": "degraded", "reason": "incomplete", "metrics": {}},
    ],
    ids=[
        "more respond than are monitored",
        "how many respond without how many there are",
        "a finding without its reason",
        "a finding of a row that is current",
        "the reason of a finding without one",
    ],
)
def test_a_row_that_breaks_the_contract_does_not_count(changes: dict[str, Any]) -> None:
    life = Life(30, {SG: lambda now: [a_line("current", now - SECOND, **changes)], SP: always("current")}, FAILED)
    assert life.at(30)["status"] == "unknown", "one view alone"


@pytest.mark.clause("W2", "C2")
def test_views_do_not_count_while_our_clock_is_known_to_be_behind() -> None:
    def say(now: int) -> RawAnswer:
        report = a_report(a_line("current", now - SECOND), generated_at=now)
        return an_answer(report, date=formatdate((now + 60 * SECOND) / 1000, usegmt=True))

    life = Life(30, {SG: say, SP: say}, FAILED)
    assert life.at(30)["status"] == "unknown"


@pytest.mark.clause("W2", "W7", "C14")
def test_after_a_restart_no_report_counts_that_is_older_than_the_last_one_before() -> None:
    def good(now: int) -> RawAnswer:
        return an_answer(a_report(a_line("current", now - SECOND), generated_at=now))

    def old(_: int) -> RawAnswer:
        return an_answer(a_report(a_line("unavailable", NOON + 5 * SECOND), generated_at=NOON + 6 * SECOND))

    before = Life(60, {SG: good, SP: good}, FAILED)
    after = Life(20, {SG: old, SP: old}, FAILED, clock=moved(62 * SECOND), stored=before.kept.state)
    assert {row["status"] for _, row in after.rows()} == {"current"}


@pytest.mark.clause("W2", "C4", "C14")
def test_neither_the_same_report_again_nor_an_older_one_renews_a_view() -> None:
    ahead = a_line("current", NOON + 29 * SECOND)

    def say(now: int) -> RawAnswer | Exception:
        if now - NOON < 10 * SECOND:
            return an_answer(a_report(ahead, generated_at=NOON + 1), etag='"a"')
        if now - NOON < 20 * SECOND:
            return ProbeFailed("http_status", code=304)
        return an_answer(a_report(a_line("unavailable", NOON), generated_at=NOON))

    life = Life(30, {SG: say, SP: lambda _: None})
    views = [event for event in life.record if isinstance(event, Viewed)]
    assert len(views) == 1
    asked = [request.access.headers.get("If-None-Match") for _, request in life.wire.requests if SG in request.url]
    assert asked == [None, *['"a"'] * 6]
    assert life.notes["Singapore"].outcome.cause is None


@pytest.mark.clause("W2")
def test_a_copy_of_a_cache_and_a_wrong_clock_are_doubted() -> None:
    report = a_report(a_line("current", NOON))
    late = formatdate((NOON + 40 * SECOND) / 1000, usegmt=True)
    said = {SG: lambda _: an_answer(report, age="12"), SP: lambda _: an_answer(report, date=late)}
    life = Life(2, cast("Any", said))
    assert life.notes["Singapore"].reading.doubts == ("cached: 12 s",)
    assert life.notes["São Paulo"].reading.doubts == ("clocks_differ: 39 s",)


@pytest.mark.clause("W9")
def test_the_log_has_each_change_of_a_view_once() -> None:
    life = Life(60, {SG: lambda _: [a_line("current", NOON)], SP: lambda _: None})
    assert [(view.witness, view.row.status) for view in life.record if isinstance(view, Viewed)] == [
        ("Singapore", "current")
    ]


def replayed(events: Iterable[Event], *, witnesses: tuple[WitnessTable, ...] = BOTH) -> Replay:
    """From the lines of a log, as the command does it."""
    plan = a_plan(MESSAGING)
    around = around_of(given_settings(plan), Upstreams((), ()))
    rehearsal = Witnesses.rehearse(witnesses, around)
    replay = Replay(plan, [] if rehearsal is None else [rehearsal])
    run_log(read_log(io.BytesIO(b"".join(map(format_event, events))), []), replay)
    return replay


def statuses(document: bytes) -> list[Any]:
    return [row["buckets"] for row in json.loads(document)["rows"]]


@pytest.mark.clause("W9")
def test_a_log_replays_to_what_was_published_also_over_a_restart_and_a_set_clock() -> None:
    says: dict[str, Says] = {SG: always("current", until_s=1_000), SP: always("unavailable", since_s=40)}
    before = Life(300, says, PEERS, FAILED)
    clock = moved(320 * SECOND)
    again: dict[str, Says] = {SG: lambda _: None, SP: always("current")}
    after = Life(
        700, again, FAILED, clock=clock, stored=before.kept.state, happenings=[(400.0, setting(clock, -90_000))]
    )
    for events, life in ((before.record, before), ([*before.record, *after.record], after)):
        replay = replayed(events)
        last = {name: body for _, documents in life.kept.written for name, body in documents.items()}
        assert (
            json.loads(live_document(replay.ledger.report()).body)["checks"] == json.loads(last["live"].body)["checks"]
        )
        assert statuses(history_document(replay.ledger.view()).body) == statuses(last["history"].body)
        assert replay.skipped == 0


@pytest.mark.clause("W9")
def test_views_that_a_start_does_not_name_are_forgotten_in_a_replay_too() -> None:
    """The witness's address was changed: the log has no line for that."""
    before = Life(60, {SG: always("current"), SP: always("current")}, FAILED)
    elsewhere = (replace(SINGAPORE, url="http://sg.test:9"), replace(SAO_PAULO, url="http://sp.test:9"))
    silent: dict[str, Says] = {"sg.test:9": lambda _: None, "sp.test:9": lambda _: None}
    after = Life(20, silent, FAILED, clock=moved(70 * SECOND), stored=before.kept.state, witnesses=elsewhere)
    assert replayed([*before.record, *after.record]).ledger.published_rows[0].status == "unknown"


@pytest.mark.clause("W9", "H6")
def test_no_bucket_is_made_better_by_views_that_were_forgotten_at_its_start() -> None:
    before = Life(235, {SG: always("current"), SP: always("current")}, FAILED)
    elsewhere = (replace(SINGAPORE, url="http://sg.test:9"), replace(SAO_PAULO, url="http://sp.test:9"))
    silent: dict[str, Says] = {"sg.test:9": lambda _: None, "sp.test:9": lambda _: None}
    after = Life(700, silent, FAILED, clock=moved(305 * SECOND), stored=before.kept.state, witnesses=elsewhere)
    last = {name: body for _, documents in after.kept.written for name, body in documents.items()}
    replay = replayed([*before.record, *after.record], witnesses=elsewhere)
    assert statuses(history_document(replay.ledger.view()).body) == statuses(last["history"].body)


def test_without_the_witness_in_the_configuration_its_lines_are_skipped() -> None:
    life = Life(60, {SG: always("current"), SP: always("current")})
    replay = replayed(life.record, witnesses=(SINGAPORE,))
    assert replay.skipped == len([view for view in life.record if isinstance(view, Viewed)]) // 2
    assert replay.ledger.published_rows[0].metrics.views == 2


def bombs() -> dict[str, bytes]:
    """Reports of nearly two megabytes, and more than that."""
    rows = [a_line("current", NOON, Check("indexer", number + 1)) for number in range(7_000)]
    return {
        "too many bytes": b"x" * (2 * 1024 * 1024 + 1),
        "numbers": b'{"schemaVersion":1,"checks":[],"a":[' + b"1," * 1_000_000 + b"1]}",
        "a number": b'{"schemaVersion":1,"checks":[],"a":' + b"1" * 2_000_000 + b"}",
        "nested": b'{"schemaVersion":1,"checks":[' + b"[" * 90_000 + b"]" * 90_000 + b"]}",
        "rows": json.dumps(a_report(*rows)).encode(),
    }


@pytest.mark.clause("W2")
def test_a_hostile_witness_costs_no_row_no_log_and_no_record() -> None:
    """Each reading gives something else of the greatest size."""
    said = [an_answer(body) for body in bombs().values()]
    with capture_logs() as logs:
        life = Life(60, {SG: lambda now: said[(now // 5_000) % len(said)], SP: always("current")})
    assert life.at(60)["metrics"]["agreeing"] == 2
    assert len([line for line in logs if line.get("witness") == "Singapore"]) < 12
    of_singapore = [event for event in life.record if isinstance(event, Viewed) and event.witness == "Singapore"]
    assert [view.row.status for view in of_singapore] == ["unmonitored"]
    assert len(life.kept.others["witnesses"]) < 2_000


@pytest.mark.clause("W2", "R10")
@pytest.mark.parametrize("at", ["9999-12-31T23:59:59.999Z", "2026-11-05T13:00:00.000Z"])
def test_instants_of_another_time_can_be_stored_and_replayed(at: str) -> None:
    lines = [a_line("unavailable", NOON, lastSuccessAt=at, expiresAt=at)]
    life = Life(10, {SG: lambda _: lines, SP: lambda _: lines})
    again = Life(10, {SG: lambda _: None, SP: lambda _: None}, clock=moved(20 * SECOND), stored=life.kept.state)
    assert again.at(5)["metrics"]["views"] == 3
    assert replayed(life.record).ledger.published_rows[0].status == "unavailable"


@pytest.mark.clause("W1")
def test_without_witnesses_everything_is_as_if_there_were_no_such_feature() -> None:
    """Documents, stored state, log, and metrics but for the help of those of witnesses."""

    def live(features: tuple[type[Feature], ...]) -> tuple[list[object], list[bytes], list[str]]:
        record, registry = Record(), CollectorRegistry()
        scraped: list[str] = []

        def scrape(_: Succession) -> None:
            lines = generate_latest(registry).decode().splitlines()
            scraped.extend(line for line in lines if not line.startswith("# ") and "_created" not in line)

        said = (PEERS, FAILED, FAILED, FAILED, FAILED, PEERS)
        plan = a_plan(MESSAGING, PPOI)
        sources = [Asked(MESSAGING, *said, takes_s=0.1), Asked(PPOI, Indexes(5, 9), takes_s=0.2)]
        kept = lived(700, plan, sources, [], (699, scrape), record=record, registry=registry, features=features)
        documents = [(at, {name: new.body for name, new in documents.items()}) for at, documents in kept.written]
        assert len(scraped) > 50
        return [documents, dict(kept.state)], list(map(format_event, record)), scraped

    assert live(FEATURES) == live(tuple(feature for feature in FEATURES if feature is not Witnesses))


@pytest.mark.clause("W2", "W5", "C5")
def test_a_reason_of_a_later_version_is_published_stored_and_told() -> None:
    def say(now: int) -> Sequence[dict[str, Any]]:
        return [a_line("unavailable", NOON, reason="unreachable" if now - NOON < 30_000 else "eaten-by-mice")]

    sent: list[str] = []
    told = sending_into(sent, AlertRule(for_s=0))
    life = Life(130, {SG: say, SP: say}, **told)
    assert life.at(130)["reason"] == "eaten-by-mice"
    assert sent == ["Lookout: messaging is unavailable"]
    again = Life(20, {SG: say, SP: say}, clock=moved(140 * SECOND), stored=life.kept.state, **told)
    assert again.at(1)["reason"] == "eaten-by-mice"


@pytest.mark.clause("W4", "M16")
def test_what_only_this_monitor_judges_while_its_witnesses_are_silent_is_reported() -> None:
    sent: list[str] = []
    heard = always("current", until_s=60)
    life = Life(600, {SG: heard, SP: heard}, PEERS, FAILED, **sending_into(sent, AlertRule(for_s=0)))
    assert (life.at(600)["status"], life.at(600)["reason"]) == ("unknown", "unreachable")
    assert sent == ["Lookout: messaging cannot be judged"]


@pytest.mark.clause("W9")
def test_the_command_replays_views_and_says_that_a_comparison_keeps_them(tmp_path: Path) -> None:
    life = Life(100, {SG: always("current"), SP: always("unavailable", since_s=30)}, PEERS, FAILED)
    config = '[[chains]]\nid = 1\nrpc = ["http://rpc.test"]\n[messaging]\nurl = "http://waku.test"\n'
    config += "".join(f'[[witnesses]]\nname = "{table.name}"\nurl = "{table.url}"\n' for table in BOTH)
    (tmp_path / "lookout.toml").write_text(config)
    (tmp_path / "log.jsonl").write_bytes(b"".join(map(format_event, life.record)))
    ran = lookout_here(tmp_path, "replay", "log.jsonl", "--live", "live.json", "--compare", "lookout.toml")
    assert ran.stdout.startswith(
        "our own observations are judged again; what the witnesses saw stays as it was recorded\n"
    )
    assert json.loads((tmp_path / "live.json").read_text())["checks"][0] == life.at(100)


@pytest.mark.clause("M7")
@pytest.mark.parametrize("document", [b"", b"[]", b'{"witnesses":{"Lima":{"address":"a","views":[{}]}}}'])
def test_a_damaged_document_is_named(document: bytes) -> None:
    with pytest.raises(StateError, match="witnesses"):
        Witnesses.decode({"witnesses": document})
