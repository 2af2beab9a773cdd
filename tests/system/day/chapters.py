"""The chapters of an operator's worst day, in order."""

import os
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from tests.integration.small_disks import REFUSED, fill
from tests.system.day.diary import Life
from tests.system.day.mishaps import MISSING_LIST, ONE_BY_ONE, OUTLIVING, UNSTORED, slow
from tests.system.day.readers import flood_place
from tests.system.day.script import HOUR_S, Script, log
from tests.system.day.stage import FLOODED
from tests.system.day.wall import LIBFAKETIME

_CALLERS: Final = 4


def healthy(day: Script) -> None:
    """Nothing is wrong."""
    began_at = day.stage.wall.now()
    for name in ("a", "b"):
        day.stage.start(name)
    took_s = day.until_all_is_well(began_at, "all rows are current")
    day.diary.lives.append(Life(began_at, day.stage.wall.now()))
    log.info(f"all rows are current {took_s:.1f} s after the start")
    day.until_someone_stands_by()
    day.until_the_next_bucket()


def upstreams(day: Script) -> None:
    """One after the other fails, some for longer than the chapter."""
    day.start_mishap(MISSING_LIST, 2.5 * day.scale.bucket_s)  # a whole bucket, and no end in a takeover
    for mishap in (*slow(day.scale), *ONE_BY_ONE):
        day.start_mishap(mishap, day.scale.lasting_s)
        time.sleep(day.scale.apart_s)
    time.sleep(day.scale.settle_s + day.scale.lasting_s)
    day.start_mishap(OUTLIVING, 3 * day.scale.bucket_s)
    day.until_the_next_bucket()


def full_disk(day: Script) -> None:
    """Nothing can be stored; what happens upstream meanwhile is published when it can be."""
    disk, stage, newest = day.stage.disk, day.stage, day.judge.newest
    if disk is None:
        log.info("left out: a disk that fills up, which needs the right to mount a small one (root)")
        return
    _configure(day, "SET autovacuum = off", "SET checkpoint_timeout = '1h'")  # one makes room, and one needs some
    writer = stage.writing()
    before = stage.said(writer).count(REFUSED)

    def is_refused() -> bool:
        fill(disk)
        return stage.said(writer).count(REFUSED) > before

    stage.until(is_refused, "a full disk refuses what is written")
    time.sleep(2)  # until the servers have looked
    stuck = dict(newest)
    day.start_mishap(UNSTORED, day.scale.lasting_s)
    until = time.monotonic() + day.scale.settle_s + day.scale.lasting_s + 1
    while time.monotonic() < until:
        fill(disk)
        time.sleep(0.2)
    if {server: newest[server] for server in day.servers} != {server: stuck[server] for server in day.servers}:
        day.judge.fail("something was published on a full disk")
    (disk / "ballast").unlink()
    took_s = day.until_published(stuck, "what was published after the disk was freed")
    log.info(f"all servers are up to date {took_s:.1f} s after the disk was freed")
    _configure(day, "RESET autovacuum", "RESET checkpoint_timeout")
    if stage.writing() != writer:
        day.judge.fail("another monitor writes after the disk was full")
    day.until_the_next_bucket()


def _configure(day: Script, *changes: str) -> None:
    for change in changes:
        day.stage.postgres.ask("postgres", f"ALTER SYSTEM {change}")
    day.stage.postgres.ask("postgres", "SELECT pg_reload_conf()")
    day.stage.postgres.ask("postgres", "CHECKPOINT")


def kill(day: Script) -> None:
    """The writer is killed while an upstream fails: the one that takes over goes on counting failures."""
    killed = day.stage.writing()
    day.harm("kill -9 of the writer", day.stage.monitors[killed].kill)
    day.stage.start(killed)


def freeze(day: Script) -> None:
    """The writer is frozen, overtaken and thawed."""
    day.until_someone_stands_by()
    frozen = day.stage.writing()
    pid = day.stage.monitors[frozen].pid
    day.harm("the writer is frozen", lambda: os.kill(pid, signal.SIGSTOP))
    epoch = day.stage.writers()[-1].epoch
    time.sleep(day.scale.pause_s)
    os.kill(pid, signal.SIGCONT)
    day.stage.until(lambda: day.stage.stands_by(frozen), "the thawed one stands by")
    if day.stage.writers()[-1].epoch != epoch:
        day.judge.fail("the thawed writer took the store")
    day.until_the_next_bucket()


def restart(day: Script) -> None:
    """PostgreSQL is away for a while."""

    def stop_and_start() -> None:
        day.stage.postgres.stop()
        time.sleep(day.scale.pause_s)
        day.stage.postgres.start()

    day.harm("PostgreSQL is stopped and started", stop_and_start, to_the_writer=False)
    day.until_someone_stands_by()


def crash(day: Script) -> None:
    """PostgreSQL ends all sessions and recovers, as it does when one of its processes is killed."""
    ((pid,),) = day.stage.ask(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'lookout monitor' ORDER BY backend_start LIMIT 1"
    )
    day.harm("PostgreSQL crashes", lambda: os.kill(pid, signal.SIGKILL), to_the_writer=False)
    day.until_someone_stands_by()


def flood(day: Script) -> None:
    """One server is flooded; readers there or elsewhere do not notice."""
    codes, wrong = flood_place(day.stage.places[FLOODED], day.scale.limit, _CALLERS, day.scale.pause_s)
    for each in wrong:
        day.judge.fail(each)
    day.tried["requests of the flood"] = codes.total()
    log.info(f"the flood of {_CALLERS} callers: " + ", ".join(f"{n:,} times {code}" for code, n in codes.items()))


def clock(day: Script) -> None:
    """It is set an hour forward, and back."""
    if LIBFAKETIME is None:
        log.info("left out: a clock that is set, which needs libfaketime; on Debian: faketime")
        return
    day.until_cleared()
    day.until_the_next_bucket()
    time.sleep(day.scale.pause_s)
    day.set_clock(HOUR_S)
    time.sleep(day.scale.pause_s)
    day.compare_histories()
    day.end()
    day.set_clock(0)
    time.sleep(day.scale.pause_s)


def aftermath(day: Script) -> None:
    """The history shows exactly what happened, and there never were two writers."""
    day.until_cleared()
    day.compare_histories()
    wanted = set("ckdu?.-" if LIBFAKETIME else "ckdu?.")
    if not wanted <= day.exact:
        day.judge.fail(f"nowhere was it certain that a bucket had to be {' or '.join(sorted(wanted - day.exact))}")
    writers = day.stage.writers()
    wrote = [writer for writer in writers if writer.last_write_at is not None]
    for one, other in pairwise(wrote):
        assert one.last_write_at is not None
        if one.last_write_at >= other.taken_at:
            day.judge.fail(f"two writers at a time: {one} and {other}")
    day.tried["epochs"] = len(wrote)


CHAPTERS: Final[dict[str, Callable[[Script], None]]] = {
    "all is well": healthy,
    "upstreams fail": upstreams,
    "the database's disk is full": full_disk,
    "the writer is killed": kill,
    "a flood": flood,
    "the writer is frozen": freeze,
    "PostgreSQL restarts": restart,
    "PostgreSQL crashes": crash,
    "the clock is set": clock,
    "afterwards": aftermath,
}
