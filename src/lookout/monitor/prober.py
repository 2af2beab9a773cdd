"""Probes the sources, and has their answers judged (M1, M12, M17)."""

from collections.abc import Iterable
from dataclasses import replace

from lookout.base.logger import get_logger
from lookout.core.causes import code_of, describe_cause, find_doubts
from lookout.core.model import Blocks, Failed, Found, Members
from lookout.features.outcome import chain_label
from lookout.monitor.heads import Asking, FollowedChains
from lookout.protocols.client.failure import OwnFault
from lookout.protocols.client.session import Session
from lookout.protocols.source import Source, observe

log = get_logger()


class Prober:
    def __init__(self, chains: FollowedChains, asking: Asking) -> None:
        self._chains = chains
        self._journal, self._own_clock, self._limits, self._clock, self._instruments, self._chance = asking

    async def probe(self, source: Source, session: Session) -> int:
        """Probe a source, and judge its answers; return the wait until the next probe in milliseconds."""
        began_ms = self._clock.elapsed_ms()
        ends: list[int] = []
        found = await observe(source, replace(session, hear_certificate=ends.append), self._clock.now)
        self._check_for_own_fault(began_ms, found.values())
        self._note_doubts(source.name, found.values(), ends)
        took_ms = self._clock.elapsed_ms() - began_ms
        self._instruments.count_probe(source.checks, took_ms, found)
        for check, outcome in found.items():
            if isinstance(outcome, Blocks):
                # After a start a position waits for a head, but no longer than a probe lasts (M12).
                await self._chains.wait_for_head(check.chain_id)
        rows = [self._journal.observe(check, outcome) for check, outcome in found.items()]
        causes = self._journal.causes
        for row in rows:
            if row.has_failed and (cause := causes.get(row.check)):
                labels = row.check.service, chain_label(row.check), code_of(cause)
                self._instruments.count("lookout_probe_failures_total", *labels)
        self._instruments.board.note_source(source.name, self._clock.now(), took_ms, rows, causes)
        failures = min(self._journal.ledger.failures(check) for check in source.checks)
        return self._limits.wait_ms(failures, self._chance.random())

    def _check_for_own_fault(self, began_ms: int, found: Iterable[Found]) -> None:
        """OwnFault if the probe is no observation: the event loop stood still meanwhile, or announcements were compared
        with a wrong clock."""
        self._journal.timeline.check_for_stall(began_ms)
        if self._own_clock.is_suspected and any(isinstance(outcome, Members) for outcome in found):
            raise OwnFault("clock")

    def _note_doubts(self, source: str, found: Iterable[Found], ends: list[int]) -> None:
        """Show and log faults of a source that no row shows. A failed probe changes none."""
        board = self._instruments.board
        if ends:
            board.certificates_end_at[source] = min(ends)
        if all(isinstance(outcome, Failed) for outcome in found):
            return
        doubts = find_doubts(found, board.certificates_end_at.get(source), self._clock.now())
        for doubt in board.note_doubts(source, doubts):
            log.warning("something is wrong with a source", source=source, cause=doubt, why=describe_cause(doubt))
