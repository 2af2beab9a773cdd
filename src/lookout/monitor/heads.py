"""Reading the endpoints of a chain, and the head that they agree on (M8)."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from lookout.base.clock import Clock
from lookout.core.agreement import SILENT, Agreement, Standing
from lookout.core.heads import Heads, Reading
from lookout.monitor.board import Board
from lookout.monitor.journal import Journal
from lookout.protocols.client.failure import OwnFault, ProbeFailed, WrongChainFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint


class HeadAnswer(NamedTuple):
    """An endpoint's block, or the cause of its failure."""

    said: Reading | str
    took_ms: int
    is_wrong_chain: bool = False


async def read_endpoint(endpoint: Endpoint, session: Session, clock: Clock) -> HeadAnswer:
    """OwnFault if a local resource ran out."""
    began_ms = clock.elapsed_ms()
    try:
        said: Reading | str = await endpoint.read(session, clock.now)
    except ProbeFailed as failure:
        is_wrong_chain = isinstance(failure, WrongChainFailed)
        return HeadAnswer(failure.reason, clock.elapsed_ms() - began_ms, is_wrong_chain)
    return HeadAnswer(said, clock.elapsed_ms() - began_ms)


def enter_answer(agreement: Agreement, number: int, answer: HeadAnswer) -> Reading | str:
    """Add an endpoint's answer to the agreement; return its block, or the cause of its failure."""
    if isinstance(answer.said, str):
        agreement.failed(number, is_wrong_chain=answer.is_wrong_chain)
        return answer.said
    return answer.said if agreement.answered(number, answer.said) else "future_block"


class HeadsRead(NamedTuple):
    """The result of reading all endpoints of a chain once; ``answers`` and ``standings`` are in their order."""

    head: Reading | None
    answers: tuple[HeadAnswer, ...]
    standings: tuple[Standing, ...]
    heights: dict[str, int]
    """The heights of the endpoints that agree on the head, by name."""


async def read_heads_once(
    endpoints: Sequence[Endpoint], heads: Heads, max_age_ms: int, session: Session, clock: Clock
) -> HeadsRead:
    """Read all endpoints of a chain, as after a start, and add their agreed head to ``heads``."""

    async def read(endpoint: Endpoint) -> HeadAnswer:
        began_ms = clock.elapsed_ms()
        try:
            return await read_endpoint(endpoint, session, clock)
        except OwnFault as fault:
            return HeadAnswer(fault.cause, clock.elapsed_ms() - began_ms)

    agreement = Agreement(len(endpoints), max_age_ms)
    answers = await asyncio.gather(*map(read, endpoints))
    entered = tuple(
        answer._replace(said=enter_answer(agreement, number, answer)) for number, answer in enumerate(answers)
    )
    now = clock.now()
    head = agreement.agreed(now, heads)
    if head is not None:
        heads.read(head)
    heights = {endpoints[number].name: height for number, height in agreement.heights(now, heads).items()}
    return HeadsRead(head, entered, agreement.standings(now, heads), heights)


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

    def enter(self, number: int, answer: HeadAnswer) -> Reading | str:
        """Add an answer to the agreement; return its block, or the cause of its failure."""
        if isinstance(answer.said, Reading):
            self._journal.ledger.hear(self._clock.now())  # any answer: the monitor is not blind (M13)
        entered = enter_answer(self._agreement, number, answer)
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
