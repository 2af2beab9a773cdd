"""What every rule is: it sees what happens, and says what must not."""

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NoReturn

from tests.simulation.worlds import scene as s

_EVENTS: Final = (
    *(s.Asked, s.Answered, s.HeadAnswered, s.Agreed, s.Judged, s.Published, s.Written, s.Resumed, s.Reloaded),
    *(s.Started, s.Stored, s.Sending, s.Tried, s.Heard, s.Ended, s.Looked, s.Served, s.Shown, s.Concluded),
)
# By the rule's method that is about it: HeadAnswered is head_answered.
_HOOKS: Final[dict[str, type]] = {re.sub("(?<!^)(?=[A-Z])", "_", each.__name__).lower(): each for each in _EVENTS}


class Rule:
    """One sentence of the contract, held against all that happens.

    A rule has a method, of the event's name, for each kind of event it is about.
    """

    clauses: ClassVar[tuple[str, ...]]
    scene: s.Scene

    def hooks(self) -> Iterator[tuple[type, Callable[[Any], None]]]:
        for name, kind in _HOOKS.items():
            if hasattr(self, name):
                yield kind, getattr(self, name)

    def broken(self, text: str) -> NoReturn:
        raise s.Broken(type(self).__name__, self.clauses, self.scene.ms, text)
