"""Reads a configuration file strictly: everything wrong with it is said at once, and nothing is guessed."""

import difflib
import json
import os
import re
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from lookout.contradictions import contradictions, overwriting, unusable_targets
from lookout.settings import ServerSettings, Settings

_DEEPEST: Final = 100  # tables and lists in one another, of which no key needs more than a few
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")  # what TOML takes without quotation marks
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_MAY_BE_SECRET: Final = re.compile(r"\b((read_)?url|rpc|headers|targets)\b")
_USED_BY_SERVERS: Final = re.compile(
    r"protocol|(server|log)\..+|admin\.(server|hosts)|chains\[\d+\]\.(id|name)|store\.read_url"
)


class ConfigError(Exception):
    """A configuration that cannot be used; ``problems`` has a sentence for each thing that is wrong."""

    def __init__(self, path: Path, problems: Iterable[str]) -> None:
        self.problems = [f"{path}: {problem}" for problem in problems]
        super().__init__("\n".join(self.problems))


def read_config(path: Path, environment: Mapping[str, str] = os.environ, *, judge_targets: bool = False) -> Settings:
    """The settings of a file; ConfigError says all that is wrong with it. Who sends alerts has their targets' addresses
    judged as well, which takes a second or two."""
    return _read(path, _tables(path), _Reader(environment), judge_targets=judge_targets)


def read_server_config(path: Path, environment: Mapping[str, str] = os.environ) -> ServerSettings:
    """The settings of a server. The whole file is checked, but for the variables of what a server does not use: they
    need not be set, and are not looked up."""
    tables = _tables(path)
    has_own_url = _names_read_url(tables)

    def is_used(key: str) -> bool:
        return _USED_BY_SERVERS.fullmatch(key) is not None or (key == "store.url" and not has_own_url)

    return _read(path, tables, _Reader(environment, is_used)).for_server()


def _tables(path: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        _check_depth(tables)
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"not valid UTF-8: {error.reason} at byte {error.start}"]) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, [f"not TOML: {error}"]) from None
    except (ValueError, RecursionError):
        raise ConfigError(path, ["not TOML that can be read: a number too long, or nested too deeply"]) from None
    return tables


def _read(path: Path, tables: dict[str, Any], reader: "_Reader", *, judge_targets: bool = False) -> Settings:
    settings: Settings = reader.table(Settings, tables, "")
    problems = [*reader.problems, *contradictions(settings, reader.broken), *overwriting(settings, path, reader.broken)]
    if _names_read_url(tables) and not settings.store.read_url and "store.read_url" not in reader.broken:
        problems.append("store.read_url: is filled in by a variable that is empty; leave the key out, or set it")
    if judge_targets:
        problems += unusable_targets(settings, reader.broken)
    if problems:
        raise ConfigError(path, problems)
    return settings


def _names_read_url(tables: dict[str, Any]) -> bool:
    store = tables.get("store")
    return isinstance(store, dict) and store.get("read_url", "") != ""


def _all_is_used(_key: str) -> bool:
    return True


class _Reader:
    """Turns tables into settings and gathers what is wrong on the way.

    Something stands in for what is wrong, so that the rest can still be looked at; ``broken`` are the keys of that.
    The same holds for a key that has variables and is not used.
    """

    def __init__(self, environment: Mapping[str, str], is_used: Callable[[str], bool] = _all_is_used) -> None:
        self.problems: list[str] = []
        self.broken: set[str] = set()
        self._environment = environment
        self._is_used = is_used

    def table(self, kind: type[Struct], table: Any, key: str) -> Any:
        """A value of this kind with all that could be read."""
        if not isinstance(table, dict):
            self._wrong(key, f"has to be a table, [{key}]" if "[" not in key else "has to be a table")
            return _stand_in(kind)
        prefix = f"{key}." if key else ""
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        for name in table:
            if name not in fields:
                near = difflib.get_close_matches(name, fields, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(fields)}"
                self._wrong(prefix + (name if _BARE_KEY.fullmatch(name) else _shown(name)), f"unknown key; {hint}")
        built = {}
        for name, field in fields.items():
            value = self._field(field.type, table[name], prefix + name) if name in table else None
            if value is None and field.required:
                value = _stand_in(field.type)
                if name not in table:
                    self._wrong(prefix + name, "missing")
            if value is not None:
                built[field.name] = value
        return kind(**built)

    def _field(self, kind: Any, value: Any, key: str) -> Any:
        table, row = _table_type(kind), _row_type(kind)
        if table is not None:
            return self.table(table, value, key)
        if row is None:
            return self._value(kind, value, key)
        if not isinstance(value, list):
            self._wrong(key, f"has to be a list of tables, [[{key}]]")
            return None
        return tuple(self.table(row, entry, f"{key}[{n}]") for n, entry in enumerate(value))

    def _value(self, kind: Any, value: Any, key: str) -> Any:
        variables = set(_variables(value))
        if variables and not self._is_used(key):
            self.broken.add(key)
            return None
        unusable = {name: what for name in sorted(variables) if (what := self._unusable(name)) is not None}
        for name, what in unusable.items():
            self._wrong(key, f"the environment variable {name} {what}")
        if unusable:
            return None
        filled = self._fill(value)
        try:
            return msgspec.convert(filled, kind)
        except msgspec.ValidationError:
            may_be_secret = variables or _MAY_BE_SECRET.search(key)
            what = "its value" if may_be_secret else _shown(value)
            self._wrong(key, f"{what} is not allowed; it has to be {_allowed(kind)}")
            return None

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
            return _VARIABLE.sub(lambda match: self._environment[match[1]], value)
        if isinstance(value, list):
            return [self._fill(entry) for entry in value]
        if isinstance(value, dict):
            return {name: self._fill(entry) for name, entry in value.items()}
        return value

    def _wrong(self, key: str, what: str) -> None:
        self.problems.append(f"{key}: {what}")
        self.broken.add(key)


def _check_depth(tables: dict[str, Any]) -> None:
    """RecursionError if a key like a.b.c… goes on for longer than anything here could follow it."""
    level: list[Any] = [tables]
    for _ in range(_DEEPEST):
        entries = (each.values() if isinstance(each, dict) else each for each in level)
        level = [entry for inner in entries for entry in inner if isinstance(entry, list | dict)]
        if not level:
            return
    raise RecursionError


def _variables(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield from _VARIABLE.findall(value)
    elif isinstance(value, list | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _variables(entry)


def _table_type(kind: Any) -> type[Struct] | None:
    """The table that a field holds, if it holds one: ``Server`` or ``Ppoi | None``."""
    for option in typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,):
        if isinstance(option, type) and issubclass(option, Struct):
            return option
    return None


def _row_type(kind: Any) -> type[Struct] | None:
    """The table that a field repeats, if it does: ``tuple[Chain, ...]``."""
    return _table_type(typing.get_args(kind)[0]) if typing.get_origin(kind) is tuple else None


def _stand_in(kind: Any) -> Any:
    """A value for what could not be read. Numbers are such as no file may have."""
    kind, _ = _bare(kind)
    if typing.get_origin(kind) is Literal:
        return typing.get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, Struct):
        fields = (field for field in msgspec.structs.fields(kind) if field.required)
        return kind(**{field.name: _stand_in(field.type) for field in fields})
    return -1 if kind in (int, float) else (typing.get_origin(kind) or kind)()


def _allowed(kind: Any) -> str:
    """What a value may be, in words."""
    kind, meta = _bare(kind)
    choices = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(choices)}"
    if typing.get_origin(kind) is tuple:
        return f"a list{' that is not empty' if meta.min_length else ''}, each of it {_allowed(choices[0])}"
    if typing.get_origin(kind) is dict:
        return f"a table, each of its values {_allowed(choices[1])}"
    if kind is bool:
        return "true or false"
    if kind is str:
        return meta.description or f"a text{' that is not empty' if meta.min_length else ''}"
    return f"{'a whole number' if kind is int else 'a number'} from {meta.ge} to {meta.le}"


def _bare(kind: Any) -> tuple[Any, Any]:
    """A type without its limits, and these."""
    return (kind.__origin__, kind.__metadata__[0]) if typing.get_origin(kind) is Annotated else (kind, Meta())


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = "a number that long"
    if "://" in text:  # an address in the wrong place may have its key in it, too
        return "an address"
    return text if len(text) <= 60 else text[:57] + "..."
