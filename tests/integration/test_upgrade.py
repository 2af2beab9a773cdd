"""Today's state on the stores that the real versions 0.1.0 and 2.0.0 left after a fortnight. How they were recorded:
tests/data/upgrade."""

import gzip
import json
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from lookout.config.file import read_config
from lookout.core.ledger import Ledger
from lookout.core.model import Check
from lookout.documents.reports import history_document, live_document
from lookout.state.codec import decode_state, encode_state
from lookout.store.sqlite import open_writer, read_snapshot
from tests.integration.fast import a_config
from tests.oracles.history import uptime

RECORDED: Final = Path(__file__).parents[1] / "data" / "upgrade"
RESTART_MS: Final = 2_000
WINDOWS: Final = {"24h": 1, "7d": 7, "14d": 14}


@pytest.mark.clause("M7", "H15", "H16")
@pytest.mark.parametrize("version", ["0.1.0", "2.0.0"])
def test_everything_is_as_the_former_version_published_and_stored_it(version: str, tmp_path: Path) -> None:
    path = tmp_path / "lookout.db"
    path.write_bytes(gzip.decompress((RECORDED / f"{version}.sqlite.gz").read_bytes()))
    (tmp_path / "lookout.toml").write_text(a_config("http://127.0.0.1:9"))
    plan = read_config(tmp_path / "lookout.toml").plan()
    before = read_snapshot(path)
    latest_at = before.documents["live"].generated_at
    checks = [json.loads(piece) for name, piece in before.state.items() if name.startswith("check/")]
    ledgers = ("progress", "check", "tally", "heads", "day")
    features = {name for name in before.state if name.split("/")[0] not in ledgers}
    assert len(checks) == 20
    with closing(open_writer(path)) as writer:
        state, others = decode_state(writer.load())
        assert state is not None
        writer.write({}, encode_state(state, others).documents)
        assert decode_state(writer.load()) == (state, others)
        assert {"state", "days", "heads/1", *features} <= writer.load().keys()
        assert not [name for name in writer.load() if name.split("/")[0] in ("progress", "check", "tally", "day")]
    assert others == {name: before.state[name] for name in features}
    ledger = Ledger(plan, state)
    failures = {Check(*check["row"]["check"]): check["memory"].get("failures", 0) for check in checks}
    assert max(failures.values()) > 2
    assert {check: state.checks[check].memory.failures for check in failures} == failures
    ledger.start(latest_at + RESTART_MS)
    ledger.publish(latest_at + RESTART_MS)
    live, was = (json.loads(before.documents[name].body) for name in ("live", "history"))
    rows = {(row["service"], row["chainId"]): row for row in json.loads(live_document(ledger.report()).body)["checks"]}
    assert [rows[row["service"], row["chainId"]] for row in live["checks"]] == live["checks"]
    now = json.loads(history_document(ledger.view()).body)
    assert (now["from"], now["to"]) == (was["from"], was["to"])
    assert [(row["service"], row["chainId"]) for row in now["rows"]] == [
        (row["service"], row["chainId"]) for row in was["rows"]
    ]
    assert len(was["rows"]) == 21
    for old, new in zip(was["rows"], now["rows"], strict=True):
        assert len(old["buckets"]) == 14 * 24 * 12 + 1  # the last one is not over
        assert new["buckets"][:-1] == old["buckets"][:-1]
        for row in (old, new):  # the last bucket counts, too, and has got some more seconds
            assert row["uptime"] == {name: uptime(row["buckets"][-days * 288 - 1 :]) for name, days in WINDOWS.items()}
