"""Comparing an indexer's list with its chain, for as long as the monitor runs (S17 to S19)."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from lookout.base.clock import Clock
from lookout.config.settings import Built
from lookout.core.coverage import Coverage
from lookout.core.looks import Ask, AskList, AskLogs, AskPosition, Facts, Look, Refused, Rules, choose_look
from lookout.core.model import Blocks, Check, Found
from lookout.monitor.board import SideOutcome, describe_coverage
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared with what, of one check."""

    check: Check
    list: TransactionList
    source: Source
    endpoints: Mapping[str, EvmEndpoint]

    def rules(self) -> Rules:
        table = self.list.table
        return Rules(first_block=table.first_block, limit=table.limit, endpoints=table.endpoints, each=table.each)

    def subject(self) -> str:
        """A fingerprint: what is known of a list holds for no other. The address may hold a key, and is not stored."""
        table, kind = self.list.table, self.list.kind
        same = (sorted(table.contracts), sorted(table.events), table.first_block, table.query, table.pointer)
        each = ("each",) if table.each else ()
        compared = msgspec.json.encode((*same, self.list.url, kind, table.endpoints, *each))
        return hashlib.sha256(compared).hexdigest()


def build_comparisons(lists: Mapping[Check, TransactionList], built: Built) -> list[Comparison]:
    """Of every check that has the table."""
    sources = {source.checks[0]: source for source in built.sources}
    nodes: dict[int, dict[str, EvmEndpoint]] = defaultdict(dict)
    for node in built.endpoints:
        if isinstance(node, EvmEndpoint):
            nodes[node.chain_id][node.name] = node
    return [Comparison(check, of, sources[check], nodes[check.chain_id or 0]) for check, of in lists.items()]


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


class Asker:
    """Asks both sides of a comparison, and notes how each answers."""

    def __init__(
        self,
        comparison: Comparison,
        budget: Budget,
        clock: Clock,
        note: Callable[[str | None, str | None], None],
        hear: Callable[[Found], None] = lambda _: None,
    ) -> None:
        """``note`` is called with an endpoint's name, or None for the list, and with the cause if it failed; ``hear``
        with what the indexer says of its position."""
        self._comparison = comparison
        self._budget = budget
        self._clock = clock
        self._note = note
        self._hear = hear

    async def drive(self, look: Look, session: Session) -> Coverage:
        """Answer all that a look asks; return what is known then."""
        try:
            ask = next(look)
            while True:
                ask = look.send(await self._answer(ask, session))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    async def _answer(self, ask: Ask, session: Session) -> Any:
        """The answer; Refused if there is none that counts. A fault of our own ends the look: it proves nothing."""
        if isinstance(ask, AskPosition):
            found = (await observe(self._comparison.source, session, self._clock.now))[self._comparison.check]
            self._hear(found)
            return found.position if isinstance(found, Blocks) else None
        name = ask.endpoint if isinstance(ask, AskLogs) else None
        try:
            answer = await self._read(ask, session)
        except ProbeFailed as failure:
            self._note(name, failure.reason)
            return Refused(asks_for_less(failure))
        self._note(name, None)
        return answer

    async def _read(self, ask: AskList | AskLogs, session: Session) -> Any:
        of = self._comparison.list
        if isinstance(ask, AskList):
            return parse_list(await session.fetch(list_request(of, *ask)), of)
        await self._budget.wait_for_turn()
        node = self._comparison.endpoints[ask.endpoint]
        return await node.read_logs(of.table.event_filter(), ask.first, ask.last, session, self._clock.now)


class Comparer:
    """Of one check; what is known of the list is the journal's."""

    def __init__(
        self, comparison: Comparison, budget: Budget, journal: Journal, clock: Clock, instruments: Instruments
    ) -> None:
        self.check = comparison.check
        self.subject = comparison.subject()
        self._rules = comparison.rules()
        self._journal = journal
        self._clock = clock
        self._instruments = instruments
        self._outcomes: dict[str, SideOutcome] = {}
        self._list_cause: str | None = None
        self._asker = Asker(comparison, budget, clock, self._note, partial(journal.hear_position, self.check))

    async def look(self, session: Session, heights: Mapping[str, int]) -> int:
        """Look at what is due; how long to wait until the next time, in milliseconds."""
        check, journal, began_ms = self.check, self._journal, self._clock.elapsed_ms()
        now = journal.now()
        facts = Facts(now, journal.final_block(check), journal.lists.position(check, now), heights)
        look = choose_look(journal.lists.coverage(check), self._rules, facts)
        if look is not None:
            journal.end_look(check, await self._asker.drive(look, session))
        self.note_progress(self._clock.elapsed_ms() - began_ms)
        return _NOTHING_DUE_MS if look is None else _BETWEEN_LOOKS_MS

    def note_progress(self, took_ms: int = 0) -> None:
        """For the operator: what is known now."""
        coverage, first_block = self._journal.lists.coverage(self.check), self._rules.first_block
        described = describe_coverage(self.check, coverage, first_block, self._outcomes)
        outcome = SideOutcome(self._clock.now(), self._list_cause)
        self._instruments.board.note_coverage(self.check, took_ms, outcome, described)

    def _note(self, endpoint: str | None, cause: str | None) -> None:
        if endpoint is None:
            self._list_cause = cause
            return
        self._outcomes[endpoint] = SideOutcome(self._clock.now(), cause)
        chain, outcome = str(self.check.chain_id), "answered" if cause is None else "failed"
        self._instruments.count("lookout_coverage_requests_total", chain, endpoint, outcome)


def build_comparers(
    lists: Mapping[Check, TransactionList],
    built: Built,
    journal: Journal,
    clock: Clock,
    instruments: Instruments,
) -> tuple[Comparer, ...]:
    """One for each check that has the table. The lists of a chain share its smallest budget."""
    every_ms: dict[int | None, float] = defaultdict(float)
    for check, of in lists.items():
        every_ms[check.chain_id] = max(every_ms[check.chain_id], _MINUTE_MS / of.table.requests_per_minute)
    budgets = {chain_id: Budget(clock, wait_ms) for chain_id, wait_ms in every_ms.items()}
    return tuple(
        Comparer(comparison, budgets[comparison.check.chain_id], journal, clock, instruments)
        for comparison in build_comparisons(lists, built)
    )
