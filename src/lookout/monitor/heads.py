"""The heads that the endpoints of a chain agree on, while the monitor runs (M8)."""

import asyncio
from collections.abc import Sequence

from lookout.base.clock import Clock
from lookout.core.agreement import SILENT, Agreement, Standing
from lookout.core.heads import Reading
from lookout.core.plan import Limits
from lookout.monitor.board import Board
from lookout.monitor.journal import Journal
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.source import Endpoint


class FollowedChain:
    """The endpoints' agreement, from one start of the chain to the next: answers after ``end`` do not count."""

    def __init__(
        self, endpoints: Sequence[Endpoint], limits: Limits, journal: Journal, clock: Clock, board: Board
    ) -> None:
        self.has_head = asyncio.Event()  # also set if no head came in time
        self._chain_id = endpoints[0].chain_id
        self._names = [endpoint.name for endpoint in endpoints]
        self._agreement = Agreement(len(endpoints), limits.head_max_age_ms)
        self._journal = journal
        self._clock = clock
        self._board = board
        self._next_change: asyncio.TimerHandle | None = None  # when an answer becomes too old
        self._is_over = False
        asyncio.get_running_loop().call_later(limits.probe_timeout_ms / 1000, self._end_wait)

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
        if standings and SILENT.issuperset(standings.values()):
            silent.add(self._chain_id)
        else:
            silent.discard(self._chain_id)

    def _end_wait(self) -> None:
        """Agree without the endpoints that are still silent."""
        if not self._is_over:
            self._agreement.end_wait()
            self._agree()
        self.has_head.set()
