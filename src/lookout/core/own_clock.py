"""Whether this machine's clock is wrong, by the times that upstreams' answers carry (M17)."""

from statistics import median
from typing import Final

OFF_MS: Final = 60_000  # more than an answer's age and a rough clock add up to
SURE_AFTER_MS: Final = 120_000
FRESH_MS: Final = 300_000  # a source that keeps failing is asked every two minutes
_UNITS: Final = ((1_440, "day", 2 * 1_440), (60, "hour", 120), (1, "minute", 0))


class OwnClock:
    """Compares the clock with the latest time that each witness gave: a host's `Date`, a chain's newest block. Most
    witnesses have to agree, since a host may be wrong, and a chain may stand still."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[int, int]] = {}  # by witness: when heard, and how far ahead this clock was
        self._error_ms = 0  # 0 if the witnesses disagree, or the clock is right
        self._since_ms = 0  # on the clock that is never set

    @property
    def is_suspected(self) -> bool:
        """Whether most witnesses say now that the clock is wrong, so that checks of the time of day prove nothing."""
        return self._error_ms != 0

    def verdict_ms(self, now_ms: int) -> int | None:
        """How far ahead the clock is, below 0 if it is behind, 0 if it is right; None until that has lasted for two
        minutes, and with a single witness."""
        is_sure = len(self._heard) > 1 and now_ms - self._since_ms >= SURE_AFTER_MS
        return self._error_ms if is_sure else None

    def hear(self, witness: str, ahead_ms: int, now_ms: int) -> None:
        self._heard[witness] = now_ms, ahead_ms
        if not self._error_ms and abs(ahead_ms) <= OFF_MS:
            return  # the usual case
        self._heard = {name: heard for name, heard in self._heard.items() if now_ms - heard[0] <= FRESH_MS}
        off_ms = OFF_MS // 2 if self._error_ms else OFF_MS  # so that a clock at the limit does not alternate
        ahead = [by_ms for _, by_ms in self._heard.values() if by_ms > off_ms]
        behind = [by_ms for _, by_ms in self._heard.values() if by_ms < -off_ms]
        agreeing = max(ahead, behind, key=len)
        error_ms = round(median(agreeing)) if 2 * len(agreeing) > len(self._heard) else 0
        if error_ms and len(self._heard) < 2:
            return  # after a start the first witness may be the wrong one
        if _sign(error_ms) != _sign(self._error_ms):
            self._since_ms = now_ms
        self._error_ms = error_ms

    def forget(self) -> None:
        """The clock was set: earlier times say nothing about it, and every source is asked again."""
        self._heard.clear()


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def describe_clock_error(error_ms: int) -> str:
    minutes = round(abs(error_ms) / 60_000)
    size, unit = next((size, unit) for size, unit, least in _UNITS if minutes >= least)
    count = round(minutes / size)
    return f"this machine's clock is {count} {unit}{'' if count == 1 else 's'} {'ahead' if error_ms > 0 else 'behind'}"
