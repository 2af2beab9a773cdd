"""Messages between the rules and their targets: stored first, then sent, and none lost or doubled on the way."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from lookout.base.concurrency import DaemonThread, Worker
from lookout.config.tables import ChainTable, RpcEndpoint
from lookout.core.model import Blocks, Check, Found, Metrics, Peers, Row, Status
from lookout.documents.document import Document, DocumentName
from lookout.features.alerts.alerts import decode_alerts
from lookout.features.alerts.messages import AlertEvent, Cause, Message
from lookout.features.alerts.rules import STORE, EpisodeRule, EpisodeRules
from lookout.features.alerts.sender import NotAcceptedError, Sender
from lookout.features.alerts.settings import AlertPolicy, AlertRule
from lookout.features.feature import Verdict
from lookout.features.outcome import StandIn
from lookout.state.errors import StateError
from lookout.store.protocol import StoreError
from tests.alerting import THE_FIVE, sending_by, sending_into
from tests.builders import HOUR, INDEXER, MESSAGING, MINUTE, NOON, SECOND, a_plan, a_row
from tests.logs import capture_logs
from tests.machines import a_host
from tests.unit.running_monitor import FAILED, Asked, FastClock, InLine, Kept, Read, lived
from tests.unit.server.fakes import SetClock
from tests.wait import until_async

TARGETS = {"ops": "address of ops", "chat": "address of chat"}
BEGAN, ENDED = "Lookout: messaging is unavailable", "Lookout: messaging recovered"
WITHIN_S = 60

until = partial(until_async, what="what is to be sent", within_s=WITHIN_S)


def a_policy(targets: dict[str, str] | None = None, group_ms: int = 0, give_up_ms: int = HOUR) -> AlertPolicy:
    targets = TARGETS if targets is None else targets
    rule = EpisodeRule("r", frozenset((MESSAGING,)), frozenset(("unavailable",)), 0, 0, tuple(targets))
    return AlertPolicy(EpisodeRules((rule,), group_ms, MINUTE), targets, give_up_ms, THE_FIVE, {})


class Night:
    """Alerts with a store, receivers by their addresses, and publications a second apart."""

    def __init__(
        self, policy: AlertPolicy | None = None, stored: dict[str, bytes] | None = None, first_rest_ms: int = 10
    ) -> None:
        self.registry = CollectorRegistry()
        self.clock = SetClock()
        self.store = {} if stored is None else stored
        self.sent: list[tuple[str, str]] = []
        self.tried: list[str] = []
        self.over: list[bool] = []
        self.events: list[AlertEvent | None] = []
        self.refusing: set[str] = set()  # addresses and titles
        self.held: dict[str, threading.Event] = {}
        self.begun = threading.Event()  # something is being sent
        self.handed = 0  # messages to the threads that send
        self.buggy = False
        self.threadless: dict[str, int] = {}  # names of threads that cannot be started, and how often yet
        self.asked = 0
        self.at = NOON
        self.causes: dict[Check, str] = {}
        self.host = host = a_host(
            self.registry, self.clock, open_thread=self.open_thread, causes=self.causes, publish_soon=self.ask
        )
        self.alerts = sending_by(self.open_sender, first_rest_ms)(policy or a_policy(), decode_alerts(self.store), host)
        self.alerts.start(NOON, was_set=False)

    def open_sender(self, address: str) -> Sender:
        def send(message: Message, /) -> None:
            if self.buggy:
                raise ZeroDivisionError
            self.begun.set()
            if address in self.held:
                self.held[address].wait(WITHIN_S)
                if self.buggy:
                    raise ZeroDivisionError
            self.tried.append(message.title)
            if not self.refusing.isdisjoint((address, message.title)):
                raise NotAcceptedError
            self.over.append(message.is_over)
            self.events.append(message.event)
            self.sent.append((address, message.title))

        return send

    @contextmanager
    def open_thread(self, name: str) -> Iterator[Worker]:
        if self.threadless.get(name, 0) > 0:
            self.threadless[name] -= 1
            raise RuntimeError("can't start new thread")
        with DaemonThread(name) as real:
            yield Counting(self, real)

    def publish(self, status: Status, *, is_stored: bool = True) -> None:
        self.at += SECOND
        self.alerts.publish(self.at, (a_row(status),))
        if is_stored:
            self.alerts.begin_write()
            self.store = dict(self.alerts.documents())
            self.alerts.mark_stored()

    def ask(self) -> None:
        self.asked += 1

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def messages(self) -> list[str]:
        return [name for name in self.store if name.startswith("alerts/")]


@dataclass
class Counting:
    """Counts the calls that a thread is to make."""

    night: Night
    thread: DaemonThread

    async def call(self, work: Callable[[], None], /) -> None:
        self.night.handed += 1
        await self.thread.call(work)


def retried(night: Night, target: str) -> float:
    return night.metric("lookout_alert_messages_total", target=target, outcome="retried") or 0


async def all_have_decided() -> None:
    """Let the event loop turn until each sender has handed a message to its thread, or waits for a publication."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_monitor_that_takes_over_sends_what_is_stored_and_nothing_that_was_sent() -> None:
    first = Night()
    first.refusing = {TARGETS["chat"]}
    async with first.alerts.running():
        first.publish("unavailable")
        await until(lambda: first.sent == [(TARGETS["ops"], BEGAN)])
        await until(lambda: retried(first, "chat") >= 1)
        first.publish("unavailable")
    second = Night(stored=dict(first.store))
    second.at = first.at
    async with second.alerts.running():
        await all_have_decided()
        assert second.handed == 0  # before it has written, the store may not be its own
        second.publish("unavailable")
        await until(lambda: second.sent == [(TARGETS["chat"], BEGAN)])
        second.publish("current")
        await until(lambda: len(second.sent) == 3)
        assert {title for _, title in second.sent[1:]} == {ENDED}


async def test_a_target_that_hangs_hangs_alone() -> None:
    night = Night()
    night.held = {TARGETS["chat"]: threading.Event()}
    try:
        async with night.alerts.running():
            for n in range(3):
                night.publish("unavailable" if n % 2 == 0 else "current")
                await until(lambda n=n: len(night.sent) == n + 1)
            assert {address for address, _ in night.sent} == {TARGETS["ops"]}
            assert night.metric("lookout_alert_queue", target="chat") == 3
            night.held[TARGETS["chat"]].set()
            await until(lambda: len(night.sent) == 6)
    finally:
        night.held[TARGETS["chat"]].set()


async def test_the_end_does_not_wait_long_for_a_target_that_hangs() -> None:
    night = Night(a_policy({"ops": "a"}))
    night.held = {"a": threading.Event()}
    async with night.alerts.running():
        night.publish("unavailable")
        await until(night.begun.is_set)
    assert night.sent == []
    night.held["a"].set()


# As earlier versions stored them: 0.1.0 had neither an end's mark, nor the rule of news, nor data.
OLD_EPISODE = (
    b'{"rule":"r","check":["messaging",null],"since_at":1793880000000,"status":"unavailable","reason":"unreachable",'
    b'"is_seen":true,"seen_ms":0,"told_to":["ops"],"told_ms":0,"reminders":0}'
)
OLD_STATE = b'{"state":{"published_at":1793880000000,"clock_ms":0,"episodes":[%s],"gathered":[]},"next_id":2}'
OLD = {
    "alerts": OLD_STATE % OLD_EPISODE,
    "alerts/0": b'{"target":"ops","title":"Lookout: messaging is unavailable","body":"text","made_ms":0}',
    "alerts/1": b'{"target":"ops","title":"old","body":"text","made_ms":0,"is_over":true}',
}


async def test_what_earlier_versions_stored_is_sent_as_it_was_and_its_episode_goes_on() -> None:
    night = Night(a_policy({"ops": "a"}), dict(OLD))
    async with night.alerts.running():
        night.publish("unavailable")
        await until(lambda: night.sent == [("a", BEGAN), ("a", "old")])
        night.publish("current")
        await until(lambda: night.sent[2:] == [("a", ENDED)])
    assert night.over == [False, True, True]
    assert [event is None for event in night.events] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("chain Polygon", StandIn("chain", "Polygon", 137)),
        ("endpoint rpc 2 of Polygon", StandIn("endpoint", "rpc 2 of Polygon", 137)),
        ("source ppoi of Polygon", StandIn("source", "ppoi of Polygon", None)),
        ("the store", STORE),
    ],
)
async def test_the_episode_of_what_no_row_shows_is_found_again_as_version_2_stored_it(
    name: str, check: StandIn
) -> None:
    began = OLD_EPISODE.replace(b'["messaging",null]', json.dumps([name, check.chain_id]).encode())
    rule = EpisodeRule("r", frozenset((check,)), frozenset(("unavailable",)), 0, 0, ("ops",))
    night = Night(
        AlertPolicy(EpisodeRules((rule,), 0, MINUTE), {"ops": "a"}, HOUR, THE_FIVE, {}), {"alerts": OLD_STATE % began}
    )
    night.host.verdicts[check] = Verdict("current", "responding")
    async with night.alerts.running():
        night.publish("current")
        await until(lambda: len(night.sent) == 1)
    assert night.sent == [("a", f"Lookout: {name} recovered")]
    (event,) = night.events
    assert event is not None
    assert [item.service for item in event.items] == [name]


@pytest.mark.clause("M16", "R6")
async def test_a_message_has_the_cause_and_the_last_good_numbers_also_through_the_store() -> None:
    well = Row(MESSAGING, "current", "responding", NOON, NOON, metrics=Metrics(peers=7))
    down = Row(MESSAGING, "unavailable", "unreachable", NOON + MINUTE, NOON)
    first = Night(a_policy({"ops": "a"}))
    first.alerts.publish(NOON, (well,))
    first.causes[MESSAGING] = "tls: expired"
    first.alerts.publish(NOON + MINUTE, (down,))
    second = Night(a_policy({"ops": "a"}), dict(first.alerts.documents()))
    second.at = NOON + MINUTE
    async with second.alerts.running():
        second.publish("unavailable")
        await until(lambda: len(second.sent) == 1)
    (event,) = second.events
    assert event is not None
    (item,) = event.items
    assert item.cause == Cause("tls", "expired")
    assert (item.last_success_at, item.last_metrics) == ("2026-11-05T12:00:00.000Z", Metrics(peers=7))


@dataclass
class Sent:
    title: str
    body: str
    event: AlertEvent


def gathered(rows: list[list[Row]], causes: list[dict[Check, str]], *rules: AlertRule) -> list[Sent]:
    """The messages that wait after publications of these rows a minute apart, for these causes."""
    built = tuple(each for rule in rules for each in rule.build((MESSAGING, INDEXER), ("ops",)))
    night = Night(AlertPolicy(EpisodeRules(built, 2 * MINUTE, HOUR), {"ops": "a"}, HOUR, THE_FIVE, {}))
    for minute, published in enumerate(rows):
        night.causes.clear()
        night.causes.update(causes[minute] if minute < len(causes) else {})
        night.alerts.publish(NOON + minute * MINUTE, tuple(published))
    pieces = night.alerts.documents()
    return [msgspec.json.decode(pieces[name], type=Sent) for name in sorted(pieces) if name.startswith("alerts/")]


@pytest.mark.clause("M16")
def test_a_cause_is_of_the_news_with_its_reason_and_of_no_other() -> None:
    behind, down = Row(INDEXER, "degraded", "behind"), Row(INDEXER, "unavailable", "unreachable")
    causes = [{INDEXER: "behind: 9000"}, *[{INDEXER: "http_status: 503"}] * 2]
    rules = (AlertRule(name="a", for_s=0), AlertRule(name="b", for_s=0, from_="unavailable"))
    (message,) = gathered([[behind], [down], [down]], causes, *rules)
    assert [(item.reason, item.cause) for item in message.event.items] == [
        ("behind", None),
        ("unreachable", Cause("http_status", "503")),
    ]


def test_of_a_row_that_expired_it_is_said_that_nothing_was_observed() -> None:
    old = Row(INDEXER, "current", "synced", NOON, NOON, NOON + MINUTE)
    (message,) = gathered([[old]] * 9, [], AlertRule(for_s=0))
    assert ": nothing was observed lately, or it holds nothing for this chain, for " in message.body
    assert "\n  last good answer: 2026-11-05T12:00:00Z" in message.body


@pytest.mark.parametrize(
    ("other", "is_said"),
    [
        pytest.param(Row(INDEXER, "unknown", "unreachable"), True, id="nothing answers"),
        pytest.param(Row(INDEXER, "unmonitored", "not-configured"), False, id="the only one that is watched fails"),
        pytest.param(Row(INDEXER, "degraded", "behind"), False, id="something answers"),
    ],
)
def test_the_network_of_this_machine_is_named_first_if_nothing_answers(other: Row, is_said: bool) -> None:
    down = Row(MESSAGING, "unavailable", "unreachable")
    (message,) = gathered([[down, other]] * 3, [], AlertRule(for_s=0, unknown=False))
    assert message.body.startswith("Next: first look at this machine's own network: ") == is_said


async def test_a_message_whose_sending_dies_of_a_bug_is_tried_again() -> None:
    night = Night(a_policy({"ops": "a"}))
    night.buggy = True
    async with night.alerts.running():
        night.publish("unavailable")
        await until(lambda: retried(night, "ops") >= 1)
    assert len(night.messages()) == 1


async def test_a_sender_that_finds_no_thread_is_reported_once_and_started_again_while_the_others_go_on() -> None:
    night = Night()
    night.threadless = {"alert chat": 3}
    with capture_logs() as said:
        async with night.alerts.running():
            night.publish("unavailable")
            await until(lambda: (TARGETS["ops"], BEGAN) in night.sent)
            await until(lambda: (TARGETS["chat"], BEGAN) in night.sent)
    assert night.threadless == {"alert chat": 0}
    assert night.metric("lookout_alert_sender_failures_total", target="chat") == 3
    assert night.metric("lookout_alert_sender_failures_total", target="ops") == 0
    about = [line for line in said if line.get("target") == "chat" and "sender" in line["event"]]
    assert [line["log_level"] for line in about] == ["error", "info"]


def test_a_quiet_night_stores_nothing_and_a_bad_one_the_time_that_was_seen_and_the_messages() -> None:
    night = Night()
    for _ in range(3):
        night.publish("current")
        assert night.store == {}
    night.publish("unavailable")
    before = night.store
    night.publish("unavailable")
    assert set(night.store) == {"alerts", "alerts/0", "alerts/1"}
    assert [name for name in night.store if night.store[name] != before[name]] == ["alerts"]


SINCE_S = 300  # nothing can be stored


class Timed(list[str]):
    """The titles of messages, with the second in which each was sent."""

    def __init__(self) -> None:
        self.seconds: list[int] = []

    def append(self, title: str) -> None:
        self.seconds.append(FastClock().elapsed_ms() // SECOND)
        super().append(title)


class FullDisk(Kept):
    def __init__(self, until_s: int) -> None:
        super().__init__()
        self._until_s = until_s

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        if SINCE_S * SECOND <= FastClock().elapsed_ms() < self._until_s * SECOND:
            raise StoreError("/var/lib/lookout.db: database or disk is full")
        super().write(documents, state)


class Hanging(InLine):
    """A thread whose calls hang meanwhile."""

    def __init__(self, until_s: int) -> None:
        self._until_s = until_s

    async def call(self, work: Callable[[], None], /) -> None:
        now_s = FastClock().elapsed_ms() / SECOND
        if SINCE_S <= now_s < self._until_s:
            await asyncio.sleep(self._until_s - now_s)
        await super().call(work)


@pytest.mark.clause("M17")
@pytest.mark.parametrize("hangs", [False, True], ids=["its disk is full", "it hangs"])
def test_what_cannot_be_stored_for_a_minute_is_sent_and_so_is_that_the_store_cannot_be_written(*, hangs: bool) -> None:
    until_s = 1500
    answers: list[Found] = [Peers(1)] * 19  # for ten minutes
    source = Asked(MESSAGING, *answers, *[FAILED] * 5, Peers(1))
    writer, store = (Kept(), Hanging(until_s)) if hangs else (FullDisk(until_s), None)
    sent, rules = Timed(), (AlertRule(for_s=120, remind_s=0),)
    lived(1_800, a_plan(MESSAGING), [source], [], **sending_into(sent, *rules), writer=writer, store=store)
    due_s, well_s = source.asked[21] // SECOND + 120, source.asked[24] // SECOND
    expected = {
        "Lookout: the store is unavailable": SINCE_S + 60,
        "Lookout: messaging is unavailable": due_s,
        "Lookout: messaging recovered": well_s,
        "Lookout: the store recovered": until_s,
    }
    assert sent == list(expected)
    for second, due_s in zip(sent.seconds, expected.values(), strict=True):
        assert due_s <= second <= due_s + 60


@pytest.mark.clause("M16", "M17")
def test_metrics_go_on_while_the_store_hangs() -> None:
    registry, scraped = CollectorRegistry(), list[tuple[float | None, float | None]]()
    unavailable = {"service": "messaging", "chain": "", "status": "unavailable"}

    def scrape(*_: object) -> None:
        age_s = registry.get_sample_value("lookout_publication_age_seconds")
        scraped.append((age_s, registry.get_sample_value("lookout_row_status", unavailable)))

    source, hangs = Asked(MESSAGING, *[Peers(1)] * 12, FAILED), Hanging(1_500)
    scrapes = [(1_400.0, scrape), (1_510.0, scrape)]
    lived(1_800, a_plan(MESSAGING), [source], [], *scrapes, registry=registry, writer=Kept(), store=hangs)
    (old_s, shown), (new_s, later) = scraped
    assert shown == later == 1
    assert old_s is not None
    assert new_s is not None
    assert old_s > 1_000 > new_s


HALT_S = 600  # what happens
MOVING = [1_000 + n for n in range(1_000)]  # a block every reading, which is every 17 s
DEFAULT = AlertRule(from_="degraded", for_s=300)  # as ``lookout init`` writes it


STOPPED, RESUMED = [*MOVING[:36], *[1_035] * 36], [*MOVING[:36], *[1_035] * 36, *MOVING[36:]]


@pytest.mark.clause("M16")
@pytest.mark.parametrize(
    ("heads", "positions", "title", "end"),
    [
        pytest.param(MOVING, MOVING[:35:2], "indexer on Ethereum is not moving", [], id="an indexer"),
        pytest.param(STOPPED, STOPPED[::2], "chain Ethereum is not moving", [], id="a chain"),
        pytest.param(
            RESUMED,
            RESUMED[::2],
            "chain Ethereum is not moving",
            ["chain Ethereum recovered"],
            id="a chain, for a while",
        ),
        pytest.param(MOVING, [*MOVING[:35:2], None], "indexer on Ethereum is unavailable", [], id="a dead indexer"),
    ],
)
def test_by_default_what_stops_is_reported_within_eight_minutes(
    heads: list[int], positions: list[int | None], title: str, end: list[str]
) -> None:
    sent, plan = Timed(), a_plan(INDEXER, confirmations=0)
    chain = ChainTable(id=1, name="Ethereum", block_time_s=12, rpc=(RpcEndpoint("http://127.0.0.1"),))
    given = {**sending_into(sent, DEFAULT), "chains": (chain,)}
    found = [FAILED if position is None else Blocks(position) for position in positions]
    kept = lived(1_500, plan, [Asked(INDEXER, *found)], [Read(1, *heads)], **given)
    abouts = [
        json.loads(written["about"].body)["chains"][0]["noBlockSince"]
        for _, written in kept.written
        if "about" in written
    ]
    stood = [since for since in dict.fromkeys(abouts) if since is not None]
    assert stood == ["2026-11-05T12:09:48Z"] * title.startswith("chain")
    assert (abouts[-1] is None) is (not stood or bool(end))
    assert sent == [f"Lookout: {told}" for told in (title, *end)]
    assert sent.seconds[0] - HALT_S <= 480


@pytest.mark.parametrize("name", ["alerts", "alerts/0", "alerts/x"])
@pytest.mark.parametrize("damaged", [b"{", b'{"x":' + b"[" * 100_000], ids=["cut off", "nested too deeply"])
def test_a_damaged_piece_is_named(name: str, damaged: bytes) -> None:
    with pytest.raises(StateError, match=f"the stored document {name} cannot be read"):
        Night(stored={name: damaged})
