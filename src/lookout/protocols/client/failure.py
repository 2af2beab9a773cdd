"""The two ways in which a probe ends without an answer: its upstream's failure, and a fault of our own."""

from typing import Final, Literal, get_args

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
_RATE_LIMITS: Final = (429, -32005)  # codes of JSON-RPC errors
# Those that no smaller range helps against. -32005 is not among them: many answer so to a range with too many results,
# and one that is halved for a mere rate limit costs little.
_OF_ANY_RANGE: Final = (429, -32601)
# Alchemy refuses a range with 400, QuickNode with 413; 408, 504 and Cloudflare's 524 say that it took too long.
_TOO_MUCH: Final = (400, 408, 413, 504, 524)


class ProbeFailed(Exception):  # noqa: N818 - it is what happened to the probe, not a mistake in the program
    """An upstream could not be reached or understood.

    ``cause`` is one of CAUSES (`core/causes.py`), and ``detail`` says more in our own words and in numbers. It has no
    part of an address, a header or an answer's text in it, which may hold secrets.
    """

    def __init__(self, cause: str, detail: str = "") -> None:
        self.cause = cause
        self.reason = f"{cause}: {detail}" if detail else cause
        super().__init__(self.reason)


class HttpCodeFailed(ProbeFailed):
    """An upstream answered with another HTTP code than the expected one."""

    def __init__(self, http_code: int, cause: str = "http_status", detail: str = "") -> None:
        super().__init__(cause, f"{http_code}{detail}")
        self.http_code = http_code


class ProxyRefusedFailed(ProbeFailed):
    """The proxy on the way to an upstream did not let the request pass: of the upstream nothing is known."""

    def __init__(self, http_code: int) -> None:
        super().__init__("proxy", f"refused with {http_code}")


class TooManyValuesFailed(ProbeFailed):
    """An upstream's answer had more values in it than are read."""

    def __init__(self) -> None:
        super().__init__("not_understood", "too many values")


class JsonRpcFailed(ProbeFailed):
    """An upstream answered with a JSON-RPC error; of its code nothing is known if it is no usual one."""

    def __init__(self, code: int | None) -> None:
        super().__init__("rate_limited" if code in _RATE_LIMITS else "jsonrpc_error", "" if code is None else str(code))
        self.code = code


class TooLongFailed(ProbeFailed):
    """An upstream's answer was longer than it may be."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__("too_large", f"over {limit_bytes} bytes")


class WrongChainFailed(ProbeFailed):
    """An endpoint is of another chain than it was configured for."""

    def __init__(self, found: int, expected: int | None) -> None:
        super().__init__("wrong_chain", f"{found} instead of {expected}")


class OwnFault(Exception):  # noqa: N818 - as above
    """The monitor ran out of something, stood still, or does not know the time: nothing was observed of any upstream
    (M17)."""

    def __init__(self, lacking: Lacking) -> None:
        super().__init__(f"a fault of this machine's own: {_NOTHING_LEFT[lacking]}")
        self.lacking = lacking
        self.cause = f"own_fault: {_NOTHING_LEFT[lacking]}"


def not_understood(what: str) -> ProbeFailed:
    return ProbeFailed("not_understood", what)


def asks_for_less(failure: ProbeFailed) -> bool:
    """Whether a failed request for a range may succeed for a smaller one. Otherwise somebody else has to be asked, or
    later."""
    match failure:
        case JsonRpcFailed(code=code):
            return code not in _OF_ANY_RANGE
        case HttpCodeFailed(http_code=http_code):
            return http_code in _TOO_MUCH
        case TooManyValuesFailed() | TooLongFailed():
            return True
        case ProbeFailed(cause="timeout"):
            return failure.reason != "timeout: connect"
        case _:
            return failure.cause == "graphql_errors"
