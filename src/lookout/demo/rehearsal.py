"""The monitor on a virtual clock: it lives through simulated time as fast as it can be computed.

Instants come from a queue, never from a clock, and nobody sleeps. The rules, the cadence and the head's agreement are
the monitor's own; only the upstreams are simulated: how a probe will end is known when it begins.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final, NamedTuple

from lookout.core.agreement import Agreement
from lookout.core.cadence import GATHER_MS, wait_ms
from lookout.core.heads import Reading
from lookout.core.ledger import Ledger, State
from lookout.core.model import Blocks, Check, Failed, Found, Observation
from lookout.core.plan import Plan
from lookout.demo.sim.world import HeadAnswer, Silence, World
from lookout.demo.simulated_sources import SimulatedAsk, simulated_sources
from lookout.state.codec import decode_state
from lookout.state.differ import all_pieces
from lookout.state.log import Event, HeadRead, Started, Stopped

_PROGRESS_EVERY_MS: Final = 3_600_000


class Life(NamedTuple):
    """One run of the monitor, from its start to its stop, under a plan of its own if it has one.

    What is current, and with which nothing goes wrong for so long, is asked again only after ``calm_ms``: all that
    would be found meanwhile is that it still is.
    """

    begin_at: int
    end_at: int
    plan: Plan | None = None
    calm_ms: int = 0
    gather_ms: int = GATHER_MS


class Listeners(NamedTuple):
    """What is called with every event, with every publication, and about once a simulated hour with the instant."""

    event: Callable[[Event], None] = lambda _: None
    published: Callable[[Ledger], None] = lambda _: None
    progress: Callable[[int], None] = lambda _: None


NO_LISTENERS: Final = Listeners()


def rehearse(
    plan: Plan, world: World, lives: Iterable[Life], chance: Random, listeners: Listeners = NO_LISTENERS
) -> Ledger:
    """Run the monitor through one life after the other, each resuming from what the one before it stored (M7)."""
    ledger, state = Ledger(plan), None
    for life in lives:
        its_plan = life.plan or plan
        ledger = Ledger(its_plan, state)
        stored = _Run(its_plan, world, life, ledger, listeners).live(chance)
        state = decode_state(all_pieces(stored).put)
    return ledger


class _Source:
    """What is probed as one: its checks, and how it answers for them."""

    __slots__ = ("ask", "chance", "checks", "failures")

    def __init__(self, checks: tuple[Check, ...], ask: SimulatedAsk, chance: Random) -> None:
        self.checks = checks
        self.ask = ask
        self.chance = chance  # of its own, so that a fault of one source moves no other's instants
        self.failures = 0  # in a row


class _Chain:
    """What the endpoints of one chain agree on."""

    def __init__(self, chain_id: int, agreement: Agreement, compared: tuple[Check, ...]) -> None:
        self.chain_id = chain_id
        self.agreement = agreement
        self.compared = compared  # the checks that are compared with its head
        # The probes of indexers that are to be judged when it has its first head; None when it had, or could have had.
        self.unsettled: list[Callable[[int], None]] | None = []
        self.awaits_change = False  # it is known when an answer becomes too old


class _Endpoint(NamedTuple):
    """One RPC endpoint of a chain."""

    chain: _Chain
    number: int
    chance: Random


class _Queue:
    """What is to happen when; of what happens at one instant, what was scheduled first."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, Callable[[int], None]]] = []
        self._serial = count()

    def schedule(self, at: int, then: Callable[[int], None]) -> None:
        heappush(self._entries, (at, next(self._serial), then))

    def pop_before(self, end_at: int) -> Iterator[tuple[int, Callable[[int], None]]]:
        while self._entries and self._entries[0][0] < end_at:
            at, _, then = heappop(self._entries)
            yield at, then


class _Publisher:
    """Publishes what was observed a little later, or when it is time to show that the monitor lives (M5)."""

    def __init__(self, ledger: Ledger, life: Life, heartbeat_ms: int, listeners: Listeners) -> None:
        self._ledger = ledger
        self._life = life
        self._heartbeat_ms = heartbeat_ms
        self._listeners = listeners
        self._published_at = self._due_at = self._progress_at = life.begin_at

    def publish(self, at: int) -> None:
        self._ledger.publish(at)
        self._published_at = at
        self._due_at = at + self._heartbeat_ms
        self._listeners.published(self._ledger)
        if at >= self._progress_at:
            self._progress_at = at + _PROGRESS_EVERY_MS
            self._listeners.progress(at)

    def publish_before(self, at: int) -> None:
        """All that is due earlier; what is due at this very instant waits for all that happens at it."""
        while self._due_at < at:
            self.publish(self._due_at)

    def hasten(self, at: int) -> None:
        """Something was observed."""
        self._due_at = min(self._due_at, max(at, self._published_at + self._life.gather_ms))


class _Run:
    """One life of the monitor."""

    def __init__(self, plan: Plan, world: World, life: Life, ledger: Ledger, listeners: Listeners) -> None:
        self._plan = plan
        self._world = world
        self._life = life
        self._ledger = ledger
        self._listeners = listeners
        self._publisher = _Publisher(ledger, life, plan.limits.heartbeat_ms, listeners)
        self._queue = _Queue()
        self._chains = {
            chain_id: _Chain(
                chain_id,
                Agreement(world.endpoints(chain_id), plan.limits.head_max_age_ms),
                tuple(check for check in plan.confirmations if check.chain_id == chain_id),
            )
            for chain_id in plan.chains
        }

    def live(self, chance: Random) -> State:
        """Live to the end; what is stored then."""
        begin_at, end_at, *_ = self._life
        self._ledger.start(begin_at)
        self._listeners.event(Started(begin_at))
        self._publisher.publish(begin_at)
        self._begin_all(begin_at, chance)
        for at, then in self._queue.pop_before(end_at):
            self._publisher.publish_before(at)
            then(at)
        self._publisher.publish_before(end_at)
        self._listeners.event(Stopped(end_at))
        return self._ledger.state()

    def _begin_all(self, at: int, chance: Random) -> None:
        """Ask everything at once, spread over the jitter (M12)."""
        sources = [_Source(checks, ask, _own(chance)) for checks, ask in simulated_sources(self._plan, self._world)]
        endpoints = [
            _Endpoint(chain, number, _own(chance))
            for chain in self._chains.values()
            for number in range(self._world.endpoints(chain.chain_id))
        ]
        limits = self._plan.limits
        for endpoint in endpoints:
            self._read(endpoint, at + int(endpoint.chance.random() * limits.jitter_ms / 2))
        for chain in self._chains.values():
            self._queue.schedule(at + limits.probe_timeout_ms, partial(self._end_wait, chain))
        for source in sources:
            self._probe(source, at + int(source.chance.random() * limits.jitter_ms))

    def _end_wait(self, chain: _Chain, at: int) -> None:
        chain.agreement.end_wait()
        self._agree(chain, at)
        self._settle(chain, at)

    def _agree(self, chain: _Chain, at: int) -> None:
        heads = self._ledger.heads(chain.chain_id)
        answer = chain.agreement.agreed(at, heads)
        if answer is None:
            return
        if heads.is_new(answer):
            self._listeners.event(HeadRead(at, chain.chain_id, answer))
            self._ledger.read_head(chain.chain_id, answer)
        self._settle(chain, at)

    def _agree_again(self, chain: _Chain, at: int) -> None:
        """An answer became too old, unless its endpoint has answered again since."""
        chain.awaits_change = False
        self._agree(chain, at)
        self._await_change(chain, at)

    def _await_change(self, chain: _Chain, at: int) -> None:
        next_at = chain.agreement.next_change_at(at)
        if next_at is not None:
            chain.awaits_change = True
            self._queue.schedule(next_at, partial(self._agree_again, chain))

    def _settle(self, chain: _Chain, at: int) -> None:
        """A chain has its first head, or could have had it: what was read of its indexers is judged now."""
        unsettled, chain.unsettled = chain.unsettled, None
        for judge in unsettled or ():
            judge(at)

    def _probe(self, source: _Source, at: int) -> None:
        """A probe that begins at this instant, now or later: how it ends, and that within the timeout (M3)."""
        took_ms = self._draw_delay_ms(source.chance)
        answer = source.ask(at + took_ms)
        if answer == "hang":
            took_ms = self._plan.limits.probe_timeout_ms
            found: tuple[Found, ...] = (Failed("timeout"),) * len(source.checks)
        elif answer == "fail":
            found = (Failed("refused"),) * len(source.checks)
        else:
            found = answer
        self._queue.schedule(at + took_ms, partial(self._end_probe, source, found))

    def _end_probe(self, source: _Source, found: tuple[Found, ...], at: int) -> None:
        chain = self._chains.get(source.checks[0].chain_id or 0)
        if chain is not None and chain.unsettled is not None and isinstance(found[0], Blocks):
            chain.unsettled.append(partial(self._judge, source, found))
        else:
            self._judge(source, found, at)

    def _judge(self, source: _Source, found: tuple[Found, ...], at: int) -> None:
        answered = False
        for check, of_check in zip(source.checks, found, strict=True):
            seen = Observation(check, at, of_check)
            self._listeners.event(seen)
            if not self._ledger.judge(seen).has_failed:
                answered = True
        source.failures = 0 if answered else source.failures + 1
        self._publisher.hasten(at)
        # The wait counts from the probe's end (M1, M2).
        next_at = at + wait_ms(source.failures, source.chance.random(), self._plan.limits)
        self._probe(source, max(next_at, self._calm_until(source.checks, at)))

    def _calm_until(self, checks: Iterable[Check], at: int) -> int:
        """Until when there is nothing to learn of these checks."""
        until = at + self._life.calm_ms
        for check in checks:
            if until <= at or self._ledger.newest_row(check).status != "current":
                return at
            until = int(min(until, self._world.calm_until(*check, at)))
        return until

    def _read(self, endpoint: _Endpoint, at: int) -> None:
        chain_id, number = endpoint.chain.chain_id, endpoint.number
        timeout_ms = self._plan.limits.probe_timeout_ms
        took_ms = self._draw_delay_ms(endpoint.chance) + self._world.endpoint_delay_ms(chain_id, number, at)
        answer = self._world.endpoint(chain_id, number, at + took_ms)
        if answer == "hang" or took_ms >= timeout_ms:
            took_ms, answer = timeout_ms, "hang"
        self._queue.schedule(at + took_ms, partial(self._end_read, endpoint, answer))

    def _end_read(self, endpoint: _Endpoint, answer: HeadAnswer | Silence, at: int) -> None:
        chain, number, chance = endpoint
        if isinstance(answer, str):
            chain.agreement.failed(number)
        elif answer.chain_id != chain.chain_id:
            chain.agreement.failed(number, is_wrong_chain=True)
        else:
            chain.agreement.answered(number, Reading(at, answer.height, answer.block_at))
            self._ledger.hear(at)
        self._agree(chain, at)
        if not chain.awaits_change:
            self._await_change(chain, at)
        limits = self._plan.limits
        next_at = at + int((limits.recheck_ms + chance.random() * limits.jitter_ms) / 2)
        self._read(endpoint, max(next_at, self._calm_until(chain.compared, at)))

    def _draw_delay_ms(self, chance: Random) -> int:
        """How long an answer takes: mostly little, at times up to two seconds."""
        return min(40 + int(2_000 * chance.random() ** 4), self._plan.limits.probe_timeout_ms)


def _own(chance: Random) -> Random:
    return Random(chance.getrandbits(64))  # noqa: S311 - a rehearsal has to be repeatable
