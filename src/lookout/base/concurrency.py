"""Work beside the event loop, and work with a time limit."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, Self, TypeVar

_Result = TypeVar("_Result")


class Caller(Protocol):
    """Makes calls that may take long, one after the other, while the event loop goes on."""

    async def call(self, work: Callable[[], None], /) -> None:
        """Wait for a call, and for those before it. Cancelling stops the waiting, not the call."""


class DaemonThread:
    """Makes calls, one after the other. A call that hangs hangs alone: those of ThreadPoolExecutor would keep the
    interpreter from ending."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """It ends after the calls it was given, whenever that is."""
        self._calls.put(None)

    async def call(self, work: Callable[[], _Result], /) -> _Result:
        done: Future[_Result] = Future()
        done.set_running_or_notify_cancel()  # one who is cancelled does not cancel the call

        def make() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001  it is the waiting one's
                done.set_exception(error)

        self._calls.put(make)
        return await asyncio.wrap_future(done)

    def _work(self) -> None:
        while (make := self._calls.get()) is not None:
            make()


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
