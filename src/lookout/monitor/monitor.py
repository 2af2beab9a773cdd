"""The whole monitor: started, watched for jumps of the clock, and stopped."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

from lookout.base.clock import Clock
from lookout.config.settings import Settings
from lookout.config.tables import Chain
from lookout.core.ledger import Ledger
from lookout.core.plan import Plan
from lookout.monitor.alerts import Alerts, Telling
from lookout.monitor.metrics import Instruments
from lookout.monitor.pinger import Pinger
from lookout.monitor.publisher import Publisher
from lookout.monitor.recorder import Recorder
from lookout.monitor.sources import Built, seen_by, sources_of
from lookout.monitor.watcher import Watcher
from lookout.protocols.broadcasters.sightings import Seen
from lookout.protocols.client.session import Session, open_session
from lookout.state.codec import decode_sightings, decode_state, encode_sightings
from lookout.state.pieces import StateError
from lookout.store.protocol import LostStoreError, Writer

_LOOK_EVERY_S: Final = 0.5

# Gives the monitor other settings while it runs, and what to record with. Their store and buckets have to be the same.
Apply = Callable[[Settings, Recorder | None], None]

log = structlog.get_logger("monitor")


async def run_monitor(
    settings: Settings,
    writer: Writer,
    clock: Clock,
    chance: Random,
    recorder: Recorder | None = None,
    instruments: Instruments | None = None,
    offer: Callable[[Apply], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Probe, judge, publish and store until cancelled. StateError if what is stored cannot be read, LostStoreError if
    the store is another monitor's now. ``offer`` is entered, for as long as the monitor runs, with what gives it other
    settings."""
    plan = settings.plan()
    instruments = instruments or Instruments(CollectorRegistry(), clock)
    stored = writer.load()
    ledger = _resumed(plan, stored)
    built = sources_of(settings, decode_sightings(stored))
    alerts = Alerts(telling(settings), stored, clock, instruments)
    publisher = Publisher(
        ledger,
        writer,
        clock,
        plan.limits,
        _write_history_every_ms(settings),
        lambda: encode_sightings(seen_by(built.sources)),
        recorder,
        instruments,
        alerts=alerts,
    )
    pinger = Pinger(settings, instruments)
    instruments.count_tasks_of(asyncio.get_running_loop())
    async with open_session(settings.policy.probe_timeout_s) as session:
        watcher = Watcher(built.sources, built.endpoints, publisher, session, clock, plan.limits, chance, instruments)

        def apply(new: Settings, recorder: Recorder | None) -> None:
            nonlocal settings, built
            before, settings, built = settings, new, rebuilt(built, settings, new)
            now = Session(session.http, new.policy.probe_timeout_s)
            go_by(new, before, built, publisher, watcher, alerts, now, recorder)
            pinger.change(new)

        async def heed() -> None:
            with offer(apply):
                await asyncio.Event().wait()

        log.info("started", checks=len(plan.checks()), monitored=len(plan.monitored), resumed=bool(stored))
        await run_together(publisher, watcher, pinger.run, heed)


def go_by(
    new: Settings,
    old: Settings,
    built: Built,
    publisher: Publisher,
    watcher: Watcher,
    alerts: Alerts,
    session: Session,
    recorder: Recorder | None,
) -> None:
    """Let a monitor that runs go on by other settings, asking what was built of them."""
    plan = new.plan()
    publisher.replan(plan, _write_history_every_ms(new), recorder)
    watcher.replan(built.sources, built.endpoints, session, plan.limits)
    if telling(new) != telling(old):
        alerts.change(telling(new))


def rebuilt(built: Built, old: Settings, new: Settings, build: Callable[[Settings, Seen], Built] = sources_of) -> Built:
    """What other settings name. A source whose own settings are as they were is the very same, and so are the endpoints
    of such a chain. Broadcasters that were seen stay seen; who listens elsewhere now asks for all of them anew."""
    before, was, asked = (
        {source.checks: source for source in built.sources},
        old.sources_by_check(),
        new.sources_by_check(),
    )
    made = build(new, Seen(seen_by(built.sources).sightings))
    sources = (
        before[source.checks] if was.get(source.checks[0]) == asked[source.checks[0]] else source
        for source in made.sources
    )
    same = {_endpoints(chain) for chain in old.chains} & {_endpoints(chain) for chain in new.chains}
    untouched = {chain_id for chain_id, _, _ in same}
    kept = {(endpoint.chain_id, endpoint.name): endpoint for endpoint in built.endpoints}
    endpoints = (
        kept[endpoint.chain_id, endpoint.name] if endpoint.chain_id in untouched else endpoint
        for endpoint in made.endpoints
    )
    return Built(tuple(sources), tuple(endpoints))


def _endpoints(chain: Chain) -> tuple[int, str, tuple[str, ...]]:
    return chain.id, chain.name, chain.rpc


def _write_history_every_ms(settings: Settings) -> int:
    return round(settings.history.write_every_s * 1000)


def telling(settings: Settings) -> Telling:
    """Who is told what."""
    return Telling(settings.alert_rules(), settings.alerts.targets, round(settings.alerts.give_up_s * 1000))


async def run_together(
    publisher: Publisher, watcher: Watcher, *beside: Callable[[], Coroutine[None, None, None]]
) -> None:
    """Watch and publish, and do what is to be done beside, until cancelled. LostStoreError if the store is another
    monitor's now."""
    publisher.start()
    lost: list[LostStoreError] = []

    async def publish() -> None:
        """Not by failing: a group that fails forgets whether it was asked to end meanwhile."""
        try:
            await publisher.run()
        except LostStoreError as error:
            lost.append(error)
            for other in others:
                other.cancel()

    try:
        async with asyncio.TaskGroup() as tasks:
            others = [
                tasks.create_task(watcher.run(), name="watch"),
                tasks.create_task(_watch_the_clock(publisher, watcher), name="clock"),
                *(tasks.create_task(each()) for each in beside),
            ]
            tasks.create_task(publish(), name="publish")
    finally:
        publisher.stop()
        log.info("stopped")
    if lost:
        raise lost[0]


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
    except StateError as error:
        raise StateError(f"the store is damaged: {error}; restore a backup, or begin a new store") from None
    except ValueError as error:
        raise StateError(f"{error}; set history.bucket_s back, or choose another file in store.url") from None
