"""What the processes of a server share: the rate limit's table, and their counts."""

import mmap
import os
import secrets
import tempfile
import weakref
from collections.abc import Callable
from fcntl import LOCK_EX, LOCK_UN, lockf
from hashlib import blake2b
from multiprocessing.reduction import DupFd
from typing import Final, Literal, NamedTuple, Protocol, get_args

_NUMBER_BYTES: Final = 8

MINUTE_MS: Final = 60_000
_WAYS: Final = 8  # entries of a set, in one of which a caller is
# An entry's numbers: the caller, the end of its minute or ban, and the requests passed in the minute; limit + 1 means a
# ban.
_NAME, _UNTIL_MS, _PASSED = range(3)
_ENTRY: Final = 3
_SET: Final = _WAYS * _ENTRY

CODES: Final = (200, 204, 304, 400, 404, 405, 429, 503)
ENDPOINTS: Final = ("live", "history")
ROUTES: Final = (*ENDPOINTS, "other")
Closed = Literal["stalled", "crowded"]  # why a connection was closed
CLOSED: Final[tuple[Closed, ...]] = get_args(Closed)
_CELL: Final = {(route, code): r * len(CODES) + c for r, route in enumerate(ROUTES) for c, code in enumerate(CODES)}
_SEEN_MS, _GENERATED_AT, _STORE_ERRORS, _OPEN = range(len(_CELL), len(_CELL) + 4)
_CLOSED: Final = {reason: _OPEN + 1 + number for number, reason in enumerate(CLOSED)}
_CELLS: Final = len(_CELL) + 4 + len(_CLOSED)
# A process without a sign of life for so long is gone; its counts remain.
_GONE_MS: Final = 5_000


class SharedNumbers:
    """Numbers, at first all 0, in memory that is shared with processes they are passed to at start."""

    def __init__(self, size: int, file: int | None = None) -> None:
        if file is None:
            file = _nameless_file()
            os.ftruncate(file, size * _NUMBER_BYTES)
        self._file = file
        self.size = size
        self.numbers = memoryview(mmap.mmap(file, size * _NUMBER_BYTES)).cast("q")
        weakref.finalize(self, os.close, file).atexit = False

    def lock(self, place: int) -> None:
        """Keep other processes, not threads, from this place until ``unlock``. A process's death unlocks it."""
        lockf(self._file, LOCK_EX, 1, place)

    def unlock(self, place: int) -> None:
        lockf(self._file, LOCK_UN, 1, place)

    def __reduce__(self) -> tuple[Callable[..., "SharedNumbers"], tuple[object, ...]]:
        return _received, (DupFd(self._file), self.size)


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("lookout")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class _SentFile(Protocol):
    def detach(self) -> int: ...


def _received(file: _SentFile, size: int) -> SharedNumbers:
    return SharedNumbers(size, file.detach())


class CallerOnPath:
    """A caller on a path, and its entry in the table."""

    __slots__ = ("entry", "first", "name")

    def __init__(self, name: int, first: int, entry: memoryview) -> None:
        self.name = name
        self.first = first  # index of its set in the table
        self.entry = entry  # its last entry; another caller may have it now


class Limiter:
    """The rate limit: how often one caller may ask for one path (E2). A table of fixed size, for all processes.

    A caller's hash chooses a set of eight entries. If all are taken, the entry that ends first is replaced. The hash
    has a secret key, so that an attacker cannot aim at another caller's set. No address is in the table.
    """

    def __init__(self, limit: int, ban_ms: int, sets: int = 8_192, processes: int = 1) -> None:
        self.table = SharedNumbers(sets * _SET)
        self._limit = limit
        self._ban_ms = ban_ms
        self._sets = sets
        self._key = secrets.token_bytes(16)
        self._is_shared = processes > 1

    def locate_caller(self, path: str, caller: bytes) -> CallerOnPath:
        digest = blake2b(caller + path.encode(errors="replace"), digest_size=16, key=self._key).digest()
        name = int.from_bytes(digest[:8], "little", signed=True)
        first = int.from_bytes(digest[8:], "little") % self._sets * _SET
        return CallerOnPath(name, first, self._entry(first))

    def count_request(self, caller: CallerOnPath, now_ms: int) -> int:
        """Count a request: 0 if it passes, or the rest of the caller's ban."""
        if not self._is_shared:
            return self._count(caller, now_ms)
        self.table.lock(caller.first)
        try:
            return self._count(caller, now_ms)
        finally:
            self.table.unlock(caller.first)

    def _count(self, caller: CallerOnPath, now_ms: int) -> int:
        entry = caller.entry
        if entry[_NAME] != caller.name:
            entry = self._find(caller)
        left_ms = entry[_UNTIL_MS] - now_ms
        if left_ms <= 0:  # the minute or the ban is over: this is the first request of a new minute
            entry[_PASSED] = 1
            entry[_UNTIL_MS] = now_ms + MINUTE_MS
            return 0
        passed = entry[_PASSED]
        if passed > self._limit:
            return left_ms  # further requests do not prolong the ban
        entry[_PASSED] = passed + 1
        if passed < self._limit:
            return 0
        entry[_UNTIL_MS] = now_ms + self._ban_ms
        return self._ban_ms

    def _find(self, caller: CallerOnPath) -> memoryview:
        first, after = caller.first, caller.first + _SET
        names = self.table.numbers[first + _NAME : after : _ENTRY].tolist()
        if caller.name in names:
            caller.entry = self._entry(first + names.index(caller.name) * _ENTRY)
        else:
            ends = self.table.numbers[first + _UNTIL_MS : after : _ENTRY].tolist()  # 0 if unused
            caller.entry = self._entry(first + ends.index(min(ends)) * _ENTRY)
            caller.entry[_UNTIL_MS] = 0
            caller.entry[_NAME] = caller.name  # last: if this process dies here, no caller inherits a ban
        return caller.entry

    def _entry(self, place: int) -> memoryview:
        return self.table.numbers[place : place + _ENTRY]


class Totals(NamedTuple):
    requests: dict[tuple[str, int], int]  # by route and code
    store_errors: int
    generated_at: tuple[int | None, ...]  # of the live reports that running processes serve
    connections: int  # of running processes
    closed: dict[Closed, int]


class Counts:
    """A row of numbers per process, which writes only its own row."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._memory = SharedNumbers(processes * _CELLS)

    def attach(self, process: int = 0) -> "OwnCounts":
        """The row of a process; its replacement continues the same row."""
        return OwnCounts(self._row(process))

    def summarize(self, now_ms: int) -> Totals:
        rows = [self._row(process) for process in range(self.processes)]
        present = [row for row in rows if row[_SEEN_MS] and now_ms - row[_SEEN_MS] < _GONE_MS]
        return Totals(
            {key: sum(row[cell] for row in rows) for key, cell in _CELL.items()},
            sum(row[_STORE_ERRORS] for row in rows),
            tuple(row[_GENERATED_AT] or None for row in present),
            sum(row[_OPEN] for row in present),
            {reason: sum(row[cell] for row in rows) for reason, cell in _CLOSED.items()},
        )

    def _row(self, process: int) -> memoryview:
        return self._memory.numbers[process * _CELLS : (process + 1) * _CELLS]


class OwnCounts:
    def __init__(self, row: memoryview) -> None:
        self._row = row

    def count(self, route: str, http_code: int) -> None:
        self._row[_CELL[route, http_code]] += 1

    def mark_present(self, now_ms: int, generated_at: int | None) -> None:
        self._row[_SEEN_MS] = now_ms
        self._row[_GENERATED_AT] = generated_at or 0

    def count_store_error(self) -> None:
        """For one thread alone: concurrent additions would be lost."""
        self._row[_STORE_ERRORS] += 1

    def count_closed(self, reason: Closed) -> None:
        self._row[_CLOSED[reason]] += 1

    def set_open(self, connections: int) -> None:
        self._row[_OPEN] = connections
