"""Reads a configuration file strictly: reports all problems at once, and guesses nothing."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lookout.base.problem import Problem, join_keys
from lookout.config.reader import TableReader, keys_of
from lookout.config.tables import MONITORS_TABLES, AdminTable, NamedChain, NamedService, ServerSettings

if TYPE_CHECKING:
    from lookout.config.settings import Settings  # imported late: with all protocols, it would double a server's start

_HEADER: Final = re.compile(r"\s*\[.*\]\s*(#.*)?")
_KEY_PART: Final = r"""([\w-]+|"[^"]*"|'[^']*')"""
_KEY: Final = re.compile(rf"\s*({_KEY_PART}(\s*\.\s*{_KEY_PART})*)\s*=")
_QUOTES: Final = re.compile("\"\"\"|'''")  # around a text of several lines


class ConfigError(Exception):
    """A configuration that cannot be used. ``messages`` are its problems, prefixed with the file's name."""

    def __init__(self, path: Path, problems: Iterable[str | Problem], unset_variables: Iterable[str] = ()) -> None:
        self.problems = tuple(problems)
        self.messages = [f"{path}: {problem}" for problem in self.problems]
        self.unset_variables = frozenset(unset_variables)
        """Environment variables that the file names and that are not set."""
        super().__init__("\n".join(self.messages))


def read_config(path: Path, environment: Mapping[str, str] = os.environ) -> "Settings":
    """The settings of a file; ConfigError names all its problems."""
    return _read(path, *_load(path), environment)[0]


def read_sending_config(path: Path, environment: Mapping[str, str] = os.environ) -> "Settings":
    """The settings of a file for a sender of alerts: also checks the targets' addresses, which loads Apprise and takes
    a second or two."""
    return read_with_variables(path, environment)[0]


def read_with_variables(path: Path, environment: Mapping[str, str]) -> "tuple[Settings, set[str]]":
    """Like ``read_sending_config``, with the environment variables that are filled in."""
    settings, variables = _read(path, *_load(path), environment, _check_here)
    if not settings.sources_by_check():  # a file cut off by a full disk is valid, and a reload would empty the report
        raise ConfigError(path, ["names nothing to watch; add a source, such as [[indexer]] or [[services]]"])
    return settings, variables


def read_config_text(text: str, path: Path, environment: Mapping[str, str]) -> "Settings":
    """The settings of a text before it becomes a file, for a sender of alerts."""
    try:
        text.encode()
    except UnicodeEncodeError:  # surrogates, from invalid bytes of a terminal
        raise ConfigError(path, ["not valid UTF-8"]) from None
    return _read(path, text, _parse(path, text), environment, _check_here)[0]


def read_server_config(path: Path, environment: Mapping[str, str] = os.environ) -> ServerSettings:
    """The settings of a server; ConfigError names all problems of the tables that it uses."""
    return find_server_settings(path, environment)[0]


def find_server_settings(path: Path, environment: Mapping[str, str]) -> tuple[ServerSettings, set[str]]:
    """Like ``read_server_config``, with the environment variables that are filled in. Of tables that a server does not
    use only the names are checked."""
    text, tables = _load(path)
    unused = {"admin.monitor"}
    store = tables.get("store")
    if isinstance(store, dict) and store.get("read_url", "") != "":
        unused.add("store.url")
    reader, keys = TableReader(environment, path.parent, {}, unused), keys_of(ServerSettings)
    reader.report_unknown(tables, [*keys, *MONITORS_TABLES], "")
    written = {name: value for name, value in tables.items() if name in keys}
    for name, form in (("chains", NamedChain), ("services", NamedService)):
        if isinstance(rows := written.get(name), list):
            written[name] = [_pick(row, keys_of(form)) for row in rows]
    read = {name: reader.read_key(keys[name].type, value, name) for name, value in written.items()}
    settings = ServerSettings(**{name: value for name, value in read.items() if value is not None})
    if not reader.problems:
        reader.add_problems(settings.check_page())
    _raise_problems(path, text, reader)
    return settings, reader.variables


def _pick(row: Any, keys: Iterable[str]) -> Any:
    return {name: row[name] for name in keys if name in row} if isinstance(row, dict) else row


def read_admin_config(path: Path, environment: Mapping[str, str] = os.environ) -> AdminTable:
    """The admin ports of a file, for a caller of the running monitor. Nothing else of the file is checked."""
    text, tables = _load(path)
    reader = TableReader(environment, path.parent, {})
    settings = reader.read_key(AdminTable, tables.get("admin", {}), "admin")
    _raise_problems(path, text, reader)
    return settings or AdminTable()


def _load(path: Path) -> tuple[str, dict[str, Any]]:
    """A file's text, and its TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"not valid UTF-8: {error.reason} at byte {error.start}"]) from None
    return text, _parse(path, text)


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        end = f"at line {len(text.splitlines())}, the end of the file"
        raise ConfigError(path, [f"not TOML: {error}".replace("at end of document", end)]) from None
    except (ValueError, RecursionError):
        raise ConfigError(path, ["not TOML that can be read: a number too long, or nested too deeply"]) from None


def _read(
    path: Path,
    text: str,
    tables: dict[str, Any],
    environment: Mapping[str, str],
    check: "Callable[[Settings], Iterable[Problem]]" = lambda _: (),
) -> "tuple[Settings, set[str]]":
    from lookout.config.settings import read_settings
    from lookout.protocols.registry import load_plugins

    reader = TableReader(environment, path.parent, load_plugins(_kinds_in(tables)))
    settings = read_settings(tables, reader)
    reader.add_problems(check(settings))
    _raise_problems(path, text, reader)
    return settings, reader.variables


def _raise_problems(path: Path, text: str, reader: TableReader) -> None:
    """ConfigError if there are problems, in the order of the text's lines."""
    if reader.problems:
        lines = find_lines(text)
        problems = [problem._replace(line=find_line(problem.key, lines)) for problem in reader.problems]
        problems.sort(key=lambda problem: problem.line or 0)
        raise ConfigError(path, problems, reader.unset_variables)


def _check_here(settings: "Settings") -> Iterator[Problem]:
    """Problems of features' tables that only this machine can find."""
    from lookout.features.registry import FEATURES  # a server has none

    for feature in FEATURES:
        yield from feature.check_here(settings.table_of(feature))


def _kinds_in(tables: Any) -> Iterator[str]:
    """The protocols that a file names, in its order."""
    if isinstance(tables, dict):
        if isinstance(kind := tables.get("kind"), str):
            yield kind
        yield from (kind for entry in tables.values() for kind in _kinds_in(entry))
    elif isinstance(tables, list):
        yield from (kind for entry in tables for kind in _kinds_in(entry))


def find_lines(text: str) -> dict[str, int]:
    """The first line of every table and key of a TOML text, by its path: ``chains[0].rpc``."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}  # entries so far of the lists of tables, by path
    table, quotes = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if not quotes and _HEADER.fullmatch(line):
            table = _enter(line, counts)
            lines.setdefault(table, number)
        elif not quotes and (key := _KEY.match(line)) is not None:
            path = table
            for name in _parts(key[1]):
                path = join_keys(path, name)
                lines.setdefault(path, number)
        for found in _QUOTES.findall(line):
            quotes = found if not quotes else "" if found == quotes else quotes
    return lines


def find_line(key: str, lines: Mapping[str, int]) -> int | None:
    """The line of a key, or of the table or list around it; None if none of them is written."""
    while key and key not in lines:
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return lines.get(key)


def _enter(header: str, counts: dict[str, int]) -> str:
    """The path of the table that a header opens."""
    path, names = "", _parts(header.partition("#")[0].strip().strip("[]"))
    for number, name in enumerate(names, 1):
        path = join_keys(path, name)
        if number == len(names) and header.lstrip().startswith("[["):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path += f"[{counts[path]}]"
    return path


def _parts(key: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_KEY_PART, key)]
