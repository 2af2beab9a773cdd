"""Reads a configuration file strictly: everything wrong with it is said at once, and nothing is guessed."""

import difflib
import json
import os
import re
import tomllib
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import fields

from lookout.alerts.sender import INSTALL, count_recipients, is_installed
from lookout.base.problem import UNREAD, Problem, UnreadError, join_keys, run_checks
from lookout.base.setting_types import FileContent, OneOf, Rule, Table
from lookout.base.text import shorten
from lookout.config.alerts import is_target_name
from lookout.config.lines import find_line, find_lines
from lookout.config.settings import ServerSettings, Settings, type_of_file
from lookout.protocols.registry import keys_of_plugins, load_plugins
from lookout.store.kinds import find_kind

CONFIG_VARIABLE: Final = "LOOKOUT_CONFIG"  # of the environment: names the file where nothing else does
DEFAULT_CONFIG: Final = "lookout.toml"
_LONGEST_FILE: Final = 4_194_304  # that a key names; the authorities of a system take 0.2 MiB
_DEEPEST: Final = 100  # tables and lists in one another, of which no key needs more than a few
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")  # what TOML takes without quotation marks
_SHORTEST_SECRET: Final = 4  # what is shorter than a word would be found in other words
_SHOWN_AT_LEAST: Final = 40  # of a value that is cut
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_MAY_BE_SECRET: Final = re.compile(r"\b((read_)?url|rpc|headers|proxy|targets|params|expect|query)\b")
# A key that is written means something: left empty by its variable, it would silently mean nothing.
_NOT_EMPTY_BY_VARIABLE: Final = re.compile(r"store\.read_url|.+\.(pointer|expect|ca_file|proxy|complete\.url)")
_USED_BY_SERVERS: Final = re.compile(
    r"protocol|(server|log|page)\..+|admin\.(server|hosts)|chains\[\d+\]\.(id|name|test_network)|services\[\d+\]\.(name|title)|store\.read_url"
)

Note = TypeVar("Note")


class ConfigError(Exception):
    """A configuration that cannot be used. ``problems`` has a sentence for each thing that is wrong, ``located`` the
    same with their lines, as far as these are known, and ``found`` the same without the file's name."""

    def __init__(self, path: Path, problems: Iterable[str | Problem], lines: Mapping[str, int] = {}) -> None:
        self.found = tuple(problems)
        self.problems: list[str] = []
        self.located: list[str] = []
        for problem in self.found:
            line = find_line(problem.key, lines) if isinstance(problem, Problem) else None
            self.problems.append(f"{path}: {problem}")
            self.located.append(self.problems[-1] + (f" (line {line})" if line else ""))
        super().__init__("\n".join(self.problems))


def read_config(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file; ConfigError says all that is wrong with it."""
    return _read(path, *_load(path), _Reader(environment, path.parent))


def read_sending_config(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file for somebody who sends alerts: the targets' addresses are checked as well. That loads
    Apprise, which takes a second or two."""
    return _read(path, *_load(path), _Reader(environment, path.parent), _check_targets)


def read_config_text(text: str, path: Path, environment: Mapping[str, str]) -> Settings:
    """The settings of a text that is to become a file, for somebody who sends alerts."""
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of a terminal that Python keeps as surrogates
        raise ConfigError(path, ["not valid UTF-8"]) from None
    return _read(path, text, _parse(path, text), _Reader(environment, path.parent), _check_targets)


def read_server_config(path: Path, environment: Mapping[str, str] = os.environ) -> ServerSettings:
    """The settings of a server. The whole file is checked, but for the variables and the files of what a server does
    not use: they need not be there, and are not looked up."""
    text, tables = _load(path)
    has_own_url = _names_read_url(tables)

    def is_used(key: str) -> bool:
        return _USED_BY_SERVERS.fullmatch(key) is not None or (key == "store.url" and not has_own_url)

    return _read(path, text, tables, _Reader(environment, path.parent, is_used)).for_server()


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
    reader: "_Reader",
    check_more: Callable[[Settings], Iterable[Problem]] = lambda _: (),
) -> Settings:
    reader.unusable_kinds = load_plugins(_kinds_in(tables))
    reader.unshown_keys = keys_of_plugins()
    settings: Settings = reader.table(type_of_file(), tables, "")
    checks = (
        _check_record(settings, path),
        check_more(settings),
    )
    problems = [
        problem._replace(text=_hide_variables(problem.text, reader.filled_in))
        for problem in (*reader.unreadable, *reader.found, *run_checks(checks))
    ]
    if problems:
        raise ConfigError(path, problems, find_lines(text))
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


def _all_is_used(_key: str) -> bool:
    return True


class _Reader:
    """Turns tables into settings and gathers what is wrong on the way: what could not be read, and what was found in
    the rest. In the place of what could not be read is UNREAD; so it is in the place of a key that has variables, or
    names a file, and is not used."""

    def __init__(
        self, environment: Mapping[str, str], folder: Path, is_used: Callable[[str], bool] = _all_is_used
    ) -> None:
        self.unreadable: list[Problem] = []
        self.found: list[Problem] = []
        self.unusable_kinds: Mapping[str, str] = {}
        """Why, by the kind."""
        self.unshown_keys: frozenset[str] = frozenset()
        self.filled_in: dict[str, str] = {}
        """The variables of the environment that the file names, and their values."""
        self._environment = environment
        self._folder = folder
        self._is_used = is_used

    def table(self, kind: type[Table], table: Any, key: str) -> Any:
        """What this table comes to, of all that could be read."""
        keys = {each.encode_name: each for each in fields(kind)}
        if isinstance(table, str) and kind.text_key:
            return self._settle(kind, {kind.text_key: self._key(keys[kind.text_key].type, table, key)}, key)
        if not isinstance(table, dict):
            either = "a text or " if kind.text_key else ""
            return self._unread(key, f"has to be {either}a table" + (f", [{key}]" if "[" not in key else ""))
        for name in table:
            if name not in keys:
                near = difflib.get_close_matches(name, keys, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(keys)}"
                written = name if _BARE_KEY.fullmatch(name) else _format_value(name)
                self._unread(join_keys(key, written), f"unknown key; {hint}")
        read = {}
        for name, each in keys.items():
            if name in table:
                read[each.name] = self._key(each.type, table[name], join_keys(key, name))
            elif each.required:
                read[each.name] = self._unread(join_keys(key, name), "missing")
        return self._settle(kind, read, key)

    def _settle(self, kind: type[Table], read: dict[str, Any], key: str) -> Table:
        whole = kind(**read)
        self.found += (problem.below(key) for problem in run_checks(whole.checks()))
        return whole.settle()

    def _key(self, kind: Any, value: Any, key: str) -> Any:
        if is_table(kind):
            return self.table(kind, value, key)
        listed, limits, _ = _split_annotated(kind)
        if not is_list_of_tables(listed):
            return self._value(kind, value, key)
        entry_kind: type[Table] = typing.get_args(listed)[0]
        if not isinstance(value, list) or len(value) < (limits.min_length or 0):
            either = " that is not empty, each of it a text or a table"
            tables = " of tables" if "[" in key else f" of tables, [[{key}]]"
            return self._unread(key, f"has to be a list{either if entry_kind.text_key else tables}")
        return tuple(self.table(entry_kind, entry, f"{key}[{n}]") for n, entry in enumerate(value))

    def _value(self, kind: Any, value: Any, key: str) -> Any:
        variables = set(_variables(value))
        if variables and not self._is_used(key):
            return UNREAD
        unusable = {name: what for name in sorted(variables) if (what := self._unusable(name)) is not None}
        for name, what in unusable.items():
            self._unread(key, f"the environment variable {name} {what}")
        if unusable:
            return UNREAD
        try:
            filled = msgspec.convert(self._fill(value), kind)
            _check_choices(kind, filled)
        except msgspec.ValidationError:
            is_unshown = key.rpartition(".")[2] in self.unshown_keys
            may_be_secret = variables or is_unshown or _MAY_BE_SECRET.search(key)
            what = "its value" if may_be_secret else _format_value(value)
            why = f"; {self.unusable_kinds[value]}" if isinstance(value, str) and value in self.unusable_kinds else ""
            return self._unread(key, f"{what} is not allowed; it has to be {_describe_allowed(kind)}{why}")
        if variables and filled == "" and _NOT_EMPTY_BY_VARIABLE.fullmatch(key):
            return self._unread(key, "is filled in by a variable that is empty; leave the key out, or set it")
        self.found += (problem.below(key) for problem in _broken_rules(kind, filled))
        content = _note(kind, FileContent)
        return filled if content is None or not filled else self._content(content, filled, key)

    def _content(self, content: FileContent, name: str, key: str) -> Any:
        """What stands for the content of a file that is named."""
        if not self._is_used(key):
            return UNREAD
        try:
            path = self._folder / name
            if path.exists() and not path.is_file():
                return self._unread(key, "is not a file")  # reading a pipe would wait for ever
            with path.open("rb") as file:
                whole = file.read(_LONGEST_FILE + 1)
            if len(whole) > _LONGEST_FILE:
                return self._unread(key, f"is a file of more than {_LONGEST_FILE} bytes")
            return content.extract(whole)
        except OSError as error:
            return self._unread(key, f"cannot be read: {error.strerror}")
        except ValueError as error:
            return self._unread(key, str(error))

    def _unusable(self, name: str) -> str | None:
        """What is wrong with a variable of the environment, if anything."""
        value = self._environment.get(name)
        if value is None:
            return "is not set"
        try:
            value.encode()
        except UnicodeEncodeError:  # bytes that Python keeps as surrogates; an address would be sent without them
            return "is not valid UTF-8"
        return None

    def _fill(self, value: Any) -> Any:
        """Put environment variables in the place of ``${NAME}``."""
        if isinstance(value, str):
            self.filled_in |= {name: self._environment[name] for name in _VARIABLE.findall(value)}
            return _VARIABLE.sub(lambda match: self.filled_in[match[1]], value)
        if isinstance(value, list):
            return [self._fill(entry) for entry in value]
        if isinstance(value, dict):
            return {name: self._fill(entry) for name, entry in value.items()}
        return value

    def _unread(self, key: str, text: str) -> Any:
        self.unreadable.append(Problem(key, text))
        return UNREAD


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


def _variables(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield from _VARIABLE.findall(value)
    elif isinstance(value, list | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _variables(entry)


def is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Table)


def is_list_of_tables(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple and is_table(typing.get_args(kind)[0])


def _broken_rules(kind: Any, value: Any) -> Iterator[Problem]:
    """What is wrong with a value, and with the values in it."""
    kind, _, rules = _split_annotated(kind)
    for rule in rules:
        yield from rule.problems(value)
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        for number, entry in enumerate(value):
            yield from (problem.below(f"[{number}]") for problem in _broken_rules(inner[0], entry))
    elif typing.get_origin(kind) is dict:
        for name, entry in value.items():
            yield from (problem.below(name) for problem in _broken_rules(inner[1], entry))


def _check_choices(kind: Any, value: Any) -> None:
    """ValidationError for a text that is not among those that are declared."""
    if (choices := _choices(kind)) is not None and value not in choices:
        raise msgspec.ValidationError
    if typing.get_origin(kind) is tuple:
        for entry in value:
            _check_choices(typing.get_args(kind)[0], entry)


def _choices(kind: Any) -> tuple[str, ...] | None:
    if typing.get_origin(kind) is Literal:
        return typing.get_args(kind)
    declared = _note(kind, OneOf)
    return None if declared is None else tuple(declared.choices())


def _describe_allowed(kind: Any) -> str:
    """What a value may be, in words."""
    if (texts := _choices(kind)) is not None:
        return f"one of {', '.join(texts)}"
    kind, meta, _ = _split_annotated(kind)
    if meta.description:
        return meta.description
    choices = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return f"a list{' that is not empty' if meta.min_length else ''}, each of it {_describe_allowed(choices[0])}"
    if typing.get_origin(kind) is dict:
        return f"a table, each of its values {_describe_allowed(choices[1])}"
    if kind is bool:
        return "true or false"
    if kind is str:
        return f"a text{' that is not empty' if meta.min_length else ''}"
    return f"{'a whole number' if kind is int else 'a number'} from {meta.ge} to {meta.le}"


def _split_annotated(kind: Any) -> tuple[Any, Meta, tuple[Rule, ...]]:
    """A type without what is annotated to it, the limits, and the rules."""
    if typing.get_origin(kind) is not Annotated:
        return kind, Meta(), ()
    rules = tuple(note for note in kind.__metadata__ if isinstance(note, Rule))
    return kind.__origin__, _note(kind, Meta) or Meta(), rules


def _note(kind: Any, of: type[Note]) -> Note | None:
    """The first note of this type that is annotated to a type."""
    return next((note for note in getattr(kind, "__metadata__", ()) if isinstance(note, of)), None)


def _hide_variables(text: str, filled_in: Mapping[str, str]) -> str:
    """The text with a variable's name wherever its value stands, also if that is quoted, or long and was cut."""
    for name, value in filled_in.items():
        for form in {value, json.dumps(value)[1:-1]}:
            begin = form[:_SHOWN_AT_LEAST]
            at = text.find(begin) if len(form) >= _SHORTEST_SECRET else -1
            while at >= 0:
                shown, stands = f"${{{name}}}", max(n for n in range(len(form) + 1) if text.startswith(form[:n], at))
                text = text[:at] + shown + text[at + stands :]
                at = text.find(begin, at + len(shown))
    return text


def _format_value(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = "a number that long"
    if "://" in text:  # an address in the wrong place may have its key in it, too
        return "an address"
    return shorten(text, 60)
