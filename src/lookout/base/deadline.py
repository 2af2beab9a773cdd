"""A time limit that holds also in a task that is being cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def ends_within(work: Coroutine[Any, Any, object], within_s: float) -> bool:
    """Whether it ended in time, otherwise it is cancelled; what it raises is raised. In a task that was cancelled,
    ``asyncio.timeout`` of Python 3.11.2 ends as if it was cancelled again, and ``wait_for`` loses a cancellation that
    comes as the work ends."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=within_s)
    finally:
        is_late = not task.done()
        task.cancel()
    if is_late:
        return False
    task.result()
    return True
