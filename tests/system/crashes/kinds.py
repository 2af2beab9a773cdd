"""What a kind of crash points is, and the attempts at its points, some at the same time."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

_log: Final = logging.getLogger("campaign.crashes")
Attempt = Callable[[str], None]
"""Tries one point; Wrong if what must hold after it does not."""


class Kind(NamedTuple):
    what: str
    """Counted in these: "kills"."""
    prepare: Callable[[], AbstractContextManager[tuple[Sequence[str], Attempt]]]
    """Gives all points, in an order of their own, and the way to try one; LeftOut where it cannot be done."""
    at_once: int = 2
    """How many points may be tried at the same time."""


class LeftOut(Exception):  # noqa: N818  it is no error
    """It cannot be tried here; the text says what is missing."""


class Tried(NamedTuple):
    points: int
    failures: tuple[str, ...]


def try_points(name: str, kind: Kind, offset: int = 0, step: int = 1) -> Tried:
    """All points of a kind, or every so many. LeftOut if it cannot be done here."""

    def fail(point: str) -> str:
        try:
            attempt(point)
        except Exception as error:  # noqa: BLE001  whatever it is, it is what is looked for
            why = f"{type(error).__name__}: {error}"
            _log.info(f"{name} {point}: {why}")
            return f"{why}\n  again: python -m tests.system.crashes {name} {point}"
        return ""

    with kind.prepare() as (points, attempt), ThreadPoolExecutor(kind.at_once) as pool:
        chosen = points[offset::step]
        _log.info(f"{name}: {len(chosen)} of {len(points)} {kind.what}")
        return Tried(len(chosen), tuple(filter(None, pool.map(fail, chosen))))
