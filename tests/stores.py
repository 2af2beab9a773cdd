"""Opening a store for writing that another writer may just be leaving; and stored state that is read or damaged."""

import gzip
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Final, TypeVar

from lookout.store.protocol import StoreBusyError, Writer

_LOOK_EVERY_S: Final = 0.05
HASH_BYTES: Final = 16  # before the document that has the hashes of all others

W = TypeVar("W", bound=Writer)


def once_free(open_writer: Callable[[], W], within_s: float = 30) -> W:
    """The writer, as soon as nobody else is one; StoreBusyError if somebody still is after so long."""
    until = time.monotonic() + within_s
    while True:
        try:
            return open_writer()
        except StoreBusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(_LOOK_EVERY_S)


def read_texts(state: Mapping[str, bytes]) -> list[str]:
    """What is in the stored documents of a state."""
    return [gzip.decompress(document[HASH_BYTES * (name == "state") :]).decode() for name, document in state.items()]


def damage(stored: Mapping[str, bytes], chance: Random) -> dict[str, bytes]:
    """One bit flipped, or a document lost, renamed, copied, or exchanged with another one."""
    name, other = chance.sample(sorted(stored), 2)
    document, rest = stored[name], {kept: stored[kept] for kept in stored if kept != name}
    flipped = (int.from_bytes(document) ^ 1 << chance.randrange(8 * len(document))).to_bytes(len(document))
    harmed = (rest | {name: flipped}, rest, rest | {f"{name}0": document}, {**stored, "more": document})
    exchanged = {**stored, name: stored[other], other: document}
    weights = (len(stored), 1, 1, 1, len(stored))
    (found,) = chance.choices((*harmed, exchanged), weights)
    return found if found != stored else rest
