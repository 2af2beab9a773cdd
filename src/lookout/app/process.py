"""The start and the end of a command's process."""

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

WRONG_USE: Final = 2  # exit code of errors in the command line or the configuration
_STANDARD_INPUT: Final = 0
_LAST_WORDS_S: Final = 5.0
_MANY_FILES: Final = 1_000_000
_OWN_FILES: Final = 64  # of a server: about 30 are in use, and some are reserved for the store

T = TypeVar("T")


def block_sighup() -> None:
    """Delay SIGHUP until ``run_until_stopped``: earlier it would end the process, or be lost."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))


def run_until_stopped(
    work: Coroutine[Any, Any, None],
    reload: Callable[[], None] | None = None,
    stopping: Iterable[signal.Signals] | None = None,
) -> None:
    """Run until the work is done or a stopping signal arrives, by default one of ``stopping_signals``. If ``reload`` is
    given, SIGHUP calls it instead."""

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
    """The signals that stop a command. SIGHUP, sent when its terminal is closed, is one, except under nohup."""
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if outlives_terminal else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[Any, Any, T]) -> T:
    """On uvloop, which takes a fifth less CPU for a probe than the standard library's loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def allow_many_connections() -> None:
    """Raise the soft limit of open files: every source and reader has a connection. The usual 1024 is for programs that
    use select."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def count_acceptable_connections() -> int:
    """How many connections a process can accept, from its limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    return files - min(_OWN_FILES, files // 2)


def end_with_parent() -> None:
    """End this process when its parent dies, also if that was killed. A parent without multiprocessing holds the other
    end of the standard input. The parent alone handles a closed terminal."""
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
