"""An event loop on virtual time: when nothing is ready it jumps to the next timer, and nobody ever sleeps.

What runs on it belongs to a process, which may be killed between any two steps: nothing of it runs any more, no
cleanup either, as with ``kill -9``.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

Ts = TypeVarTuple("Ts")
T = TypeVar("T")


class Process:
    """Something that can be killed. Whatever is started by what runs in it is part of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.undone: list[asyncio.Handle] = []  # what it would have done next
        self.tasks: list[asyncio.Task[None]] = []


_NOBODY = Process("nobody")
_process: ContextVar[Process] = ContextVar("process", default=_NOBODY)


class VirtualLoop(asyncio.AbstractEventLoop):
    """Time is whole microseconds, so that the same calls give the same instants everywhere."""

    def __init__(self) -> None:
        self._us = 0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._serial = count()
        self._countdowns: list[list[Any]] = []
        self.error: BaseException | None = None

    def time(self) -> float:
        return self._us / 1_000_000

    def now_ms(self) -> int:
        return self._us // 1000

    def run_until(self, end_ms: int) -> None:
        """Run all that is due up to this instant; an error that nobody took ends it."""
        end_us = end_ms * 1000
        ready, timers = self._ready, self._timers
        asyncio._set_running_loop(self)
        try:
            while self.error is None:
                if ready:
                    self._step(ready.popleft())
                    continue
                if not timers or timers[0][0] > end_us:
                    self._us = max(self._us, end_us)
                    return
                self._us = max(self._us, timers[0][0])
                while timers and timers[0][0] <= self._us:
                    ready.append(heappop(timers)[2])
            raise self.error
        finally:
            asyncio._set_running_loop(None)

    def after_steps(self, steps: int, then: Callable[[], None]) -> None:
        """Call when so many further steps were made, whatever they are."""
        self._countdowns.append([steps, then])

    def spawn(self, process: Process, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Run something as part of a process."""
        context = copy_context()
        context.run(_process.set, process)
        task: asyncio.Task[None] = asyncio.Task(work, loop=self, name=name, context=context)
        process.tasks.append(task)
        task.add_done_callback(self._look_how_it_ended)
        return task

    def bury(self, processes: list[Process]) -> None:
        """Let what was killed come to its end after all, unseen: code that is merely forgotten would wake up when its
        memory is cleared."""
        for process in processes:
            process.dead = False
            self._ready.extend(process.undone)
        tasks = [task for process in processes for task in process.tasks]
        while running := [task for task in tasks if not task.done()]:
            for task in running:
                task.cancel()
            with suppress(Exception):  # nobody is interested any more
                self.run_until(self.now_ms() + 60_000)
            self.error = None
        for task in tasks:
            if not task.cancelled():
                task.exception()

    def _look_how_it_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = self.error or error

    def _step(self, handle: asyncio.Handle) -> None:
        if handle._cancelled:
            return
        context: Context = handle._context  # type: ignore[attr-defined]
        process = context.get(_process, _NOBODY)
        if process.dead:
            process.undone.append(handle)
            return
        try:
            context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
        except BaseException as error:  # noqa: BLE001  run_until raises it
            self.error = error
        if self._countdowns:
            self._count_down()

    def _count_down(self) -> None:
        for countdown in self._countdowns:
            countdown[0] -= 1
        for _, then in [each for each in self._countdowns if each[0] <= 0]:
            then()
        self._countdowns = [each for each in self._countdowns if each[0] > 0]

    # What asyncio asks of a loop.

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        # Rounded up, never early; what is the same to floats is the same instant.
        heappush(self._timers, (-int(-(when * 1_000_000 - 0.01) // 1), next(self._serial), handle))
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> "asyncio.Task[T]":
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An error that nobody took: a bug in what runs here."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.error = self.error or error

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""
