"""What a kind of crash points is."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

Attempt = Callable[[str], None]
"""Tries one point; Wrong if what must hold after it does not."""


class Kind(NamedTuple):
    what: str
    """Counted in these: "kills"."""
    begun: Callable[[], AbstractContextManager[tuple[Sequence[str], Attempt]]]
    """Gives all points, in an order of their own, and the way to try one; LeftOut where it cannot be done."""
    at_once: int = 2
    """How many points may be tried at the same time."""


class LeftOut(Exception):  # noqa: N818  it is no error
    """It cannot be tried here; the text says what is missing."""
