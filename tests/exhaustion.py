"""Takes something away from this process for a while."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MORE_THAN_THERE_IS = 1 << 46  # bytes of a thread's stack


@contextmanager
def _limited(what: int, soft: int) -> Iterator[None]:
    before = resource.getrlimit(what)
    resource.setrlimit(what, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


@contextmanager
def without_descriptors(spare: int = 0) -> Iterator[None]:
    """All but so many are in use."""
    held: list[int] = []
    with _limited(resource.RLIMIT_NOFILE, 512):
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            for descriptor in held[:spare]:
                os.close(descriptor)
        try:
            yield
        finally:
            for descriptor in held[spare:]:
                os.close(descriptor)


@contextmanager
def without_threads() -> Iterator[None]:
    """The system refuses each."""
    before = threading.stack_size(_MORE_THAN_THERE_IS)
    try:
        yield
    finally:
        threading.stack_size(before)


@contextmanager
def with_little_memory(spare_bytes: int) -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    with _limited(resource.RLIMIT_AS, pages * resource.getpagesize() + spare_bytes):
        yield
