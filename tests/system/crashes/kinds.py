"""Kinds of crash points, and the attempts at all of their points, some at the same time."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from queue import Empty, Queue, SimpleQueue
from typing import Final, NamedTuple

_log: Final = logging.getLogger("campaign.crashes")
HANGS_S: Final = 180
_LOG_EVERY: Final = 200
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
    with kind.prepare() as (points, attempt):
        chosen = points[offset::step]
        _log.info(f"{name}: {len(chosen)} of {len(points)} {kind.what}")
        return Tried(len(chosen), tuple(_failures(name, chosen, attempt, kind.at_once)))


def _failures(name: str, points: Sequence[str], attempt: Attempt, at_once: int) -> Iterable[str]:
    waiting: SimpleQueue[str] = SimpleQueue()
    results: Queue[tuple[str, BaseException | None]] = Queue()
    for point in points:
        waiting.put(point)
    for _ in range(at_once):  # daemons: one that hangs is reported, not waited for
        threading.Thread(target=_work, args=(waiting, results, attempt), daemon=True).start()
    left = set(points)
    for number in range(1, len(points) + 1):
        try:
            point, error = results.get(timeout=HANGS_S)
        except Empty:
            yield f"{name} hangs at one of {sorted(left)[:5]}"
            return
        left.discard(point)
        if error is not None:
            why = f"{type(error).__name__}: {error}"
            _log.info(f"{name} {point}: {why}")
            yield f"{why}\n  again: python -m tests.system.crashes --kind {name} --point {point}"
        if number % _LOG_EVERY == 0:
            _log.info(f"{name}: {number} of {len(points)}")


def _work(waiting: SimpleQueue[str], results: Queue[tuple[str, BaseException | None]], attempt: Attempt) -> None:
    while True:
        try:
            point = waiting.get_nowait()
        except Empty:
            return
        try:
            attempt(point)
        except BaseException as error:  # noqa: BLE001  whatever it is, it is what is looked for
            results.put((point, error))
        else:
            results.put((point, None))
