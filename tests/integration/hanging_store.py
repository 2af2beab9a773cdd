"""A program: the monitor on a store whose second write never returns, nor does closing it. Its argument is a folder."""

import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import NoReturn

from lookout.app.monitor import monitor_into
from lookout.app.process import configure_log, run_until_stopped
from lookout.app.reloader import Reloader
from lookout.base.clock import SystemClock
from lookout.config.settings import Settings
from lookout.config.tables import AdminTable, LogTable, PolicyTable
from lookout.documents.document import Document, DocumentName


class Hanging:
    def __init__(self, mark: Path) -> None:
        self._mark = mark
        self._writes = 0

    def load(self) -> dict[str, bytes]:
        return {}

    def write(self, _documents: Mapping[DocumentName, Document], _state: Mapping[str, bytes]) -> None:
        self._writes += 1
        if self._writes > 1:
            self._mark.touch()
            hang()

    def close(self) -> None:
        hang()


def hang() -> NoReturn:
    while True:
        Event().wait()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    settings = Settings(
        admin=AdminTable(monitor="", server=""), log=LogTable(format="json"), policy=PolicyTable(heartbeat_s=0.5)
    )
    configure_log(settings.log)
    run_until_stopped(
        monitor_into(Hanging(folder / "hangs"), Reloader(folder / "lookout.toml", settings, SystemClock()))
    )
