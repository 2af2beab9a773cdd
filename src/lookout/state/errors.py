"""Errors of stored state."""

from collections.abc import Iterator
from contextlib import contextmanager


class StateError(Exception):
    """What is stored is not a state; the text says why, and names the document if only one is at fault."""


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Raise errors of the block as StateError about the document of this name."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise StateError(f"the stored document {name} cannot be read: {error}") from None
