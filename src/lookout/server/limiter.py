"""The rate limit: how often one caller may ask for one path (E2)."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from typing import Final

MINUTE_MS: Final = 60_000
_MOST: Final = 65_536  # callers on a path; 24 MB at most
_SECONDS_MS: Final = 5_000  # more than passes between two calls of ``begin_second``


@dataclass(slots=True, eq=False)
class Minute:
    """The requests of one caller on one path that passed in a minute; during its ban, one more than the limit."""

    digest: bytes
    until_ms: int  # 0 if it was dropped
    passed: int = 1


_NONE: Final = Minute(b"", 0)


@dataclass(slots=True, eq=False)
class CallerOnPath:
    """A caller on a path, and its minute, which may have ended."""

    digest: bytes
    minute: Minute = _NONE


class Limiter:
    """Counts at most ``most`` callers: the oldest minute is dropped for a new one, and a ban only if there is nothing
    else. It keeps no address, only digests with a secret key."""

    def __init__(self, limit: int, ban_ms: int, elapsed_ms: Callable[[], int], most: int = _MOST) -> None:
        self._limit = limit
        self._elapsed_ms = elapsed_ms
        self._ban_ms = ban_ms
        self._most = most
        self._key = secrets.token_bytes(16)
        self._open_ms: float = inf  # a minute that ends later is still open, without a look at the clock
        # The first one ends first. A plain dictionary would search for it past all that were deleted before.
        self._minutes: OrderedDict[bytes, Minute] = OrderedDict()
        self._bans: OrderedDict[bytes, Minute] = OrderedDict()

    def __len__(self) -> int:
        return len(self._minutes) + len(self._bans)

    def locate_caller(self, path: str, caller: bytes) -> CallerOnPath:
        return CallerOnPath(blake2b(caller + path.encode(errors="replace"), digest_size=16, key=self._key).digest())

    def begin_second(self) -> None:
        """Call every second or so: most requests are then counted without a look at the clock."""
        self._open_ms = self._elapsed_ms() + _SECONDS_MS

    def count_request(self, caller: CallerOnPath) -> int:
        """Count a request: 0 if it passes, or the rest of the caller's ban."""
        minute = caller.minute
        if minute.until_ms > self._open_ms and minute.passed < self._limit:
            minute.passed += 1
            return 0
        return self._count(caller, self._elapsed_ms())

    def _count(self, caller: CallerOnPath, now_ms: int) -> int:
        minute = caller.minute
        if now_ms >= minute.until_ms:
            found = self._minutes.get(caller.digest) or self._bans.get(caller.digest)
            if found is None or now_ms >= found.until_ms:
                caller.minute = self._begin_minute(caller.digest, now_ms)
                return 0
            minute = caller.minute = found
        if minute.passed < self._limit:
            minute.passed += 1
            return 0
        if minute.passed == self._limit:
            self._ban(minute, now_ms)
        return minute.until_ms - now_ms  # further requests do not prolong the ban

    def _begin_minute(self, digest: bytes, now_ms: int) -> Minute:
        for kept in (self._minutes, self._bans):
            while kept and next(iter(kept.values())).until_ms <= now_ms:
                kept.popitem(last=False)
        if len(self) >= self._most:
            _, dropped = (self._minutes or self._bans).popitem(last=False)
            dropped.until_ms = 0
        minute = self._minutes[digest] = Minute(digest, now_ms + MINUTE_MS)
        return minute

    def _ban(self, minute: Minute, now_ms: int) -> None:
        del self._minutes[minute.digest]
        self._bans[minute.digest] = minute
        minute.passed += 1
        minute.until_ms = now_ms + self._ban_ms
