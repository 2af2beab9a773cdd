"""The two ways in which a probe ends without an answer: its upstream's failure, and a fault of our own."""

from typing import Final, Literal, get_args

Lacking = Literal["descriptors", "memory", "threads", "ports", "buffers"]
LACKING: Final[tuple[Lacking, ...]] = get_args(Lacking)
_NOTHING_LEFT: Final[dict[Lacking, str]] = {
    "descriptors": "no file descriptor left",
    "memory": "no memory left",
    "threads": "no thread left",
    "ports": "no local port left",
    "buffers": "no network buffer left",
}


class ProbeFailed(Exception):  # noqa: N818 - it is what happened to the probe, not a mistake in the program
    """An upstream could not be reached or understood.

    ``reason`` is short and stable, for people and for logs. It never has any part of an address, a header or an
    answer in it: those may hold secrets, or text that somebody else chose.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HttpCodeFailed(ProbeFailed):
    """An upstream answered with another HTTP code than the expected one."""

    def __init__(self, http_code: int) -> None:
        super().__init__(f"HTTP {http_code}" + (" redirect" if 300 <= http_code < 400 else ""))
        self.http_code = http_code


class ProxyRefusedFailed(ProbeFailed):
    """The proxy on the way to an upstream did not let the request pass: of the upstream nothing is known."""

    def __init__(self, http_code: int) -> None:
        super().__init__(f"the proxy refused: HTTP {http_code}")


class TooLongFailed(ProbeFailed):
    """An upstream's answer was longer than it may be."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"body over {limit_bytes} bytes")


class WrongChainFailed(ProbeFailed):
    """An endpoint is of another chain than it was configured for."""

    def __init__(self) -> None:
        super().__init__("wrong chain id")


class OwnFault(Exception):  # noqa: N818 - as above
    """The monitor, or its machine, ran out of something: nothing was observed of anybody (M17)."""

    def __init__(self, lacking: Lacking) -> None:
        super().__init__(f"a fault of this machine's own: {_NOTHING_LEFT[lacking]}")
        self.lacking = lacking


def not_understood(what: str) -> ProbeFailed:
    return ProbeFailed(f"not understood: {what}")
