"""Reading the endpoints of a chain, and the head that they agree on (M8)."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.core.agreement import APART, SILENT, Agreement, Standing, describe_place
from lookout.core.heads import Heads, Reading
from lookout.monitor.board import Board
from lookout.monitor.journal import Journal
from lookout.protocols.client.failure import OwnFault, ProbeFailed, WrongChainFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint

log = get_logger()


class HeadAnswer(NamedTuple):
    """What an endpoint said: a block, or the cause of its failure."""

    said: Reading | str
    took_ms: int
    is_wrong_chain: bool = False


async def read_endpoint(endpoint: Endpoint, session: Session, clock: Clock) -> HeadAnswer:
    """OwnFault if something of our own was lacking to ask."""
    began_ms = clock.elapsed_ms()
    try:
        said: Reading | str = await endpoint.read(session, clock.now)
    except ProbeFailed as failure:
        is_wrong_chain = isinstance(failure, WrongChainFailed)
        return HeadAnswer(failure.reason, clock.elapsed_ms() - began_ms, is_wrong_chain)
    return HeadAnswer(said, clock.elapsed_ms() - began_ms)


def enter_answer(agreement: Agreement, number: int, answer: HeadAnswer) -> Reading | str:
    """Let an endpoint's answer take part; the block, or the cause if the reading failed."""
    if isinstance(answer.said, str):
        agreement.failed(number, is_wrong_chain=answer.is_wrong_chain)
        return answer.said
    return answer.said if agreement.answered(number, answer.said) else "future_block"


class HeadsRead(NamedTuple):
    """What came of reading all endpoints of a chain once; ``answers`` and ``standings`` are in their order."""

    head: Reading | None
    answers: tuple[HeadAnswer, ...]
    standings: tuple[Standing, ...]
    heights: dict[str, int]
    """How far each endpoint is that agrees on the head, by name."""


async def read_heads_once(
    endpoints: Sequence[Endpoint], heads: Heads, max_age_ms: int, session: Session, clock: Clock
) -> HeadsRead:
    """Read all endpoints of a chain, as after a start, and enter the head that they agree on into ``heads``."""

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
    """What the endpoints agree on, from a start of the chain to the next: what an endpoint answers after ``end`` takes
    no part any more."""

    def __init__(
        self, endpoints: Sequence[Endpoint], max_age_ms: int, journal: Journal, clock: Clock, board: Board
    ) -> None:
        self.has_head = asyncio.Event()  # to compare with; set, too, if no head came in time
        self._chain_id = endpoints[0].chain_id
        self._names = [endpoint.name for endpoint in endpoints]
        self._max_age_ms = max_age_ms
        self._agreement = Agreement(len(endpoints), max_age_ms)
        self._journal = journal
        self._clock = clock
        self._board = board
        self._apart: set[str] = set()  # endpoints that the log says are far from the others
        self._next_change: asyncio.TimerHandle | None = None  # when an answer becomes too old
        self._is_over = False

    def wait_for_all(self, at_most_ms: int) -> None:
        """Wait so long for endpoints that are silent; then the others agree without them."""
        asyncio.get_running_loop().call_later(at_most_ms / 1000, self._end_wait)

    def enter(self, number: int, answer: HeadAnswer) -> Reading | str:
        """Let an answer take part; the block, or the cause if the reading failed."""
        if isinstance(answer.said, Reading):
            self._journal.ledger.hear(self._clock.now())  # whatever it says: the monitor is not blind (M13)
        entered = enter_answer(self._agreement, number, answer)
        self._agree()
        return entered

    def heights(self) -> dict[str, int]:
        """How far each endpoint is that agrees on the head, by name."""
        heights = self._agreement.heights(self._clock.now(), self._journal.ledger.heads(self._chain_id))
        return {self._names[number]: height for number, height in heights.items()}

    def end(self) -> None:
        self._is_over = True
        self._board.note_standings(self._chain_id, {})
        if self._next_change is not None:
            self._next_change.cancel()

    def _agree(self) -> None:
        """Read the head that the endpoints agree on now, and again when one of their answers becomes too old."""
        now, heads = self._clock.now(), self._journal.ledger.heads(self._chain_id)
        answer = self._agreement.agreed(now, heads)
        if answer is not None:
            self._journal.read_head(self._chain_id, answer)
            if not self._journal.timeline.stepped.is_set():  # or all are about to agree again
                self.has_head.set()
        self._note_standings(dict(zip(self._names, self._agreement.standings(now, heads), strict=False)))
        if self._next_change is not None:
            self._next_change.cancel()
        next_at = self._agreement.next_change_at(now)
        if next_at is not None:
            self._next_change = asyncio.get_running_loop().call_later((next_at - now) / 1000, self._agree)

    def _note_standings(self, standings: dict[str, Standing]) -> None:
        """Log for the operator which endpoints are far from the others. Those that fail are logged elsewhere."""
        self._board.note_standings(self._chain_id, standings)
        silent = self._journal.silent_chains
        (silent.add if standings and SILENT.issuperset(standings.values()) else silent.discard)(self._chain_id)
        for number, (name, standing) in enumerate(standings.items()):
            if standing in APART and name not in self._apart:
                self._apart.add(name)
                about = {"endpoint": name, "chain": self._chain_id, "standing": standing}
                log.warning("an endpoint is far from the others", **about, where=self._describe_place(number))
            elif standing == "agrees" and name in self._apart:
                self._apart.discard(name)
                log.info("the endpoint agrees again", endpoint=name, chain=self._chain_id)

    def _describe_place(self, number: int) -> str:
        """How far from the head an endpoint's latest answer is, if there is one, and which block that is."""
        head = self._journal.ledger.heads(self._chain_id).progress(self._clock.now() - self._max_age_ms).head
        answer = self._agreement.latest(number)
        lag = None if answer is None or head is None else head.height - answer.height
        return "" if answer is None else describe_place(answer.height, lag)

    def _end_wait(self) -> None:
        if not self._is_over:
            self._agreement.end_wait()
            self._agree()
        self.has_head.set()
