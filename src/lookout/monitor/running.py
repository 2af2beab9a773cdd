"""The whole monitor: started, watched for jumps of the clock, and stopped."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from lookout.clock import Clock
from lookout.core.ledger import Ledger
from lookout.core.pieces import StateError, decode_state
from lookout.core.plan import Plan
from lookout.monitor.instruments import Instruments
from lookout.monitor.publishing import Publisher
from lookout.monitor.recording import Recorder
from lookout.monitor.watching import Watcher
from lookout.settings import Settings
from lookout.sources.building import seen_by, sources_of
from lookout.sources.fetching import open_session
from lookout.sources.sightings import NOTHING_SEEN, Seen
from lookout.sources.source import Source
from lookout.store.protocol import LostStoreError, Writer

_LOOK_EVERY_S: Final = 0.5
_SEEN: Final = "source/broadcasters"

log = structlog.get_logger("monitor")


async def run_monitor(
    settings: Settings,
    writer: Writer,
    clock: Clock,
    chance: Random,
    recorder: Recorder | None = None,
    instruments: Instruments | None = None,
) -> None:
    """Probe, judge, publish and store until cancelled. StateError if what is stored cannot be read, LostStoreError if
    the store is another monitor's now."""
    plan = settings.plan()
    instruments = instruments or Instruments(CollectorRegistry(), clock)
    stored = writer.load()
    ledger = _resumed(plan, stored)
    built = sources_of(settings, _seen(stored))
    publisher = Publisher(
        ledger,
        writer,
        clock,
        plan.limits,
        round(settings.history.write_every_s * 1000),
        _changed_pieces(built.sources),
        recorder,
        instruments,
    )
    async with open_session(settings.policy.probe_timeout_s) as session:
        watcher = Watcher(built.sources, built.endpoints, publisher, session, clock, plan.limits, chance, instruments)
        publisher.start()
        log.info("started", checks=len(plan.checks()), monitored=len(plan.monitored), resumed=bool(stored))
        lost: LostStoreError | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(publisher.run(), name="publish")
                tasks.create_task(watcher.run(), name="watch")
                tasks.create_task(_watch_the_clock(publisher, watcher), name="clock")
        except* LostStoreError as losses:
            lost = next(each for each in losses.exceptions if isinstance(each, LostStoreError))
        finally:
            publisher.stop()
            log.info("stopped")
        if lost is not None:
            raise lost


async def _watch_the_clock(publisher: Publisher, watcher: Watcher) -> None:
    """After the clock was set, ask everything anew (M12)."""
    while True:
        try:
            async with asyncio.timeout(_LOOK_EVERY_S):
                await publisher.clock_was_set.wait()
        except TimeoutError:
            publisher.look_at_the_clock()
        if publisher.clock_was_set.is_set():
            publisher.clock_was_set.clear()
            watcher.wake()


def _resumed(plan: Plan, stored: dict[str, bytes]) -> Ledger:
    try:
        return Ledger(plan, decode_state(stored))
    except ValueError as error:
        raise StateError(f"{error}; set history.bucket_s back, or choose another file in store.url") from None


def _seen(stored: dict[str, bytes]) -> Seen:
    try:
        return msgspec.json.decode(stored[_SEEN], type=Seen) if _SEEN in stored else NOTHING_SEEN
    except msgspec.DecodeError as error:
        raise StateError(f"the stored piece {_SEEN} cannot be read: {error}") from None


def _changed_pieces(sources: Sequence[Source]) -> Callable[[], dict[str, bytes]]:
    """What the sources have to remember (M7), whenever it is not what it was the last time."""
    last = b""

    def changed() -> dict[str, bytes]:
        nonlocal last
        before, last = last, msgspec.json.encode(seen_by(sources))
        return {} if last == before else {_SEEN: last}

    return changed
