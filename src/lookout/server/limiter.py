"""The rate limit: how often one caller may ask for one path (E2)."""

import secrets
from hashlib import blake2b
from typing import Final

from lookout.server.shared_memory import SharedBytes

MINUTE_MS: Final = 60_000
_WAYS: Final = 8  # entries among which a caller's one is looked for
# The numbers of an entry: whose it is, when its minute or its ban ends, and how many requests passed in the minute; one
# more than the limit means a ban.
_NAME, _UNTIL_MS, _PASSED = range(3)
_ENTRY: Final = 3
_SET: Final = _WAYS * _ENTRY
_NUMBER_BYTES: Final = 8
_FORMAT: Final = "q"


class Limiter:
    """A table of fixed size, one for all processes of a server.

    An entry is looked for in a set of eight that its hash chooses. If they are all taken, the one that ends first goes.
    The hash has a secret key, so that nobody can aim at another caller's set. No address is in the table.
    """

    def __init__(self, limit: int, ban_ms: int, sets: int = 8_192, processes: int = 1) -> None:
        self.limit = limit
        self.ban_ms = ban_ms
        self.sets = sets
        self.key = secrets.token_bytes(16)
        self.table = SharedBytes(sets * _SET * _NUMBER_BYTES)
        self._processes = processes

    def attach(self) -> "OwnLimiter":
        """What counts in this process."""
        return OwnLimiter(self) if self._processes == 1 else _LockingLimiter(self)


class CallerOnPath:
    """For whom requests count, and where."""

    __slots__ = ("entry", "first", "name")

    def __init__(self, name: int, first: int, entry: memoryview) -> None:
        self.name = name
        self.first = first  # place of its set in the table
        self.entry = entry  # where it was last; another caller may have it now


class OwnLimiter:
    """Counts in one process, while there is no other."""

    def __init__(self, limiter: Limiter) -> None:
        self._limit = limiter.limit
        self._ban_ms = limiter.ban_ms
        self._sets = limiter.sets
        self._key = limiter.key
        self._table = limiter.table
        self._numbers = limiter.table.view.cast(_FORMAT)

    def locate_caller(self, path: str, caller: bytes) -> CallerOnPath:
        digest = blake2b(caller + path.encode(errors="replace"), digest_size=16, key=self._key).digest()
        name = int.from_bytes(digest[:8], "little", signed=True)
        first = int.from_bytes(digest[8:], "little") % self._sets * _SET
        return CallerOnPath(name, first, self._entry(first))

    def count_request(self, caller: CallerOnPath, now_ms: int) -> int:
        """Count a request: 0 if it passes, or how much longer the caller is banned."""
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
            return left_ms  # asking on does not prolong the ban
        entry[_PASSED] = passed + 1
        if passed < self._limit:
            return 0
        entry[_UNTIL_MS] = now_ms + self._ban_ms
        return self._ban_ms

    def _find(self, caller: CallerOnPath) -> memoryview:
        """This caller's entry, which may have to be taken from another."""
        first, after = caller.first, caller.first + _SET
        names = self._numbers[first + _NAME : after : _ENTRY].tolist()
        if caller.name in names:
            caller.entry = self._entry(first + names.index(caller.name) * _ENTRY)
        else:
            ends = self._numbers[first + _UNTIL_MS : after : _ENTRY].tolist()  # 0 if nobody had it yet
            caller.entry = self._entry(first + ends.index(min(ends)) * _ENTRY)
            caller.entry[_UNTIL_MS] = 0
            caller.entry[_NAME] = caller.name  # last: if this process dies here, nobody inherits a ban
        return caller.entry

    def _entry(self, place: int) -> memoryview:
        return self._numbers[place : place + _ENTRY]


class _LockingLimiter(OwnLimiter):
    """Counts in one of several processes."""

    def count_request(self, caller: CallerOnPath, now_ms: int) -> int:
        self._table.lock(caller.first)
        try:
            return super().count_request(caller, now_ms)
        finally:
            self._table.unlock(caller.first)
