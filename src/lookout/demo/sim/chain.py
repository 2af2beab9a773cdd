"""A chain's blocks over time: they come at a pace, halt, speed up, slow down, and are sometimes taken back."""

from bisect import bisect_right
from typing import NamedTuple

from lookout.demo.sim.episodes import Course, FaultEpisode


class Block(NamedTuple):
    """A head: how high, and the timestamp that the block itself bears, in whole seconds as chains write it."""

    height: int
    block_at: int


class _Stretch(NamedTuple):
    """From ``begin_at``, when ``block`` was the head, there was a block every ``block_ms``; None while halted."""

    begin_at: int
    block: Block
    block_ms: int | None


class Chain:
    """The heads of one chain, as everybody who is in step with it sees them."""

    def __init__(self, first_height: int, block_ms: int, origin_at: int, course: Course) -> None:
        first = Block(first_height, _whole_second(origin_at))
        self._stretches = [_Stretch(origin_at, first, block_ms)]
        self._begins: list[int] = []  # of all stretches but the first
        for at, episode in course.stretches:
            head = self.head(at)
            pace_ms: int | None = block_ms
            match episode:
                case FaultEpisode(kind="halt"):
                    pace_ms = None
                case FaultEpisode(kind="pace", size=percent):
                    pace_ms = max(1, block_ms * percent // 100)
                case FaultEpisode(kind="reorg", begin_at=begin_at, size=depth) if begin_at == at:
                    head = self._taken_back(head, depth)
            self._stretches.append(_Stretch(at, head, pace_ms))
            self._begins.append(at)

    def head(self, at: int) -> Block:
        begin_at, block, block_ms = self._stretches[bisect_right(self._begins, at)]
        if block_ms is None:
            return block
        blocks, into_ms = divmod(at - begin_at, block_ms)
        # A block is known a little later than its timestamp says, each by a time of its own.
        if blocks and into_ms < (block.height + blocks) * 7_919 % (block_ms // 3 + 1):
            blocks -= 1
        if blocks == 0:
            return block
        return Block(block.height + blocks, _whole_second(begin_at + blocks * block_ms))

    def _taken_back(self, head: Block, depth: int) -> Block:
        """The head that is left when the newest blocks are taken back, with the timestamp it had all along."""
        begin_at, block, block_ms = self._stretches[-1]
        height = head.height - depth
        blocks = height - block.height
        if blocks <= 0 or block_ms is None:
            return Block(height, min(head.block_at, block.block_at))
        return Block(height, _whole_second(begin_at + blocks * block_ms))


def _whole_second(at: int) -> int:
    return at - at % 1000
