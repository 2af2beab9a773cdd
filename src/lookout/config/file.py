"""Reads a configuration file strictly: everything wrong with it is said at once, and nothing is guessed."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from lookout.alerts.sender import INSTALL, count_recipients, is_installed
from lookout.base.problem import Problem, UnreadError, run_checks
from lookout.config.alerts import is_target_name
from lookout.config.lines import find_line, find_lines
from lookout.config.server_settings import ServerSettings
from lookout.config.settings import Settings, type_of_file
from lookout.config.table_reader import TableReader
from lookout.protocols.registry import keys_of_plugins, load_plugins
from lookout.store.kinds import find_kind

_DEEPEST: Final = 100  # tables and lists in one another, of which no key needs more than a few
_USED_BY_SERVERS: Final = re.compile(
    r"protocol|(server|log|page)\..+|admin\.(server|hosts)|chains\[\d+\]\.(id|name|test_network)|services\[\d+\]\.(name|title)|store\.read_url"
)


class ConfigError(Exception):
    """A configuration that cannot be used. ``messages`` are its problems with the file's name before each,
    ``messages_with_lines`` the same with the line after each, where that is known."""

    def __init__(
        self,
        path: Path,
        problems: Iterable[str | Problem],
        lines: Mapping[str, int] = {},
        unusable_variables: Iterable[str] = (),
    ) -> None:
        self.problems = tuple(problems)
        self.messages = [f"{path}: {problem}" for problem in self.problems]
        self.messages_with_lines = [f"{path}: {problem}{_format_line(problem, lines)}" for problem in self.problems]
        self.unusable_variables = frozenset(unusable_variables)
        """Those of the environment that the file names, and that are not set, or not valid UTF-8."""
        super().__init__("\n".join(self.messages))


def _format_line(problem: str | Problem, lines: Mapping[str, int]) -> str:
    line = find_line(problem.key, lines) if isinstance(problem, Problem) else None
    return f" (line {line})" if line else ""


def read_config(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file; ConfigError says all that is wrong with it."""
    return _read(path, *_load(path), TableReader(environment, path.parent))


def read_sending_config(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file for somebody who sends alerts: the targets' addresses are checked as well. That loads
    Apprise, which takes a second or two."""
    return _read(path, *_load(path), TableReader(environment, path.parent), _check_targets)


def read_config_text(text: str, path: Path, environment: Mapping[str, str]) -> Settings:
    """The settings of a text that is to become a file, for somebody who sends alerts."""
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of a terminal that Python keeps as surrogates
        raise ConfigError(path, ["not valid UTF-8"]) from None
    return _read(path, text, _parse(path, text), TableReader(environment, path.parent), _check_targets)


def read_server_config(path: Path, environment: Mapping[str, str] = os.environ) -> ServerSettings:
    """The settings of a server. The whole file is checked, but for the variables and the files of what a server does
    not use: they need not be there, and are not looked up."""
    text, tables = _load(path)
    has_own_url = _names_read_url(tables)

    def is_used(key: str) -> bool:
        return _USED_BY_SERVERS.fullmatch(key) is not None or (key == "store.url" and not has_own_url)

    return _read(path, text, tables, TableReader(environment, path.parent, is_used)).for_server()


def _load(path: Path) -> tuple[str, dict[str, Any]]:
    """A file as it is written, and as TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"not valid UTF-8: {error.reason} at byte {error.start}"]) from None
    return text, _parse(path, text)


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        tables = tomllib.loads(text)
        _check_depth(tables)
    except tomllib.TOMLDecodeError as error:
        end = f"at line {len(text.splitlines())}, the end of the file"
        raise ConfigError(path, [f"not TOML: {error}".replace("at end of document", end)]) from None
    except (ValueError, RecursionError):
        raise ConfigError(path, ["not TOML that can be read: a number too long, or nested too deeply"]) from None
    return tables


def _read(
    path: Path,
    text: str,
    tables: dict[str, Any],
    reader: TableReader,
    check_more: Callable[[Settings], Iterable[Problem]] = lambda _: (),
) -> Settings:
    reader.unusable_kinds = load_plugins(_kinds_in(tables))
    reader.unshown_keys = keys_of_plugins()
    settings: Settings = reader.read_table(type_of_file(), tables, "")
    checks = (
        _check_record(settings, path),
        check_more(settings),
    )
    problems = [
        problem._replace(text=reader.variables.hide(problem.text))
        for problem in (*reader.problems(), *run_checks(checks))
    ]
    if problems:
        raise ConfigError(path, problems, find_lines(text), reader.variables.unusable)
    return settings


def _check_record(settings: Settings, path: Path) -> Iterator[Problem]:
    """The record must not be written into a file that is something else; ``path`` is the configuration's."""
    name = settings.monitor.record
    if not name:
        return
    if "\0" in name or not Path(name).name:
        yield Problem("monitor.record", "names no file")
        return
    others = {os.path.realpath(path): "the configuration"}
    with suppress(UnreadError):
        others |= _files_of_store(settings.store.url, path.parent)
    record = path.parent / name
    for written in (record, f"{record}.1"):
        if (whose := others.get(os.path.realpath(written))) is not None:
            yield Problem("monitor.record", f"would be written into {whose}; choose another file")


def _files_of_store(url: str, folder: Path) -> dict[str, str]:
    kind = find_kind(url)
    return {} if kind is None or "\0" in url else dict.fromkeys(kind.list_files(url, folder), "the store")


def _check_targets(settings: Settings) -> Iterator[Problem]:
    """What only Apprise can say of the targets' addresses."""
    if settings.alerts.targets and not is_installed():
        yield Problem("alerts.targets", f"Apprise, which sends to them, is not installed; {INSTALL} adds it")
        return
    for name, address in settings.alerts.targets.items():
        if not is_target_name(name):
            continue
        reached = count_recipients(address)
        if reached == 0:
            yield Problem(f"alerts.targets.{name}", "Apprise does not understand this address")
        elif reached > 1:  # of which one may accept what another does not, and get it again and again
            yield Problem(f"alerts.targets.{name}", "reaches several; give each a target of its own")


def _names_read_url(tables: dict[str, Any]) -> bool:
    store = tables.get("store")
    return isinstance(store, dict) and store.get("read_url", "") != ""


def _check_depth(tables: dict[str, Any]) -> None:
    """RecursionError if a key like a.b.c… goes on for longer than anything here could follow it."""
    level: list[Any] = [tables]
    for _ in range(_DEEPEST):
        entries = (each.values() if isinstance(each, dict) else each for each in level)
        level = [entry for inner in entries for entry in inner if isinstance(entry, list | dict)]
        if not level:
            return
    raise RecursionError


def _kinds_in(tables: Any) -> Iterator[str]:
    """The protocols that a file names, in the order in which it does."""
    if isinstance(tables, dict):
        if isinstance(kind := tables.get("kind"), str):
            yield kind
        yield from (kind for each in tables.values() for kind in _kinds_in(each))
    elif isinstance(tables, list):
        yield from (kind for each in tables for kind in _kinds_in(each))
