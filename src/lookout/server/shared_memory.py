"""Memory that a server's processes share, and that the system takes back however they end."""

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, lockf
from multiprocessing.reduction import DupFd
from typing import Protocol


class SharedBytes:
    """A block of zeros without a name. Passed to a process that is being started, it is the same block there."""

    def __init__(self, size: int, file: int | None = None) -> None:
        if file is None:
            file = nameless_file()
            os.ftruncate(file, size)
        self._file = file
        self.size = size
        mapped = mmap.mmap(file, size)
        self.view = memoryview(mapped)
        # With the last view of it: a process that has one also keeps the places that were taken.
        weakref.finalize(mapped, os.close, file).atexit = False

    def lock(self, place: int) -> None:
        """Keep other processes, not threads, from this place until ``unlock``. A process that dies lets go of it."""
        lockf(self._file, LOCK_EX, 1, place)

    def unlock(self, place: int) -> None:
        lockf(self._file, LOCK_UN, 1, place)

    @contextmanager
    def locked(self, place: int) -> Iterator[None]:
        """Both, where it is not done so often that the time counts."""
        self.lock(place)
        try:
            yield
        finally:
            self.unlock(place)

    def take_place(self, places: int) -> int:
        """Hold the first of so many places that no other process holds, until this one ends."""
        for place in range(places):
            with suppress(OSError):
                lockf(self._file, LOCK_EX | LOCK_NB, 1, place)
                return place
        raise RuntimeError("there are more processes than places in their shared memory")

    def __reduce__(self) -> tuple[Callable[..., "SharedBytes"], tuple[object, ...]]:
        return _received, (DupFd(self._file), self.size)


class _SentFile(Protocol):
    def detach(self) -> int: ...


def _received(file: _SentFile, size: int) -> SharedBytes:
    return SharedBytes(size, file.detach())


def nameless_file() -> int:
    """Memory, where the system can make a file of it."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("lookout")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
