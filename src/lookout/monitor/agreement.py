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
        if not counts(answer):
            return self.failed(endpoint)
        self._answers[endpoint] = answer
        self._unheard.discard(endpoint)
        return None if self._unheard else agree(self._answers.values(), answer.at, self._max_age_ms)

    def failed(self, endpoint: int) -> Reading | None:
        """An endpoint gave no answer that counts: the head, if the others were only waiting for it."""
        if endpoint not in self._unheard:
            return None
        self._unheard.discard(endpoint)
        return None if self._unheard else self._of_those_heard()

    def give_up_waiting(self) -> Reading | None:
        """Make do with the endpoints that were heard; the head, if that makes one."""
        if not self._unheard:
            return None
        self._unheard.clear()
        return self._of_those_heard()

    def _of_those_heard(self) -> Reading | None:
        at = max((answer.at for answer in self._answers.values()), default=0)
        return agree(self._answers.values(), at, self._max_age_ms)
