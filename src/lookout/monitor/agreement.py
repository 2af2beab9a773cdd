"""One chain's endpoints, and the head they agree on (M8)."""

from lookout.core.heads import Reading, agree, counts


class Agreement:
    """The latest answer of each endpoint.

    After a start there is no head until each endpoint was heard once, or the wait for that was given up: the first to
    answer, alone, might be the one that lies.
    """

    def __init__(self, endpoints: int, max_age_ms: int) -> None:
        self._answers: dict[int, Reading] = {}
        self._unheard = set(range(endpoints))
        self._max_age_ms = max_age_ms

    def answered(self, endpoint: int, answer: Reading) -> Reading | None:
        """The head that this answer gives, if it gives one."""
        self._unheard.discard(endpoint)
        self._answers[endpoint] = answer
        return self._agreed(answer.at) if counts(answer) else None

    def failed(self, endpoint: int, at: int) -> Reading | None:
        """An endpoint did not answer: the head, if the others were only waiting for it."""
        if self._unheard != {endpoint}:
            self._unheard.discard(endpoint)
            return None
        self._unheard.clear()
        return self._agreed(at)

    def give_up_waiting(self, at: int) -> Reading | None:
        """Make do with the endpoints that were heard; the head, if that makes one."""
        if not self._unheard:
            return None
        self._unheard.clear()
        return self._agreed(at)

    def _agreed(self, at: int) -> Reading | None:
        return None if self._unheard else agree(self._answers.values(), at, self._max_age_ms)
