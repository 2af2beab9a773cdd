"""Faults of the monitor's own, and bugs: they are no observation, and change no result (M11, M17)."""

from typing import Final

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.core.plan import Limits
from lookout.features.outcome import EntryKey
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import OwnFault, own_fault

EXHAUSTED_RECHECKS: Final = 2  # a local fault counts as over after this many waits without one

log = get_logger()


class OwnFaults:
    """Notes, counts and logs everything that could not be asked."""

    def __init__(self, limits: Limits, clock: Clock, instruments: Instruments) -> None:
        self._within_s = EXHAUSTED_RECHECKS * limits.recheck_ms / 1000
        self._clock = clock
        self._instruments = instruments
        self._exhausted = False  # a local resource ran out

    def note(self, key: EntryKey, began_ms: int, error: Exception) -> None:
        """Asking ended with this error, which is being handled; a bug is logged with its traceback."""
        fault, instruments, clock = own_fault(error), self._instruments, self._clock
        if fault is None:
            instruments.count("lookout_probe_bugs_total")
            log.exception("a probe crashed", source=key.name)
        else:
            self._note_fault(fault)
        cause = None if fault is None else fault.cause
        instruments.board.note_own_failure(key, clock.now(), clock.elapsed_ms() - began_ms, cause)

    def note_success(self) -> None:
        """The fault is over after two rechecks' time without one."""
        if self._exhausted and not self._instruments.is_exhausted(self._within_s):
            log.info("the monitor's own fault is over")
            self._exhausted = False

    def _note_fault(self, fault: OwnFault) -> None:
        """Log it once for all that is asked. A stall of the process is already over."""
        if fault.lacking == "time":
            log.warning("a probe was left out: the monitor stood still meanwhile")
        elif not self._exhausted:
            log.error("a fault of the monitor's own; rows age until it ends", error=str(fault), lacking=fault.lacking)
            self._exhausted = True
        self._instruments.count_own_fault(fault.lacking)
