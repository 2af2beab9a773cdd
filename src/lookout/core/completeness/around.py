"""Where a list has what it does not have under its block: some lists store another block with an entry (S18)."""

from collections.abc import Generator, Iterable, Sequence
from typing import Any, Final, Literal

from lookout.core.completeness.asks import Ask, AskList, Listed, Refused
from lookout.core.completeness.coverage import Finding, Transaction
from lookout.core.completeness.readings import FEW, is_whole
from lookout.core.completeness.tasks import Rules

FAR: Final = 2_000
"""How many blocks away from its own an entry is looked for."""
_MOST_REQUESTS: Final = 128
_MOST_FOR_ONE: Final = 64
"""So many of them for one entry: others wait for theirs."""
_MOST_FAILURES: Final = 8
_TURNS: Final = 2
"""How often blocks in which the list has nothing are asked for again, in turns with one that it has."""

_Piece = tuple[int, int]
"""The first and the last of some blocks."""
Place = Literal["there", "elsewhere", "nowhere", "unclear"]


def find_lowest(block: int, rules: Rules) -> int:
    """The first block around this one for which a list is asked: it may give none of blocks before its first."""
    return max(min(block, rules.lowest_block), block - FAR)


def has(transaction: Transaction) -> Generator[Ask, Any, bool]:
    """Whether it is in the list of its block alone."""
    answer = yield AskList(transaction.block, transaction.block)
    return isinstance(answer, Listed) and transaction.hash in answer.hashes


class Around:
    """What the list has in the blocks around some transactions, as far as it was read: in pieces of as many blocks as
    it gave at once lately (``reach``), and in smaller ones where these are too many. One search has many parts: what it
    goes by, what was given, and what is left or failed."""

    def __init__(self, rules: Rules, reach: int, position: int | None, control: Transaction | None) -> None:
        self.hashes: set[str] = set()
        """All that was given, in lists that were cut too."""
        self._rules = rules
        self._reach = reach
        self._position = position
        self._control = control
        self._lists: dict[_Piece, frozenset[str]] = {}
        """Those that were not cut."""
        self._cut: dict[_Piece, frozenset[str]] = {}
        self._unread: list[_Piece] = []
        self._failed: list[_Piece] = []
        """What cannot be read."""
        self._failures: list[_Piece] = []
        self._is_consistent = False
        self._requests = 0

    def read(self, findings: Sequence[Finding]) -> Generator[Ask, Any, None]:
        blocks = [each.block for each in findings]
        for first, last in _join((find_lowest(block, self._rules), block + FAR) for block in blocks):
            starts = range(first, last + 1, self._reach)
            self._unread += [(start, min(start + self._reach - 1, last)) for start in starts]
        for block in blocks:
            yield from self._read_near(block)
        self._is_consistent = self._have_pieces_all()

    def _read_near(self, block: int) -> Generator[Ask, Any, None]:
        """The nearest blocks first."""
        for _ in range(_MOST_FOR_ONE):
            near = [each for each in self._unread if _is_near(each, block)]
            is_failing = len(self._failures) + len(self._failed) >= _MOST_FAILURES
            if not near or is_failing or self._requests >= _MOST_REQUESTS:
                return
            piece = min(near, key=lambda each: (max(each[0] - block, block - each[1], 0), each[1] - each[0]))
            self._unread.remove(piece)
            self._unread += yield from self._ask(*piece)

    def _ask(self, first: int, last: int) -> Generator[Ask, Any, list[_Piece]]:
        """The pieces in which it has to be asked for again, if it is not given at once."""
        self._requests += 1
        answer = yield AskList(first, last)
        if isinstance(answer, Listed):
            self.hashes.update(answer.hashes)
            if is_whole(answer, self._rules):
                if answer.hashes or self._control is None or (yield from self._is_empty(first, last, self._control)):
                    self._lists[first, last] = answer.hashes
                    return []
                if self._may_try_again(first, last):
                    return [(first, last)]
                self._failed.append((first, last))
                return []
        elif self._position is not None and first <= self._position < last:
            return [(first, self._position), (self._position + 1, last)]  # it may give none of blocks that it lacks
        if isinstance(answer, Refused) and not answer.asks_for_less:
            if self._may_try_again(first, last):
                return [(first, last)]
            if self._position is not None and first > self._position:
                return []
            is_too_long = last - first >= FEW  # whatever it says
        else:
            is_too_long = first < last
            self._cut[first, last] = answer.hashes if isinstance(answer, Listed) else frozenset()
        if is_too_long:
            middle = (first + last) // 2
            return [(first, middle), (middle + 1, last)]
        self._failed.append((first, last))
        return []

    def _may_try_again(self, first: int, last: int) -> bool:
        """Once: it may only have failed for a moment."""
        self._failures.append((first, last))
        return self._failures.count((first, last)) == 1

    def _is_empty(self, first: int, last: int, control: Transaction) -> Generator[Ask, Any, bool]:
        """Whether it has nothing in these blocks, and something elsewhere, in turns: it may be empty for moments."""
        for _ in range(_TURNS):
            is_there = yield from has(control)
            again = yield AskList(first, last)
            if not is_there or again != Listed(frozenset(), 0):
                return False
        return True

    def find(self, finding: Finding) -> Generator[Ask, Any, Place]:
        if finding.hash not in self.hashes:
            if any(_is_near(each, finding.block) for each in (*self._unread, *self._failed)):
                return "unclear"
            is_inside = yield from self._read_middle(finding.block)
            if finding.hash not in self.hashes:
                return "nowhere" if is_inside and self._is_consistent else "unclear"
        is_there = yield from has(Transaction(finding.block, finding.hash))  # it may have come meanwhile
        return "there" if is_there else "elsewhere"

    def _have_pieces_all(self) -> bool:
        """Whether the pieces of what was cut have all that was given of it: a list that rounds where to end may lack
        the last blocks of each."""
        given = frozenset().union(*self._lists.values())
        lacking = [piece for piece, hashes in self._cut.items() if not hashes <= given]
        left = (*self._unread, *self._failed)
        return all(any(first <= each[1] and each[0] <= last for each in left) for first, last in lacking)

    def _read_middle(self, block: int) -> Generator[Ask, Any, bool]:
        """Whether a list with this block well inside can be read: others may have been rounded too."""
        lowest, highest = find_lowest(block, self._rules), max(last for _, last in self._lists)
        margin = max(min(FAR, last - first) for first, last in self._lists if first <= block <= last)

        def within(margin: int) -> _Piece:
            return max(lowest, block - margin), min(highest, block + margin)

        while margin > 1:
            if self._has_read(*within(margin // 2)):
                return True
            yield from self._ask(*within(margin))
            margin = margin if within(margin) in self._lists else margin // 2
        return False

    def _has_read(self, first: int, last: int) -> bool:
        return any(each[0] <= first and last <= each[1] for each in self._lists)


def _is_near(piece: _Piece, block: int) -> bool:
    return piece[0] <= block + FAR and block - FAR <= piece[1]


def _join(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Those that overlap as one."""
    joined: list[_Piece] = []
    for first, last in sorted(pieces):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return joined
