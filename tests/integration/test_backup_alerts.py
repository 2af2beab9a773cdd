"""Alerts across a restore: an alert that was sent gets its end, or people hear that nobody knows of it."""

import json
from contextlib import closing
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from lookout.alerts.event import AlertPolicy
from lookout.app.backup import back_up
from lookout.config.file import read_config
from lookout.config.settings import Settings
from lookout.core.episodes import EpisodeRule, EpisodeRules
from lookout.core.model import Status
from lookout.documents.reports import documents_of
from lookout.monitor.alerts import Alerts
from lookout.monitor.metrics import Instruments
from lookout.state.codec import all_pieces
from lookout.store.sqlite import open_writer
from tests.builders import HOUR, MESSAGING, MINUTE, NOON, SECOND, a_row
from tests.integration.planted import a_fresh_ledger
from tests.unit.server.fakes import SetClock

RULE: Final = EpisodeRule("r", frozenset((MESSAGING,)), frozenset(("unavailable",)), 0, 0, ("ops",))
POLICY: Final = AlertPolicy(EpisodeRules((RULE,), 0, MINUTE), {"ops": "address"}, HOUR)
ENDED: Final = "Lookout: messaging recovered"
RESTORED: Final = "Lookout: restored from a backup"


class Monitor:
    """What a monitor does with alerts, on a real store; nobody sends them."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "lookout.db"
        stored = {}
        if self._file.exists():
            with closing(open_writer(self._file)) as writer:
                stored = writer.load()
        self._known = set(stored)
        self._alerts = Alerts(POLICY, stored, clock := SetClock(), Instruments(CollectorRegistry(), clock))
        self._alerts.start()
        self._alerts.restart()

    def publish(self, at: int, *statuses: Status) -> list[str]:
        """Publish these statuses, a second apart; the messages that this makes."""
        for n, status in enumerate(statuses):
            self._alerts.advance(at + n * SECOND, [a_row(status)])
        pieces = self._alerts.pieces()
        new = sorted(name for name in pieces if name.startswith("alerts/") and name not in self._known)
        self._known.update(new)
        self._write(at + len(statuses) * SECOND)
        return [json.loads(pieces[name])["title"] for name in new]

    def _write(self, at: int) -> None:
        ledger = a_fresh_ledger(at)
        with closing(open_writer(self._file)) as writer:
            writer.write(documents_of(ledger), all_pieces(ledger.state(), self._alerts.pieces()))


def a_place(folder: Path, alerts: str = '[alerts.targets]\nops = "json://127.0.0.1:9"\n[[alerts.rules]]\n') -> Settings:
    folder.mkdir()
    sources = '[messaging]\nurl = "http://127.0.0.1:9"\n'
    (folder / "lookout.toml").write_text(f'{sources}[admin]\nmonitor = ""\nserver = ""\n{alerts}')
    return read_config(folder / "lookout.toml")


def gone(folder: Path) -> None:
    for path in folder.glob("lookout.db*"):
        path.unlink()


def test_a_backup_that_is_moved_into_the_stores_place_says_that_it_may_lack_alerts(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    settings = a_place(folder)
    first = Monitor(folder)
    first.publish(NOON, "unavailable")
    back_up(settings, folder, folder / "out.db")
    first.publish(NOON + HOUR, "current", "unavailable")
    gone(folder)
    (folder / "out.db").rename(folder / "lookout.db")
    assert Monitor(folder).publish(NOON + 2 * HOUR, "unknown", "current", "current") == [RESTORED, ENDED]
    assert Monitor(folder).publish(NOON + 3 * HOUR, "current") == []
