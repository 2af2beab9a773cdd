"""Comparing an indexer's list with its chain, for as long as the monitor runs (S17 to S19)."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from lookout.base.clock import Clock
from lookout.config.settings import Built
from lookout.core.coverage import Coverage
from lookout.core.looks import (
    Ask,
    AskList,
    AskLogs,
    AskPosition,
    Facts,
    Look,
    Refused,
    Rules,
    choose_task,
    run_task,
)
from lookout.core.model import Blocks, Check, Found
from lookout.core.plan import Plan
from lookout.monitor.board import CoverageNote, SideOutcome
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import ProbeFailed, asks_for_less
from lookout.protocols.client.session import Session
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.lists import CompleteTable, TransactionList, list_request, parse_list
from lookout.protocols.source import Now, Source, observe

_BETWEEN_LOOKS_MS: Final = 1_000
_NOTHING_DUE_MS: Final = 5_000
_MINUTE_MS: Final = 60_000


class Budget:
    """Requests for one chain's endpoints, with at least so much time between two of them."""

    def __init__(self, clock: Clock, every_ms: float) -> None:
        self.every_ms = every_ms
        self._clock = clock
        self._free_ms = 0.0
        self._turn = asyncio.Lock()

    async def wait_for_turn(self) -> None:
        async with self._turn:
            await asyncio.sleep(max(0, self._free_ms - self._clock.elapsed_ms()) / 1000)
            self._free_ms = self._clock.elapsed_ms() + self.every_ms


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared with what, of one check."""

    check: Check
    chain_id: int
    list: TransactionList
    source: Source
    endpoints: Mapping[str, EvmEndpoint]
    confirmations: int
    budget: Budget

    def subject(self) -> str:
        """A fingerprint: what is known of a list holds for no other. The address may hold a key, and is not stored."""
        table, kind = self.list.table, self.list.kind
        same = (sorted(table.contracts), sorted(table.events), table.first_block, table.query, table.pointer)
        each = ("each",) if table.each else ()
        compared = msgspec.json.encode((*same, self.list.url, kind, table.endpoints, *each))
        return hashlib.sha256(compared).hexdigest()


def rules_of(table: CompleteTable) -> Rules:
    return Rules(first_block=table.first_block, limit=table.limit, endpoints=table.endpoints, each=table.each)


def build_comparisons(
    lists: Mapping[Check, TransactionList],
    plan: Plan,
    built: Built,
    make_budget: Callable[[Iterable[CompleteTable]], Budget],
) -> tuple[Comparison, ...]:
    """Of every check that has the table. ``make_budget`` is given all tables of a chain."""
    sources = {source.checks[0]: source for source in built.sources}
    endpoints: dict[int, dict[str, EvmEndpoint]] = defaultdict(dict)
    for endpoint in built.endpoints:
        if isinstance(endpoint, EvmEndpoint):
            endpoints[endpoint.chain_id][endpoint.name] = endpoint
    on_chains = [(check, check.chain_id, of) for check, of in lists.items() if check.chain_id is not None]
    tables: dict[int, list[CompleteTable]] = defaultdict(list)
    for _, chain_id, of in on_chains:
        tables[chain_id].append(of.table)
    budgets = {chain_id: make_budget(on_chain) for chain_id, on_chain in tables.items()}
    return tuple(
        Comparison(check, on, of, sources[check], endpoints[on], plan.confirmations[check], budgets[on])
        for check, on, of in on_chains
    )


class Asker:
    """Asks both sides of a comparison, and notes how each answers."""

    def __init__(
        self,
        comparison: Comparison,
        session: Session,
        now: Now,
        note: Callable[[str | None, str | None], None],
        hear: Callable[[Found], None] = lambda _: None,
    ) -> None:
        """``note`` is called with an endpoint's name, or None for the list, and with the cause if it failed; ``hear``
        with what the indexer says of its position."""
        self._comparison = comparison
        self._session = session
        self._now = now
        self._note = note
        self._hear = hear

    async def drive(self, look: Look) -> Coverage:
        """Answer all that it asks; what is known then."""
        try:
            ask = next(look)
            while True:
                ask = look.send(await self._answer(ask))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    async def _answer(self, ask: Ask) -> Any:
        compared, session = self._comparison, self._session
        match ask:
            case AskList(first, last):
                return await self._try(None, lambda: self._read_list(first, last))
            case AskLogs(name, first, last):
                of = compared.list.table.event_filter()
                return await self._try_in_turn(name, lambda node: node.read_logs(of, first, last, session, self._now))
            case AskPosition():
                found = (await observe(compared.source, session, self._now))[compared.check]
                self._hear(found)
                return found.position if isinstance(found, Blocks) else None

    async def _read_list(self, first: int, last: int) -> Any:
        of = self._comparison.list
        body = await self._session.fetch(list_request(of, first, last))
        return parse_list(body, of)

    async def _try_in_turn(self, name: str, ask: Callable[[EvmEndpoint], Any]) -> Any:
        """Each request takes a turn of the budget, also one for the chain id."""
        endpoint, budget = self._comparison.endpoints[name], self._comparison.budget

        async def ask_in_turn() -> Any:
            await budget.wait_for_turn()
            while await endpoint.check_chain(self._session, self._now):
                self._note(name, None)
                await budget.wait_for_turn()
            return await ask(endpoint)

        return await self._try(name, ask_in_turn)

    async def _try(self, name: str | None, ask: Callable[[], Any]) -> Any:
        """The answer; Refused if there is none that counts. A fault of our own ends the look: it proves nothing."""
        try:
            answer = await ask()
        except ProbeFailed as failure:
            self._note(name, failure.reason)
            return Refused(asks_for_less(failure))
        self._note(name, None)
        return answer


@dataclass(frozen=True, slots=True)
class Comparer:
    """Of one check; what is known of the list is the journal's."""

    comparison: Comparison
    rules: Rules
    journal: Journal
    clock: Clock
    instruments: Instruments
    _outcomes: dict[str | None, SideOutcome] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return self.comparison.check.name

    async def look(self, session: Session, heights: Mapping[str, int]) -> int:
        """Look at what is due; how long to wait until the next time, in milliseconds."""
        check, journal, clock = self.comparison.check, self.journal, self.clock
        began_ms, facts = clock.elapsed_ms(), self._gather_facts(heights)
        coverage = journal.lists.coverage(check)
        task = choose_task(coverage, self.rules, facts)
        if task is not None:
            journal.lists.begin_look(check)
            asker = Asker(self.comparison, session, journal.now, self._note, partial(journal.hear_position, check))
            journal.end_look(check, await asker.drive(run_task(task, coverage, self.rules, facts)))
        self.note_progress(clock.elapsed_ms() - began_ms)
        return _NOTHING_DUE_MS if task is None else _BETWEEN_LOOKS_MS

    def note_progress(self, took_ms: int = 0) -> None:
        """For the operator: what is known now."""
        check, now = self.comparison.check, self.clock.now()
        coverage, first_block = self.journal.lists.coverage(check), self.rules.first_block
        note = CoverageNote(check, now, took_ms, coverage, first_block, dict(self._outcomes))
        self.instruments.board.note_coverage(note)

    def _gather_facts(self, heights: Mapping[str, int]) -> Facts:
        journal, comparison = self.journal, self.comparison
        check = comparison.check
        return Facts(journal.now(), journal.final_block(check), journal.lists.position(check), heights)

    def _note(self, endpoint: str | None, cause: str | None) -> None:
        self._outcomes[endpoint] = SideOutcome(self.clock.now(), cause)
        if endpoint is not None:
            chain, outcome = str(self.comparison.chain_id), "answered" if cause is None else "failed"
            self.instruments.count("lookout_coverage_requests_total", chain, endpoint, outcome)


def build_comparers(
    lists: Mapping[Check, TransactionList],
    plan: Plan,
    built: Built,
    journal: Journal,
    clock: Clock,
    instruments: Instruments,
    rules_of: Callable[[CompleteTable], Rules] = rules_of,
) -> tuple[Comparer, ...]:
    """One for each check that has the table."""

    def make_budget(tables: Iterable[CompleteTable]) -> Budget:
        return Budget(clock, _MINUTE_MS / min(table.requests_per_minute for table in tables))

    return tuple(
        Comparer(comparison, rules_of(comparison.list.table), journal, clock, instruments)
        for comparison in build_comparisons(lists, plan, built, make_budget)
    )
