"""A file of environment variables: the part of systemd's ``EnvironmentFile=`` that all its versions read alike."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from lookout.config.file import ConfigError

_BEGIN: Final = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"
_ENTRY: Final = re.compile(_BEGIN + r"""(?:'(?P<single>[^']*)'|"(?P<double>[^"\\]*)"|(?P<plain>[^'"\\ \t][^\\]*)?)""")
_COMMENT: Final = re.compile(r"([#;].*)?(?<!\\)")  # systemd goes on with the next line after a backslash
_RULE: Final = (
    "is not NAME=value; put '' around a value with a quotation mark or a backslash; leave out export,"
    " control characters, and a backslash at the end of a comment"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Environment(NamedTuple):
    """The variables that a process was started with, and the files that add to them."""

    own: Mapping[str, str]
    files: tuple[Path, ...] = ()

    def read(self) -> dict[str, str]:
        """All variables now; a later file wins over an earlier one, and each over the own ones. ConfigError names all
        problems."""
        variables, errors = dict(self.own), list[ConfigError]()
        for path in self.files:
            try:
                variables |= read_environment_file(path)
            except ConfigError as error:
                errors.append(error)
        if errors:
            errors[0].messages = [message for error in errors for message in error.messages]
            raise errors[0]
        return variables


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
