"""Parts of the service in this very process, without what they log."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def without_logs() -> Iterator[None]:
    """The log would be most of what a simulated world costs, and hide what the campaign prints."""
    before = structlog.get_config()
    structlog.configure(processors=[_drop], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def _drop(_logger: object, _method: str, _event: object) -> str:
    raise structlog.DropEvent
