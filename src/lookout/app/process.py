"""A command's process: its start, its end, and where its log lines go."""

import asyncio
import ctypes
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import uvloop

from lookout.base.logger import LogLine, get_logger, set_sink

if TYPE_CHECKING:
    from lookout.config.tables import LogTable, ServerSettings  # every command begins with this module

WRONG_USE: Final = 2  # exit code of errors in the command line or the configuration
_STANDARD_INPUT: Final = 0
_LAST_WORDS_S: Final = 5.0
_PR_SET_DUMPABLE: Final = 4  # in Linux' sys/prctl.h

_STANDARD_ERROR: Final = 2
_LEVELS: Final = ("debug", "info", "warning", "error")

T = TypeVar("T")

log = get_logger()


def hide_memory() -> None:
    """Keep other processes of the same user from reading the memory and the environment of this one, and the system
    from writing a core dump. Its child processes are not hidden."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def block_sighup() -> None:
    """Delay SIGHUP until ``run_until_stopped``: earlier it would end the process, or be lost."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))


def run_until_stopped(work: Coroutine[Any, Any, None], reload: Callable[[], None] | None = None) -> None:
    """Run until the work is done or a stopping signal arrives. If ``reload`` is given, SIGHUP calls it instead."""

    async def guarded() -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("this runs inside a task")
        loop = asyncio.get_running_loop()
        for name in stopping_signals():
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


def end_with_parent() -> None:
    """End this process when its parent, which holds the other end of the standard input, dies, also if that was
    killed."""

    def watch() -> None:
        while os.read(_STANDARD_INPUT, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LAST_WORDS_S)  # answers under way
        os._exit(1)

    threading.Thread(target=watch, name="watch the parent", daemon=True).start()


def log_warnings(settings: "ServerSettings") -> None:
    for doubt in settings.warnings():
        log.warning("the configuration is allowed, but may not be what is wanted", doubt=str(doubt))


def configure_log(settings: "LogTable") -> None:
    """Lines on standard error: for people on a terminal, as JSON elsewhere, unless the settings choose."""
    for_people = settings.format == "console" or (settings.format == "auto" and os.isatty(_STANDARD_ERROR))
    shown = _LEVELS[_LEVELS.index(settings.level) :]

    def write(line: LogLine) -> None:
        if line.level in shown:
            at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
            fields = {**line.fields, "event": line.event, "level": line.level, "timestamp": at}
            text = _for_people(line, at) if for_people else json.dumps(fields, default=repr)
            with suppress(OSError):  # a full disk or a closed pipe loses the line, and does not end the monitor
                os.write(_STANDARD_ERROR, f"{text}\n".encode(errors="replace"))

    set_sink(write)


@contextmanager
def log_crashes_alone() -> Iterator[None]:
    """For commands that say themselves what they found, inside the block."""

    def write(line: LogLine) -> None:
        if line.fields.keys() & {"exception", "traceback"}:  # the second is of a plug-in
            before(line)

    before = set_sink(write)
    try:
        yield
    finally:
        set_sink(before)


def _for_people(line: LogLine, at: str) -> str:
    fields = dict(line.fields)
    exception = fields.pop("exception", None)
    shown = "".join(f" {name}={_show(value)}" for name, value in sorted(fields.items()))
    return f"{at} [{line.level:<7}] {line.event:<30}{shown}".rstrip() + ("" if exception is None else f"\n{exception}")


def _show(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if text.isprintable() and not any(character in text for character in " \"'=") else repr(text)
