"""The smallest part of a case that still fails: delta debugging."""

from collections.abc import Callable
from typing import Final

_MOST_TRIES: Final = 200


def shrunk(case: bytes, fails: Callable[[bytes], bool], most_tries: int = _MOST_TRIES) -> bytes:
    """What is left once no part of it can go without its ceasing to fail, or after so many tries."""
    tries = 0
    parts = 2
    while len(case) > 1:
        size = -(-len(case) // parts)
        for begin in range(0, len(case), size):
            if tries == most_tries:
                return case
            tries += 1
            smaller = case[:begin] + case[begin + size :]
            if fails(smaller):
                case, parts = smaller, max(2, parts - 1)
                break
        else:
            if size == 1:
                return case
            parts = min(len(case), parts * 2)
    return case
