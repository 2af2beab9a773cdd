"""A thread beside the event loop that the end of the process does not wait for."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Protocol, Self


class Caller(Protocol):
    """Makes calls that may take long, one after the other, while the event loop goes on."""

    async def call(self, work: Callable[[], None], /) -> None:
        """Wait for a call, and for those before it. One who is cancelled no longer waits; the call is made anyway."""


class DaemonThread:
    """Makes calls, one after the other. A call that hangs hangs alone: those of ThreadPoolExecutor would keep the
    interpreter from ending."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """It ends after the calls it was given, whenever that is."""
        self._calls.put(None)

    async def call(self, work: Callable[[], None], /) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def finish(error: BaseException | None) -> None:
            if done.cancelled():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        def make() -> None:
            error = None
            try:
                work()
            except BaseException as raised:  # noqa: BLE001  it is the waiting one's
                error = raised
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits
                loop.call_soon_threadsafe(finish, error)

        self._calls.put(make)
        await done

    def _work(self) -> None:
        while (make := self._calls.get()) is not None:
            make()
