"""A seal over everything that is stored.

No store notices by itself when a disk gives a byte back otherwise than it was written, or a piece not at all, and
either could be a green bucket that nobody saw. The seal is made of a hash of each piece, put together so that their
order does not matter and that keeping up costs as much as what changed. It tells of accidents, not of somebody who can
write to the store: they can make a seal, too.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b


class Seal:
    """Keeps up with what is stored."""

    def __init__(self) -> None:
        self._hashes: dict[str, int] | None = None
        self._all = 0

    def over(self, put: Mapping[str, bytes], delete: Iterable[str], *, whole: bool) -> str:
        """The seal of what is stored once these are put and deleted. The first have to be whole; what is put again,
        since it could not be written, changes nothing."""
        if whole:
            self._hashes, self._all = {}, 0
        if self._hashes is None:
            raise ValueError("nobody knows what else is stored")
        for name, piece in put.items():
            new = _hash(name, piece)
            self._all ^= self._hashes.get(name, 0) ^ new
            self._hashes[name] = new
        for name in delete:
            self._all ^= self._hashes.pop(name, 0)
        return f"{self._all:016x}"


def seal_of(pieces: Mapping[str, bytes]) -> str:
    return Seal().over(pieces, (), whole=True)


def _hash(name: str, piece: bytes) -> int:
    return int.from_bytes(blake2b(b"%b\0%b" % (name.encode(), piece), digest_size=8).digest())
