"""Runs parts one after the other. One that breaks costs its own figures, and no others."""

import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bench.figures import Figure


class Measured(NamedTuple):
    part: str
    figure: Figure


class Broken(NamedTuple):
    part: str
    reason: str  # in one line


def run_parts(parts: Mapping[str, Callable[[], Iterator[Figure]]]) -> Iterator[Measured | Broken]:
    for name, measure in parts.items():
        try:
            for figure in measure():
                yield Measured(name, figure)
        except Exception as error:  # noqa: BLE001  a bug in one part is reported, and the rest goes on
            yield Broken(name, _reason(error))


def _reason(error: Exception) -> str:
    """The error, and where it happened."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{text} ({place.name}, {place.filename.rpartition('/')[2]}:{place.lineno})"
