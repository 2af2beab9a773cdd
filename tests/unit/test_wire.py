"""The documents as JSON, and their schemas."""

import gzip
import json
import re
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from lookout.config.tables import HistoryTable
from lookout.core.history import HistoryRow, HistoryView, Uptime
from lookout.core.model import Check, Observation, Peers
from lookout.core.services import SERVICES
from lookout.documents.document import Document, compress
from lookout.documents.reports import build_schemas, history_document, live_document
from lookout.replay.replay import Replay
from lookout.state.log import Started
from tests.builders import MESSAGING, MINUTE, NOON, a_plan
from tests.integration.served import a_ledger
from tools.schemas import build_files


def body(document: Document) -> Any:
    return json.loads(document.body)


@pytest.mark.clause("R1", "R2", "R3", "R12", "H1", "H2", "H3")
def test_both_documents_to_the_byte() -> None:
    replay = Replay(a_plan(MESSAGING, chains=()))
    replay.feed(Started(NOON))
    replay.feed(Observation(MESSAGING, NOON + 1, Peers(5)))
    assert live_document(replay.ledger.report()).body == (
        b'{"schemaVersion":1,"generatedAt":"2026-11-05T12:00:00.001Z","checks":[{"service":"messaging","chainId":null,'
        b'"status":"current","reason":"responding","observedAt":"2026-11-05T12:00:00.001Z",'
        b'"lastSuccessAt":"2026-11-05T12:00:00.001Z","expiresAt":"2026-11-05T12:02:30.001Z","metrics":{"peers":5}}]}'
    )
    assert history_document(replay.ledger.view()).body == (
        b'{"schemaVersion":1,"generatedAt":"2026-11-05T12:00:00.001Z","bucketSeconds":300,"retentionDays":14,'
        b'"from":"2026-11-05T12:00:00Z","to":"2026-11-05T12:00:00Z","rows":[{"service":"messaging","chainId":null,'
        b'"buckets":"c","uptime":{"24h":null,"7d":null,"14d":null}}]}'
    )


@pytest.mark.clause("A4")
def test_the_etag_is_a_quoted_hash_of_sixteen_characters_that_follows_the_body() -> None:
    ledger = a_ledger()
    before = live_document(ledger.report())
    assert re.fullmatch(r'"[0-9a-f]{16}"', before.etag)
    assert live_document(ledger.report()) == before
    ledger.publish(NOON + 71 * MINUTE)
    after = live_document(ledger.report())
    assert after.etag != before.etag
    assert (before.generated_at, after.generated_at) == (NOON + 70 * MINUTE, NOON + 71 * MINUTE)


@cache
def validator(name: str) -> Draft202012Validator:
    schema = build_schemas()[name]
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def a_document(name: str) -> Any:
    ledger = a_ledger()
    return body(live_document(ledger.report()) if name == "liveness" else history_document(ledger.view()))


@pytest.mark.clause("V1")
def test_the_schema_accepts_tomorrows_live_report() -> None:
    document = a_document("liveness")
    document |= {"schemaVersion": 2, "region": {"name": "north"}}
    row = document["checks"][0]
    row |= {"service": "oracle", "chainId": 10**15, "status": "resting", "reason": "holiday", "note": None}
    row["metrics"] |= {"latencyMs": 12.5, "tags": ["a"]}
    validator("liveness").validate(document)


@pytest.mark.clause("V1")
def test_the_schema_accepts_tomorrows_history() -> None:
    document = a_document("history")
    document |= {"bucketSeconds": 60, "retentionDays": 90, "legend": {"z": "asleep"}}
    row = document["rows"][0]
    row |= {"service": "oracle", "buckets": "zZ~" * 20_000, "coverage": 0.5}
    row["uptime"] |= {"90d": 0.5, "1h": None, "note": "none"}
    validator("history").validate(document)


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
    document = a_document(name)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ValidationError):
        validator(name).validate(document)


@pytest.mark.clause("V1", "R2", "H2")
@pytest.mark.parametrize("name", ["liveness", "history"])
def test_the_schema_requires_every_field_but_a_metric(name: str) -> None:
    document = a_document(name)
    row = document["checks" if name == "liveness" else "rows"][0]
    for table in (document, row, row.get("uptime", {})):
        for key in list(table):
            value = table.pop(key)
            with pytest.raises(ValidationError):
                validator(name).validate(document)
            table[key] = value
    validator(name).validate(document)


@pytest.mark.clause("V1")
def test_the_published_schemas_are_those_of_the_types() -> None:
    for path, content in build_files().items():
        assert path.read_bytes() == content, "run: make schemas"


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
    return history_document(HistoryView(NOON, HistoryTable().span(), NOON - 14 * 24 * 60 * MINUTE, NOON, rows))


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
