"""A file of environment variables: the part of systemd's ``EnvironmentFile=`` that all its versions read alike."""

import re
from pathlib import Path
from typing import Final

from lookout.config.file import ConfigError

_BEGIN: Final = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"
_ENTRY: Final = re.compile(_BEGIN + r"""(?:'(?P<single>[^']*)'|"(?P<double>[^"\\]*)"|(?P<plain>[^'"\\ \t][^\\]*)?)""")
_COMMENT: Final = re.compile(r"([#;].*)?(?<!\\)")  # systemd goes on with the next line after a backslash
_RULE: Final = (
    "is not NAME=value; put '' around a value with a quotation mark or a backslash; leave out export,"
    " control characters, and a backslash at the end of a comment"
)
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
        elif not _COMMENT.fullmatch(line.strip(" \t\r")):
            problems.append(f"line {number}: {_RULE}")
    return variables, problems
