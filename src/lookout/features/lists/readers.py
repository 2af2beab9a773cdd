"""Asks indexers for their lists: beside the logs of RPC endpoints (S17 to S19), for their running hashes (S20), and for
their numbers of entries (S21)."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from lookout.base.clock import Clock
from lookout.core.model import Blocks, Check, ListEntry
from lookout.features.feature import Around
from lookout.features.lists.rules.coverage import (
    Ask,
    AskList,
    AskLogs,
    AskPosition,
    Coverage,
    Facts,
    Look,
    Refused,
)
from lookout.features.outcome import Outcome, end
from lookout.protocols.client.failure import ProbeFailed, asks_for_less
from lookout.protocols.client.request import SourceTable
from lookout.protocols.client.session import Session
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.lists import (
    HashedList,
    ListTable,
    TransactionList,
    entries_request,
    list_request,
    parse_entries,
    parse_list,
)
from lookout.protocols.source import Source, observe
from lookout.protocols.squid import SquidTable, count_request, parse_count

_List = TypeVar("_List")

_MINUTE_MS: Final = 60_000
_PAUSE_S: Final = 0.01
"""Between parsing a long answer and checking it, each of which takes a tenth of a second: what is due comes first."""


def fingerprint(*parts: object) -> str:
    """Of what is read. An address may hold a key, and is not stored."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


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


@dataclass(frozen=True, slots=True)
class Comparer:
    """Asks the two sides of one check's list, and keeps how each answered."""

    check: Check
    list: TransactionList
    source: Source
    endpoints: Mapping[str, EvmEndpoint]
    budget: Budget
    clock: Clock
    count: Callable[..., None]
    """Called with a metric and its labels for each request to an endpoint."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """How each endpoint answered last, by its name, and under "" the list."""

    def facts(self, now: int, end: int | None, heights: Mapping[str, int]) -> Facts:
        table = self.list.table
        return Facts(
            first_block=table.first_block,
            limit=table.limit,
            endpoints_needed=table.endpoints,
            each=table.each,
            now=now,
            end=end,
            heights=heights,
        )

    @property
    def subject(self) -> str:
        """A fingerprint of the list and of how it is compared: what is known under another one is forgotten."""
        table, of = self.list.table, self.list
        wanted = (sorted(map(str.lower, names)) for names in (table.contracts, table.events))
        same = (*wanted, table.first_block, table.query, table.pointer)
        return fingerprint(*same, of.url, of.kind, table.endpoints, *(("each",) if table.each else ()))

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
            found = (await observe(self.source, session, self.clock.now))[self.check]
            return found.position if isinstance(found, Blocks) else None
        name, cause = (ask.endpoint if isinstance(ask, AskLogs) else ""), None
        began_ms = self.clock.elapsed_ms()
        try:
            answer = await self._read(ask, session)
        except ProbeFailed as failure:
            answer, cause = Refused(asks_for_less(failure)), failure.reason
        self.outcomes[name] = end(self.clock.now(), self.clock.elapsed_ms() - began_ms, cause)
        if name:
            outcome = "answered" if cause is None else "failed"
            self.count("lookout_coverage_requests_total", str(self.check.chain_id), name, outcome)
        return answer

    async def _read(self, ask: AskList | AskLogs, session: Session) -> Any:
        of = self.list
        if isinstance(ask, AskList):
            return parse_list(await session.fetch(list_request(of, *ask)), of)
        await self.budget.wait_for_turn()
        node = self.endpoints[ask.endpoint]
        wanted = of.table.contracts, of.table.events
        return await node.read_logs(*wanted, ask.first, ask.last, session, self.clock.now)


def choose_lists(
    tables: Mapping[Check, SourceTable], choose: Callable[[ListTable], _List | None]
) -> dict[Check, _List]:
    listing = {check: choose(table) for check, table in tables.items() if isinstance(table, ListTable)}
    return {check: listed for check, listed in listing.items() if listed is not None}


def build_comparers(
    around: Around, clock: Clock, count: Callable[..., None] = lambda *_: None, every_ms: float | None = None
) -> tuple[Comparer, ...]:
    """One for each check that has the table. The lists of a chain share its smallest budget, unless ``every_ms``
    says how often the chain's endpoints may be asked."""
    lists = choose_lists(around.tables, ListTable.transaction_list)
    sources = {source.checks[0]: source for source in around.sources}
    nodes: dict[int | None, dict[str, EvmEndpoint]] = defaultdict(dict)
    for node in around.endpoints:
        if isinstance(node, EvmEndpoint):
            nodes[node.chain_id][node.name] = node
    waits_ms: dict[int | None, float] = defaultdict(float)
    for check, of in lists.items():
        waits_ms[check.chain_id] = every_ms or max(waits_ms[check.chain_id], _MINUTE_MS / of.table.requests_per_minute)
    budgets = {chain_id: Budget(clock, wait_ms) for chain_id, wait_ms in waits_ms.items()}
    return tuple(
        Comparer(check, of, sources[check], nodes[check.chain_id], budgets[check.chain_id], clock, count)
        for check, of in lists.items()
    )


@dataclass(slots=True)
class LinkReader:
    """One indexer's list whose running hash is checked, and how far that is."""

    check: Check
    list: HashedList
    quick_pages: int = 0
    """Pages of the first sweep that were read without a rest."""
    last_full_ms: int | None = None
    """When all that was due was last read; a quick page reads nothing else."""

    @property
    def subject(self) -> str:
        return fingerprint(self.list.url, self.list.kind, self.list.table)


@dataclass(frozen=True, slots=True)
class EntryCounter:
    """The list that a ppoi node is compared with."""

    node: Check
    indexer: Check
    table: SquidTable
    address: str
    """A fingerprint of the node's."""

    @property
    def subject(self) -> str:
        return fingerprint(self.table.url, self.address)


async def read_entries(of: HashedList, from_id: str, session: Session) -> list[ListEntry]:
    """The entries of one answer, from this one on."""
    entries = parse_entries(await session.fetch(entries_request(of, from_id)), of)
    await asyncio.sleep(_PAUSE_S)
    return entries


async def count_entries(of: SquidTable, last_block: int, session: Session) -> int:
    """How many entries the list has up to this block."""
    return parse_count(await session.fetch(count_request(of, last_block)))
