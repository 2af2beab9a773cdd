"""What every rule is: it sees what happens, and says what must not."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NoReturn

from tests.simulation.worlds import scene as s

_HOOKS: Final[dict[type, str]] = {
    s.Asked: "asked",
    s.Answered: "answered",
    s.HeadAnswered: "head_answered",
    s.Agreed: "agreed",
    s.Judged: "judged",
    s.Published: "published",
    s.Written: "written",
    s.Resumed: "resumed",
    s.Reloaded: "reloaded",
    s.Started: "started",
    s.Stored: "stored",
    s.Tried: "tried",
    s.Heard: "heard",
    s.Ended: "ended",
    s.Looked: "looked",
    s.Served: "served",
    s.Shown: "shown",
    s.Concluded: "concluded",
}


class Rule:
    """One sentence of the contract, held against all that happens.

    A rule has a method, of the event's name, for each kind of event it is about.
    """

    clauses: ClassVar[tuple[str, ...]]
    scene: s.Scene

    def hooks(self) -> Iterator[tuple[type, Callable[[Any], None]]]:
        for kind, name in _HOOKS.items():
            if hasattr(self, name):
                yield kind, getattr(self, name)

    def broken(self, text: str) -> NoReturn:
        raise s.Broken(type(self).__name__, self.clauses, self.scene.ms, text)
