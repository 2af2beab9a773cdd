"""The monitor on a virtual clock: it lives through simulated time as fast as it can be computed.

Instants come from a queue, never from a clock, and nobody sleeps. The rules, the cadence and the head's agreement are
the monitor's own; only the upstreams are simulated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final, Literal, NamedTuple, Protocol

from lookout.core.agreement import Agreement
from lookout.core.cadence import wait_ms
from lookout.core.heads import Reading
from lookout.core.ledger import Ledger, State
from lookout.core.model import (
    Blocks,
    Check,
    Failed,
    Found,
    Indexes,
    Members,
    MissingList,
    Nothing,
    Observation,
    Peers,
    Responding,
)
from lookout.core.plan import Plan
from lookout.core.services import SERVICES
from lookout.monitor.publisher import GATHER_MS
from lookout.state.codec import decode_state
from lookout.state.differ import all_pieces
from lookout.state.log import Event, HeadRead, Started, Stopped

_PROGRESS_EVERY_MS: Final = 3_600_000

Silence = Literal["hang", "fail"]
Ask = Callable[[int], tuple[Found, ...] | Silence]


class World(Protocol):
    """Upstreams whose answers follow from the instant alone: how a probe will end is known when it begins."""

    def endpoints(self, chain_id: int, /) -> int:
        """How many RPC endpoints a chain has."""

    def endpoint(self, chain_id: int, number: int, at: int, /) -> tuple[int, int, int] | Silence:
        """The chain id, height and block timestamp that an endpoint answers with."""

    def endpoint_delay_ms(self, chain_id: int, number: int, at: int, /) -> int:
        """How much later than usual an endpoint answers."""

    def indexer(self, service: str, chain_id: int, at: int, /) -> int | Silence:
        """The last block that an indexer has; -1 if it has none yet."""

    def ppoi(self, at: int, /) -> Mapping[int, tuple[int, int] | Literal["nothing", "missing-list"]] | Silence:
        """The validated and the current index, by chain."""

    def broadcasters(self, at: int, /) -> Mapping[int, tuple[int, int]] | Silence:
        """The responding and the monitored members, by chain."""

    def messaging(self, at: int, /) -> int | Silence:
        """The number of peers."""

    def responder(self, service: str, chain_id: int, at: int, /) -> Silence | None:
        """How a service that only answers fails to; None if it does answer."""

    def calm_until(self, service: str, chain_id: int | None, at: int, /) -> float:
        """When something next goes wrong with a service on a chain; this very instant while something does."""


class Life(NamedTuple):
    """One run of the monitor, from its start to its end. A crash loses what was not published yet."""

    begin_at: int
    end_at: int
    ending: Literal["stop", "crash"] = "stop"


class Listeners(NamedTuple):
    """What is called with every event, with every publication, and about once a simulated hour with the instant."""

    event: Callable[[Event], None] = lambda _: None
    published: Callable[[Ledger], None] = lambda _: None
    progress: Callable[[int], None] = lambda _: None


NO_LISTENERS: Final = Listeners()


def rehearse(
    plan: Plan,
    world: World,
    lives: Iterable[Life],
    chance: Random,
    *,
    listeners: Listeners = NO_LISTENERS,
    gather_ms: int = GATHER_MS,
    calm_ms: int = 0,
    state: State | None = None,
) -> Ledger:
    """Run the monitor through one life after the other, each resuming from what the one before it stored (M7); the
    first from ``state``. What is current, and with which nothing goes wrong for so long, is asked again only after
    ``calm_ms``: all that would be found meanwhile is that it still is."""
    ledger = Ledger(plan, state)
    for life in lives:
        ledger = Ledger(plan, state)
        run = _Run(plan, world, life, ledger, chance, listeners, gather_ms, calm_ms)
        state = decode_state(all_pieces(run.live()).put)
    return ledger


class _Source:
    """What is probed as one: its checks, and how it answers for them."""

    __slots__ = ("ask", "chance", "checks", "failures")

    def __init__(self, checks: tuple[Check, ...], ask: Ask, chance: Random) -> None:
        self.checks = checks
        self.ask = ask
        self.chance = chance  # of its own, so that a fault of one source moves no other's instants
        self.failures = 0  # in a row


class _Endpoint(NamedTuple):
    """One RPC endpoint of a chain."""

    chain_id: int
    number: int
    chance: Random


class _Run:
    """One life of the monitor."""

    def __init__(
        self,
        plan: Plan,
        world: World,
        life: Life,
        ledger: Ledger,
        chance: Random,
        listeners: Listeners,
        gather_ms: int,
        calm_ms: int,
    ) -> None:
        self._limits = plan.limits
        self._world = world
        self._life = life
        self._ledger = ledger
        self._listeners = listeners
        self._gather_ms = gather_ms
        self._calm_ms = calm_ms
        self._queue: list[tuple[int, int, Callable[[int], None]]] = []
        self._serial = count()
        self._sources = [_Source(checks, ask, _own(chance)) for checks, ask in simulated_sources(plan, world)]
        self._endpoints = [
            _Endpoint(chain_id, number, _own(chance))
            for chain_id in plan.chains
            for number in range(world.endpoints(chain_id))
        ]
        self._agreements = {
            chain_id: Agreement(world.endpoints(chain_id), plan.limits.head_max_age_ms) for chain_id in plan.chains
        }
        self._compared = {
            chain_id: tuple(check for check in plan.confirmations if check.chain_id == chain_id)
            for chain_id in plan.chains
        }
        """By chain: the checks that are compared with its head."""
        self._unsettled: dict[int, list[Callable[[int], None]]] = {chain_id: [] for chain_id in plan.chains}
        """By chain that has no head yet: the probes of indexers that are to be judged when it has one."""
        self._awaiting: set[int] = set()  # chains of which it is known when an answer becomes too old
        self._published_at = self._due_at = self._progress_at = life.begin_at
        self._stored = ledger.state()

    def live(self) -> State:
        """Live to the end; what is stored then."""
        begin_at, end_at, ending = self._life
        self._ledger.start(begin_at)
        self._listeners.event(Started(begin_at))
        self._publish(begin_at)
        self._begin_all(begin_at)
        while self._queue and self._queue[0][0] < end_at:
            at, _, then = heappop(self._queue)
            while self._due_at < at:  # what is due at this very instant waits for all that happens at it
                self._publish(self._due_at)
            then(at)
        while self._due_at < end_at:
            self._publish(self._due_at)
        if ending == "crash":
            return self._stored
        self._listeners.event(Stopped(end_at))
        return self._ledger.state()

    def _begin_all(self, at: int) -> None:
        """Ask everything at once, spread over the jitter (M12)."""
        for endpoint in self._endpoints:
            self._read(endpoint, at + int(endpoint.chance.random() * self._limits.jitter_ms / 2))
        for chain_id in self._agreements:
            self._schedule(at + self._limits.probe_timeout_ms, partial(self._end_wait, chain_id))
        for source in self._sources:
            self._probe(source, at + int(source.chance.random() * self._limits.jitter_ms))

    def _end_wait(self, chain_id: int, at: int) -> None:
        self._agreements[chain_id].end_wait()
        self._agree(chain_id, at)
        self._settle(chain_id, at)

    def _agree(self, chain_id: int, at: int) -> None:
        heads = self._ledger.heads(chain_id)
        answer = self._agreements[chain_id].agreed(at, heads)
        if answer is None:
            return
        if heads.is_new(answer):
            self._listeners.event(HeadRead(at, chain_id, answer))
            self._ledger.read_head(chain_id, answer)
        self._settle(chain_id, at)

    def _agree_again(self, chain_id: int, at: int) -> None:
        """An answer became too old, unless its endpoint has answered again since."""
        self._awaiting.discard(chain_id)
        self._agree(chain_id, at)
        self._await_change(chain_id, at)

    def _await_change(self, chain_id: int, at: int) -> None:
        next_at = self._agreements[chain_id].next_change_at(at)
        if next_at is not None:
            self._awaiting.add(chain_id)
            self._schedule(next_at, partial(self._agree_again, chain_id))

    def _settle(self, chain_id: int, at: int) -> None:
        """A chain has its first head, or could have had it: what was read of its indexers is judged now."""
        for judge in self._unsettled.pop(chain_id, ()):
            judge(at)

    def _probe(self, source: _Source, at: int) -> None:
        """A probe that begins at this instant, now or later: how it ends, and that within the timeout (M3)."""
        took_ms = self._took_ms(source.chance)
        answer = source.ask(at + took_ms)
        if answer == "hang":
            took_ms = self._limits.probe_timeout_ms
            found: tuple[Found, ...] = (Failed("timeout"),) * len(source.checks)
        elif answer == "fail":
            found = (Failed("refused"),) * len(source.checks)
        else:
            found = answer
        self._schedule(at + took_ms, partial(self._end_probe, source, found))

    def _end_probe(self, source: _Source, found: tuple[Found, ...], at: int) -> None:
        waiting = self._unsettled.get(source.checks[0].chain_id or 0)
        if waiting is not None and isinstance(found[0], Blocks):
            waiting.append(partial(self._judge, source, found))
        else:
            self._judge(source, found, at)

    def _judge(self, source: _Source, found: tuple[Found, ...], at: int) -> None:
        rows = []
        for check, of_check in zip(source.checks, found, strict=True):
            seen = Observation(check, at, of_check)
            self._listeners.event(seen)
            rows.append(self._ledger.observe(seen))
        source.failures = source.failures + 1 if all(row.has_failed for row in rows) else 0
        self._due_at = min(self._due_at, max(at, self._published_at + self._gather_ms))
        # The wait counts from the probe's end (M1, M2).
        next_at = at + wait_ms(source.failures, source.chance.random(), self._limits)
        self._probe(source, max(next_at, self._calm_until(source.checks, at)))

    def _calm_until(self, checks: Iterable[Check], at: int) -> int:
        """Until when there is nothing to learn of these checks."""
        until = at + self._calm_ms
        for check in checks:
            if until <= at or self._ledger.row(check).status != "current":
                return at
            until = int(min(until, self._world.calm_until(*check, at)))
        return until

    def _read(self, endpoint: _Endpoint, at: int) -> None:
        chain_id, number, chance = endpoint
        took_ms = self._took_ms(chance) + self._world.endpoint_delay_ms(chain_id, number, at)
        answer = self._world.endpoint(chain_id, number, at + took_ms)
        if answer == "hang" or took_ms >= self._limits.probe_timeout_ms:
            took_ms, answer = self._limits.probe_timeout_ms, "hang"
        self._schedule(at + took_ms, partial(self._end_read, endpoint, answer))

    def _end_read(self, endpoint: _Endpoint, answer: tuple[int, int, int] | Silence, at: int) -> None:
        chain_id, number, chance = endpoint
        agreement = self._agreements[chain_id]
        if isinstance(answer, str):
            agreement.failed(number)
        elif answer[0] != chain_id:
            agreement.failed(number, is_wrong_chain=True)
        else:
            agreement.answered(number, Reading(at, *answer[1:]))
            self._ledger.hear(at)
        self._agree(chain_id, at)
        if chain_id not in self._awaiting:
            self._await_change(chain_id, at)
        next_at = at + int((self._limits.recheck_ms + chance.random() * self._limits.jitter_ms) / 2)
        self._read(endpoint, max(next_at, self._calm_until(self._compared[chain_id], at)))

    def _publish(self, at: int) -> None:
        self._ledger.publish(at)
        self._published_at = at
        self._due_at = at + self._limits.heartbeat_ms
        if self._life.ending == "crash" and self._life.end_at <= self._due_at:  # this may have been the last one
            self._stored = self._ledger.state()
        self._listeners.published(self._ledger)
        if at >= self._progress_at:
            self._progress_at = at + _PROGRESS_EVERY_MS
            self._listeners.progress(at)

    def _took_ms(self, chance: Random) -> int:
        """Mostly quick, at times up to two seconds."""
        return min(40 + int(2_000 * chance.random() ** 4), self._limits.probe_timeout_ms)

    def _schedule(self, at: int, then: Callable[[int], None]) -> None:
        heappush(self._queue, (at, next(self._serial), then))


def _own(chance: Random) -> Random:
    return Random(chance.getrandbits(64))  # noqa: S311 - a rehearsal has to be repeatable


def simulated_sources(plan: Plan, world: World) -> Iterator[tuple[tuple[Check, ...], Ask]]:
    """What is probed as one, for the plan's monitored checks, and how it answers at an instant: ppoi and broadcasters
    answer for all their chains."""
    for service in SERVICES:
        checks = tuple(check for check in service.checks(plan.chains) if check in plan.monitored)
        chain_ids = [check.chain_id for check in checks if check.chain_id is not None]
        ask_one = _ask_indexer if service.needs_head else _ask_responder
        match service.name:
            case "messaging" if checks:
                yield checks, partial(_ask_messaging, world)
            case "ppoi" if checks:
                yield checks, partial(_ask_ppoi, world, chain_ids)
            case "broadcasters" if checks:
                yield checks, partial(_ask_broadcasters, world, chain_ids)
            case name:
                for chain_id in chain_ids:
                    yield (Check(name, chain_id),), partial(ask_one, world, name, chain_id)


def _ask_messaging(world: World, at: int) -> tuple[Found, ...] | Silence:
    peers = world.messaging(at)
    return peers if isinstance(peers, str) else (Peers(peers),)


def _ask_ppoi(world: World, chain_ids: Sequence[int], at: int) -> tuple[Found, ...] | Silence:
    networks = world.ppoi(at)
    if isinstance(networks, str):
        return networks
    return tuple(_indexes(networks.get(chain_id, "nothing")) for chain_id in chain_ids)


def _indexes(of_network: tuple[int, int] | Literal["nothing", "missing-list"]) -> Found:
    match of_network:
        case "nothing":
            return Nothing()
        case "missing-list":
            return MissingList()
        case (validated, current):
            return Indexes(validated, current)


def _ask_broadcasters(world: World, chain_ids: Sequence[int], at: int) -> tuple[Found, ...] | Silence:
    members = world.broadcasters(at)
    if isinstance(members, str):
        return members
    return tuple(Members(*members.get(chain_id, (0, 0))) for chain_id in chain_ids)


def _ask_responder(world: World, service: str, chain_id: int, at: int) -> tuple[Found, ...] | Silence:
    return world.responder(service, chain_id, at) or (Responding(),)


def _ask_indexer(world: World, service: str, chain_id: int, at: int) -> tuple[Found, ...] | Silence:
    position = world.indexer(service, chain_id, at)
    if isinstance(position, str):
        return position
    return (Nothing() if position < 0 else Blocks(position),)
