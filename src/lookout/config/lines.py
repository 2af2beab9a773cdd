"""The lines of a configuration file on which its keys are written."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lookout.base.problem import join_keys

_MAY_END: Final = re.compile(r"\]|\"\"\"|'''")  # what the last line of a value of several lines has in it
_MOST_TRIES: Final = 200  # to parse one value; each takes longer than the last


def find_lines(text: str) -> dict[str, int]:
    """For each table and each key of a text that is TOML, the line where it begins, by its path: ``chains[0].rpc``."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}  # of the entries so far in each list of tables, by its path
    table = ""
    for line, statement in _statements(text):
        parsed = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = _enter(parsed, counts)
            lines.setdefault(table, line)
        else:
            for key in _paths(parsed, table):
                lines.setdefault(key, line)
    return lines


def find_line(key: str, lines: Mapping[str, int]) -> int | None:
    """Where a key is, or else the table or list around it; None if none of them is written."""
    while key and key not in lines:
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return lines.get(key)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each header of a table and each key with its value, which may take several lines; with its first line's number.
    What can be parsed alone is one: no part of a value is. It ends at a value that would take too long."""
    begin, statement, tries = 1, "", 0
    for number, line in enumerate(text.split("\n"), 1):
        may_be_whole = statement == "" or _MAY_END.search(line) is not None
        statement += f"{line}\n"
        tries += may_be_whole
        if tries > _MOST_TRIES:
            return
        if may_be_whole and _is_toml(statement):
            yield begin, statement
            begin, statement, tries = number + 1, "", 0


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _enter(header: dict[str, Any], counts: dict[str, int]) -> str:
    """The path of the table that a header opens."""
    path, inner = "", header
    while inner:
        ((name, inner),) = inner.items()
        path = join_keys(path, name)
        if isinstance(inner, list):
            counts[path] = counts.get(path, -1) + 1
            inner = {}
        if path in counts:
            path += f"[{counts[path]}]"
    return path


def _paths(parsed: dict[str, Any], table: str) -> Iterator[str]:
    """The path of a key, which may be dotted: then those of its tables, too."""
    path = table
    value: Any = parsed
    while isinstance(value, dict) and len(value) == 1:
        ((name, value),) = value.items()
        path = join_keys(path, name)
        yield path
