"""The one exception of a probe that failed through its upstream's doing."""


class ProbeFailed(Exception):  # noqa: N818 - it is what happened to the probe, not a mistake in the program
    """An upstream could not be reached or understood.

    ``reason`` is short and stable, for people and for logs. It never has any part of an address, a header or an
    answer in it: those may hold secrets, or text that somebody else chose.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HttpCodeFailed(ProbeFailed):
    """An upstream answered with another HTTP code than 200."""

    def __init__(self, http_code: int) -> None:
        super().__init__(f"HTTP {http_code}" + (" redirect" if 300 <= http_code < 400 else ""))
        self.http_code = http_code


class WrongChainFailed(ProbeFailed):
    """An endpoint is of another chain than it was configured for."""

    def __init__(self) -> None:
        super().__init__("wrong chain id")


def not_understood(what: str) -> ProbeFailed:
    return ProbeFailed(f"not understood: {what}")
