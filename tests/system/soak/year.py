"""A replayed year in a process of its own: the rules and the SQLite store, with incidents throughout."""

import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from bench.processes import memory_mb
from bench.watch import a_config
from lookout.config.file import read_config
from lookout.core.ledger import Ledger
from lookout.demo.fortnight import FORTNIGHT_MS, draw_incidents, make_events
from lookout.demo.sim.chain import ChainLayout
from lookout.demo.sim.world import World
from lookout.documents.document import Document, DocumentName
from lookout.documents.reports import history_document, live_document
from lookout.replay.replay import Replay
from lookout.state.codec import Differ
from lookout.store.sqlite import SqliteReader, SqliteWriter, open_writer
from tests.builders import DAY, HOUR, NOON
from tests.campaign.part import Outcome
from tests.system.soak.growth import describe, find_growth

_log: Final = logging.getLogger("campaign.year")
_SAMPLE_EVERY: Final = 5 * DAY


class Size(NamedTuple):
    chains: int
    recheck_s: int
    """Longer than the launch's, so that a year takes minutes; nothing that is kept depends on it."""

    @property
    def rows(self) -> int:
        return 4 * self.chains + 1


# A day of 2,101 rows takes some 6 s of a processor. The process grows for 50 days, a third of the time.
DAYS: Final = {Size(5, 120): 365, Size(525, 14_400): 150}


def run(size: Size, days: int) -> Outcome:
    command = [sys.executable, "-m", "tests.system.soak", *map(str, (size.chains, size.recheck_s, days))]
    samples = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            samples.append(json.loads(line))
            if len(samples) % 10 == 0:
                _log.info(f"{size.rows:,} rows, day {5 * len(samples)}: {describe(samples[-1])}")
    what = f"days of {size.rows:,} rows"
    if process.returncode:
        return Outcome({what: 5 * len(samples)}, (f"the {days} days of {size.rows:,} rows broke off; see above",))
    failures = tuple(f"over {days} days of {size.rows:,} rows these grew: {each}" for each in find_growth(samples))
    return Outcome({what: days}, failures)


class _Storing:
    """Stores what changed once a simulated hour, with the history once a day, and samples."""

    def __init__(self, path: Path, writer: SqliteWriter) -> None:
        self._path = path
        self._writer = writer
        self._stored_at = self._sampled_at = NOON
        self._history_at = 0
        self._differ = Differ()

    def published(self, ledger: Ledger) -> None:
        at = ledger.published_at
        if at is None or at < self._stored_at + HOUR:
            return
        self._stored_at = at
        documents: dict[DocumentName, Document] = {"live": live_document(ledger.report())}
        if at >= self._history_at + DAY:
            self._history_at = at
            documents["history"] = history_document(ledger.view())
        self._writer.write(documents, self._differ.find_changes(ledger.state()))
        self._differ.mark_stored()
        if at >= self._sampled_at + _SAMPLE_EVERY:
            self._sampled_at = at
            gc.collect()
            sample = {
                "MB": memory_mb(os.getpid()),
                "objects": len(gc.get_objects()),
                "kB stored": sum(file.stat().st_size for file in self._path.parent.iterdir()) / 1_000,
                "pieces": len(self._writer.load()),
            }
            sys.stdout.write(json.dumps(sample) + "\n")
            sys.stdout.flush()


def live(size: Size, days: int) -> None:
    """Live through it here and now; what it takes is printed, a line of JSON for every five days."""
    layout = tuple(ChainLayout(1 + number, 12_000, 25_700_000) for number in range(size.chains))
    world, end_at = World(layout, 1, NOON), NOON + days * DAY
    fortnights = range(NOON + FORTNIGHT_MS, end_at + 1, FORTNIGHT_MS)
    incidents = [each for until_at in fortnights for each in draw_incidents(world, until_at, until_at)]
    policy = f"[policy]\nrecheck_s = {size.recheck_s}\nheartbeat_s = 240\nrow_lifetime_s = {size.recheck_s + 200}\n"
    slow = f"{policy}[history]\nhold_s = 240\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lookout.db"
        writer = open_writer(path)
        storing = _Storing(path, writer)
        (Path(folder) / "lookout.toml").write_text("[server]\n" + a_config("http://127.0.0.1", size.chains) + slow)
        replay = Replay(read_config(Path(folder) / "lookout.toml").plan())
        for event in make_events(world, incidents, NOON, end_at, 1000 * size.recheck_s):
            replay.feed(event)
            storing.published(replay.ledger)
        reader = SqliteReader(path)
        history = reader.read("history")
        assert history is not None
        assert {len(row["buckets"]) for row in json.loads(history.body)["rows"]} == {4_033}
        reader.close()
        writer.close()
