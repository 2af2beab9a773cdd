"""What a test has of the machine, and does without where there is none."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

import pytest

T = TypeVar("T")


class NotHereError(Exception):
    """Something cannot be had on this machine; the text says what is missing."""


@contextmanager
def or_skipped(thing: AbstractContextManager[T]) -> Iterator[T]:
    """The thing meanwhile, for a test that is skipped where it is not to be had."""
    with ExitStack() as lent:
        try:
            here = lent.enter_context(thing)
        except NotHereError as why:
            pytest.skip(str(why))
        yield here
