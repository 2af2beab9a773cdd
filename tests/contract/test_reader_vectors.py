"""The Python reader by the cases of tests/data/vectors/reader, which the JavaScript one runs too."""

import json
from dataclasses import asdict, astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lookout_reader import (
    NOTES,
    WINDOWS,
    About,
    Answer,
    Clocks,
    Feed,
    History,
    HistoryRow,
    LiveReport,
    Needs,
    NoAnswer,
    Row,
    Unreadable,
    UnreadableRow,
    agreement_text,
    buckets_of,
    can_use,
    coverage_of,
    effective_status,
    find_row,
    headline_of,
    history_feed,
    incidents_of,
    live_feed,
    notes_for,
    obstacles_of,
    overview_of,
    parse_about,
    parse_history,
    parse_http_date,
    parse_instant,
    parse_report,
    reason_text,
    roll_up,
    rows_by_check,
    status_text,
    take_answer,
    wrong_clock,
)

LIFETIME_MS = 150_000
VECTORS = Path(__file__).parent.parent / "data" / "vectors" / "reader"


def vectors(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text())
    return found


def each(name: str) -> pytest.MarkDecorator:
    cases = [pytest.param(case, id=case.get("name", repr(case.get("text")))) for case in vectors(name)["cases"]]
    return pytest.mark.parametrize("case", cases)


def at(text: str | None) -> int:
    found = parse_instant(text)
    assert found is not None
    return found


def text_of(case: dict[str, Any]) -> str | bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "nested" in case:
        return f'{{"schemaVersion":1,"checks":[],"x":{"[" * case["nested"]}{"]" * case["nested"]}}}'
    if "parts" in case:
        return json.dumps({"schemaVersion": 1, "checks": [], "x": [[]] * case["parts"]})
    if "repeated" in case:
        return str(case["repeated"][0] * case["repeated"][1])
    if "rows" in case:
        return json.dumps({**case["document"], case["list"]: [{}] * case["rows"]})
    return str(case["text"]) if "text" in case else json.dumps(case["document"])


def a_report(rows: list[Any]) -> LiveReport:
    report = parse_report(json.dumps({"schemaVersion": 1, "generatedAt": "2026-11-15T11:59:31.000Z", "checks": rows}))
    assert isinstance(report, LiveReport)
    return report


def rows_of(case: dict[str, Any], shared: dict[str, Any]) -> list[Any]:
    return [row and {"service": row[0], "chainId": row[1], **shared["fields"][row[2]]} for row in case["rows"]]


def a_history(buckets: str, bucket_seconds: int, begin: str = "2026-11-01T00:00:00Z") -> tuple[History, HistoryRow]:
    last = datetime.fromisoformat(begin) + timedelta(seconds=(len(buckets) - 1) * bucket_seconds)
    row = {"service": "indexer", "chainId": 1, "buckets": buckets, "uptime": {}}
    to = f"{last.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    fields = {"schemaVersion": 1, "bucketSeconds": bucket_seconds, "from": begin, "to": to, "rows": [row]}
    history = parse_history(json.dumps(fields))
    assert isinstance(history, History)
    found = find_row(history, "indexer", 1)
    assert isinstance(found, HistoryRow)
    return history, found


def identity(row: Row | HistoryRow | UnreadableRow, *, chain_id_read: bool = True) -> dict[str, Any]:
    return {"service": row.service, "chainId": row.chain_id if chain_id_read else "unread"}


def chain_id_is_read(row: Row | HistoryRow | UnreadableRow) -> bool:
    return row.check is not None or row.chain_id is not None


@pytest.mark.clause("C1", "C2", "C3", "C4", "C5")
@each("reader-status")
def test_a_row_is_worth(case: dict[str, Any]) -> None:
    now = at(vectors("reader-status")["now"])
    assert effective_status(a_report([case["row"]]).rows[0], Clocks(now)) == case["effective"]


@pytest.mark.clause("C1", "C2", "C3", "C4")
@each("status-edges")
def test_a_row_at_an_edge_is_worth(case: dict[str, Any]) -> None:
    now = float("nan") if "now" in case else at(vectors("status-edges")["now"])
    received_ago_ms, clock_ahead_ms = case.get("receivedAgoMs", 0), case.get("clockAheadMs")
    found = effective_status(a_report([case["row"]]).rows[0], Clocks(now, received_ago_ms, clock_ahead_ms))
    assert found == case["effective"]


@pytest.mark.clause("C5", "C6", "C7", "C8")
@each("reports")
def test_a_report_is_read(case: dict[str, Any]) -> None:
    now = at(vectors("reports")["now"])
    report = parse_report(text_of(case))
    if "problem" in case["expect"]:
        assert report == Unreadable(case["expect"]["problem"])
        return
    assert isinstance(report, LiveReport)
    if "unreadable" in case["expect"]:
        assert report.unreadable_rows == case["expect"]["unreadable"]
        return
    assert report.generated_at == parse_instant(case["expect"]["generatedAt"])
    found = [
        {
            **identity(row, chain_id_read=chain_id_is_read(row)),
            "effective": effective_status(row, Clocks(now)),
            "problem": row.problem if isinstance(row, UnreadableRow) else None,
        }
        for row in report.rows
    ]
    assert found == case["expect"]["rows"]
    assert report.unreadable_rows == sum(row["problem"] is not None for row in case["expect"]["rows"])
    assert set(rows_by_check(report)) == {row.check for row in report.rows if row.check is not None}


@pytest.mark.clause("C5")
@each("metrics")
def test_metrics_are_read(case: dict[str, Any]) -> None:
    (row,) = a_report([{"service": "indexer", "chainId": 1, "metrics": case["metrics"]}]).rows
    assert isinstance(row, Row)
    known = {key: value for key, value in asdict(row.metrics).items() if value is not None}
    assert known == case["expect"]


@pytest.mark.clause("C2")
@each("instants")
def test_an_instant_is_read(case: dict[str, Any]) -> None:
    assert parse_instant(case["text"]) == case["at"]


@pytest.mark.clause("C9")
@each("http-dates")
def test_a_date_of_http_is_read(case: dict[str, Any]) -> None:
    assert parse_http_date(case["text"]) == case["at"]


@pytest.mark.clause("C5", "C6", "C7", "C8", "C13")
@each("histories")
def test_a_history_is_read(case: dict[str, Any]) -> None:
    history = parse_history(text_of(case))
    if "problem" in case["expect"]:
        assert history == Unreadable(case["expect"]["problem"])
        return
    assert isinstance(history, History)
    assert history.length == case["expect"]["length"]
    found: list[dict[str, Any]] = [
        {**identity(row), "buckets": row.buckets, "uptime": row.uptime, "problem": None}
        if isinstance(row, HistoryRow)
        else {**identity(row, chain_id_read=chain_id_is_read(row)), "problem": row.problem}
        for row in history.rows
    ]
    assert found == case["expect"]["rows"]
    for row in history.rows:
        buckets = buckets_of(history, row)
        if isinstance(row, UnreadableRow):
            assert buckets == []
            continue
        assert (buckets[0].begins_at, buckets[-1].begins_at) == (history.from_at, history.to_at)
        assert [bucket for bucket in buckets if bucket.filling] == [buckets[-1]]


@pytest.mark.clause("H12", "C8")
@each("coverage")
def test_a_window_is_covered(case: dict[str, Any]) -> None:
    buckets = "".join(character * times for character, times in case["runs"])
    history, row = a_history(buckets, case["bucketSeconds"])
    for window in WINDOWS:
        coverage = coverage_of(history, row, window)
        found = {"known": coverage.known, "existing": coverage.existing, "buckets": coverage.buckets}
        assert found == case["expect"][window]
        assert coverage.share == coverage.known / coverage.buckets
        assert coverage.share_of_existing == coverage.known / coverage.existing


@pytest.mark.clause("C13")
@each("incidents")
def test_incidents_are_found(case: dict[str, Any]) -> None:
    shared = vectors("incidents")
    history, row = a_history(case["buckets"], shared["bucketSeconds"], shared["from"])
    found = [
        {
            "beginsAt": incident.begins_at,
            "endsAt": incident.ends_at,
            "worst": incident.worst,
            "buckets": incident.buckets,
            "beginSeen": incident.begin_seen,
            "endSeen": incident.end_seen,
        }
        for incident in incidents_of(history, row)
    ]
    assert found == [
        {**expected, "beginsAt": at(expected["beginsAt"]), "endsAt": parse_instant(expected["endsAt"])}
        for expected in case["expect"]
    ]


ROLL_UP_OPTIONS = {"chains": "chains", "services": "services", "include_test_network": "includeTestNetwork"}


@pytest.mark.clause("C11")
@each("rollup")
def test_rows_are_rolled_up(case: dict[str, Any]) -> None:
    shared = vectors("rollup")
    rows = rows_of(case, shared)
    chosen = {name: case[key] for name, key in ROLL_UP_OPTIONS.items() if key in case}
    clocks = Clocks(at(shared["now"]), case.get("receivedAgoMs"), case.get("clockAheadMs"))
    found = roll_up(a_report(rows), clocks, **chosen)
    assert {
        "status": found.status,
        "healthy": found.healthy,
        "chains": list(found.chains),
        "services": {summary.service: summary.status for summary in found.services},
        "counts": {status: count for status, count in found.counts.items() if count},
    } == case["expect"]
    report = a_report(rows)
    if not {"services", "includeTestNetwork"} & set(case) and not report.unreadable_rows:  # what both count
        assert overview_of(report, clocks, chains=found.chains).status == found.status


@pytest.mark.clause("C1", "C2", "C3", "C4", "C8")
@each("gate")
def test_what_a_wallet_needs_can_be_used(case: dict[str, Any]) -> None:
    shared = vectors("gate")
    rows = rows_of(case, shared)
    report, needs = a_report(rows), Needs(case["chain"], case["services"])
    clocks = Clocks(at(shared["now"]), case.get("receivedAgoMs"), case.get("clockAheadMs"))
    if "mistake" in case:
        with pytest.raises(TypeError, match=case["mistake"]):
            can_use(report, needs, clocks=clocks)
        return
    found = obstacles_of(report, needs, clocks=clocks)
    assert all(check.row == find_row(report, check.service, check.chain_id) for check in found)
    assert [[each.service, each.chain_id, each.effective, each.presence] for each in found] == case["expect"]
    assert can_use(report, needs, clocks=clocks) == (case["expect"] == [])


@pytest.mark.clause("C2", "C3", "C4")
@each("obstacles")
def test_an_obstacle_says_how_bad_and_why(case: dict[str, Any]) -> None:
    given, clocks = (
        case["report"],
        Clocks(at(vectors("obstacles")["now"]), case.get("receivedAgoMs"), case.get("clockAheadMs")),
    )
    rows = [given["row"]] if given and "row" in given else []
    report = given and parse_report(
        json.dumps({"schemaVersion": 1, "generatedAt": given["generatedAt"], "checks": rows})
    )
    found = obstacles_of(report, Needs(1, ["ppoi"]), report_code=case.get("reportCode"), clocks=clocks)
    assert [[each.effective, each.severity, each.cause] for each in found] == (
        [case["expect"]] if case["expect"] else []
    )


@pytest.mark.clause("C4", "C6")
@pytest.mark.parametrize("report", [None, Unreadable("it is not JSON")])
def test_without_a_report_nothing_can_be_used(report: Unreadable | None) -> None:
    assert not can_use(report, Needs(1, ["ppoi"]))


@pytest.mark.parametrize("services", [[], "ppoi", iter(())], ids=["no names", "no list", "a used-up iterator"])
def test_what_needs_nothing_is_a_mistake(services: Any) -> None:
    with pytest.raises(ValueError, match="services: no list of names given"):
        can_use(None, Needs(1, services))


@pytest.mark.clause("C9")
@each("failures")
def test_a_failure_has_a_code(case: dict[str, Any]) -> None:
    feed: Feed[Any] = history_feed(120) if case.get("feed") == "history" else live_feed(30)
    assert take_answer(feed, _answer(case["answer"], {}), 0, 0).code == case["code"]


@pytest.mark.clause("C2", "C3")
@each("clocks")
def test_a_wrong_clock_is_known(case: dict[str, Any]) -> None:
    feed = live_feed(30)
    for step in case["steps"]:
        text = json.dumps({"schemaVersion": 1, "generatedAt": step["generatedAt"], "checks": []})
        answer = Answer(200, text, etag=step.get("etag"), date=step.get("date"), age=step.get("age"))
        feed = take_answer(feed, answer, at(step["at"]), 0)
        assert feed.clock_ahead_ms == step["clockAheadMs"]
        assert wrong_clock(feed.clock_ahead_ms) == step["wrong"]


@pytest.mark.clause("C5", "C11", "W8")
@each("about")
def test_a_deployment_describes_itself(case: dict[str, Any]) -> None:
    found = parse_about(json.dumps(case["document"]))
    if "problem" in case:
        assert found == Unreadable(case["problem"])
        return
    assert isinstance(found, About)
    assert {
        "chains": [
            [chain.chain_id, chain.name, chain.test_network, *filter(None, [chain.no_block_since_at])]
            for chain in found.chains.values()
        ],
        "services": [[each.name, each.title, each.run_by_others, each.effect] for each in found.services],
        "texts": [found.title, found.operator, found.contact],
        "notes": [
            [
                each.note_id,
                each.text,
                list(each.services),
                list(each.chains),
                each.from_at,
                each.until_at,
                each.added_at,
            ]
            for each in found.notes
        ],
        "testNetworks": sorted(found.test_networks),
        "counted": list(found.counted_chains(case["reported"])),
        "places": [
            [place.name, place.url, place.own, place.silent_since_at, [list(astuple(one)) for one in place.differs]]
            for place in found.places
        ],
    } == {"places": [], **case["expect"]}


def overview_documents(case: dict[str, Any], shared: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The report, the history and the description of a case."""
    now, chains = at(shared["now"]), [chain_id for chain_id, _ in shared["chains"]]
    services = ("ppoi", "broadcasters", "indexer", "hosted-indexer")
    kinds = {"messaging": "current"} | {f"{service} {each}": "current" for service in services for each in chains}
    kinds = {check: kind for check, kind in (kinds | case.get("changes", {})).items() if kind is not None}

    def row_of(check: str, kind: str) -> dict[str, Any]:
        fields = dict(shared["fields"][kind])
        seen_s = fields.pop("seenS")
        seen_at = None if seen_s is None else now - 1000 * (seen_s + case.get("age", 0))
        known = seen_at is not None and fields["status"] not in ("unknown", "unmonitored")
        instants = {"observedAt": seen_at, "expiresAt": None if not known else (seen_at or 0) + LIFETIME_MS}
        written = {key: None if each is None else written_at(each) for key, each in instants.items()}
        return {**check_of(check), **fields, **written, "lastSuccessAt": None, "metrics": {}}

    def check_of(check: str) -> dict[str, Any]:
        service, _, chain_id = check.partition(" ")
        return {"service": service, "chainId": int(chain_id) if chain_id else None}

    rows = [row_of(check, kind) for check, kind in kinds.items()]
    if "broken" in case:
        rows.append({"service": "bundler", "chainId": "one"})
    generated_at = None if "undated" in case else written_at(now - 1000 * case.get("age", 10))
    report = {"schemaVersion": 1, "generatedAt": generated_at, "checks": rows}
    step_s, buckets = case.get("bucketSeconds", 300), shared["buckets"]
    to_at = at(shared["to"]) - 1000 * case.get("historyAgeS", 0)
    past = {
        "schemaVersion": 1,
        "bucketSeconds": step_s,
        "from": written_at(to_at - 1000 * step_s * (buckets - 1)),
        "to": written_at(to_at),
        "rows": [
            {**check_of(check), "buckets": case.get("past", {}).get(check, "").rjust(buckets, "c"), "uptime": {}}
            for check in kinds
        ],
    }
    about = {
        "chains": [
            {"id": chain_id, "name": name}
            for chain_id, name in (shared["chains"][-1:] if "onlyTests" in case else shared["chains"])
        ],
        "services": [{"name": name, **shared["own"][name]} for name in case.get("own", ())],
        "notes": case.get("notes", []),
        "showUnmonitored": "hideUnmonitored" not in case,
    }
    return (
        parse_report(json.dumps(report)) if case.get("report", True) else None,
        parse_history(json.dumps(past)) if case.get("history", True) else None,
        parse_about(json.dumps(about)),
    )


def written_at(instant: int) -> str:
    return f"{datetime.fromtimestamp(instant / 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"


@pytest.mark.clause("C11", "C16")
@each("overviews")
def test_every_face_has_one_state_and_one_headline(case: dict[str, Any]) -> None:
    shared = vectors("overviews")
    report, history, about = overview_documents(case, shared)
    found = overview_of(
        report,
        Clocks(at(shared["now"]), None, case.get("clockAheadMs"), case.get("answeredAgoMs")),
        about=about,
        history=history,
        chains=case.get("chains"),
        report_code=case.get("reportCode"),
    )
    said = headline_of(found)
    assert {
        "status": found.status,
        "doubts": list(found.doubts),
        "line": said.line,
        "short": said.short,
        "advice": said.advice,
        "cause": said.cause,
        "bad": [
            [network.chain_id, state.activity or state.service, state.status, state.effect]
            for network in found.networks
            for state in network.activities
            if state.effect != "well"
        ],
        "networks": [[network.chain_id, network.counted, network.status] for network in found.networks],
        "services": {service: status for service, status in found.services.items() if status != "current"},
        "missing": [[check.service, check.chain_id] for check in found.missing],
    } == case["expect"]
    assert found.healthy == (case["expect"]["status"] == "current")


@pytest.mark.clause("C9", "C10", "C14", "C15")
@each("polling")
def test_an_answer_decides_what_is_kept_and_how_long_to_wait(case: dict[str, Any]) -> None:
    if case["feed"] == "live":
        _follow(live_feed(case["everyS"]), case)
    else:
        _follow(history_feed(case["everyS"]), case)


def _follow(feed: Feed[Any], case: dict[str, Any]) -> None:
    shared = vectors("polling")
    documents = shared["documents"][case["feed"]]
    for step in case["steps"]:
        answer, expected = _answer(step["answer"], documents), step["expect"]
        before = feed.document
        now = at(shared["now"]) + step.get("atS", 0) * 1000
        feed, most = (take_answer(feed, answer, now, chance) for chance in (0.0, 1.0))
        assert [feed.wait_s, most.wait_s] == expected["waitS"]
        kept = documents[expected["kept"]]["generatedAt"] if expected["kept"] else None
        assert (feed.document.generated_at if feed.document else None) == parse_instant(kept)
        assert feed.etag == expected["etag"]
        assert feed.problem == expected["problem"]
        assert feed.arrivals == expected.get("arrivals", feed.arrivals)
        if step["answer"].get("httpCode") != 200:
            assert feed.document is before  # nothing was renewed


def _answer(given: dict[str, Any], documents: dict[str, Any]) -> Answer | NoAnswer:
    if "problem" in given:
        return NoAnswer(given["problem"], given.get("code", "no-answer"))
    body = json.dumps(documents[given["document"]]) if "document" in given else text_of({"text": "", **given})
    return Answer(
        given["httpCode"], body, etag=given.get("etag"), retry_after=given.get("retryAfter"), date=given.get("date")
    )


@pytest.mark.clause("C12")
def test_every_reader_shows_people_the_same_words() -> None:
    words = vectors("words")
    assert {status: status_text(status) for status in words["statuses"]} == words["statuses"]
    assert {reason: reason_text(reason) for reason in words["reasons"]} == words["reasons"]
    shown = [{"id": n.id, "services": n.services and list(n.services), "text": n.text} for n in NOTES]
    assert shown == words["notes"]
    found = [
        [metrics, agreement_text(metrics.get("views"), metrics.get("agreeing"))] for metrics, _ in words["agreements"]
    ]
    assert found == words["agreements"]


@pytest.mark.clause("C12")
def test_warnings_stand_beside_the_rows_that_they_are_about() -> None:
    shown = {service: [note.id for note in notes_for(service)] for service in ("ppoi", "hosted-indexer", "relays")}
    general = ["one-view", "not-a-signal", "history"]
    assert shown["ppoi"] == [*general, "proofs", "others"]
    assert shown["hosted-indexer"] == [*general, "wallet-sync", "others"]
    assert shown["relays"] == general
    assert notes_for("relays")[0].text == "This is what one monitor sees from one place. It is not an official status."
    of_three = "This is what one monitor sees from 3 places. It is not an official status."
    assert [note.text for note in notes_for("relays", places=3)] == [
        of_three,
        *(n.text for n in notes_for("relays")[1:]),
    ]


@pytest.mark.clause("C12")
def test_every_warning_of_the_contract_is_shown() -> None:
    shown = " ".join(note.text for note in NOTES)
    wanted = [
        "partial reading",
        "do not prove that a message is delivered",
        "does not say whether your wallet is synced",
        "proofs, compliance or balance",
        "one monitor",
        "not an official status",
        "not a signal that it is safe to transact",
        "Run by other people",
        "does not say what is up now",
    ]
    assert [words for words in wanted if words not in shown] == []


@pytest.mark.clause("C5")
def test_an_unknown_reason_has_no_sentence() -> None:
    assert reason_text("moon-phase") is None
    assert reason_text(None) is None
