"""Which answer of a chain's RPC endpoints is its head (M8)."""

from collections.abc import Iterable
from typing import Final, Literal

from lookout.core.heads import ChainProgress, Heads, Pace, Reading

# How an endpoint's latest answer counts. Only an answer that agrees takes part in the head.
Standing = Literal["agrees", "behind", "disagrees", "not_confirmed", "below", "old", "failed", "wrong_chain"]
APART: Final[frozenset[Standing]] = frozenset(("behind", "disagrees"))
SILENT: Final[frozenset[Standing]] = frozenset(("old", "failed", "wrong_chain"))  # no usable answer

FUTURE_TOLERANCE_MS: Final = 60_000
NEAR_MS: Final = 600_000
LATER_BLOCK_MS: Final = 600_000


class Agreement:
    """The latest answer of each endpoint.

    There is no head until every endpoint has answered or failed, or the wait has ended: the first answer, alone, might
    be a lie.
    """

    def __init__(self, endpoints: int, max_age_ms: int) -> None:
        self._endpoints = endpoints
        self._max_age_ms = max_age_ms
        self._answers: dict[int, Reading] = {}
        self._unheard = set(range(endpoints))
        self._wrong_chain: set[int] = set()  # last seen on another chain

    def answered(self, endpoint: int, answer: Reading) -> bool:
        """Take an endpoint's answer. False if its block is from the future, which counts as a failure."""
        self._unheard.discard(endpoint)
        if answer.block_at - answer.at > FUTURE_TOLERANCE_MS:
            return False
        self._answers[endpoint] = answer
        self._wrong_chain.discard(endpoint)
        return True

    def failed(self, endpoint: int, *, is_wrong_chain: bool = False) -> None:
        """The endpoint failed. Its last answer still counts, unless the endpoint is on another chain."""
        self._unheard.discard(endpoint)
        if is_wrong_chain:
            self._answers.pop(endpoint, None)
            self._wrong_chain.add(endpoint)

    def end_wait(self) -> None:
        self._unheard.clear()

    def agreed(self, at: int, heads: Heads) -> Reading | None:
        if self._unheard:
            return None
        match self._eligible(at):
            case eligible if self._endpoints > 2:
                return agree_among_many(eligible, heads.pace())
            case [one, other]:
                return agree_among_two(one, other, heads.pace())
            case [alone]:
                return accept_alone(alone, heads)
            case _:
                return None

    def next_change_at(self, at: int) -> int | None:
        return min((answer.at + self._max_age_ms + 1 for answer in self._eligible(at)), default=None)

    def standings(self, at: int, heads: Heads) -> tuple[Standing, ...]:
        """How each endpoint compares with the head at this instant (M16); empty while an endpoint is waited for."""
        if self._unheard:
            return ()
        progress, eligible = heads.progress(at - self._max_age_ms), self._eligible(at)
        return tuple(self._standing(endpoint, progress, eligible) for endpoint in range(self._endpoints))

    def heights(self, at: int, heads: Heads) -> dict[int, int]:
        standings = enumerate(self.standings(at, heads))
        return {endpoint: self._answers[endpoint].height for endpoint, standing in standings if standing == "agrees"}

    def _standing(self, endpoint: int, progress: ChainProgress, eligible: list[Reading]) -> Standing:
        answer, (head, pace, _) = self._answers.get(endpoint), progress
        if answer is None:
            return "wrong_chain" if endpoint in self._wrong_chain else "failed"
        if answer not in eligible:
            return "old"
        if head is None and len(eligible) > 1:
            return "disagrees"
        if head is None:
            return "not_confirmed" if self._endpoints > 2 else "below"  # of one or two endpoints, one answer is enough
        if _are_near(answer.height, head.height, pace):
            return "agrees"
        return "behind" if answer.height < head.height else "disagrees"

    def _eligible(self, at: int) -> list[Reading]:
        return [answer for answer in self._answers.values() if at - answer.at <= self._max_age_ms]


def agree_among_many(answers: Iterable[Reading], pace: Pace) -> Reading | None:
    """The second-highest answer, if another answer is near it: while two endpoints agree, a third that lies, lags or
    is frozen has no effect."""
    highest_first = sorted(answers, key=_by_height, reverse=True)
    if len(highest_first) < 2:
        return None
    height = highest_first[1].height
    neighbours = sum(_are_near(height, other.height, pace) for other in highest_first) - 1
    return next(answer for answer in highest_first if answer.height == height) if neighbours else None


def agree_among_two(one: Reading, other: Reading, pace: Pace) -> Reading | None:
    """The lower answer; if the two are far apart, the answer with the later block: the other endpoint may
    still be syncing."""
    lower, higher = sorted((one, other), key=_by_height)
    if lower.height == higher.height:
        return higher  # the answer read last
    if _are_near(lower.height, higher.height, pace):
        return lower
    earlier_block, later_block = sorted((one, other), key=lambda answer: answer.block_at)
    return later_block if later_block.block_at - earlier_block.block_at > LATER_BLOCK_MS else None


def accept_alone(answer: Reading, heads: Heads) -> Reading | None:
    """An answer without confirmation, unless it is far below a height that the chain is known to have reached."""
    missing = heads.highest_before(answer.at) - answer.height
    return None if heads.pace().takes_longer(missing, NEAR_MS) else answer


def _are_near(height: int, other: int, pace: Pace) -> bool:
    return not pace.takes_longer(abs(height - other), NEAR_MS)


def _by_height(answer: Reading) -> tuple[int, int, int]:
    """Of equal heights the answer read last comes last."""
    return answer.height, answer.at, answer.block_at
