"""The whole service as real processes, at a cadence of fractions of a second, on simulated upstreams with faults;
readers come and go meanwhile."""

import itertools
import json
import logging
import random
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final, NamedTuple

from bench.processes import a_process, an_upstream, children, memory_mb
from bench.serve import first_answer
from bench.upstream import HEIGHT
from bench.watch import a_config as a_large_config
from lookout.base.sockets import a_free_port
from lookout.config.file import read_config
from lookout.core.heads import PACE_WINDOW_MS, Reading
from lookout.core.ledger import Ledger
from lookout.demo.sim.server import wall_clock
from lookout.demo.sim.world import World, launch_world
from lookout.documents.reports import documents_of
from lookout.state.codec import encode_state
from lookout.store.sqlite import open_writer
from tests.campaign.part import Outcome
from tests.integration.fast import a_config as a_launch_config
from tests.system.soak.growth import Sample, describe, find_growth

_log: Final = logging.getLogger("campaign.life")
_SAMPLES: Final = 60
_START_WITHIN_S: Final = 60
_READERS: Final = 8
_LAUNCH_ROWS: Final = 21
_JITTER_S: Final = 0.2
_ENDPOINTS: Final = 3  # of each chain, in either configuration


class Size(NamedTuple):
    rows: int
    recheck_s: float
    """Less than the 15 s after which an idle connection is closed: how many are open would be chance."""

    @property
    def is_large(self) -> bool:
        return self.rows > _LAUNCH_ROWS


SIZES: Final = (Size(_LAUNCH_ROWS, 0.5), Size(2_101, 12))
_FAULTS: Final = ("refuse", "hang", "garbage", "status", "late")
_TARGETS: Final = ("ppoi", "waku", "squid/1", "hosted/56", "rpc/1/a", "rpc/137/b")


def run(size: Size, seconds: float) -> Outcome:
    """What grew while it lived, and whether it still answered at the end."""
    with tempfile.TemporaryDirectory() as name, _upstreams(size, Path(name)) as config:
        folder, port = Path(name), a_free_port()
        admin = a_free_port()
        config = config.replace("rate_limit_per_minute = 0\n", "", 1)
        config = config.replace('[admin]\nmonitor = ""', f'[admin]\nmonitor = "127.0.0.1:{admin}"', 1)
        server = f'[server]\nlisten = "127.0.0.1:{port}"\nrate_limit_per_minute = 0\n'
        (folder / "lookout.toml").write_text(config + server)
        _put_an_hour_behind_it(size, folder)
        stopped = threading.Event()
        with a_process(folder, "run", "-c", "lookout.toml") as process:
            first_answer(port, within_s=_START_WITHIN_S)
            answered = itertools.count()
            readers = [threading.Thread(target=_read, args=(port, stopped, answered)) for _ in range(_READERS)]
            for reader in readers:
                reader.start()
            samples = []
            for number in range(_SAMPLES):
                time.sleep(seconds / _SAMPLES)
                samples.append(_sample(process.pid, admin, folder))
                if number % 12 == 11:
                    minutes = (number + 1) * seconds / _SAMPLES / 60
                    _log.info(f"{size.rows:,} rows, {minutes:.0f} min: {describe(samples[-1])}")
            stopped.set()
            for reader in readers:
                reader.join()
            is_alive = process.poll() is None and _rows(port) == size.rows
    failures = [f"in the fast life of {size.rows:,} rows these grew: {each}" for each in find_growth(samples)]
    if not is_alive:
        failures.append(f"the fast life of {size.rows:,} rows ended, or lost rows")
    return Outcome({f"answers read beside {size.rows:,} rows": next(answered)}, tuple(failures))


def _put_an_hour_behind_it(size: Size, folder: Path) -> None:
    """Heads are kept for an hour, and at this pace there are many: a store that has none yet would go on growing for
    longer than this lasts."""
    settings = read_config(folder / "lookout.toml")
    ledger, now = Ledger(settings.plan()), wall_clock()
    world = None if size.is_large else launch_world(None, now)
    every_ms = round(1000 * (size.recheck_s + _JITTER_S / 2) / 2 / _ENDPOINTS)
    for at in range(now - PACE_WINDOW_MS, now, every_ms):
        for chain in settings.chains:
            ledger.read_head(chain.id, _head(world, chain.id, at))
    ledger.publish(now)
    with closing(open_writer(folder / "lookout.db")) as writer:
        writer.write(documents_of(ledger), encode_state(ledger.state()).documents)


def _head(world: World | None, chain_id: int, at: int) -> Reading:
    if world is None:
        return Reading(at, HEIGHT, at)
    return Reading(at, *world.head(chain_id, at))


def _sample(pid: int, admin: int, folder: Path) -> Sample:
    """Of the monitor, its server and all its workers together."""
    pids = [pid, *children(pid)]
    connection = HTTPConnection("127.0.0.1", admin, timeout=60)
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    connection.close()
    (tasks,) = re.findall(r"^lookout_tasks (\S+)$", metrics, flags=re.MULTILINE)
    return {
        "MB": sum(map(memory_mb, pids)),
        "files": sum(len(list(Path(f"/proc/{each}/fd").iterdir())) for each in pids),
        "threads": sum(len(list(Path(f"/proc/{each}/task").iterdir())) for each in pids),
        "tasks": float(tasks),
        "kB stored": sum(file.stat().st_size for file in folder.glob("lookout.db*")) / 1_000,
    }


def _read(port: int, stopped: threading.Event, answered: Iterator[int]) -> None:
    """A reader that connects again each time, asks for both documents, and at times goes away without listening."""
    chance = random.Random(port)
    while not stopped.wait(0.05):
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            for path in ("/api/v1/protocol/liveness", "/api/v1/protocol/liveness/history"):
                connection.request("GET", path)
                if chance.random() < 0.1:
                    break
                connection.getresponse().read()
                next(answered)
        except (OSError, HTTPException):
            continue
        finally:
            connection.close()


@contextmanager
def _upstreams(size: Size, folder: Path) -> Iterator[str]:
    """A configuration for simulated upstreams: those of the launch misbehave now and then, the many others are bare."""
    policy = f"[policy]\nrecheck_s = {size.recheck_s}\njitter_s = {_JITTER_S}\nheartbeat_s = 5\n"
    if size.is_large:
        with an_upstream((size.rows - 1) // 4) as base:
            yield a_large_config(base, (size.rows - 1) // 4) + policy
        return
    port = a_free_port()
    with a_process(folder, "sim", "--listen", f"127.0.0.1:{port}"):
        base, stopped = f"http://127.0.0.1:{port}", threading.Event()
        mischief = threading.Thread(target=_misbehave, args=(base, stopped))
        mischief.start()
        try:
            yield a_launch_config(base, recheck_s=size.recheck_s, jitter_s=_JITTER_S)
        finally:
            stopped.set()
            mischief.join()


def _misbehave(base: str, stopped: threading.Event) -> None:
    chance = random.Random(1)
    while not stopped.wait(2):
        order = {"target": chance.choice(_TARGETS), "fault": chance.choice((*_FAULTS, None))}
        connection = HTTPConnection(base.removeprefix("http://"), timeout=10)
        with suppress(OSError, HTTPException):
            connection.request("POST", "/control", json.dumps(order))
            connection.getresponse().read()  # a refusal, too: not every target can have every fault
        connection.close()


def _rows(port: int) -> int | None:
    """How many rows the live report has; None if there is none."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/api/v1/protocol/liveness")
        answer = connection.getresponse()
        return len(json.load(answer)["checks"]) if answer.status == 200 else None
    except OSError:
        return None
    finally:
        connection.close()
