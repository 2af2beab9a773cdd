"""How many connections each address has, in memory that the processes of a server share."""

import secrets
from collections import Counter
from hashlib import blake2b
from typing import Final

from lookout.server.shared_memory import SharedBytes

_MOST: Final = 1_024  # addresses that a process lists: those with the most connections
_CELL_BYTES: Final = 8
_FORMAT: Final = "Q"
_SEEN_MS, _LISTED, _FIRST = range(3)
_CELLS: Final = _FIRST + 2 * _MOST
# A process that has not been seen for so long is none any more, and has no connections.
_GONE_MS: Final = 10_000


class Crowds:
    """A list for each process; each writes only its own. No address is in it, only its hash under a secret key."""

    def __init__(self, processes: int) -> None:
        self._rows = 2 * processes  # while one is being replaced there are two
        self._memory = SharedBytes(self._rows * _CELLS * _CELL_BYTES)
        self._key = secrets.token_bytes(16)

    def attach(self) -> "OwnCrowds":
        """A list for this process, for as long as it lives."""
        return self._open_list(self._memory.take_place(self._rows))

    def _open_list(self, number: int) -> "OwnCrowds":
        return OwnCrowds(self._memory, self._rows, number, self._key)


class OwnCrowds:
    """The list of one process."""

    def __init__(self, memory: SharedBytes, rows: int, number: int, key: bytes) -> None:
        cells = memory.view.cast(_FORMAT)
        lists = [cells[row * _CELLS : (row + 1) * _CELLS] for row in range(rows)]
        self._memory = memory
        self._lock = rows  # the first place behind those that processes take
        self._own = lists.pop(number)
        self._others = lists
        self._key = key

    def hash_network(self, network: bytes) -> int:
        """The keyed hash under which a network is listed."""
        return int.from_bytes(blake2b(network, digest_size=_CELL_BYTES, key=self._key).digest(), "little")

    def count_excess(self, connections: Counter[int], most: int, now_ms: int) -> dict[int, int]:
        """How many of this process's connections are to be closed, by the hash of their network, so that after some
        looks none has more than ``most`` in all processes. The others are listed for the other processes."""
        with self._memory.locked(self._lock):
            elsewhere = self._count_elsewhere(now_ms)
            too_many = {
                name: number
                for name, own in connections.items()
                if (number := compute_excess_share(own, own + elsewhere[name], most))
            }
            self._list(connections - Counter(too_many), now_ms)
        return too_many

    def _count_elsewhere(self, now_ms: int) -> Counter[int]:
        found: Counter[int] = Counter()
        for other in self._others:
            if other[_LISTED] and now_ms - other[_SEEN_MS] < _GONE_MS:
                listed = other[_FIRST : _FIRST + 2 * other[_LISTED]].tolist()
                found.update(dict(zip(listed[::2], listed[1::2], strict=True)))
        return found

    def _list(self, connections: Counter[int], now_ms: int) -> None:
        listed = connections.most_common(_MOST)
        for place, (name, number) in enumerate(listed):
            self._own[_FIRST + 2 * place], self._own[_FIRST + 2 * place + 1] = name, number
        self._own[_SEEN_MS], self._own[_LISTED] = now_ms, len(listed)


def compute_excess_share(own: int, all_of_them: int, most: int) -> int:
    """How many of its own connections of one network a process closes: as large a part as all have to give up. The
    looks of all processes, one after the other, come down to ``most`` and never below it."""
    too_many = max(0, all_of_them - most)
    return -(-too_many * own // all_of_them) if too_many else 0
