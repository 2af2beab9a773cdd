"""Waiting for what is to come: a test looks until something holds, and says what it waited for if it never does."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

_SHORTEST_S: Final = 0.05
_LONGEST_S: Final = 0.3


def until(holds: Callable[[], bool], what: str, within_s: float = 60) -> float:
    """Wait for something; how long it took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < within_s, f"not within {within_s:g} s: {what}"
        time.sleep(_pause_s(time.monotonic() - began))
    return time.monotonic() - began


async def until_async(
    holds: Callable[[], bool] | Callable[[], Awaitable[bool]], what: str, within_s: float = 60
) -> float:
    """The same, while an event loop goes on."""
    began = time.monotonic()
    while not await _held(holds()):
        assert time.monotonic() - began < within_s, f"not within {within_s:g} s: {what}"
        await asyncio.sleep(_pause_s(time.monotonic() - began))
    return time.monotonic() - began


def _pause_s(waited_s: float) -> float:
    """The longer it takes the more seldom: to look costs what others wait for."""
    return min(_SHORTEST_S + waited_s / 20, _LONGEST_S)


async def _held(answer: bool | Awaitable[bool]) -> bool:
    return answer if isinstance(answer, bool) else await answer
