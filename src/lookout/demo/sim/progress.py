"""How far something has got that follows something else, told as the instant up to which it has followed."""

from bisect import bisect_right
from typing import Final

from lookout.demo.sim.episodes import Course, FaultEpisode

_NORMAL: Final = 100
_CATCHING_UP: Final = 600  # percent of the speed of what is followed


class SimulatedProgress:
    """Follows by ``delay_ms`` when all is well; falls behind in its episodes and catches up afterwards."""

    def __init__(self, delay_ms: int, origin_at: int, course: Course) -> None:
        # When a stretch begins, what is reached then, and the speed in percent from then on.
        self._stretches = [(origin_at, origin_at - delay_ms, _NORMAL)]
        self._begins: list[int] = []  # of all stretches but the first
        for at, episode in course.stretches:
            reached_at = self.reached_at(at)
            if episode is not None and episode.kind == "wipe":
                reached_at = min(reached_at, episode.begin_at - episode.size)
            if self._begins and self._begins[-1] >= at:  # it will not have caught up by then
                self._begins.pop()
                self._stretches.pop()
            speed = _speed(episode)
            self._turn(at, reached_at, _CATCHING_UP if speed is None else speed)
            if speed is None:
                missing_ms = at - delay_ms - reached_at
                caught_up_at = at + missing_ms * 100 // (_CATCHING_UP - _NORMAL)
                self._turn(caught_up_at, caught_up_at - delay_ms, _NORMAL)

    def reached_at(self, at: int) -> int:
        """What was there by this instant has been taken in."""
        begin_at, reached_at, speed = self._stretches[bisect_right(self._begins, at)]
        return reached_at + (at - begin_at) * speed // 100

    def _turn(self, at: int, reached_at: int, speed: int) -> None:
        self._begins.append(at)
        self._stretches.append((at, reached_at, speed))


def _speed(episode: FaultEpisode | None) -> int | None:
    """The speed that an episode forces on its subject; None where it does as well as it can."""
    match episode:
        case FaultEpisode(kind="freeze" | "outage" | "wipe"):
            return 0
        case FaultEpisode(kind="behind", size=percent):
            return percent
        case _:
            return None
