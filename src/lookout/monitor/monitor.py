"""The whole monitor: built once, run, and given other settings while it runs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.base.pieces import StateError
from lookout.config.settings import Settings
from lookout.config.tables import ChainTable, RpcEndpoint
from lookout.core.ledger import Ledger, State
from lookout.core.own_clock import describe_clock_error
from lookout.core.plan import Plan
from lookout.monitor.alerts import Alerts
from lookout.monitor.comparer import build_comparers
from lookout.monitor.journal import Journal
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.monitor.pinger import Pinger
from lookout.monitor.publisher import Publisher
from lookout.monitor.recorder import Recorder
from lookout.monitor.resources import Resources
from lookout.monitor.sources import Built, seen_by, sources_of
from lookout.monitor.timeline import Timeline
from lookout.monitor.watcher import Watcher
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.state.codec import decode_sightings, decode_state, encode_sightings
from lookout.state.coverages import decode_coverages
from lookout.store.protocol import LostStoreError

_LOOK_EVERY_S: Final = 0.5

log = get_logger("monitor")


class Parts(NamedTuple):
    """What a monitor is built of; a simulated world gives parts that report what happens, or have a bug planted."""

    ledger: Callable[[Plan, State | None], Ledger] = Ledger
    timeline: Callable[[Clock], Timeline] = Timeline
    journal: type[Journal] = Journal
    publisher: type[Publisher] = Publisher
    watcher: type[Watcher] = Watcher
    alerts: type[Alerts] = Alerts


REAL_PARTS: Final = Parts()


class Monitor:
    """Probes, judges, publishes and stores. It continues from what is stored, runs once, and may be given other
    settings meanwhile."""

    def __init__(
        self,
        settings: Settings,
        stored: Mapping[str, bytes],
        resources: Resources,
        recorder: Recorder | None = None,
        parts: Parts = REAL_PARTS,
    ) -> None:
        """StateError if what is stored cannot be read."""
        plan = settings.plan()
        self._settings = settings
        self._resources = resources
        ledger = _resume_ledger(plan, stored, parts.ledger)
        self._built = resources.build_sources(settings, decode_sightings(stored))
        self._describe_watched()
        alerts = parts.alerts(settings.alert_policy(resources.config), stored, resources)
        timeline, coverages = parts.timeline(resources.clock), decode_coverages(stored)
        self._journal = parts.journal(ledger, timeline, alerts, recorder, coverages)
        self.notices = NoticeKeeper(settings, stored, self._journal)
        self._publisher = parts.publisher(settings, self._journal, self.notices, self._encode_learned, resources)
        self._comparers = build_comparers(settings, self._built, self._journal, resources)
        self._watcher = parts.watcher(self._built, self._journal, plan.limits, resources, self._comparers)
        self._pinger = Pinger(settings, resources)

    async def run(self) -> None:
        """Run until cancelled. LostStoreError if the store is another monitor's now."""
        plan, published_at = self._settings.plan(), self._journal.ledger.published_at
        log.info("started", checks=len(plan.checks()), monitored=len(plan.monitored), resumed=published_at is not None)
        self._resources.instruments.count_tasks_of(asyncio.get_running_loop())
        self._journal.start()
        self._set_compared_lists()
        try:
            async with asyncio.TaskGroup() as tasks:
                others = (
                    tasks.create_task(self._watcher.run(), name="watch"),
                    tasks.create_task(self._watch_clock(), name="clock"),
                    tasks.create_task(self._pinger.run(), name="ping"),
                )
                publishing = tasks.create_task(self._publish(others), name="publish")
        finally:
            self.notices.stop()
            self._journal.stop()
            log.info("stopped")
        if lost := publishing.result():
            raise lost

    def apply_settings(self, new: Settings, recorder: Recorder | None) -> None:
        """Continue with other settings, and record with this recorder. Store and buckets have to be the same."""
        old, self._settings, plan = self._settings, new, new.plan()
        self._built = rebuild_sources(self._built, old, new, self._resources.build_sources)
        self._journal.replan(plan, recorder)
        self.notices.apply_settings(new)
        self._publisher.apply_settings(new)
        self._describe_watched()
        self._comparers = build_comparers(new, self._built, self._journal, self._resources, self._comparers)
        self._set_compared_lists()
        self._watcher.replan(self._built, plan.limits, self._comparers)
        self._pinger.apply_settings(new)
        policy = new.alert_policy(self._resources.config)
        if policy != old.alert_policy(self._resources.config):
            self._journal.alerts.apply_policy(policy)

    def _describe_watched(self) -> None:
        chains, own_services = self._settings.description().chains, self._settings.plan().own_services
        self._resources.instruments.describe_watched(chains, own_services, self._built)

    async def _publish(self, others: Sequence[asyncio.Task[None]]) -> LostStoreError | None:
        """Publish until the store is lost, which ends the others. That is no failure of the group: one that fails
        forgets whether it was cancelled meanwhile."""
        try:
            await self._publisher.run()
        except LostStoreError as lost:
            for other in others:
                other.cancel()
            return lost
        return None

    async def _watch_clock(self) -> None:
        """After the clock was set, ask everything again (M12). While it is wrong, the operator is to know (M17)."""
        stepped, clock, reported_ms = self._journal.timeline.stepped, self._resources.clock, 0
        while True:
            verdict_ms = self._watcher.own_clock.verdict_ms(clock.elapsed_ms())
            if verdict_ms is not None and verdict_ms * reported_ms <= 0 and verdict_ms != reported_ms:
                reported_ms = verdict_ms
                self._report_clock(verdict_ms)
            try:
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await stepped.wait()
            except TimeoutError:
                self._journal.detect_clock_step()
            if stepped.is_set():
                stepped.clear()
                self._watcher.wake()

    def _report_clock(self, error_ms: int) -> None:
        if error_ms:
            log.error("a fault of the monitor's own", error=describe_clock_error(error_ms), lacking="clock")
            self._resources.instruments.count_own_fault("clock")
        else:
            log.info("this machine's clock is right again")
        self._journal.alerts.report_clock(self._journal.now(), error_ms)

    def _set_compared_lists(self) -> None:
        self._journal.set_compared_lists({each.comparison.check: each.comparison.subject() for each in self._comparers})

    def _encode_learned(self) -> dict[str, bytes]:
        """What the sources and the comparisons have to remember (M7, S19)."""
        sightings = encode_sightings(self._resources.seen_by(self._built.sources))
        return {**sightings, **self._journal.coverages.pieces()}


def rebuild_sources(
    built: Built,
    old: Settings,
    new: Settings,
    build: Callable[[Settings, Mapping[str, SeenBroadcasters]], Built] = sources_of,
) -> Built:
    """The sources of other settings. A source whose own settings are as they were is the very same, and so are the
    endpoints of such a chain. Broadcasters that were seen stay seen; a source that listens elsewhere now asks for all
    of them again."""
    before, was, asked = (
        {source.checks: source for source in built.sources},
        old.sources_by_check(),
        new.sources_by_check(),
    )
    seen = seen_by(built.sources)
    made = build(new, {service: SeenBroadcasters(each.sightings) for service, each in seen.items()})
    sources = (
        before[source.checks] if was.get(source.checks[0]) == asked[source.checks[0]] else source
        for source in made.sources
    )
    followed = [_endpoints(chain) for chain in old.chains]
    untouched = {chain.id for chain in new.chains if _endpoints(chain) in followed}
    kept = {(endpoint.chain_id, endpoint.name): endpoint for endpoint in built.endpoints}
    endpoints = (
        kept[endpoint.chain_id, endpoint.name] if endpoint.chain_id in untouched else endpoint
        for endpoint in made.endpoints
    )
    return Built(tuple(sources), tuple(endpoints))


def _endpoints(chain: ChainTable) -> tuple[int, str, tuple[RpcEndpoint, ...]]:
    return chain.id, chain.name, chain.rpc


def _resume_ledger(plan: Plan, stored: Mapping[str, bytes], ledger: Callable[[Plan, State | None], Ledger]) -> Ledger:
    try:
        return ledger(plan, decode_state(stored))
    except StateError as error:
        raise StateError(f"the store is damaged: {error}; restore a backup, or begin a new store") from None
    except ValueError as error:
        raise StateError(f"{error}; set history.bucket_s back, or choose another file in store.url") from None
