"""A problem of a configuration, as a value."""

from typing import NamedTuple


class Problem(NamedTuple):
    """``key`` is the place, ``text`` the problem, which never shows a value that may be a secret."""

    key: str
    text: str
    line: int | None = None
    """The line in the file, if known."""

    def __str__(self) -> str:
        return f"{self.key}: {self.text}" + ("" if self.line is None else f" (line {self.line})")

    def below(self, parent: str) -> "Problem":
        return self._replace(key=join_keys(parent, self.key))


def join_keys(parent: str, key: str) -> str:
    separator = "." if parent and key and not key.startswith("[") else ""
    return f"{parent}{separator}{key}"
