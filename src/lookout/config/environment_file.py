"""A file of environment variables, read exactly as systemd reads the ``EnvironmentFile=`` of a unit.

What systemd would leave out with a line in its journal, or its versions read differently, is refused.
"""

import re
from pathlib import Path
from typing import Final

from lookout.config.file import ConfigError

# Quotation marks count only before the first other character of a value; then they are characters like any other.
_ENTRY: Final = re.compile(
    r"""
    [ \t\n\r]*
    (?: (?P<comment> [#;] [^\n\r]* )
      | (?P<name> [^=\n\r]+ )
        (?P<equals> =
            (?P<quoted> (?: [ \t] | '[^']*' | "(?:\\.|[^"\\])*" )* )
            (?P<plain> (?: \\(?:.|\Z) | [^\n\r\\] )* )
        )?
      | (?P<nameless> = [^\n\r]* )
      | \Z
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED: Final = re.compile(r"""'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)\"""", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_TOKEN: Final = re.compile(r"\\(?:.|\Z)|[^\\]", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # earlier versions of systemd leave out a value with one
_BACKSLASH_KEEPS: Final = '"\\`$'  # between double quotation marks; before anything else a backslash is itself


def read_environment_file(path: Path) -> dict[str, str]:
    """The variables of a file; ConfigError says all that is wrong with it, and never a value."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"not valid UTF-8: {error.reason} at byte {error.start}"]) from None
    if "\0" in text:
        raise ConfigError(path, ["has a NUL character, which no variable can have"])
    variables, problems = parse_environment(text)
    if problems:
        raise ConfigError(path, problems)
    return variables


def parse_environment(text: str) -> tuple[dict[str, str], list[str]]:
    """The variables, and a sentence for each line that is wrong. Of two of one name the later counts."""
    variables: dict[str, str] = {}
    problems: list[str] = []
    for entry in _ENTRY.finditer(text):
        name = (entry["name"] or "").rstrip(" \t")
        what = _find_problem(entry, name)
        if what:
            at = entry.start("comment") if entry["comment"] else max(entry.start("name"), entry.start("nameless"))
            problems.append(f"line {1 + text.count(chr(10), 0, at)}: {what}")
        elif name:
            variables[name] = _value(entry["quoted"], entry["plain"])
            if _CONTROL.search(variables[name]):
                at = 1 + text.count("\n", 0, entry.start("name"))
                problems.append(f"line {at}: the value of {name} has a control character; remove it")
    return variables, problems


def _find_problem(entry: re.Match[str], name: str) -> str:
    if entry["comment"]:
        return "a comment ends in a backslash; remove it" if entry["comment"].endswith("\\") else ""
    if entry["nameless"] or (name and not _NAME.fullmatch(name)):
        hint = " (without export)" if name.startswith("export ") else ""
        return f"is not NAME=value{hint}; a name has letters, digits and _, and begins with no digit"
    if name and entry["equals"] is None:
        return "is not NAME=value; there is no ="
    if entry["plain"] and entry["plain"][0] in "'\"":
        return f"the value of {name} begins with a quotation mark that is never closed"
    return ""


def _value(quoted: str, plain: str) -> str:
    parts = [
        match["single"] if match["double"] is None else _ESCAPED.sub(_unescape, match["double"])
        for match in _QUOTED.finditer(quoted)
    ]
    tokens = _TOKEN.findall(plain)
    while tokens and tokens[-1] in " \t":
        tokens.pop()
    parts += (token if token[0] != "\\" else token[1:].strip("\n\r") for token in tokens)
    return "".join(parts)


def _unescape(match: re.Match[str]) -> str:
    character = match[1]
    if character == "\n":
        return ""
    return character if character in _BACKSLASH_KEEPS else match[0]
