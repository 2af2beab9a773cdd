"""Reads the endpoints of all chains, and the heads that they agree on (M8)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Final

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.core.agreement import SILENT, Agreement, Standing
from lookout.core.causes import code_of, describe_cause
from lookout.core.heads import Reading
from lookout.core.model import Status
from lookout.core.own_clock import OwnClock
from lookout.core.plan import Limits
from lookout.features.feature import Job
from lookout.features.outcome import EntryKey
from lookout.monitor.board import Board
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint

_READS_PER_RECHECK: Final = 2  # of an endpoint

# What is logged when a fault of an endpoint begins, and when it ends.
_FAULTS: Final[dict[Status, tuple[str, str]]] = {
    "unavailable": ("an endpoint fails", "the endpoint answers again"),
    "degraded": ("an endpoint is apart from the head", "the endpoint agrees with the others again"),
}

log = get_logger()


class FollowedChain:
    """The endpoints' agreement, from one start of the chain to the next: answers after ``end`` do not count."""

    def __init__(
        self, endpoints: Sequence[Endpoint], max_age_ms: int, journal: Journal, clock: Clock, board: Board
    ) -> None:
        self.has_head = asyncio.Event()  # also set if no head came in time
        self._chain_id = endpoints[0].chain_id
        self._names = [endpoint.name for endpoint in endpoints]
        self._max_age_ms = max_age_ms
        self._agreement = Agreement(len(endpoints), max_age_ms)
        self._journal = journal
        self._clock = clock
        self._board = board
        self._next_change: asyncio.TimerHandle | None = None  # when an answer becomes too old
        self._is_over = False

    def wait_for_all(self, at_most_ms: int) -> None:
        """Wait at most this long for silent endpoints; then agree without them."""
        asyncio.get_running_loop().call_later(at_most_ms / 1000, self._end_wait)

    def enter(self, number: int, answer: Reading | ProbeFailed) -> Reading | str:
        """Add an endpoint's answer to the agreement; return its block, or the cause of its failure."""
        entered: Reading | str
        if isinstance(answer, Reading):
            self._journal.ledger.hear(self._clock.now())  # any answer: the monitor is not blind (M13)
            entered = answer if self._agreement.answered(number, answer) else "future_block"
        else:
            self._agreement.failed(number, is_wrong_chain=answer.cause == "wrong_chain")
            entered = answer.reason
        self._agree()
        return entered

    def heights(self) -> dict[str, int]:
        """The heights of the endpoints that agree on the head, by name."""
        heights = self._agreement.heights(self._clock.now(), self._journal.ledger.heads(self._chain_id))
        return {self._names[number]: height for number, height in heights.items()}

    def end(self) -> None:
        self._is_over = True
        self._board.note_standings(self._chain_id, {})
        if self._next_change is not None:
            self._next_change.cancel()

    def _agree(self) -> None:
        """Enter the agreed head now, and agree again when an answer becomes too old."""
        now, heads = self._clock.now(), self._journal.ledger.heads(self._chain_id)
        answer = self._agreement.agreed(now, heads)
        if answer is not None:
            self._journal.read_head(self._chain_id, answer)
            if not self._journal.timeline.stepped.is_set():  # then all endpoints are asked again first
                self.has_head.set()
        self._note_standings(dict(zip(self._names, self._agreement.standings(now, heads), strict=False)))
        if self._next_change is not None:
            self._next_change.cancel()
        next_at = self._agreement.next_change_at(now)
        if next_at is not None:
            self._next_change = asyncio.get_running_loop().call_later((next_at - now) / 1000, self._agree)

    def _note_standings(self, standings: dict[str, Standing]) -> None:
        self._board.note_standings(self._chain_id, standings)
        silent = self._journal.silent_chains
        (silent.add if standings and SILENT.issuperset(standings.values()) else silent.discard)(self._chain_id)

    def _end_wait(self) -> None:
        if not self._is_over:
            self._agreement.end_wait()
            self._agree()
        self.has_head.set()


class FollowedChains:
    """All chains, and the jobs that read their endpoints."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        journal: Journal,
        own_clock: OwnClock,
        limits: Limits,
        clock: Clock,
        instruments: Instruments,
        chance: Random,
    ) -> None:
        self._journal = journal
        self._own_clock = own_clock
        self._limits = limits
        self._clock = clock
        self._instruments = instruments
        self._chance = chance
        self._endpoints: dict[int, list[Endpoint]] = defaultdict(list)
        for endpoint in endpoints:
            self._endpoints[endpoint.chain_id].append(endpoint)
        self._chains: dict[int | None, FollowedChain] = {}
        self._bad: dict[EntryKey, Status] = {}  # endpoints

    def begin(self) -> None:
        """Forget all answers, as after a start."""
        max_age_ms, board = self._limits.head_max_age_ms, self._instruments.board
        for chain_id, endpoints in self._endpoints.items():
            chain = FollowedChain(endpoints, max_age_ms, self._journal, self._clock, board)
            chain.wait_for_all(self._limits.probe_timeout_ms)
            self._chains[chain_id] = chain

    def end(self) -> None:
        for chain in self._chains.values():
            chain.end()

    def jobs(self) -> Iterator[Job]:
        for chain_id, endpoints in self._endpoints.items():
            for number, endpoint in enumerate(endpoints):
                key = EntryKey("endpoint", endpoint.name, chain_id)
                first_wait_s = self._chance.random() * self._limits.jitter_ms / _READS_PER_RECHECK / 1000
                yield Job(key, partial(self._read, endpoint, number, key), first_wait_s=first_wait_s)

    def heights(self, chain_id: int) -> dict[str, int]:
        """The heights of the endpoints that agree on the chain's head, by name."""
        return self._chains[chain_id].heights()

    async def wait_for_head(self, chain_id: int | None) -> None:
        """Wait until the chain has a head, or did not get one in time."""
        if chain_id in self._chains:
            await self._chains[chain_id].has_head.wait()

    async def _read(self, endpoint: Endpoint, number: int, key: EntryKey, session: Session) -> int:
        """Read an endpoint's head; return the wait until the next reading in milliseconds."""
        chain_id, began_ms = endpoint.chain_id, self._clock.elapsed_ms()
        try:
            answer: Reading | ProbeFailed = await endpoint.read(session, self._clock.now)
        except ProbeFailed as failure:
            answer = failure
        took_ms = self._clock.elapsed_ms() - began_ms
        self._journal.timeline.check_for_stall(began_ms)
        found = self._chains[chain_id].enter(number, answer)
        if (head := self._journal.ledger.heads(chain_id).newest_of_run) is not None:
            # The agreed head, since a single endpoint's block may be a lie.
            self._own_clock.hear(f"chain {chain_id}", head.at - head.block_at, self._clock.elapsed_ms())
        self._note_reading(key, chain_id, found, took_ms)
        return int((self._limits.recheck_ms + self._chance.random() * self._limits.jitter_ms) / _READS_PER_RECHECK)

    def _note_reading(self, key: EntryKey, chain_id: int, found: Reading | str, took_ms: int) -> None:
        """Show a reading to the operator, and log where an endpoint's fault begins and ends; faults that go on at
        debug."""
        at, about = self._clock.now(), {"endpoint": key.name, "chain": chain_id}
        cause = found if isinstance(found, str) else None
        self._instruments.count_reading(chain_id, key.name, took_ms, None if cause is None else code_of(cause))
        head = self._journal.ledger.heads(chain_id).progress(at - self._limits.head_max_age_ms).head
        self._instruments.board.note_reading(key, at, took_ms, found, head)
        verdict, was = self._instruments.board.judge(key), self._bad.get(key)
        if verdict.cause is not None:
            self._bad[key] = verdict.status
            report = log.debug if was == verdict.status else log.warning
            report(_FAULTS[verdict.status][0], **about, cause=verdict.cause, why=describe_cause(verdict.cause))
        elif was == "unavailable" or (was and verdict.status == "current"):  # without a head it may still be apart
            log.info(_FAULTS[self._bad.pop(key)][1], **about)
