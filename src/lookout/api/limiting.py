"""The rate limit: how often one caller may ask for one path (E2)."""

import secrets
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from lookout.api.shared import SharedBytes

MINUTE_MS: Final = 60_000
_WAYS: Final = 8  # entries among which a caller's one is looked for
_ENTRY: Final = Struct("<16sqqq")
_EMPTY: Final = bytes(16)


class Entry(NamedTuple):
    """What is remembered of a caller on a path."""

    begin_ms: int  # of the minute
    passed: int  # in it
    banned_until_ms: int  # 0: not banned


def judge(entry: Entry | None, now_ms: int, limit: int, ban_ms: int) -> Entry:
    """One more request. It passes unless the entry it leads to is banned."""
    if entry is not None and entry.banned_until_ms:
        if now_ms < entry.banned_until_ms:
            return entry  # asking on does not prolong it
        entry = None
    if entry is None or now_ms - entry.begin_ms >= MINUTE_MS:
        return Entry(now_ms, 1, 0)
    if entry.passed < limit:
        return Entry(entry.begin_ms, entry.passed + 1, 0)
    return Entry(entry.begin_ms, entry.passed, now_ms + ban_ms)


@lru_cache(4096)  # callers come again
def _entry_of(caller: bytes, path: str, key: bytes, sets: int) -> tuple[bytes, int]:
    """By what an entry is known, and the set that it is in."""
    digest = blake2b(caller + path.encode(errors="replace"), digest_size=16, key=key).digest()
    return digest, int.from_bytes(digest[:8], "little") % sets


class Limiter:
    """A table of fixed size, one for all processes of a server.

    An entry is looked for in a set of eight that its hash chooses. If they are all taken, the oldest one goes. The hash
    has a secret key, so that nobody can aim at another caller's set. No address is in the table; the last few thousand
    that were hashed are kept beside it, for speed.
    """

    def __init__(self, limit: int, ban_ms: int, sets: int = 8_192, processes: int = 1) -> None:
        self._limit = limit
        self._ban_ms = ban_ms
        self._sets = sets
        self._alone = processes == 1
        self._key = secrets.token_bytes(16)
        self._table = SharedBytes(sets * _WAYS * _ENTRY.size)

    def banned_ms(self, caller: bytes, path: str, now_ms: int) -> int:
        """Count a request: 0 if it passes, or how much longer the caller is banned."""
        digest, number = _entry_of(caller, path, self._key, self._sets)
        if self._alone:
            return self._count(digest, number, now_ms)
        with self._table.locked(number):
            return self._count(digest, number, now_ms)

    def _count(self, digest: bytes, number: int, now_ms: int) -> int:
        begin = number * _WAYS * _ENTRY.size
        places = range(begin, begin + _WAYS * _ENTRY.size, _ENTRY.size)
        oldest, oldest_ms = begin, None
        for place in places:
            who, begin_ms, passed, banned_until_ms = _ENTRY.unpack_from(self._table.view, place)
            if who == digest:
                return self._put(place, digest, Entry(begin_ms, passed, banned_until_ms), now_ms)
            if who == _EMPTY:
                return self._put(place, digest, None, now_ms)
            if oldest_ms is None or begin_ms < oldest_ms:
                oldest, oldest_ms = place, begin_ms
        return self._put(oldest, digest, None, now_ms)

    def _put(self, place: int, digest: bytes, entry: Entry | None, now_ms: int) -> int:
        judged = judge(entry, now_ms, self._limit, self._ban_ms)
        if judged is not entry:
            _ENTRY.pack_into(self._table.view, place, digest, *judged)
        return max(0, judged.banned_until_ms - now_ms)
