"""Rules about when the monitor asks and publishes, what it takes for a head, and what it remembers."""

from collections import defaultdict
from typing import Final, NamedTuple

from lookout.core.heads import Reading
from lookout.core.ledger import State
from lookout.core.model import Blocks, Check
from lookout.state.codec import decode_state
from lookout.state.errors import StateError
from tests.simulation.worlds import scene as s
from tests.simulation.worlds.rules import Rule
from tests.simulation.worlds.upstreams import SIGHTINGS, sources_in

_JITTER_MS: Final = 3_000
_TIMEOUT_MS: Final = 10_000
_SLACK_MS: Final = 50
_LAST_SEND_MS: Final = 5_000
_PATIENCE_MS: Final = 2_000  # how long alerts wait for a write
_WAITS_MS: Final = (30_000, 30_000, 60_000, 120_000)  # after so many failures in a row


class _Probe(NamedTuple):
    asked_ms: int
    ended_ms: int | None = None
    failures: int = 0
    bug: bool = False
    may_be_refused: bool = False  # by a monitor that suspects its own clock


class AsksOnTime(Rule):
    """Each source is asked again after its own wait and no other, whatever happens to the others."""

    clauses = ("M1", "M2", "M3", "M6", "M11", "M12")

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], _Probe] = {}
        self._asked_since_it_began: set[tuple[int, str]] = set()
        self._since_ms: dict[tuple[int, str], int] = {}  # when a reload brought it

    def reloaded(self, event: s.Reloaded) -> None:
        for source in find_replaced_sources(self.scene, event):
            key = event.life.serial, source
            self._last.pop(key, None)
            self._asked_since_it_began.discard(key)
            self._since_ms[key] = self.scene.ms

    def started(self, event: s.Started) -> None:
        self._asked_since_it_began = {key for key in self._asked_since_it_began if key[0] != event.life.serial}

    def asked(self, event: s.Asked) -> None:
        key, now_ms = (event.life.serial, event.source), self.scene.ms
        began_ms, last = max(event.life.began_ms or 0, self._since_ms.get(key, 0)), self._last.get(key)
        is_first = key not in self._asked_since_it_began
        self._asked_since_it_began.add(key)
        if last is None or last.ended_ms is None or is_first:
            ready_ms = began_ms if last is None or last.ended_ms is None else max(began_ms, last.ended_ms)
            if now_ms > ready_ms + _JITTER_MS + _SLACK_MS:
                self.broken(f"{event.source} was first asked {now_ms - began_ms} ms after the beginning")
            failures = self._find_stored_failures(event)
        else:
            failures = last.failures
            expected_ms = _WAITS_MS[0] if last.bug else _WAITS_MS[min(failures, 3)]
            waits_ms = _WAITS_MS if last.may_be_refused else (expected_ms,)
            waited_ms = now_ms - last.ended_ms
            if not any(least_ms - 1 <= waited_ms <= least_ms + _JITTER_MS + _SLACK_MS for least_ms in waits_ms):
                self.broken(
                    f"{event.source} was asked {waited_ms} ms after its last answer, {failures} failures in a row"
                )
        self._last[key] = _Probe(now_ms, None, failures)

    def _find_stored_failures(self, event: s.Asked) -> int:
        """How often it had failed in a row before the start (M7)."""
        lines = [
            event.life.memory.get(check) for check in sources_in(self.scene, event.life.plan).get(event.source, ())
        ]
        return min((0 if line is None else max(past.failures for past in line.pasts) for line in lines), default=0)

    def answered(self, event: s.Answered) -> None:
        key, now_ms = (event.life.serial, event.source), self.scene.ms
        asked_ms, _, failures, *_ = self._last[key]
        if now_ms - asked_ms > _TIMEOUT_MS + _SLACK_MS:
            self.broken(f"a probe of {event.source} lasted {now_ms - asked_ms} ms")
        bug = event.found is None or any(check not in event.checks for check in event.found)
        failures = failures if bug else failures + 1 if event.failed else 0
        may_be_refused = event.life.may_suspect_its_clock and event.source.startswith("broadcasters")
        # Of a source that leaves out a check, which failed or not before, the checks do not fail together.
        may_be_refused = may_be_refused or (event.found is not None and not set(event.checks) <= set(event.found))
        self._last[key] = _Probe(asked_ms, now_ms, failures, bug, may_be_refused)

    def judged(self, event: s.Judged) -> None:
        """A position may wait for a head to be compared with; only then the probe is over."""
        check = event.seen.row.check
        key = event.life.serial, f"{check.service}/{check.chain_id}"
        if key in self._last:
            self._last[key] = self._last[key]._replace(ended_ms=self.scene.ms)

    def concluded(self, _event: s.Concluded) -> None:
        for life in find_living(self.scene):
            for (serial, source), probe in self._last.items():
                idle_ms = self.scene.ms - (probe.ended_ms or probe.asked_ms)
                if serial == life.serial and idle_ms > _WAITS_MS[-1] + _JITTER_MS + _SLACK_MS:
                    self.broken(f"{source} has not been asked for {idle_ms} ms")


class PublishesOnTime(Rule):
    """At most two publications a second, at least one in a heartbeat, and what is new, or was sent to people, within a
    second. During a write there are none but those for alerts, which wait 2 s for the store each time."""

    clauses = ("M5", "M17")

    def __init__(self) -> None:
        self._last_ms: dict[int, int] = {}
        self._for_alerts_ms: dict[int, int] = {}  # the last one of any kind
        self._unpublished_ms: dict[int, int] = {}
        self._reloaded_ms: dict[int, int] = {}

    def judged(self, event: s.Judged) -> None:
        self._unpublished_ms.setdefault(event.life.serial, self.scene.ms)

    def reloaded(self, event: s.Reloaded) -> None:
        self._reloaded_ms[event.life.serial] = self.scene.ms
        self._unpublished_ms.setdefault(event.life.serial, self.scene.ms)

    def heard(self, event: s.Heard) -> None:
        if event.accepted:
            self._unpublished_ms.setdefault(event.life.serial, self.scene.ms)

    def published(self, event: s.Published) -> None:
        life, now_ms = event.life, self.scene.ms
        self._hold_alerts(life, now_ms)
        if life.writing_since_ms is not None:
            return  # for alerts alone: what is new waits for the store
        self._hold(life, now_ms)
        last_ms = self._last_ms.get(life.serial)
        if last_ms is not None and now_ms - last_ms < 499 and not life.stopping:
            self.broken(f"published {now_ms - last_ms} ms after the last time")
        self._last_ms[life.serial] = now_ms
        self._unpublished_ms.pop(life.serial, None)

    def _hold_alerts(self, life: s.Life, now_ms: int) -> None:
        """They go on during a write, and no faster than they should."""
        before_ms, self._for_alerts_ms[life.serial] = self._for_alerts_ms.get(life.serial, 0), now_ms
        if before_ms <= self._reloaded_ms.get(life.serial, 0) or life.stopping:
            return
        until_ms = now_ms if life.writing_since_ms is not None else life.wrote_ms
        if until_ms - before_ms > _PATIENCE_MS + _SLACK_MS:
            self.broken(f"alerts waited {until_ms - before_ms} ms for the store")
        if life.writing_since_ms is not None and now_ms - before_ms < _PATIENCE_MS:
            self.broken(f"published {now_ms - before_ms} ms after the last time, during a write")

    def concluded(self, _event: s.Concluded) -> None:
        for life in find_living(self.scene):
            # One that lost the store publishes nothing more, but waits for the message that it is sending.
            is_ending = life.lost_ms is not None and self.scene.ms - life.lost_ms <= _LAST_SEND_MS + _SLACK_MS
            if life.writing_since_ms is None and not is_ending:
                self._hold(life, self.scene.ms)

    def _hold(self, life: s.Life, now_ms: int) -> None:
        last_ms = self._last_ms.get(life.serial)
        if last_ms is None or life.stopping:  # the last publication does not wait for the one that is being stored
            return
        reloaded_ms = self._reloaded_ms.get(life.serial, 0)
        if now_ms > max(last_ms + life.plan.limits.heartbeat_ms, life.wrote_ms + _SLACK_MS, reloaded_ms + 1_000):
            self.broken(f"nothing was published for {now_ms - last_ms} ms")
        changed_ms = self._unpublished_ms.get(life.serial, now_ms)
        if now_ms > max(changed_ms, life.wrote_ms) + 1_000:
            self.broken(f"what is new waited {now_ms - changed_ms} ms")


class StoresTheHistory(Rule):
    """A history a minute is stored, while the store works."""

    clauses = ("H14",)

    def __init__(self) -> None:
        self._since_ms: dict[int, int] = {}  # when the last one was stored, or its writer heard so
        self._with_history = False

    def written(self, event: s.Written) -> None:
        since_ms = self._since_ms.get(event.life.serial, event.publication.ms)
        self._with_history = "history" in event.documents
        if not self._with_history and event.publication.ms - since_ms > 60_000 + 30_000:
            self.broken(f"no history was published for {event.publication.ms - since_ms} ms")
        if self._with_history:  # also if its writer never hears of it, since it was asked to end meanwhile
            self._since_ms[event.life.serial] = self.scene.ms

    def stored(self, event: s.Stored) -> None:
        if self._with_history or not event.ok:
            self._since_ms[event.life.serial] = self.scene.ms


class AgreesOnHeads(Rule):
    """The head is an answer of the last minute that no single endpoint could have chosen; and while all endpoints are
    as they should be, there is one."""

    clauses = ("M8",)

    def __init__(self) -> None:
        self._answers: dict[tuple[int, int], dict[int, tuple[int, Reading]]] = defaultdict(dict)
        self._heard: dict[tuple[int, int], set[int]] = defaultdict(set)
        self._since_ms: dict[tuple[int, int], int] = {}

    def head_answered(self, event: s.HeadAnswered) -> None:
        key, reading = (event.life.serial, event.chain_id), event.reading
        if event.asked_ms < max(event.life.began_ms or 0, self._since_ms.get(key, 0)):
            return
        self._heard[key].add(event.number)
        if event.is_wrong_chain:
            self._answers[key].pop(event.number, None)
        elif reading is not None and reading.block_at - reading.at <= 60_000:
            self._answers[key][event.number] = self.scene.ms, reading

    def started(self, event: s.Started) -> None:
        for kept in (self._answers, self._heard, self._since_ms):
            for key in [key for key in kept if key[0] == event.life.serial]:
                del kept[key]

    def reloaded(self, event: s.Reloaded) -> None:
        for chain_id in event.before.chains.keys() ^ event.life.plan.chains.keys():
            key = event.life.serial, chain_id
            self._answers.pop(key, None)
            self._heard.pop(key, None)
            self._since_ms[key] = self.scene.ms

    def agreed(self, event: s.Agreed) -> None:
        key = event.life.serial, event.chain_id
        (endpoints,) = (chain.endpoints for chain in self.scene.sim.layout if chain.chain_id == event.chain_id)
        since_ms = max(event.life.began_ms or 0, self._since_ms.get(key, 0))
        if len(self._heard[key]) < endpoints and self.scene.ms - since_ms < _TIMEOUT_MS - _SLACK_MS:
            self.broken(f"a head of {event.chain_id} was taken when only {self._heard[key]} had been heard")
        answers = self._answers[key].values()
        if any(54_000 < self.scene.ms - ms < 66_000 for ms, _ in answers):
            return  # too near to a minute to say: a clock may be slewed
        eligible = [reading for ms, reading in answers if self.scene.ms - ms <= 60_000]
        if event.reading.height not in self._possible(event.chain_id, eligible):
            heights = [reading.height for reading in eligible]
            self.broken(f"took {event.reading.height} for the head of {event.chain_id} when {heights} was said")
        if not any(
            abs(event.reading.at - each.at) <= 5_000 for each in eligible if each.height == event.reading.height
        ):
            self.broken(f"the head of {event.chain_id} is not of the instant of its own answer")

    def _possible(self, chain_id: int, eligible: list[Reading]) -> set[int]:
        """The heights that can be the head. What is near is not asked for exactly: the pace is another rule's."""
        heights = sorted((reading.height for reading in eligible), reverse=True)
        (chain,) = (each for each in self.scene.script.layout if each.chain_id == chain_id)
        if chain.endpoints > 2:
            return set(heights[1:2])
        if len(eligible) < 2 or heights[0] - heights[1] <= 10:
            return set(heights[-1:])
        earlier, later = sorted(eligible, key=lambda reading: reading.block_at)
        synced = {later.height} if later.block_at - earlier.block_at > 600_000 else set()
        is_far = (heights[0] - heights[1]) * chain.block_ms > 4 * 600_000
        # One of two that was alone for a while may have lied, and bent the pace by which far is measured.
        return synced if is_far and not self.scene.lies(chain_id) else {*synced, heights[-1]}

    def judged(self, event: s.Judged) -> None:
        chain_id, now_ms = event.seen.row.check.chain_id, self.scene.ms
        began_ms = event.life.began_ms
        if event.seen.row.reason != "incompatible-reference" or not isinstance(event.seen.observation.found, Blocks):
            return
        since_ms = max(began_ms or 0, self._since_ms.get((event.life.serial, chain_id or 0), 0))
        troubled = ("bug", "reload", "without", "clock", "slew")
        if now_ms - since_ms < 90_000 or any(fault.kind in troubled for fault in self.scene.script.faults):
            return
        from_at, until_at = self.scene.true_at(now_ms - 90_000), self.scene.true_at()
        if not any(
            f"{fault.target}/".startswith(f"rpc/{chain_id}/") and fault.begin_at < until_at and fault.end_at > from_at
            for fault in self.scene.sim.planned
        ):
            self.broken(f"{event.seen.row.check} was compared with no head, though all endpoints answer")


class EndsOnlyWhenAsked(Rule):
    """A monitor that lost the store stands by; only who is asked to stop does."""

    clauses = ("M14",)

    def ended(self, event: s.Ended) -> None:
        if event.how == "stopped" and not event.life.stopping:
            self.broken(f"{event.life.name} stopped, though nobody had asked it to")


class FollowsThePlan(Rule):
    """What is asked, judged and published is what the settings in force name, from the reload on."""

    clauses = ("S14", "H15", "R12")

    def asked(self, event: s.Asked) -> None:
        if event.source not in sources_in(self.scene, event.life.plan):
            self.broken(f"{event.source} was asked, which is not configured")

    def agreed(self, event: s.Agreed) -> None:
        if event.chain_id not in event.life.plan.chains:
            self.broken(f"a head of {event.chain_id} was taken, which is not configured")

    def judged(self, event: s.Judged) -> None:
        if event.seen.row.check not in event.life.plan.monitored:
            self.broken(f"{event.seen.row.check} was judged, which is not configured")

    def published(self, event: s.Published) -> None:
        plan, rows = event.life.plan, event.publication.rows
        if tuple(row.check for row in rows) != plan.checks():
            self.broken(f"published were {[row.check for row in rows]}, not {plan.checks()}")
        for row in rows:
            if (row.status != "unmonitored") != (row.check in plan.monitored):
                self.broken(f"{row.check} is {row.status}")


class SurvivesBugs(Rule):
    """Every probe that dies of a bug is counted, and nothing else dies."""

    clauses = ("M11",)

    def published(self, _event: s.Published) -> None:
        # While the clock is suspected, answers of broadcasters are left out before anybody looks at them.
        may_leave_out = any(life.may_suspect_its_clock for life in self.scene.lives)
        if self.scene.bugs_counted != self.scene.bugs_made and not may_leave_out:
            self.broken(f"{self.scene.bugs_made} bugs, of which {self.scene.bugs_counted} were counted")


class RemembersAll(Rule):
    """A monitor goes on from exactly what was known when the stored publication was made."""

    clauses = ("M7",)

    def resumed(self, event: s.Resumed) -> None:
        publication = event.life.publication
        try:
            state, others = decode_state(event.stored)
        except StateError as error:
            self.broken(str(error))
        if publication is None:
            if state is not None:
                self.broken("there is a state, though nothing was ever stored")
            return
        if others.get(SIGHTINGS, b"") != publication.sightings:
            self.broken(f"the source's memory is {others.get(SIGHTINGS)!r}, not {publication.sightings!r}")
        if publication.state is not None and _sort_state(state) != _sort_state(publication.state):
            self.broken(f"what is stored differs: {_difference(_sort_state(state), _sort_state(publication.state))}")


class KeepsWhatItPromised(Rule):
    """A publication of which a monitor heard that it is stored is in the store."""

    clauses = ("M7",)

    def __init__(self) -> None:
        self._stored: dict[s.Life, s.Publication] = {}

    def written(self, event: s.Written) -> None:
        self._stored[event.life] = event.publication

    def stored(self, event: s.Stored) -> None:
        if event.ok and self._stored.get(event.life) is not event.life.writing:
            self.broken(f"{event.life.name} heard that something is stored which is not")


class RightAgainSoon(Rule):
    """Soon after a start, or after the clock was set, every row is of a new probe; later none is old."""

    clauses = ("M12", "M15")

    def __init__(self) -> None:
        self._judged: dict[tuple[int, Check], tuple[int, bool]] = {}
        self._excused_ms: dict[Check, int] = {}
        self._since_ms: dict[tuple[int, Check], int] = {}  # when a reload brought its source

    def reloaded(self, event: s.Reloaded) -> None:
        sources = sources_in(self.scene, event.life.plan)
        for source in find_replaced_sources(self.scene, event):
            for check in sources.get(source, ()):
                self._since_ms[event.life.serial, check] = self.scene.ms

    def judged(self, event: s.Judged) -> None:
        check = event.seen.row.check
        if check in event.life.plan.monitored:
            self._hold(event.life, check)
        self._judged[event.life.serial, check] = event.seen.ms, event.seen.row.reason == "unreachable"

    def answered(self, event: s.Answered) -> None:
        if event.found is None or set(event.found) not in ({*event.checks}, set()):
            wait_ms = 135_000 if event.failed else 45_000  # those that it did answer for may ask for patience
            self._excused_ms.update(dict.fromkeys(event.checks, self.scene.ms + wait_ms))

    def published(self, event: s.Published) -> None:
        for check in event.life.plan.monitored:
            self._hold(event.life, check)

    def _hold(self, life: s.Life, check: Check) -> None:
        now_ms = self.scene.ms
        if check.service == "broadcasters" and life.may_suspect_its_clock:
            self._excused_ms[check] = now_ms + 135_000
        began_ms = max(life.began_ms or 0, self._since_ms.get((life.serial, check), 0))
        if life.stopping or now_ms - began_ms <= 14_500 or now_ms < self._excused_ms.get(check, 0):
            return  # a monitor that stops asks nobody, and publishes once more
        judged_ms, failed = self._judged.get((life.serial, check), (-1, False))
        if judged_ms < began_ms:
            self.broken(f"{check} has no new row {now_ms - began_ms} ms after the beginning")
        if now_ms - judged_ms > (134_000 if failed else 44_000):
            self.broken(f"the row of {check} is {now_ms - judged_ms} ms old")


def find_replaced_sources(scene: s.Scene, event: s.Reloaded) -> set[str]:
    """The sources that a reload took, or brought, or gave other checks to answer for."""
    before, now = sources_in(scene, event.before), sources_in(scene, event.life.plan)
    return {source for source in {*before, *now} if before.get(source) != now.get(source)}


def find_living(scene: s.Scene) -> list[s.Life]:
    """The monitors that run and have begun; each process's last life."""
    last = {life.process: life for life in scene.lives}
    return [life for life in last.values() if not life.process.dead and not life.stopping and life.began_ms is not None]


def _sort_state(state: State | None) -> dict[str, object]:
    """By names; what was never observed is as if it had never been."""
    if state is None or state.history is None:
        return {}
    return {
        "last_answer_at": state.last_answer_at,
        "heads": {chain_id: readings for chain_id, readings in state.heads.items() if readings},
        "progress": state.history.progress,
        **{f"check {entry.row.check}": entry for entry in state.checks.values() if entry.row.observed_at is not None},
        **{f"tally {check}": tally for check, tally in state.history.tallies.items()},
        **{f"days {check}": days for check, days in state.history.days.items()},
    }


def _difference(one: dict[str, object], other: dict[str, object]) -> str:
    name = next(name for name in {**one, **other} if one.get(name) != other.get(name))
    return f"{name}: {one.get(name)} instead of {other.get(name)}"


RULES: Final = (
    AsksOnTime,
    PublishesOnTime,
    StoresTheHistory,
    AgreesOnHeads,
    EndsOnlyWhenAsked,
    FollowsThePlan,
    SurvivesBugs,
    RemembersAll,
    KeepsWhatItPromised,
    RightAgainSoon,
)
