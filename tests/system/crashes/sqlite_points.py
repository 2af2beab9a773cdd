"""The SQLite store's writer killed at every call that changes a file, and given failing calls."""

import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Final, NamedTuple

from lookout.store.sqlite import CHECKPOINT_PAGES, SqliteReader, open_writer
from tests.builders import NOON, SECOND
from tests.system.crashes.kinds import Attempt, Kind
from tests.system.crashes.story import EMPTY, MonitorLife, Stored
from tests.system.crashes.strace import CHANGING, LOOKING, Ran, count, need_strace, run_traced
from tests.system.crashes.verdict import Heard, Wrong, examine_sqlite, parse_said, read_documents
from tests.system.crashes.victim import FILE

FRAME: Final = 24 + 4096
_ALL_READS: Final = 30


class Scene(NamedTuple):
    """Where a victim begins, and what it lives through."""

    lives: tuple[int, ...]
    is_full: bool  # a log is there, as long as it becomes, which is written back first
    is_read: bool  # by a server, from before the victim begins

    @property
    def arguments(self) -> list[str]:
        return [f"--life={life}" for life in self.lives]


SCENES: Final = {
    "new": Scene((0, 1), is_full=False, is_read=False),
    "full": Scene((1,), is_full=True, is_read=False),
    "read": Scene((1,), is_full=True, is_read=True),
}


class Place(NamedTuple):
    """A folder with a store for one victim."""

    folder: Path
    before: Stored
    readers: tuple[SqliteReader, ...]

    @property
    def path(self) -> Path:
        return self.folder / FILE


class Bench:
    """Makes places, all alike, and finds the points."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def place(self, scene: Scene) -> Iterator[Place]:
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name).resolve() / "store"
            before = EMPTY
            if scene.is_full:
                full, before = self._full
                shutil.copytree(full, folder)
            else:
                folder.mkdir()
            with closing(SqliteReader(folder / FILE)) as reader:
                if scene.is_read:
                    read_documents(reader)
                yield Place(folder, before, (reader,) if scene.is_read else ())

    @cached_property
    def _full(self) -> tuple[Path, Stored]:
        folder = self._folder / "full"
        folder.mkdir()
        return folder, fill_the_log(folder)

    def count_calls(self, scene: Scene, calls: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Each call that a victim makes, by its name and number."""
        with self.place(scene) as place:
            for call, times in sorted(count(place.folder, calls, scene.arguments).items()):
                yield from ((call, number) for number in range(1, times + 1))

    def traced(self, place: Place, scene: Scene, call: str, harm: str) -> tuple[Ran, Heard]:
        inject = ("-e", f"trace={call}", "-e", f"inject={call}:{harm}")
        ran = run_traced(place.folder, scene.arguments, *inject)
        return ran, parse_said(ran.said)


def fill_the_log(folder: Path) -> Stored:
    """A store as a monitor that was killed leaves it, its log nearly as long as it may become."""
    with tempfile.TemporaryDirectory() as elsewhere:
        path, stored, number = Path(elsewhere) / FILE, EMPTY, 0
        log = path.with_name(f"{FILE}-wal")
        with closing(open_writer(path)) as writer:
            monitor = MonitorLife({})
            monitor.start(NOON)
            longest = 0
            while not log.exists() or log.stat().st_size + longest < CHECKPOINT_PAGES * FRAME:
                before = log.stat().st_size if log.exists() else 0
                publication = monitor.publication(number, NOON + 30 * SECOND * number)
                writer.write(*publication)
                monitor.stored()
                stored, number = stored.after(publication), number + 1
                longest = max(longest, log.stat().st_size - before)
            for file in (path, log):
                shutil.copy(file, folder)
    return stored


@contextmanager
def prepare_kills() -> Iterator[tuple[Sequence[str], Attempt]]:
    need_strace()
    with _bench() as bench:
        points = [
            f"{name}:{call}:{i}" for name, scene in SCENES.items() for call, i in bench.count_calls(scene, CHANGING)
        ]
        yield points, partial(_kill, bench)


@contextmanager
def prepare_failures() -> Iterator[tuple[Sequence[str], Attempt]]:
    need_strace()
    with _bench() as bench:
        points = []
        for name in ("new", "full"):
            for call, number in bench.count_calls(SCENES[name], (*CHANGING, *LOOKING)):
                if call == "pread64" and number > _ALL_READS and number % _ALL_READS:
                    continue  # a long log is read frame by frame
                is_change = f"?{call}" in CHANGING or call in CHANGING
                harms = ("EIO", "ENOSPC", "ENOSPC*20") if is_change else ("EIO",)
                points += [f"{name}:{call}:{number}:{harm}" for harm in harms]
        yield points, partial(_fail, bench)


def _kill(bench: Bench, point: str) -> None:
    name, call, number = point.split(":")
    scene = SCENES[name]
    with bench.place(scene) as place:
        ran, victim = bench.traced(place, scene, call, f"signal=KILL:when={number}")
        if ran.code != -signal.SIGKILL or victim.ended:
            raise Wrong(f"it was not killed: {ran.code} {ran.complained}")
        before = place.before.mark
        examine_sqlite(place.path, victim.may_be(before), before if place.before == EMPTY else "", place.readers)


def _fail(bench: Bench, point: str) -> None:
    """A failure is reported in a sentence, and whatever it was, the next publication stores everything."""
    name, call, number, harm = point.split(":")
    error, _, times = harm.partition("*")
    until = f"..{int(number) + int(times)}" if times else ""
    scene = SCENES[name]
    with bench.place(scene) as place:
        ran, victim = bench.traced(place, scene, call, f"error={error}:when={number}{until}")
        if ran.code or ran.complained or not victim.ended:
            raise Wrong(f"the monitor ended: {ran.code} {ran.complained.strip()[-600:]} {victim.complaints}")
        for complaint in victim.complaints:
            if f"{place.path}" not in complaint:
                raise Wrong(f"a failure is reported without naming the store: {complaint}")
        examine_sqlite(place.path, {victim.stored or ""}, "", place.readers)


@contextmanager
def _bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="lookout-crashes-") as folder:
        yield Bench(Path(folder))


KINDS: Final = {
    "sqlite-kill": Kind("kills of the SQLite writer", prepare_kills),
    "sqlite-fail": Kind("failing system calls", prepare_failures),
}
