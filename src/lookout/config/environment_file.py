"""A file of environment variables: the part of systemd's ``EnvironmentFile=`` that all its versions read alike."""

import re
from pathlib import Path
from typing import Final

from lookout.config.file import ConfigError

_BEGIN: Final = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"
_ENTRY: Final = re.compile(_BEGIN + r"""(?:'(?P<single>[^']*)'|"(?P<double>[^"\\]*)"|(?P<plain>[^'"\\ \t][^\\]*)?)""")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def read_environment_file(path: Path) -> dict[str, str]:
    """The variables of a file; ConfigError names all its problems, and no value."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"not valid UTF-8: {error.reason} at byte {error.start}"]) from None
    variables, problems = parse_environment(text)
    if problems:
        raise ConfigError(path, problems)
    return variables


def parse_environment(text: str) -> tuple[dict[str, str], list[str]]:
    """The variables, and a sentence per wrong line. The last line of a name counts."""
    variables: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        entry = _ENTRY.fullmatch(line.strip(" \t\r"))
        if entry is not None and not _CONTROL.search(entry[0]):
            variables[entry["name"]] = entry["single"] or entry["double"] or entry["plain"] or ""
        elif (what := _find_problem(line.strip(" \t\r"))) is not None:
            problems.append(f"line {number}: {what}")
    return variables, problems


def _find_problem(line: str) -> str | None:
    if not line or line[0] in "#;":
        return "a comment ends in a backslash; remove it" if line.endswith("\\") else None
    if not re.match(_BEGIN, line):
        hint = " (without export)" if line.startswith("export ") else ""
        return f"is not NAME=value{hint}; a name has letters, digits and _, and begins with no digit"
    if _CONTROL.search(line):
        return "the value has a control character; remove it"
    return "the value has a quotation mark or a backslash; put '' around all of it"
