"""Comparing an indexer's list with its chain, for as long as the monitor runs (S17 to S19)."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from lookout.base.clock import Clock
from lookout.config.settings import Built
from lookout.core.coverage import Ask, AskList, AskLogs, AskPosition, Coverage, Facts, Look, Refused, Rules, choose_look
from lookout.core.model import Blocks, Check, Found
from lookout.monitor.board import CoverageNote, SideOutcome
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import ProbeFailed, asks_for_less
from lookout.protocols.client.session import Session
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.lists import TransactionList, list_request, parse_list
from lookout.protocols.source import Source, observe

_BETWEEN_LOOKS_MS: Final = 1_000
_NOTHING_DUE_MS: Final = 5_000
_MINUTE_MS: Final = 60_000


class Budget:
    """Requests for one chain's endpoints, with at least so much time between two of them."""

    def __init__(self, clock: Clock, every_ms: float) -> None:
        self._clock = clock
        self._every_ms = every_ms
        self._free_ms = 0.0

    async def wait_for_turn(self) -> None:
        now_ms = self._clock.elapsed_ms()
        turn_ms = max(now_ms, self._free_ms)
        self._free_ms = turn_ms + self._every_ms
        await asyncio.sleep((turn_ms - now_ms) / 1000)


class Comparison:
    """Both sides of one check's list: asks them, and notes how each answered."""

    def __init__(
        self,
        check: Check,
        of: TransactionList,
        source: Source,
        endpoints: Mapping[str, EvmEndpoint],
        budget: Budget,
        clock: Clock,
    ) -> None:
        table = of.table
        self.check = check
        self.source = source
        self.endpoints = endpoints
        self.rules = Rules(
            first_block=table.first_block, limit=table.limit, endpoints=table.endpoints, each=table.each
        )
        self.outcomes: dict[str, SideOutcome] = {}
        """The last ones: of endpoints by their names, and of the list under ""."""
        self.hear: Callable[[Check, Found], None] = lambda _check, _found: None
        """Called with what the indexer says of its position."""
        self.count: Callable[..., None] = lambda *_: None
        """Called with the chain, the endpoint and the outcome of each request to an endpoint."""
        self._list = of
        self._budget = budget
        self._clock = clock

    def subject(self) -> str:
        """A fingerprint: what is known of a list holds for no other. The address may hold a key, and is not stored."""
        table, kind = self._list.table, self._list.kind
        same = (sorted(table.contracts), sorted(table.events), table.first_block, table.query, table.pointer)
        each = ("each",) if table.each else ()
        compared = msgspec.json.encode((*same, self._list.url, kind, table.endpoints, *each))
        return hashlib.sha256(compared).hexdigest()
