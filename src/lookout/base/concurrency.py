"""Work beside the event loop, and work with a time limit."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, Self, TypeVar

_Result = TypeVar("_Result")


class Worker(Protocol):
    """Makes slow calls in order, without blocking the event loop."""

    async def call(self, work: Callable[[], None], /) -> None:
        """Wait for a call, and for those before it. Cancelling stops the waiting, not the call."""


class DaemonThread:
    """Makes calls in order, in a daemon thread: unlike ThreadPoolExecutor's, a call that hangs does not keep the
    interpreter from ending."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let the thread end after its calls, without waiting."""
        self._calls.put(None)

    async def call(self, work: Callable[[], _Result], /) -> _Result:
        done: Future[_Result] = Future()
        done.set_running_or_notify_cancel()  # a cancelled caller does not cancel the call

        def make() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001  raised in the caller
                done.set_exception(error)

        self._calls.put(make)
        return await asyncio.wrap_future(done)

    def _work(self) -> None:
        while (make := self._calls.get()) is not None:
            make()


async def ends_within(work: Coroutine[Any, Any, object], within_s: float) -> bool:
    """Whether the work ended in time; if not, it is cancelled. Its exceptions are raised. In a task that was cancelled,
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
