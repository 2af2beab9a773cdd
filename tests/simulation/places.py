"""Several places that ask the same services, one of them faulty: the monitor that combines them is the real one, its
witnesses are real ledgers behind real reports. Everything is on virtual time."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from itertools import accumulate
from random import Random
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from prometheus_client import CollectorRegistry

from lookout.config.tables import HistoryTable
from lookout.core.ledger import Ledger, State
from lookout.core.model import Check, Failed, Found, Indexes, Members, Observation, Report, Row, unmonitored
from lookout.core.plan import Plan
from lookout.documents.document import Document
from lookout.documents.reports import live_document
from lookout.features.feature import Feature
from lookout.features.witnesses.settings import WitnessTable
from lookout.features.witnesses.witnesses import Witnesses
from lookout.monitor.assembly import build_monitor
from lookout.protocols.client.connection import RawAnswer
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import Session
from lookout.protocols.source import Now
from tests.builders import BROADCASTERS, LAUNCH, NOON, PPOI, a_plan
from tests.simulation.silence import without_logs
from tests.simulation.worlds.clock import VirtualClock
from tests.simulation.worlds.loop import Process, VirtualLoop
from tests.unit.running_monitor import InLine, KeptInMemory, given, given_settings

CHECKS: Final = (PPOI, BROADCASTERS)
PLAN: Final = a_plan(*CHECKS)
LASTS_MS: Final = 360_000
SLACK_MS: Final = 2_500  # honest places' clocks differ by so much
HEARTBEAT_MS: Final = 29_000
Kind = Literal[
    "none",
    "cut off",  # its probes fail; its report can be read
    "isolated",  # of the monitor: it reaches neither services nor witnesses
    "dead",  # it answers no more from some time on
    "liar",  # says anything at all
    "eternal green",
    "flapping",  # another status with each reading
    "partition",  # cannot be read now and then
    "past",  # gives old reports again
    "clock",  # is wrong by much
    "false unmonitored",  # denies now and then that it watches a row
]
OF_OUR_OWN: Final[tuple[Kind, ...]] = ("none", "cut off", "isolated")
OF_WITNESSES: Final[tuple[Kind, ...]] = tuple(kind for kind in get_args(Kind) if kind != "isolated")
BEST_FIRST: Final = ("current", "catching-up", "degraded", "unavailable")


class Lived(NamedTuple):
    publications: int
    statuses: frozenset[str]
    problem: str = ""


class BrokenRuleError(AssertionError):
    """A rule was broken."""


class Truth:
    """What a check's service answers to everybody, over time."""

    def __init__(self, check: Check, chance: Random) -> None:
        self._check = check
        lengths = (round(chance.expovariate(1 / 150_000)) for _ in range(40))
        self._changes = [(at_ms, chance.choice(("good", "good", "partial", "down"))) for at_ms in accumulate(lengths)]

    def ask(self, ms: int) -> Found:
        state = next((state for at_ms, state in reversed(self._changes) if at_ms <= ms), "good")
        if state == "down":
            return Failed("timeout")
        if self._check == BROADCASTERS:
            return Members(2 if state == "partial" else 3, 3)
        return Indexes(100 if state == "good" else 90, 100)


class Faulty(NamedTuple):
    place: int  # 0 is the monitor
    kind: Kind
    spans: tuple[tuple[int, int], ...]

    def acts(self, place: int, kind: Kind, ms: int) -> bool:
        return (place, kind) == (self.place, self.kind) and any(begin <= ms < end for begin, end in self.spans)


NO_FAULT: Final = Faulty(0, "none", ())


class Place:
    """A witness: a real ledger, which is brought to the present when its report is asked for."""

    def __init__(self, number: int, truths: Mapping[Check, Truth], faulty: Faulty, chance: Random) -> None:
        self.number = number
        self.ahead_ms = chance.randrange(-2_000, 2_000)
        if faulty.kind == "clock" and faulty.place == number:
            self.ahead_ms = chance.choice((-1, 1)) * round(chance.choice((20_000, 60_000, 4_000_000)))
        self.given: deque[dict[Check, Row]] = deque(maxlen=2)
        """The rows of the last reports that the monitor got, the one that it may not have read yet included."""
        self._truths, self._faulty, self._chance = truths, faulty, chance
        self._ledger = Ledger(PLAN)
        self._ledger.start(NOON + self.ahead_ms)
        self._ledger.publish(NOON + self.ahead_ms)
        self._due_ms = {check: chance.randrange(3_000) for check in truths}
        self._reports: list[Document] = []

    def report(self, ms: int) -> Document | None:
        """What the monitor gets at this time; None if nothing."""
        self._live_until(ms)
        faulty = partial(self._faulty.acts, self.number)
        if faulty("dead", ms) or faulty("partition", ms):
            return None
        report = self._ledger.report()
        self.given.append({row.check: row for row in report.rows})
        rows = list(report.rows)
        if faulty("liar", ms) or faulty("flapping", ms):
            rows = [self._lie(row, ms) for row in rows]
        elif faulty("eternal green", ms):
            rows = [self._say("current", row, ms) for row in rows]
        elif faulty("false unmonitored", ms):
            rows = [unmonitored(row.check) if self._chance.random() < 0.5 else row for row in rows]
        self._reports.append(live_document(Report(report.published_at, tuple(rows))))
        return self._chance.choice(self._reports) if faulty("past", ms) else self._reports[-1]

    def _live_until(self, ms: int) -> None:
        while (due := min(self._due_ms.items(), key=lambda item: item[1]))[1] <= ms:
            check, due_ms = due
            self._beat(due_ms)
            found = self._truths[check].ask(due_ms)
            if self._faulty.acts(self.number, "cut off", due_ms):
                found = Failed("timeout")
            at = NOON + due_ms + self.ahead_ms
            self._ledger.judge(Observation(check, at, found))
            self._ledger.publish(at)
            wait_ms = LAUNCH.wait_ms(self._ledger.failures(check), self._chance.random())
            self._due_ms[check] = due_ms + wait_ms + self._chance.randrange(50, 3_000)
        self._beat(ms)

    def _beat(self, ms: int) -> None:
        at = NOON + ms + self.ahead_ms
        if at - (self._ledger.published_at or 0) >= HEARTBEAT_MS:
            self._ledger.publish(at)

    def _lie(self, row: Row, ms: int) -> Row:
        return self._say(self._chance.choice((*BEST_FIRST, "unknown")), row, ms)

    def _say(self, status: Any, row: Row, ms: int) -> Row:
        at = NOON + ms + self.ahead_ms - self._chance.randrange(2_000)
        lasts_ms = self._chance.choice((LAUNCH.row_lifetime_ms, 10**10))
        return Row(row.check, status, "synced", at, at, None if status == "unknown" else at + lasts_ms)


@dataclass(frozen=True)
class Wire(Session):
    """Brings the reports of the witnesses to the monitor, by their hosts."""

    places: Mapping[str, Place] = field(default_factory=dict)
    faulty: Faulty = NO_FAULT
    chance: Random = field(default_factory=Random)

    async def ask(self, request: Request) -> RawAnswer:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0.02 + self.chance.random() / 5)
        place, ms = self.places[request.url.split("/")[2]], round(loop.time() * 1000)
        report = None if self.faulty.acts(0, "isolated", ms) else place.report(ms)
        if report is None:
            await asyncio.sleep(9.7)
            raise ProbeFailed("timeout")
        if report.etag == request.access.headers.get("If-None-Match"):
            raise ProbeFailed("http_status", code=304)
        date = formatdate((NOON + ms + place.ahead_ms) / 1000, usegmt=True)
        return RawAnswer(200, {b"date": date.encode(), b"etag": report.etag.encode()}, report.body)


class Asked:
    """A source of the monitor."""

    def __init__(self, check: Check, truth: Truth, faulty: Faulty, chance: Random) -> None:
        self.name, self.checks = check.name, (check,)
        self._truth, self._faulty, self._chance = truth, faulty, chance

    async def probe(self, _session: Session, _now: Now, /) -> Mapping[Check, Found]:
        await asyncio.sleep(0.05 + self._chance.random() * 2)
        ms = round(asyncio.get_running_loop().time() * 1000)
        is_cut_off = any(self._faulty.acts(0, kind, ms) for kind in OF_OUR_OWN)
        found = Failed("timeout") if is_cut_off else self._truth.ask(ms)
        return {self.checks[0]: found}


class World:
    """The monitor, its witnesses, and the rules that each publication is held against."""

    def __init__(self, seed: int) -> None:
        chance = Random(f"places/{seed}")
        number = chance.randrange(2, 6)
        place = chance.randrange(number)
        kind = chance.choice(OF_OUR_OWN if place == 0 else OF_WITNESSES)
        self.faulty = Faulty(place, kind, _draw_spans(kind, chance))
        self.truths = {check: Truth(check, Random(f"{seed}/{check}")) for check in CHECKS}
        self.places = [Place(n, self.truths, self.faulty, Random(f"{seed}/{n}")) for n in range(1, number)]
        self.chance = chance
        self.publications = 0
        self.statuses: set[str] = set()
        self.problem = ""

    def judge(self, at: int, own: Callable[[Check], Row], rows: Sequence[Row]) -> None:
        """Hold a publication of the monitor against the rules."""
        self.publications += 1
        try:
            for row in rows:
                if row.check in CHECKS:
                    self.statuses.add(row.status)
                    self._judge_row(at, row, own(row.check))
        except BrokenRuleError as broken:
            self.problem = self.problem or str(broken)

    def _judge_row(self, at: int, row: Row, own: Row) -> None:
        honest = [[own]] if self.faulty.place != 0 or own.status != "unavailable" else []
        honest += [
            [given[row.check] for given in place.given] for place in self.places if place.number != self.faulty.place
        ]
        said = f"{row} of {honest}"
        counted = [view for views in honest for view in views if _counts(view, at - SLACK_MS)]
        if row.status == "unavailable" and all(view.status != "unavailable" for view in counted):
            raise BrokenRuleError(f"cut off is not red: {said}")
        agreed = {view.status for views in honest for view in views}
        are_heard = len(honest) > 1 and all(views and _count(views, at + SLACK_MS) for views in honest)
        if are_heard and len(agreed) == 1 and row.status not in agreed:
            raise BrokenRuleError(f"what all honest places see is published: {said}")
        if row.status not in BEST_FIRST or not row.metrics.views:
            return
        if row.expires_at is None or row.expires_at <= at:
            raise BrokenRuleError(f"expiry is honest: published at {at}, {said}")
        rank = BEST_FIRST.index(row.status)
        for supporting in (
            [view for view in counted if BEST_FIRST.index(view.status) <= rank],
            [view for view in counted if BEST_FIRST.index(view.status) >= rank],
        ):
            if not supporting:
                raise BrokenRuleError(f"between honest views: {said}")
            if row.expires_at > max(view.expires_at or 0 for view in supporting) + SLACK_MS:
                raise BrokenRuleError(f"expiry is honest: {said}")


def _count(views: Sequence[Row], at: int) -> bool:
    return all(_counts(view, at) for view in views)


def _counts(view: Row, at: int) -> bool:
    return view.status in BEST_FIRST and view.expires_at is not None and view.expires_at > at


def _draw_spans(kind: Kind, chance: Random) -> tuple[tuple[int, int], ...]:
    """When the fault acts."""
    begins = sorted(chance.randrange(LASTS_MS) for _ in range(chance.randrange(1, 4)))
    if kind in ("dead", "cut off", "isolated", "clock", "eternal green"):
        return ((begins[0] // 3, LASTS_MS),)
    return tuple((begin, begin + chance.randrange(10_000, 250_000)) for begin in begins)


class _ObservedLedger(Ledger):
    def __init__(self, plan: Plan, state: State | None, world: World) -> None:
        super().__init__(plan, state)
        self._world = world

    def publish(self, at: int) -> None:
        super().publish(at)
        self._world.judge(at, self.newest_row, self.published_rows)


def live(seed: int, feature: type[Feature] = Witnesses) -> Lived:
    """Live through the world of a seed, until a rule is broken."""
    world, loop = World(seed), VirtualLoop()  # type: ignore[abstract]  # asyncio asks for a few of a loop's methods only
    process, clock = Process("monitor"), VirtualClock(loop, NOON)
    hosts = {f"{place.number}.test": place for place in world.places}
    wire = Wire(cast("Any", None), 10, places=hosts, faulty=world.faulty, chance=Random(f"{seed}/wire"))
    sources = [Asked(check, truth, world.faulty, Random(f"{seed}/{check}/0")) for check, truth in world.truths.items()]
    settings = given_settings(
        PLAN,
        sources,
        witnesses=tuple(WitnessTable(name=host, url=f"http://{host}") for host in hosts),
        history=HistoryTable(write_every_s=300),
    )
    machine = given(
        KeptInMemory(),
        clock,
        CollectorRegistry(),
        chance=Random(seed),
        open_session=lambda _: nullcontext(wire),
        store=InLine(),
        open_thread=lambda _: nullcontext(InLine()),
        features=(feature,),
        make_ledger=partial(_ObservedLedger, world=world),
    )
    with without_logs():
        try:
            asyncio._set_running_loop(loop)
            monitor = build_monitor(settings, {}, machine)
            loop.spawn(process, monitor.run(), "monitor")
            loop.run_until(LASTS_MS)
            problem = world.problem  # what comes after the end is not judged
        finally:
            loop.bury([process])
            asyncio._set_running_loop(None)
    where = f"seed {seed}, {world.faulty} of {len(world.places) + 1} places: "
    return Lived(world.publications, frozenset(world.statuses), problem and where + problem)
