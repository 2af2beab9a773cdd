"""Something that is wrong with a configuration, as a value; and what stands for a value that could not be read."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, NoReturn


class Problem(NamedTuple):
    """``key`` is where it is, ``text`` what is wrong there. It never shows a value that may be a secret."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"

    def below(self, parent: str) -> "Problem":
        """The same problem, seen from the table around it."""
        return self._replace(key=join_keys(parent, self.key))


def join_keys(parent: str, key: str) -> str:
    separator = "." if parent and key and not key.startswith("[") else ""
    return f"{parent}{separator}{key}"


class UnreadError(Exception):
    """A check looked at a value that could not be read. It has nothing to say: that is reported already."""


class _Unread:
    """Nothing can be done with it, so that no check takes it for a value."""

    def _refuse(self, *_: object) -> NoReturn:
        raise UnreadError

    __getattr__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __contains__ = __getitem__ = __hash__ = __iter__ = __len__ = __str__ = _refuse


UNREAD: Final[Any] = _Unread()


def run_checks(checks: Iterable[Iterable[Problem]]) -> Iterator[Problem]:
    """What the checks find. One that needs a value that could not be read ends there."""
    for check in checks:
        try:
            yield from check
        except UnreadError:
            continue
