"""Whether an error is a shortage of the monitor's own or the upstream's failure (M17)."""

import errno
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from lookout.protocols.client.failure import Lacking, OwnFault

_BY_ERRNO: Final[dict[int | None, Lacking]] = {
    errno.EMFILE: "descriptors",
    errno.ENFILE: "descriptors",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "buffers",
}
_SPARE_DESCRIPTORS: Final = 4  # as many as looking up a name, or verifying a certificate, has open at a time
_ZLIB_OUT_OF_MEMORY: Final = "Error -4 "  # the library has no other way to say it

Holds = Callable[[], bool]


def can_open_files() -> bool:
    try:
        with ExitStack() as opened:
            for _ in range(_SPARE_DESCRIPTORS):
                opened.enter_context(socket.socket(socket.AF_UNIX))
    except OSError:
        return False
    return True


def has_free_port() -> bool:
    """Whether the system still gives out a local port. If none is left for one destination, this finds none either."""
    try:
        with socket.socket() as trial:
            trial.bind(("", 0))
    except OSError:
        return False
    return True


def own_fault(
    error: BaseException, can_open: Holds = can_open_files, has_port: Holds = has_free_port
) -> OwnFault | None:
    """The fault of our own that this error came of, or None if it came of something else."""
    for each in _causes(error):
        if isinstance(each, OwnFault):
            return each
        lacking = _lacking(each, can_open, has_port)
        if lacking is not None:
            return OwnFault(lacking)
    return None


def _lacking(error: BaseException, can_open: Holds, has_port: Holds) -> Lacking | None:
    match error:
        case MemoryError():
            return "memory"
        case zlib.error() if str(error).startswith(_ZLIB_OUT_OF_MEMORY):
            return "memory"
        case socket.gaierror(errno=socket.EAI_MEMORY):
            return "memory"
        case OSError(errno=errno.EADDRNOTAVAIL):
            # Also what the system says of an address that nothing leads to from here, such as ::1 without IPv6.
            return None if has_port() else "ports"
        case socket.gaierror() | ssl.SSLError():
            # Files were needed for these: the system's list of hosts, a name server's socket, a certificate. If they
            # could not be opened, there is said to be no such name, or nobody to vouch for the certificate.
            return None if can_open() else "descriptors"
        case OSError(errno=None):  # of several addresses, which failed in several ways
            return "descriptors" if not can_open() else "ports" if not has_port() else None
        case OSError():
            return _BY_ERRNO.get(error.errno)
        case _:
            return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error itself and what it came of: a client's library wraps the system's errors."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__
