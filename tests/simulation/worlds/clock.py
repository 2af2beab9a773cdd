"""A machine's clock: the wall part can be set and slewed, the elapsed part cannot."""

from tests.simulation.worlds.loop import VirtualLoop


class VirtualClock:
    """``origin_at`` is what a right wall clock shows when the world begins."""

    def __init__(self, loop: VirtualLoop, origin_at: int, ahead_ms: int = 0) -> None:
        self._loop = loop
        self._origin_at = origin_at
        self._ahead_ms = ahead_ms
        self._slews: list[tuple[int, int, int]] = []  # from when, for how long, by how much

    def now(self) -> int:
        return self._origin_at + self._loop.now_ms() + self.ahead_ms()

    def elapsed_ms(self) -> int:
        return self._loop.now_ms()

    def ahead_ms(self) -> int:
        """By how much the wall part is ahead of the truth."""
        if not self._slews:
            return self._ahead_ms
        now_ms = self._loop.now_ms()
        slewed = (by_ms * min(now_ms - at, lasts_ms) // lasts_ms for at, lasts_ms, by_ms in self._slews)
        return self._ahead_ms + sum(slewed)

    def step(self, by_ms: int) -> None:
        """Set the wall part, at once."""
        self._ahead_ms += by_ms

    def slew(self, by_ms: int, lasts_ms: int) -> None:
        """Let the wall part run a little too fast or too slow for a while."""
        self._slews.append((self._loop.now_ms(), lasts_ms, by_ms))
