"""The two ways in which a probe ends without an answer: its upstream's failure, and a fault of our own (M17)."""

import errno
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final, Literal, get_args

from lookout.base.text import clean

Lacking = Literal["descriptors", "memory", "threads", "ports", "buffers", "clock", "time"]
LACKING: Final[tuple[Lacking, ...]] = get_args(Lacking)
_NOTHING_LEFT: Final[dict[Lacking, str]] = {
    "descriptors": "no file descriptor left",
    "memory": "no memory left",
    "threads": "no thread left",
    "ports": "no local port left",
    "buffers": "no network buffer left",
    "clock": "its clock is wrong",
    "time": "the monitor stood still meanwhile",
}
_BY_ERRNO: Final[dict[int | None, Lacking]] = {
    errno.EMFILE: "descriptors",
    errno.ENFILE: "descriptors",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "buffers",
}
_SPARE_DESCRIPTORS: Final = 4  # the most that looking up a name or verifying a certificate has open
# Codes of JSON-RPC errors. Many nodes use the first also for a rate limit, where halving a range costs little.
TOO_MANY_RESULTS: Final = -32005
_NO_SUCH_METHOD: Final = -32601
# Alchemy refuses a range with 400, QuickNode with 413; 408, 504 and Cloudflare's 524 say that it took too long.
_TOO_MUCH: Final = (400, 408, 413, 504, 524)


class ProbeFailed(Exception):  # noqa: N818 - it is what happened to the probe, not a mistake in the program
    """An upstream could not be reached or understood.

    ``cause`` is one of CAUSES (`core/causes.py`), and ``detail`` adds fixed words and numbers. It holds no part
    of an address, a header or an answer's text, which may hold secrets. ``code`` is the upstream's own, if it gave one.
    """

    def __init__(self, cause: str, detail: str = "", *, code: int | None = None) -> None:
        detail = detail if code is None else str(code)
        self.cause = cause
        self.code = code
        self.reason = clean(f"{cause}: {detail}" if detail else cause)
        super().__init__(self.reason)


class TooMuchFailed(ProbeFailed):
    """The answer is longer than what is read."""


class OwnFault(Exception):  # noqa: N818 - as above
    """A local resource ran out, the monitor stood still, or its clock is wrong: no upstream was observed (M17)."""

    def __init__(self, lacking: Lacking) -> None:
        super().__init__(f"a fault of this machine's own: {_NOTHING_LEFT[lacking]}")
        self.lacking = lacking
        self.reason = f"own_fault: {_NOTHING_LEFT[lacking]}"


def not_understood(what: str) -> ProbeFailed:
    return ProbeFailed("not_understood", what)


def too_long(limit_bytes: int) -> TooMuchFailed:
    return TooMuchFailed("too_large", f"over {limit_bytes} bytes")


def asks_for_less(failure: ProbeFailed) -> bool:
    """Whether a failed request for a range may succeed for a smaller range; if not, ask another endpoint, or later."""
    match failure.cause:
        case "rate_limited":
            return failure.code == TOO_MANY_RESULTS
        case "jsonrpc_error":
            return failure.code != _NO_SUCH_METHOD
        case "http_status":
            return failure.code in _TOO_MUCH
        case "timeout":
            return failure.reason != "timeout: connect"
        case _:
            return failure.cause == "graphql_errors" or isinstance(failure, TooMuchFailed)


def can_open_files() -> bool:
    try:
        with ExitStack() as opened:
            for _ in range(_SPARE_DESCRIPTORS):
                opened.enter_context(socket.socket(socket.AF_UNIX))
    except OSError:
        return False
    return True


def has_free_port() -> bool:
    """Whether the system has a free local port; False also if none is left for one destination."""
    try:
        with socket.socket() as trial:
            trial.bind(("", 0))
    except OSError:
        return False
    return True


def own_fault(error: BaseException | None) -> OwnFault | None:
    for cause in _causes(error):
        if isinstance(cause, OwnFault):
            return cause
        lacking = _lacking(cause)
        if lacking is not None:
            return OwnFault(lacking)
    return None


def _lacking(error: BaseException) -> Lacking | None:
    match error:
        case MemoryError() | socket.gaierror(errno=socket.EAI_MEMORY):
            return "memory"
        case OSError(errno=errno.EADDRNOTAVAIL):
            # Also the error for an unroutable address, such as ::1 without IPv6.
            return None if has_free_port() else "ports"
        case socket.gaierror() | ssl.SSLError() | OSError(errno=errno.EBUSY):
            # Files were needed for these: the system's list of hosts, a name server's socket, a certificate. If they
            # could not be opened, the error says that the name or the certificate's authority is unknown, or that a
            # module for looking up names (of systemd, for example) is busy.
            return None if can_open_files() else "descriptors"
        case OSError(errno=None):  # several addresses failed in different ways
            return "descriptors" if not can_open_files() else "ports" if not has_free_port() else None
        case OSError():
            return _BY_ERRNO.get(error.errno)
        case _:
            return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
