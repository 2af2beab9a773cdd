"""The wait between two probes of a source (M1, M2), and the shortest time between publications (M5)."""

from typing import Final

from lookout.core.plan import Limits

GATHER_MS: Final = 500  # at most two publications a second


def wait_ms(failures: int, chance: float, limits: Limits) -> int:
    """How long after a probe ended the next one begins.

    ``failures`` counts the consecutive failed probes before now; ``chance`` is from 0 up to 1 and spreads the probes
    over the jitter. Counted from the end of a probe, a row's greatest age is the sum of wait, jitter, probe and
    publication (M15).
    """
    # Past 2**20 the cap has long been reached; a larger exponent would only cost time.
    doubled_ms = limits.recheck_ms << min(max(failures - 1, 0), 20)
    longest_ms = max(limits.backoff_cap_ms, limits.recheck_ms)
    return min(doubled_ms, longest_ms) + int(chance * limits.jitter_ms)
