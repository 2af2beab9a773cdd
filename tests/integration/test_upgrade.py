"""Today's history on the store that the real version 0.1.0 left after a fortnight. How it was recorded:
tests/data/upgrade/record.sh."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from lookout.config.file import read_config
from lookout.core.ledger import Ledger
from lookout.documents.reports import history_document
from lookout.state.codec import decode_state
from lookout.store.sqlite import open_writer
from tests.integration.fast import a_config
from tests.oracles.history import uptime

RECORDED: Final = Path(__file__).parents[1] / "data" / "upgrade" / "0.1.0.sqlite.gz"
RESTART_MS: Final = 2_000
WINDOWS: Final = {"24h": 1, "7d": 7, "14d": 14}


def test_every_bucket_and_every_uptime_is_as_0_1_0_published_it(tmp_path: Path) -> None:
    (tmp_path / "lookout.db").write_bytes(gzip.decompress(RECORDED.read_bytes()))
    with closing(sqlite3.connect(tmp_path / "lookout.db")) as store:
        ((body,),) = store.execute("SELECT body FROM documents WHERE name = 'history'")
        (latest_at,) = store.execute("SELECT max(generated_at) FROM documents").fetchone()
        left = dict(store.execute("SELECT name, piece FROM pieces").fetchall())
    (tmp_path / "lookout.toml").write_text(a_config("http://127.0.0.1:9"))
    with closing(open_writer(tmp_path / "lookout.db")) as writer:
        pieces = writer.load()
    assert left == pieces  # nothing is lost by bringing the store up to date
    ledger = Ledger(read_config(tmp_path / "lookout.toml").plan(), decode_state(pieces)[0])
    ledger.start(latest_at + RESTART_MS)
    ledger.publish(latest_at + RESTART_MS)
    was, now = json.loads(body), json.loads(history_document(ledger.view()).body)
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
