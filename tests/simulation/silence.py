"""Parts of the service in this very process, without what they log."""

from collections.abc import Iterator
from contextlib import contextmanager

from lookout.base.logger import set_sink


@contextmanager
def without_logs() -> Iterator[None]:
    """The log would be most of what a simulated world costs, and hide what the campaign prints."""
    before = set_sink(lambda _: None)
    try:
        yield
    finally:
        set_sink(before)
