"""A command at a terminal of its own: what it shows is read, and keys are typed."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.commands import LOOKOUT

PATIENCE_S: Final = 60
CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"


class Terminal:
    def __init__(self, ours: int, process: subprocess.Popen[bytes]) -> None:
        self.shown = ""
        self.process = process
        self._ours = ours
        self._read_until = 0

    def answer(self, question: str, keys: str) -> None:
        """Wait until a question is there, later than all before it, and answer it."""
        self.wait_for(question)
        self.type(f"{keys}\n")

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str) -> None:
        give_up = time.monotonic() + PATIENCE_S
        while (at := self.shown.find(text, self._read_until)) < 0:
            assert time.monotonic() < give_up, f"{text!r} never came in: {self.shown}"
            assert self._read(), f"it ended without {text!r}: {self.shown}"
        self._read_until = at + len(text)

    def end(self) -> int:
        """Wait for its end; its exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def break_off(self, key: str) -> int:
        """Press a key until it ends, as people do: one that comes just before the question reads is noticed only with
        the next one. Its exit code."""
        for _ in range(PATIENCE_S // 10):
            self.type(key)
            while select.select([self._ours], [], [], 10)[0]:
                if not self._read():
                    return self.end()
        raise AssertionError(f"it did not end: {self.shown}")

    def _read(self) -> bool:
        """Whether it may go on."""
        if not select.select([self._ours], [], [], PATIENCE_S)[0]:
            return False
        try:
            more = os.read(self._ours, 65_536)
        except OSError:  # nobody has the other end open any more
            return False
        without_codes = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", more.decode(errors="replace"))
        self.shown += without_codes.replace("\r\n", "\n").replace("\r", "")
        return bool(more)


def at_a_terminal(folder: Path, *arguments: str, **environment: str) -> AbstractContextManager[Terminal]:
    """A command of Lookout, with a terminal as its standard files."""
    return a_terminal_of(folder, [str(LOOKOUT), *arguments], TERM=environment.pop("TERM", "dumb"), **environment)


@contextmanager
def a_terminal_of(folder: Path, command: list[str], **environment: str) -> Iterator[Terminal]:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 300, 0, 0))  # no line is folded
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=its,
        stdout=its,
        stderr=its,
        preexec_fn=_take_terminal,  # so that Ctrl-C reaches it
        start_new_session=True,
        env={**os.environ, **environment},
    )
    os.close(its)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
