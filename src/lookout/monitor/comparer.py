"""Comparing one indexer's list with its chain, look after look, for as long as the monitor runs (S17 to S19)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from lookout.base.clock import Clock
from lookout.config.settings import Settings
from lookout.core.completeness.looks import run_task
from lookout.core.completeness.tasks import Facts, Rules, choose_task
from lookout.monitor.board import CoverageNote, SideOutcome
from lookout.monitor.comparison import Asker, Budget, Comparison, build_comparisons, rules_of
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.monitor.sources import Built
from lookout.protocols.client.session import Session
from lookout.protocols.lists import CompleteTable

_BETWEEN_LOOKS_MS: Final = 1_000
_NOTHING_DUE_MS: Final = 5_000
_MINUTE_MS: Final = 60_000


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
        coverage = journal.coverages.known(check)
        task = choose_task(coverage, self.rules, facts)
        if task is not None:
            journal.coverages.begin_look(check)
            asker = Asker(self.comparison, session, journal.now, self._note, partial(journal.hear_position, check))
            journal.end_look(check, await asker.drive(run_task(task, coverage, self.rules, facts)))
        self.note_progress(clock.elapsed_ms() - began_ms)
        return _NOTHING_DUE_MS if task is None else _BETWEEN_LOOKS_MS

    def note_progress(self, took_ms: int = 0) -> None:
        """For the operator: what is known now."""
        check, now = self.comparison.check, self.clock.now()
        coverage, first_block = self.journal.coverages.known(check), self.rules.first_block
        note = CoverageNote(check, now, took_ms, coverage, first_block, dict(self._outcomes))
        self.instruments.board.note_coverage(note)

    def _gather_facts(self, heights: Mapping[str, int]) -> Facts:
        journal, comparison = self.journal, self.comparison
        now = journal.now()
        head, pace = journal.ledger.progress(now)[comparison.chain_id]
        if journal.timeline.stepped.is_set():  # all is about to begin again
            head = None
        final = None if head is None else comparison.final_block(head.height, pace)
        return Facts(now, final, journal.coverages.position(comparison.check), heights)

    def _note(self, endpoint: str | None, cause: str | None) -> None:
        self._outcomes[endpoint] = SideOutcome(self.clock.now(), cause)
        if endpoint is not None:
            instruments, chain_id = self.instruments, self.comparison.chain_id
            instruments.count_coverage_request(chain_id, endpoint, has_failed=cause is not None)


def build_comparers(
    settings: Settings,
    built: Built,
    journal: Journal,
    clock: Clock,
    instruments: Instruments,
    rules_of: Callable[[CompleteTable], Rules] = rules_of,
) -> tuple[Comparer, ...]:
    """One for each check that has the table."""

    def make_budget(tables: Iterable[CompleteTable], _chain_id: int) -> Budget:
        return Budget(clock, _MINUTE_MS / min(table.requests_per_minute for table in tables))

    return tuple(
        Comparer(comparison, rules_of(comparison.list.table), journal, clock, instruments)
        for comparison in build_comparisons(settings, built, make_budget)
    )
