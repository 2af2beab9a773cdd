"""The real ``lookout monitor``, on simulated upstreams, killed at calls that change its store, or given a full disk.

Its threads make the calls; strace counts for each thread by itself, and the first to reach the number is struck.
"""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from lookout.documents.reports import LiveReport, live_row
from lookout.state.codec import decode_state
from lookout.store.protocol import StoreError
from lookout.store.sqlite import SqliteReader, open_writer
from tests.commands import LOOKOUT, a_command, meanwhile, said
from tests.integration.fast import a_config
from tests.integration.served import a_free_port
from tests.system.crashes.kinds import Attempt, Kind
from tests.system.crashes.strace import looking_at, need_strace
from tests.system.crashes.verdict import (
    NAMES,
    Documents,
    Wrong,
    check_integrity,
    check_nothing_is_forgotten,
    read_documents,
)
from tests.system.crashes.victim import FILE
from tests.wait import until

_WITHIN_S: Final = 90.0
_CONFIG: Final = "lookout.toml"
_HISTORY: Final = "bucket_s = 2\nretention_days = 1\ncounts_from_s = 0.5\nhold_s = 5\n"


def _points() -> Iterator[str]:
    """Making the store, in every call; then going on with one that is there, up to its tenth publication or so."""
    yield from (f"new:pwrite64:{number}:KILL" for number in range(1, 31))
    yield from (f"new:fdatasync:{number}:KILL" for number in range(1, 11))
    yield from (f"new:openat:{number}:KILL" for number in range(1, 7))
    yield from (f"there:fdatasync:{number}:KILL" for number in range(1, 13))
    yield from (f"there:pwrite64:{number}:KILL" for number in (*range(1, 100, 2), *range(100, 400, 20)))
    yield from (f"there:pwrite64:{number}:ENOSPC" for number in range(20, 200, 15))


class Bench:
    """Upstreams, and a folder as a monitor that was killed left it."""

    def __init__(self, folder: Path, base: str) -> None:
        self._folder = folder
        self._config = a_config(base) + _HISTORY
        self._there = self._make("there")
        with self._monitor(self._there), closing(SqliteReader(self._there / FILE)) as reader:
            _until(lambda: len(_read(reader)) == len(NAMES), "the first publications")

    def attempt(self, point: str) -> None:
        name, call, number, harm = point.split(":")
        with tempfile.TemporaryDirectory(dir=self._folder) as where:
            folder = self._make(f"{where}/store")
            if name == "there":
                for file in self._there.glob(f"{FILE}*"):
                    shutil.copy(file, folder)
            with closing(SqliteReader(folder / FILE)) as reader:
                before = read_documents(reader) if name == "there" else {}
                if harm == "KILL":
                    seen = self._kill(folder, reader, f"{call}:signal=KILL:when={number}") or before
                    self._go_on(folder, reader, examine(folder, seen))
                else:
                    until = int(number) + 20
                    self._bear(folder, reader, before, f"{call}:error={harm}:when={number}..{until}")

    def _kill(self, folder: Path, reader: SqliteReader, inject: str) -> Documents:
        """What a server read last before the monitor was killed."""
        seen: Documents = {}
        with self._monitor(folder, inject) as process:
            until = time.monotonic() + _WITHIN_S
            while process.poll() is None:
                seen = _read(reader) or seen
                if time.monotonic() > until:
                    raise Wrong("it was not killed")
                time.sleep(0.02)
        if process.returncode != -signal.SIGKILL:
            raise Wrong(f"it was not killed: {process.returncode} {said(folder)}")
        return seen

    def _go_on(self, folder: Path, reader: SqliteReader, before: Documents) -> None:
        with self._monitor(folder) as process:
            _until(lambda: _is_newer(_read(reader), before), "a publication after it")
            _stop(process, folder)
        check_nothing_is_forgotten(before, examine(folder, before))

    def _bear(self, folder: Path, reader: SqliteReader, before: Documents, inject: str) -> None:
        """Failures are logged, and it goes on when they are over."""
        with self._monitor(folder, inject) as process:
            _until(lambda: "stored again" in said(folder), "it stores again")
            if "not stored; trying again" not in said(folder):
                raise Wrong("it did not log that it could not store")
            seen = _read(reader)
            _until(lambda: _is_newer(_read(reader), seen), "a publication after it")
            _stop(process, folder)
        check_nothing_is_forgotten(before, examine(folder, seen))

    @contextmanager
    def _monitor(self, folder: Path, inject: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
        traced = []
        if inject is not None:
            call = inject.partition(":")[0]
            # With -D the process that is started is the monitor itself, not strace.
            options = ("-D", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={inject}")
            traced = ["strace", *options, *looking_at(folder)]
        with meanwhile(folder, *traced, LOOKOUT, "monitor", "-c", _CONFIG) as process:
            yield process
        if "Traceback" in said(folder):
            raise Wrong(f"a traceback: {said(folder)[-2000:]}")

    def _make(self, name: str) -> Path:
        folder = (self._folder / name).resolve()
        folder.mkdir()
        (folder / _CONFIG).write_text(self._config)
        return folder


def examine(folder: Path, seen: Documents) -> Documents:
    """What is stored: it is whole, of one publication, and none before what a server has read."""
    path = folder / FILE
    with closing(open_writer(path)) as writer, closing(SqliteReader(path)) as reader:
        documents, pieces = read_documents(reader), writer.load()
    check_integrity(path)
    if any(name not in documents or documents[name].generated_at < seen[name].generated_at for name in seen):
        raise Wrong("what a server has read is not there any more")
    state = decode_state(pieces)
    if state is None or state.history is None:
        if documents:
            raise Wrong("there are documents, but no state")
        return documents
    live = documents["live"]
    if state.history.progress.published_at != live.generated_at:
        raise Wrong("the live report and the state are of two publications")
    stored = {(row.service, row.chain_id): row for row in msgspec.json.decode(live.body, type=LiveReport).checks}
    if any(stored[entry.row.check] != live_row(entry.row) for entry in state.checks.values()):
        raise Wrong("a stored row is not that of the live report")
    return documents


def _is_newer(now: Documents, before: Documents) -> bool:
    return len(now) == len(NAMES) and all(now[name].generated_at > before[name].generated_at for name in before)


def _read(reader: SqliteReader) -> Documents:
    """Empty while there is nothing, or nothing that can be read yet: a file that is being made."""
    try:
        return read_documents(reader)
    except StoreError:
        return {}


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.send_signal(signal.SIGTERM)
    if process.wait(_WITHIN_S) != 0:
        raise Wrong(f"it ended with {process.returncode}: {said(folder)}")


def _until(holds: Callable[[], bool], what: str) -> None:
    try:
        until(holds, what, _WITHIN_S)
    except AssertionError as error:
        raise Wrong(str(error)) from None


@contextmanager
def prepare_strikes() -> Iterator[tuple[Sequence[str], Attempt]]:
    need_strace()
    port = a_free_port()
    with (
        tempfile.TemporaryDirectory(prefix="lookout-crashes-") as name,
        a_command(folder := Path(name), "sim", "--listen", f"127.0.0.1:{port}", "--seed", "1"),
    ):
        _until(lambda: "simulated upstreams on" in said(folder), "simulated upstreams")
        yield list(_points()), Bench(folder, f"http://127.0.0.1:{port}").attempt


KINDS: Final = {"monitor": Kind("harms to the real monitor", prepare_strikes)}
