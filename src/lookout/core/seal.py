"""A seal over everything that is stored.

No store notices by itself when a disk gives a byte back otherwise than it was written, or a piece not at all, and
either could be a green bucket that nobody saw. The seal is made of a hash of each piece, put together so that their
order does not matter and that keeping up costs as much as what changed. It tells of accidents, not of somebody who can
write to the store: they can make a seal, too.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

NAME: Final = "seal"  # of the piece that it is stored as


class Seal:
    """Keeps up with what is stored. The first changes have to be all there is."""

    def __init__(self) -> None:
        self._hashes: dict[str, int] = {}
        self._all = 0

    def over(self, put: Mapping[str, bytes], delete: Iterable[str], *, whole: bool) -> bytes:
        """The seal of what is stored once these are put and deleted. What is put again, since it could not be written,
        changes nothing."""
        if whole:
            self._hashes, self._all = {}, 0
        for name, piece in put.items():
            if name != NAME:
                self._replace(name, _hash(name, piece))
        for name in delete:
            self._replace(name, 0)
        return _written(self._all)

    def _replace(self, name: str, new: int) -> None:
        self._all ^= self._hashes.pop(name, 0) ^ new
        if new:
            self._hashes[name] = new


def is_broken(stored: Mapping[str, bytes]) -> bool:
    """Whether pieces are not those that were sealed. A store of a version that made no seals has none to break."""
    if NAME not in stored:
        return False
    together = 0
    for name, piece in stored.items():
        if name != NAME:
            together ^= _hash(name, piece)
    return stored[NAME] != _written(together)


def _hash(name: str, piece: bytes) -> int:
    return int.from_bytes(blake2b(b"%b\0%b" % (name.encode(), piece), digest_size=8).digest())


def _written(seal: int) -> bytes:
    return b"%016x" % seal
