"""A chain whose endpoints are being asked: what they agree on, and when that is looked at (M8)."""

import asyncio
from collections.abc import Sequence
from typing import Final

from lookout.base.logger import get_logger
from lookout.core.agreement import Agreement, Standing
from lookout.core.heads import Reading
from lookout.monitor.journal import Journal
from lookout.monitor.resources import Resources
from lookout.protocols.source import Endpoint

_APART: Final[frozenset[Standing]] = frozenset(("behind", "disagrees"))

log = get_logger("monitor")


class FollowedChain:
    """What the endpoints agree on, from a start of the chain to the next: what an endpoint answers after its ``end``
    takes no part any more."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        agreement: Agreement,
        journal: Journal,
        resources: Resources,
    ) -> None:
        self.has_head = asyncio.Event()  # to compare with; it is set too if none came in time
        self._chain_id = endpoints[0].chain_id
        self._names = [endpoint.name for endpoint in endpoints]
        self._agreement = agreement
        self._journal = journal
        self._resources = resources
        self._apart: set[str] = set()  # endpoints that the log says are far from the others
        self._next_change: asyncio.TimerHandle | None = None  # when an answer becomes too old
        self._is_over = False

    def wait_for_all(self, at_most_ms: int) -> None:
        """Wait so long for endpoints that are silent; then the others agree without them."""
        asyncio.get_running_loop().call_later(at_most_ms / 1000, self._end_wait)

    def answered(self, number: int, answer: Reading) -> bool:
        """Whether it is an answer that takes part."""
        self._journal.ledger.hear(self._resources.clock.now())  # whatever it says: the monitor is not blind (M13)
        return self._agreement.answered(number, answer)

    def failed(self, number: int, *, is_wrong_chain: bool) -> None:
        self._agreement.failed(number, is_wrong_chain=is_wrong_chain)

    def agree(self) -> None:
        """Read the head that the endpoints agree on now, and again when one of their answers becomes too old."""
        now, heads = self._resources.clock.now(), self._journal.ledger.heads(self._chain_id)
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
            self._next_change = asyncio.get_running_loop().call_later((next_at - now) / 1000, self.agree)

    def heights(self) -> dict[str, int]:
        """How far each endpoint is that agrees on the head, by name."""
        heights = self._agreement.heights(self._resources.clock.now(), self._journal.ledger.heads(self._chain_id))
        return {self._names[number]: height for number, height in heights.items()}

    def _note_standings(self, standings: dict[str, Standing]) -> None:
        """Log for the operator which endpoints are far from the others. Those that fail are logged elsewhere."""
        self._resources.instruments.board.note_standings(self._chain_id, standings)
        for name, standing in standings.items():
            if standing in _APART and name not in self._apart:
                self._apart.add(name)
                log.warning(
                    "an endpoint is far from the others", endpoint=name, chain=self._chain_id, standing=standing
                )
            elif standing == "agrees" and name in self._apart:
                self._apart.discard(name)
                log.info("the endpoint agrees again", endpoint=name, chain=self._chain_id)

    def end(self) -> None:
        self._is_over = True
        self._resources.instruments.board.note_standings(self._chain_id, {})
        if self._next_change is not None:
            self._next_change.cancel()

    def _end_wait(self) -> None:
        if not self._is_over:
            self._agreement.end_wait()
            self.agree()
        self.has_head.set()
