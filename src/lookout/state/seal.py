"""A seal over everything that is stored.

No store notices by itself when a disk gives a byte back otherwise than it was written, or a piece not at all, and
either could be a green bucket that nobody saw. The seal is made of a hash of each piece, put together so that their
order does not matter and that keeping up costs as much as what changed. It shows accidents, not what somebody
did on purpose: all that may write to the store can make a seal, too.
"""

from collections.abc import Mapping
from hashlib import blake2b

from lookout.base.pieces import Pieces


class Seal:
    """Keeps up with what is stored, from the first pieces on, which have to be all."""

    def __init__(self) -> None:
        self._hashes: dict[str, int] = {}
        self._all = 0

    def over(self, pieces: Pieces) -> str:
        """The seal of what is stored once these are written. To write them again changes nothing."""
        if pieces.replace_all:
            self._hashes, self._all = {}, 0
        for name, piece in pieces.put.items():
            new = _hash(name, piece)
            self._all ^= self._hashes.get(name, 0) ^ new
            self._hashes[name] = new
        for name in pieces.delete:
            self._all ^= self._hashes.pop(name, 0)
        return f"{self._all:016x}"


def seal_of(pieces: Mapping[str, bytes]) -> str:
    return Seal().over(Pieces(dict(pieces), replace_all=True))


def _hash(name: str, piece: bytes) -> int:
    return int.from_bytes(blake2b(b"%b\0%b" % (name.encode(), piece), digest_size=8).digest())
