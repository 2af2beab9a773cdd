"""The documents as JSON, and their schemas."""

import gzip
import json
import re
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from lookout.config.tables import History
from lookout.core.history import HistoryRow, HistoryView, Uptime
from lookout.core.ledger import Ledger
from lookout.core.model import Check, Observation, Peers
from lookout.core.services import SERVICES
from lookout.documents.document import Document, compress, unpacks_to
from lookout.documents.reports import build_schemas, history_document, live_document
from lookout.replay.replay import Replay
from lookout.state.log import Started
from tests.builders import BROADCASTERS, HOSTED_INDEXER, INDEXER, MESSAGING, MINUTE, NOON, PPOI, a_plan
from tests.integration.served import a_ledger
from tools.schemas import build_files

PLAN = a_plan(MESSAGING, INDEXER, BROADCASTERS, PPOI, chains=(1, 137))


def body(document: Document) -> Any:
    return json.loads(document.body)


def a_small_ledger() -> Ledger:
    replay = Replay(a_plan(MESSAGING, chains=()))
    replay.feed(Started(NOON))
    replay.feed(Observation(MESSAGING, NOON + 1, Peers(5)))
    return replay.ledger


@pytest.mark.clause("R1", "R2", "R3", "R12", "H2")
def test_the_live_report_to_the_byte() -> None:
    assert live_document(a_small_ledger().report()).body == (
        b'{"schemaVersion":1,"generatedAt":"2026-11-05T12:00:00.001Z","checks":[{"service":"messaging","chainId":null,'
        b'"status":"current","reason":"responding","observedAt":"2026-11-05T12:00:00.001Z",'
        b'"lastSuccessAt":"2026-11-05T12:00:00.001Z","expiresAt":"2026-11-05T12:02:30.001Z","metrics":{"peers":5}}]}'
    )


@pytest.mark.clause("H1", "H2", "H3")
def test_the_history_to_the_byte() -> None:
    assert history_document(a_small_ledger().view()).body == (
        b'{"schemaVersion":1,"generatedAt":"2026-11-05T12:00:00.001Z","bucketSeconds":300,"retentionDays":14,'
        b'"from":"2026-11-05T12:00:00Z","to":"2026-11-05T12:00:00Z","rows":[{"service":"messaging","chainId":null,'
        b'"buckets":"c","uptime":{"24h":null,"7d":null,"14d":null}}]}'
    )


@pytest.mark.clause("R12", "H2")
def test_rows_stand_in_the_reports_order_in_both_documents() -> None:
    expected = [("messaging", None)] + [
        (service, chain_id)
        for service in ("ppoi", "broadcasters", "indexer", "hosted-indexer")
        for chain_id in (1, 137)
    ]
    ledger = a_ledger()
    for rows in (body(live_document(ledger.report()))["checks"], body(history_document(ledger.view()))["rows"]):
        assert [(row["service"], row["chainId"]) for row in rows] == expected


@pytest.mark.clause("R8", "R9", "S14")
def test_metrics_that_are_not_known_are_left_out() -> None:
    by_check = {(row["service"], row["chainId"]): row for row in body(live_document(a_ledger().report()))["checks"]}
    assert by_check["broadcasters", 1]["metrics"] == {"responding": 3, "monitored": 5}
    assert by_check["indexer", 1]["metrics"] == {"position": 7}
    assert by_check["ppoi", 1]["metrics"] == {}
    assert by_check[HOSTED_INDEXER.service, HOSTED_INDEXER.chain_id]["metrics"] == {}


@pytest.mark.clause("A4")
def test_the_etag_is_a_quoted_hash_of_sixteen_characters_that_follows_the_body() -> None:
    ledger = a_ledger()
    assert re.fullmatch(r'"[0-9a-f]{16}"', live_document(ledger.report()).etag)
    assert live_document(ledger.report()) == live_document(ledger.report())
    assert live_document(ledger.report()).etag != history_document(ledger.view()).etag
    before = live_document(ledger.report())
    ledger.publish(NOON + 71 * MINUTE)
    assert live_document(ledger.report()).etag != before.etag
    assert (before.generated_at, live_document(ledger.report()).generated_at) == (
        NOON + 70 * MINUTE,
        NOON + 71 * MINUTE,
    )


@cache
def validators() -> dict[str, Draft202012Validator]:
    schemas = build_schemas()
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    return {name: Draft202012Validator(schema) for name, schema in schemas.items()}


def documents() -> dict[str, Any]:
    ledger = a_ledger()
    return {"liveness": body(live_document(ledger.report())), "history": body(history_document(ledger.view()))}


@pytest.mark.clause("V1")
@pytest.mark.parametrize("name", ["liveness", "history"])
def test_the_schema_accepts_todays_document(name: str) -> None:
    validators()[name].validate(documents()[name])


@pytest.mark.clause("V1")
def test_the_schema_accepts_tomorrows_live_report() -> None:
    document = documents()["liveness"]
    document |= {"schemaVersion": 2, "region": {"name": "north"}}
    row = document["checks"][0]
    row |= {"service": "oracle", "chainId": 10**15, "status": "resting", "reason": "holiday", "note": None}
    row["metrics"] |= {"latencyMs": 12.5, "tags": ["a"]}
    validators()["liveness"].validate(document)


@pytest.mark.clause("V1")
def test_the_schema_accepts_tomorrows_history() -> None:
    document = documents()["history"]
    document |= {"bucketSeconds": 60, "retentionDays": 90, "legend": {"z": "asleep"}}
    row = document["rows"][0]
    row |= {"service": "oracle", "buckets": "zZ~" * 20_000, "coverage": 0.5}
    row["uptime"] |= {"90d": 0.5, "1h": None, "note": "none"}
    validators()["history"].validate(document)


@pytest.mark.clause("V1", "R2", "R3", "R4", "R10", "H1", "H2")
@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("liveness", ["schemaVersion"], "1"),
        ("liveness", ["generatedAt"], "2026-11-05T12:00:00Z"),
        ("liveness", ["checks"], {}),
        ("liveness", ["checks", 0, "chainId"], 0),
        ("liveness", ["checks", 0, "status"], None),
        ("liveness", ["checks", 0, "observedAt"], "yesterday"),
        ("liveness", ["checks", 0, "metrics"], None),
        ("liveness", ["checks", 0, "metrics", "peers"], -1),
        ("liveness", ["checks", 0, "metrics", "peers"], 2**53),
        ("liveness", ["checks", 0, "metrics", "peers"], 1.5),
        ("history", ["from"], "2026-11-05T12:00:00.000Z"),
        ("history", ["bucketSeconds"], 0),
        ("history", ["rows", 0, "buckets"], ["c"]),
        ("history", ["rows", 0, "uptime", "24h"], 1.01),
        ("history", ["rows", 0, "uptime", "7d"], "1"),
    ],
)
def test_the_schema_refuses_what_is_not_the_contract(name: str, path: list[str | int], value: Any) -> None:
    place = document = documents()[name]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ValidationError):
        validators()[name].validate(document)


@pytest.mark.clause("V1", "R2", "H2")
@pytest.mark.parametrize("name", ["liveness", "history"])
def test_the_schema_requires_every_field_but_a_metric(name: str) -> None:
    document = documents()[name]
    tables = [document, *document.get("checks", ()), *document.get("rows", ())]
    tables += [row["uptime"] for row in document.get("rows", ())]
    for table in tables:
        for key in list(table):
            value = table.pop(key)
            with pytest.raises(ValidationError):
                validators()[name].validate(document)
            table[key] = value


@pytest.mark.clause("V1")
def test_the_published_schemas_are_those_of_the_types() -> None:
    for path, content in build_files().items():
        assert path.read_bytes() == content, "run: make schemas"


def test_there_is_no_report_before_the_first_publication() -> None:
    with pytest.raises(ValueError, match="nothing has been published yet"):
        live_document(Ledger(PLAN).report())


def a_quiet_fortnight() -> Document:
    """The history of the 21 rows of the launch, as it is when nothing goes wrong for two weeks."""
    checks = [
        MESSAGING,
        *(Check(service, chain) for service in SERVICES.names[1:] for chain in (1, 56, 137, 42161, 11155111)),
    ]
    rows = tuple(
        HistoryRow(check, "." * 4033, Uptime(None, None, None))
        if check == Check("hosted-indexer", 11155111)
        else HistoryRow(check, "c" * 4033, Uptime(1.0, 1.0, 1.0))
        for check in checks
    )
    return history_document(HistoryView(NOON, History().span(), NOON - 14 * 24 * 60 * MINUTE, NOON, rows))


@pytest.mark.clause("A15")
def test_a_quiet_fortnight_is_less_than_a_kilobyte_and_a_half_as_gzip() -> None:
    history = a_quiet_fortnight()
    assert len(history.body) > 86_000
    assert len(compress(history.body)) < 1_500


@pytest.mark.clause("A4", "A15")
def test_a_gzip_form_says_nothing_of_when_and_where_it_was_made() -> None:
    packed = compress(b"report")
    assert packed[:4] == b"\x1f\x8b\x08\x00", "gzip, deflated, and no name or comment in it"
    assert packed[4:8] == bytes(4), "no instant"
    assert gzip.decompress(packed) == b"report"
    assert compress(b"report") == packed


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        pytest.param(compress(b"report"), True, id="the same body"),
        pytest.param(gzip.compress(b"report", 1), True, id="the same body, packed by somebody else"),
        pytest.param(compress(b"repor"), False, id="a part of it"),
        pytest.param(compress(b"report!"), False, id="more than it"),
        pytest.param(compress(b"REPORT"), False, id="another of the same length"),
        pytest.param(compress(b"report")[:-8], False, id="the same body, without its checksum"),
        pytest.param(compress(b"report")[:-4] + b"\0\0\0\0", False, id="the same body, with a wrong length"),
        pytest.param(compress(b"report") + b"\0", False, id="something after it"),
        pytest.param(compress(b""), False, id="nothing, packed"),
        pytest.param(b"", False, id="nothing"),
        pytest.param(b"report", False, id="the body itself"),
    ],
)
@pytest.mark.clause("A15")
def test_what_unpacks_to_a_body_is_exactly_that_body(packed: bytes, expected: bool) -> None:
    assert unpacks_to(packed, b"report") is expected


def test_an_empty_body_is_not_unpacked_without_end() -> None:
    assert unpacks_to(compress(b""), b"")
    assert not unpacks_to(compress(bytes(10_000_000)), b"")
