"""What everything in a world shares: the time, the truth, the script, and those who hold what happens against rules."""

import asyncio
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from lookout.config.settings import Settings, around_of
from lookout.core.heads import Reading
from lookout.core.ledger import State
from lookout.core.model import Check, Found, Observation, Row
from lookout.core.plan import Plan
from lookout.demo.sim.faults import Fault as UpstreamFault
from lookout.demo.sim.world import World as Sim
from lookout.documents.document import Document, DocumentName
from lookout.features.alerts.alerts import Alerts
from lookout.features.alerts.messages import AlertEvent
from lookout.features.alerts.settings import build_policy
from lookout_reader.poller import Update
from tests.simulation.worlds.clock import VirtualClock
from tests.simulation.worlds.loop import Process, VirtualLoop
from tests.simulation.worlds.script import ORIGIN_AT, Fault, Script

if TYPE_CHECKING:
    from tests.simulation.worlds.rules import Rule


class Broken(AssertionError):  # noqa: N818  it is what happened to the rule
    """A rule was broken: which one, what it says, when, and how."""

    def __init__(self, rule: str, clauses: tuple[str, ...], at_ms: int, text: str) -> None:
        super().__init__(f"{rule} ({', '.join(clauses)}) at {at_ms / 1000:.3f} s: {text}")
        self.rule = rule


class Seen(NamedTuple):
    """A probe that was judged: when in truth, and what came of it."""

    ms: int
    observation: Observation
    row: Row


class Publication:
    """What one monitor's ledger published, after what was published before it in the same line of memory."""

    __slots__ = ("at", "before", "clock_ms", "life", "memory", "ms", "rows", "sightings", "state")

    def __init__(self, before: "Publication | None", life: "Life", ms: int, at: int, rows: tuple[Row, ...]) -> None:
        self.before = before
        self.life = life
        self.ms = ms
        self.at = at
        self.rows = rows
        self.memory: Mapping[object, Any] = {}  # what rules remember of this line, up to here
        self.sightings = b""
        self.state: State | None = None
        # The time that was seen to pass, by which messages are given up.
        self.clock_ms: int = 0 if before is None else before.clock_ms
        if before is not None and not life.is_new:
            self.clock_ms += sorted((0, at - before.at, life.alert_policy.rules.hold_ms))[1]


class Message(Struct, frozen=True):
    """A message as it waits in the store. Its event says when, to the millisecond: a later one in the same words is
    another."""

    target: str
    title: str
    body: str
    event: AlertEvent | None = None


class Life:
    """One run of a monitor, from the moment it wants the store to the moment it has lost it, or is gone."""

    def __init__(self, process: Process, number: int, clock: VirtualClock, settings: Settings, serial: int) -> None:
        self.process = process
        self.name = f"monitor {number}.{serial}"
        self.clock = clock
        self.serial = serial
        self.apply_settings(settings)
        self.reload = asyncio.Event()  # is set when it is to read its settings again
        self.next_settings: Settings | None = None  # until the monitor of before has stopped
        self.is_new = True  # until its first publication, also the first after its clock was set
        self.began_ms: int | None = None  # or when its clock was set last: everything was asked again then
        self.publication: Publication | None = None
        self.to_store: Publication | None = None  # the last one that was made for the store, and not for alerts alone
        self.memory: dict[object, Any] = {}
        self.sightings = b""
        self.stopping = False
        self.sent: Message | None = None  # by the call that is being made
        self.writing: Publication | None = None  # what the call to the store, that is being made, is about
        self.writing_since_ms: int | None = None
        self.wrote_ms = 0  # when the last write ended
        self.lost_ms: int | None = None  # when that said that the store is another monitor's

    @property
    def may_suspect_its_clock(self) -> bool:
        """Whether its clock is off by about a minute or more: then announcements are not judged (M17)."""
        return abs(self.clock.ahead_ms()) > 50_000

    def apply_settings(self, settings: Settings) -> None:
        """The settings in force, and what follows from them."""
        self.settings, self.plan = settings, settings.plan()
        self.alert_policy = build_policy(settings.table_of(Alerts), around_of(settings))


class Scene:
    """One world while it runs."""

    def __init__(self, script: Script, loop: VirtualLoop, rules: Sequence["Rule"]) -> None:
        self.script = script
        self.loop = loop
        self.sim = Sim(script.layout, script.seed, ORIGIN_AT, script.episodes)
        self.lives: list[Life] = []
        self.processes: list[Process] = []
        self.stepped_back_ms = -1  # when a monitor's clock was last set back
        self.went_back_ms = -1  # when the store was
        self.restored_ms = -1  # when a backup was restored
        self.let_go_ms = -1  # when it last let go of its writer
        self.waiting: dict[int, Message] = {}  # the messages in the store
        self.publications = 0
        self.over = False
        self.bugs_made = self.bugs_counted = 0
        self._faults: dict[tuple[str, str], list[Fault]] = defaultdict(list)
        for fault in script.faults:
            self._faults[fault.kind, fault.of].append(fault)
        ending = ("crash", "stop", "session-lost", "set-back", "lock-removed", "file-removed")
        self._ends_ms = [fault.at_ms for fault in script.faults if fault.kind in ending]
        self.clocks_are_set = any(fault.kind == "clock" for fault in script.faults)
        self.small_steps_back = sum(fault.kind == "clock" and -5_000 <= fault.size < 0 for fault in script.faults)
        self._hash = 0
        self._events = 0
        self.last: deque[str] = deque(maxlen=30)
        self._hooks: dict[type, list[Callable[[Any], None]]] = defaultdict(list)
        for rule in rules:
            rule.scene = self
            for kind, hook in rule.hooks():
                self._hooks[kind].append(hook)

    def chance(self, of: str) -> Random:
        """Of its own for each part, so that what happens to one moves no other's."""
        return Random(f"{self.script.seed}/{of}")

    @property
    def ms(self) -> int:
        return self.loop.now_ms()

    def true_at(self, ms: int | None = None) -> int:
        return ORIGIN_AT + (self.loop.now_ms() if ms is None else ms)

    def active(self, kind: str, of: str = "") -> Fault | None:
        """The fault of this kind that is under way."""
        faults = self._faults.get((kind, of))
        if not faults:
            return None
        now_ms = self.loop.now_ms()
        return next((each for each in faults if each.at_ms <= now_ms < each.at_ms + each.lasts_ms), None)

    def lies(self, chain_id: int) -> list[UpstreamFault]:
        """What is ever wrong with heights that a chain's endpoints answer, as far as it could mislead the monitor."""
        harmless = ("past", "genesis", "late")
        target = f"rpc/{chain_id}/"
        return [fault for fault in self.sim.planned if fault.target.startswith(target) and fault.kind not in harmless]

    def end_is_near(self) -> bool:
        """Whether somebody may soon have to go on from what is stored now; now and then, in any case."""
        now_ms = self.loop.now_ms()
        return any(at_ms - 40_000 <= now_ms <= at_ms + 1_000 for at_ms in self._ends_ms) or now_ms % 97 == 0

    def note(self, text: str) -> None:
        """Something happened."""
        line = f"{self.loop.now_ms()} {text}"
        self._hash = zlib.crc32(line.encode(), self._hash)
        self._events += 1
        self.last.append(line)

    @property
    def trace(self) -> str:
        """The same for two worlds in which the same happened."""
        return f"{self._events}-{self._hash:08x}"

    def emit(self, event: object) -> None:
        """Hold an event against every rule that is about such events. The first that is broken ends the world; what
        emitted the event does not notice, and cannot take it for a bug of its own."""
        if self.over or self.loop.error is not None:
            return
        try:
            for rule in self._hooks[type(event)]:
                rule(event)
        except Exception as error:  # noqa: BLE001  or a bug in a rule, which ends the world too
            self.loop.error = error


# The events.


class Asked(NamedTuple):
    """A probe of a source began."""

    life: Life
    source: str


class Answered(NamedTuple):
    """A probe of a source ended; ``found`` is None if it died of a bug."""

    life: Life
    source: str
    checks: tuple[Check, ...]
    found: Mapping[Check, Found] | None
    failed: bool


class HeadAnswered(NamedTuple):
    """An endpoint was heard; without a reading if it failed."""

    life: Life
    chain_id: int
    number: int
    asked_ms: int
    reading: Reading | None
    is_wrong_chain: bool = False


class Agreed(NamedTuple):
    """A monitor took a head."""

    life: Life
    chain_id: int
    reading: Reading


class Judged(NamedTuple):
    life: Life
    seen: Seen


class Published(NamedTuple):
    life: Life
    publication: Publication


class Written(NamedTuple):
    """A publication is in the store now, whether or not its writer knows."""

    life: Life
    publication: Publication
    documents: Mapping[DocumentName, Document]
    came: tuple[Message, ...]
    """The messages that are in the store since, the oldest first."""
    went: tuple[Message, ...]


class Resumed(NamedTuple):
    """A monitor loaded what was stored, and goes on from ``life.publication``."""

    life: Life
    stored: Mapping[str, bytes]


class Reloaded(NamedTuple):
    """A monitor that runs uses other settings from now on, which are its life's."""

    life: Life
    before: Plan


class Started(NamedTuple):
    """A monitor started, or noticed that its clock was set."""

    life: Life


class Stored(NamedTuple):
    """A monitor heard that its publication is stored, or that it is not."""

    life: Life
    ok: bool


class Sending(NamedTuple):
    """A monitor begins to send a message, which may hang on its way for long."""

    life: Life
    target: str


class Tried(NamedTuple):
    """A message has reached its target, which accepted it or not; ``answers`` if its sender will know."""

    life: Life
    message: Message
    accepted: bool
    answers: bool


class Heard(NamedTuple):
    """A sender heard how it went; None if nothing was sent, after all."""

    life: Life
    target: str
    message: Message | None
    accepted: bool


class Ended(NamedTuple):
    life: Life
    how: str


class Concluded(NamedTuple):
    """The world is over; everything in it still stands as it did."""


class Served(NamedTuple):
    """What a server answers with from now on; None is a 503."""

    server: int
    life: int
    name: DocumentName
    etag: str | None
    body: bytes


class Looked(NamedTuple):
    """A server looked at its store: what it was given, if anything."""

    server: int
    life: int
    name: DocumentName
    document: Document | None


class Shown(NamedTuple):
    """What a reader shows."""

    reader: int
    ahead_ms: int
    update: Update
