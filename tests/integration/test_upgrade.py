"""Today's monitor on the store that the real version 0.1.0 left: a fortnight, alerts that had begun, and messages that
nobody had accepted. How it was recorded: tests/data/upgrade/record.sh."""

import gzip
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry

from lookout.base.concurrency import DaemonThread
from lookout.config.file import read_config
from lookout.core.ledger import Ledger
from lookout.documents.document import Document
from lookout.documents.reports import history_document
from lookout.monitor.metrics import Instruments
from lookout.monitor.monitor import build_monitor
from lookout.state.codec import decode_state
from lookout.store.kinds import kind_of
from tests.integration.fast import a_config, a_world
from tests.integration.receivers import Receiver, a_hook
from tests.oracles.history import uptime
from tests.unit.running_monitor import running
from tests.wait import until_async

RECORDED: Final = Path(__file__).parents[1] / "data" / "upgrade" / "0.1.0.sqlite.gz"
RESTART_MS: Final = 2_000
HEALTHY: Final = {"current", "unmonitored"}
URL: Final = "sqlite:lookout.db"
WINDOWS: Final = {"24h": 1, "7d": 7, "14d": 14}
# The rule of 0.1.0, whose episodes go on only under the same one.
ALERTS: Final = (
    '[alerts]\ngroup_s = 0\n[alerts.targets]\nhook = "{}"\n[[alerts.rules]]\nfrom = "unavailable"\nfor_s = 2\n'
)


class Left:
    """What 0.1.0 left, as its own bytes."""

    def __init__(self, file: Path) -> None:
        file.write_bytes(gzip.decompress(RECORDED.read_bytes()))
        with closing(sqlite3.connect(file)) as store:
            self.documents = store.execute("SELECT name, body, etag, generated_at FROM documents").fetchall()
            self.pieces = store.execute("SELECT name, piece FROM pieces").fetchall()
        by_name = {name: json.loads(body) for name, body, *_ in self.documents}
        self.live, self.history = by_name["live"], by_name["history"]
        self.at = max(at for *_, at in self.documents)

    @property
    def messages(self) -> list[tuple[str, str]]:
        queued = [json.loads(piece) for name, piece in sorted(self.pieces) if name.startswith("alerts/")]
        return [(message["title"], message["body"]) for message in queued]


@pytest.fixture
def left(tmp_path: Path) -> Left:
    return Left(tmp_path / "lookout.db")


class ThenClock:
    """It goes on from an instant of the past."""

    def __init__(self, at: int) -> None:
        self._ahead_ms = at - self.elapsed_ms()

    def now(self) -> int:
        return self._ahead_ms + self.elapsed_ms()

    def elapsed_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


def parse(document: Document | None) -> Any:
    assert document is not None
    return json.loads(document.body)


def rows_of(document: Any) -> dict[tuple[str, int | None], Any]:
    return {(row["service"], row["chainId"]): row for row in document["rows" if "rows" in document else "checks"]}


def test_every_bucket_and_every_uptime_is_as_0_1_0_published_it(left: Left, tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text(a_config("http://127.0.0.1:9"))
    with closing(kind_of(URL).open_writer(URL, tmp_path)) as writer:
        pieces = writer.load()
    assert dict(left.pieces) == pieces  # nothing is lost by bringing the store up to date
    ledger = Ledger(read_config(tmp_path / "lookout.toml").plan(), decode_state(pieces))
    ledger.start(left.at + RESTART_MS)
    ledger.publish(left.at + RESTART_MS)
    history = json.loads(history_document(ledger.view()).body)
    assert (history["from"], history["to"]) == (left.history["from"], left.history["to"])
    was, now = rows_of(left.history), rows_of(history)
    assert list(now) == list(was)
    assert len(was) == 21
    for row, old in was.items():
        assert len(old["buckets"]) == 14 * 24 * 12 + 1  # the last one is not over
        assert now[row]["buckets"][:-1] == old["buckets"][:-1]
        for each in (old, now[row]):  # the last bucket counts, too, and has got some more seconds
            assert each["uptime"] == {
                name: uptime(each["buckets"][-days * 288 - 1 :]) for name, days in WINDOWS.items()
            }


async def test_alerts_of_0_1_0_are_sent_as_they_were_written_and_get_their_end(left: Left, tmp_path: Path) -> None:
    clock = ThenClock(left.at + RESTART_MS)
    with a_hook() as hook:
        async with a_world(tmp_path, clock.now) as world:
            config = tmp_path / "lookout.toml"
            config.write_text(a_config(world.base) + ALERTS.format(hook.address))
            with closing(kind_of(URL).open_writer(URL, tmp_path)) as writer, DaemonThread("store") as store:
                instruments = Instruments(CollectorRegistry(), clock)
                monitor = build_monitor(read_config(config), writer.load(), writer, store, clock, instruments)
                async with running(monitor.run()):
                    bad = {row for row, each in rows_of(left.live).items() if each["status"] == "unavailable"}
                    await until_async(lambda: count(hook, "Recovered") == len(bad) == 5, "each alert has its end", 180)
                    await until_async(lambda: statuses(tmp_path) == HEALTHY, "every row is current", 180)
            with closing(kind_of(URL).open_reader(URL, tmp_path, "store.url")) as reader:
                history = parse(reader.read("history"))
    assert [(message.title, message.body) for message in hook.accepted[: len(left.messages)]] == left.messages
    assert count(hook, "Unavailable") == 5  # none begins a second time
    was = rows_of(left.history)
    for row, now in rows_of(history).items():
        ended = was[row]["buckets"][:-1]
        assert now["buckets"].startswith(ended) or now["buckets"].startswith(ended[1:])  # a bucket may have left
        assert "-" not in now["buckets"][-3:]  # no gap: it was away for less than a bucket


def statuses(folder: Path) -> set[str]:
    with closing(kind_of(URL).open_reader(URL, folder, "store.url")) as reader:
        return {row["status"] for row in parse(reader.read("live"))["checks"]}


def count(hook: Receiver, heading: str) -> int:
    return sum(number for (under, _), number in hook.listed().items() if under == heading)
