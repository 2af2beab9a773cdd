"""The smallest part of a case that still fails: delta debugging, of bytes and of a world's faults alike."""

from collections.abc import Callable
from typing import Any, TypeVar

Case = TypeVar("Case", bytes, tuple[Any, ...])


def shrink(case: Case, fails: Callable[[Case], bool], may_go_on: Callable[[], bool]) -> Case:
    """What is left once no part of it can go without its ceasing to fail, or when it may not go on."""
    parts = 2
    while case:
        size = -(-len(case) // parts)
        for begin in range(0, len(case), size):
            if not may_go_on():
                return case
            smaller = case[:begin] + case[begin + size :]
            if fails(smaller):
                case, parts = smaller, max(2, parts - 1)
                break
        else:
            if size == 1:
                return case
            parts = min(len(case), parts * 2)
    return case
