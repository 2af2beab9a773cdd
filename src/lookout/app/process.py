"""What a command's process does at its beginning and its end."""

import asyncio
import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

import uvloop

WRONG_USE: Final = 2  # the exit code for what only another command line or configuration can put right
_STANDARD_INPUT: Final = 0
_LAST_WORDS_S: Final = 5.0
_MANY_FILES: Final = 1_000_000
_OWN_FILES: Final = 64  # of a server; about 30 are in use, and the store may need some when everything else is taken

T = TypeVar("T")


def block_sighup() -> None:
    """Let SIGHUP wait for ``run_until_stopped``: before that it would end the process, or come too early to matter."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))


def run_until_stopped(
    work: Coroutine[Any, Any, None],
    reload: Callable[[], None] | None = None,
    stopping: Iterable[signal.Signals] | None = None,
) -> None:
    """Run until it is done, or until a signal asks it to end: one of ``stopping_signals``, unless others are given.
    SIGHUP is no such signal if there is something to reload, which it asks for then."""

    async def guarded() -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("this runs inside a task")
        loop = asyncio.get_running_loop()
        for name in stopping_signals() if stopping is None else stopping:
            loop.add_signal_handler(name, task.cancel)
        if reload is not None:
            loop.add_signal_handler(signal.SIGHUP, reload)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))
        try:
            await work
        except asyncio.CancelledError:
            task.uncancel()

    run(guarded())


def stopping_signals() -> tuple[signal.Signals, ...]:
    """Those that ask a command to end. That its terminal is closed is one, unless it is to outlive that (nohup)."""
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if outlives_terminal else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[Any, Any, T]) -> T:
    """On uvloop, which takes a fifth less CPU for a probe than the standard library's loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def allow_many_connections() -> None:
    """Each source and each reader has one of its own; the usual soft limit of 1024 files is for programs that use
    select."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def count_acceptable_connections() -> int:
    """How many a process accepts that allows many, of the files that it may open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    return files - min(_OWN_FILES, files // 2)


def end_with_parent() -> None:
    """Ask this process to end once its parent is gone: one that was killed cannot do it. A parent that is not of
    multiprocessing holds the other end of the standard input. The parent alone decides what a closed terminal means."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is None:
            while os.read(_STANDARD_INPUT, 1):
                pass
        else:
            parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LAST_WORDS_S)  # for whom it now serves
        os._exit(1)

    threading.Thread(target=watch, name="watch the parent", daemon=True).start()
