"""Both sides of a comparison: an indexer's list and a chain's logs, asked for what a look wants to know (S17)."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from lookout.base.clock import Clock
from lookout.config.settings import Settings
from lookout.core.completeness.asks import Ask, AskList, AskLogs, AskPosition, AskReceipt, Look, Position, Refused
from lookout.core.completeness.coverage import Coverage, describe_gaps, follow_position, gaps_of, resume
from lookout.core.completeness.tasks import Rules
from lookout.core.heads import Pace
from lookout.core.model import NO_GAPS, Blocks, Check, Found, Gaps
from lookout.monitor.sources import Built
from lookout.protocols.client.failure import ProbeFailed, asks_for_less
from lookout.protocols.client.session import Session
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.lists import CompleteTable, TransactionList, list_request, parse_list
from lookout.protocols.source import Now, Source, observe
from lookout.state.codec import encode_coverage, name_coverage

FINAL_MS: Final = 60_000
"""A block that is final has at least so much time of the chain above it, whatever its confirmations."""


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
        """Of another one nothing that is known is true. The address may hold a key: it is not stored."""
        table, kind = self.list.table, self.list.kind
        same = (sorted(table.contracts), sorted(table.events), table.first_block, table.query, table.pointer)
        told = msgspec.json.encode((*same, self.list.url, kind, table.endpoints))
        return hashlib.sha256(told).hexdigest()

    def final_block(self, head: int, pace: Pace) -> int:
        """The last block that is deep enough below this head."""
        return head - max(self.confirmations, -(-FINAL_MS * pace.blocks // pace.ms))


def rules_of(table: CompleteTable) -> Rules:
    first_block = table.first_block
    return Rules(first_block=first_block, lowest_block=first_block, limit=table.limit, endpoints=table.endpoints)


def build_comparisons(
    settings: Settings, built: Built, make_budget: Callable[[Iterable[CompleteTable], int], Budget]
) -> tuple[Comparison, ...]:
    """Of every check that has the table. ``make_budget`` is given all tables of a chain."""
    confirmations, sources = settings.plan().confirmations, {each.checks[0]: each for each in built.sources}
    lists = [
        (each, each.chain_id, of) for each, of in settings.transaction_lists().items() if each.chain_id is not None
    ]
    endpoints: dict[int, dict[str, EvmEndpoint]] = {}
    for endpoint in built.endpoints:
        if isinstance(endpoint, EvmEndpoint):
            endpoints.setdefault(endpoint.chain_id, {})[endpoint.name] = endpoint
    tables: dict[int, list[CompleteTable]] = {}
    for _, chain_id, of in lists:
        tables.setdefault(chain_id, []).append(of.table)
    budgets = {chain_id: make_budget(those, chain_id) for chain_id, those in tables.items()}
    return tuple(
        Comparison(check, on, of, sources[check], endpoints.get(on, {}), confirmations[check], budgets[on])
        for check, on, of in lists
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
                return await self._try_in_turn(name, lambda each: each.read_logs(of, first, last, session, self._now))
            case AskReceipt(name, transaction):
                of = compared.list.table.event_filter()
                return await self._try_in_turn(
                    name, lambda each: each.read_receipt(of, transaction, session, self._now)
                )
            case AskPosition():
                found = (await observe(compared.source, session, self._now))[compared.check]
                self._hear(found)
                return Position(self._now(), found.position if isinstance(found, Blocks) else None)

    async def _read_list(self, first: int, last: int) -> Any:
        of = self._comparison.list
        body = await self._session.fetch(list_request(of, first, last))
        return await self._session.parse(body, lambda: parse_list(body, of))

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


class Coverages:
    """Of every check whose list is compared. All calls are made on the event loop."""

    def __init__(self, stored: Mapping[Check, Coverage]) -> None:
        self._known = dict(stored)
        self._said: dict[Check, int] = {}  # positions, of indexers whose last probe said one
        self._lowest: dict[Check, int] = {}  # of the positions said since the look under way began
        self._looking: set[Check] = set()
        self._encoded: dict[Check, tuple[Coverage, bytes]] = {}

    def follow(self, subjects: Mapping[Check, str], now: int) -> None:
        """Compare these from now on. What is known of another subject is forgotten."""
        known = ((check, self._known.get(check), subject) for check, subject in subjects.items())
        self._known = {
            check: before if before and before.subject == subject else Coverage(subject=subject, began_at=now)
            for check, before, subject in known
        }
        self._said = {check: position for check, position in self._said.items() if check in subjects}

    def restart(self, now: int) -> None:
        """The monitor starts, or its clock was set: what was said before is old, and so is what a look under way will
        find."""
        self._said.clear()
        self._looking.clear()
        self._known = {check: resume(coverage, now) for check, coverage in self._known.items()}

    def hear(self, check: Check, found: Found) -> None:
        """An indexer was asked how far it is."""
        if check not in self._known:
            return
        if not isinstance(found, Blocks):
            self._said.pop(check, None)
            return
        self._said[check] = found.position
        self._lowest[check] = min(found.position, self._lowest.get(check, found.position))
        self._known[check] = follow_position(self._known[check], found.position)

    def position(self, check: Check) -> int | None:
        """What the indexer's last probe said; None if that was nothing."""
        return self._said.get(check)

    def known(self, check: Check) -> Coverage:
        return self._known[check]

    def begin_look(self, check: Check) -> None:
        self._looking.add(check)
        self._lowest.pop(check, None)

    def end_look(self, check: Check, coverage: Coverage) -> None:
        """Keep what a look found, as far as it holds at the positions that were said meanwhile."""
        if check not in self._looking:
            return
        lowest = self._lowest.get(check)
        self._known[check] = coverage if lowest is None else follow_position(coverage, lowest)

    def gaps(self, check: Check) -> Gaps:
        coverage = self._known.get(check)
        return NO_GAPS if coverage is None else gaps_of(coverage)

    def describe_gaps(self, check: Check) -> str:
        coverage = self._known.get(check)
        return "" if coverage is None else describe_gaps(coverage)

    def __contains__(self, check: Check) -> bool:
        return check in self._known

    def pieces(self) -> dict[str, bytes]:
        """All that is to be in the store; what did not change is the very same bytes."""
        for check, coverage in self._known.items():
            if check not in self._encoded or self._encoded[check][0] is not coverage:
                self._encoded[check] = coverage, encode_coverage(coverage)
        return {name_coverage(check): self._encoded[check][1] for check in self._known}
