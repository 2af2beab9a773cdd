"""Turns the tables of a file into settings, and gathers all that is wrong with them."""

import difflib
import json
import re
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import fields

from lookout.base.problem import UNREAD, Problem, join_keys, run_checks
from lookout.base.setting_types import FileContent, Table
from lookout.base.text import shorten
from lookout.config.key_types import (
    check_choices,
    describe_allowed,
    find_broken_rules,
    find_note,
    is_list_of_tables,
    is_secret,
    is_table,
    split_annotated,
)
from lookout.config.variables import Variables, find_variables

_LONGEST_FILE: Final = 4_194_304  # that a key names; the authorities of a system take 0.2 MiB
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")  # what TOML takes without quotation marks
# A key that is written means something: left empty by its variable, it would silently mean nothing.
_NOT_EMPTY_BY_VARIABLE: Final = re.compile(r"store\.read_url|.+\.(pointer|expect|ca_file|proxy|complete\.url)")


def _all_is_used(_key: str) -> bool:
    return True


class TableReader:
    """Turns tables into settings and gathers what is wrong on the way.

    UNREAD stands for a value that could not be read, and for one that the caller does not use, if it has variables or
    names a file.
    """

    def __init__(
        self, environment: Mapping[str, str], folder: Path, is_used: Callable[[str], bool] = _all_is_used
    ) -> None:
        self.unusable_kinds: Mapping[str, str] = {}
        """Why, by the kind."""
        self.unshown_keys: frozenset[str] = frozenset()
        self.variables = Variables(environment)
        self._reading_problems: list[Problem] = []
        self._value_problems: list[Problem] = []
        self._folder = folder
        self._is_used = is_used

    def problems(self) -> list[Problem]:
        """First what could not be read, then what is wrong with the values that were read."""
        return [*self._reading_problems, *self._value_problems]

    def read_table(self, table_type: type[Table], table: Any, key: str) -> Any:
        """The settings in this table, as far as they could be read."""
        keys = {each.encode_name: each for each in fields(table_type)}
        text_key = table_type.text_key
        if isinstance(table, str) and text_key:
            return self._build_table(table_type, {text_key: self._read_key(keys[text_key].type, table, key)}, key)
        if not isinstance(table, dict):
            either = "a text or " if text_key else ""
            return self._report(key, f"has to be {either}a table" + (f", [{key}]" if "[" not in key else ""))
        for name in table:
            if name not in keys:
                near = difflib.get_close_matches(name, keys, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(keys)}"
                written = name if _BARE_KEY.fullmatch(name) else _format_value(name)
                self._report(join_keys(key, written), f"unknown key; {hint}")
        read = {}
        for name, each in keys.items():
            if name in table:
                read[each.name] = self._read_key(each.type, table[name], join_keys(key, name))
            elif each.required:
                read[each.name] = self._report(join_keys(key, name), "missing")
        return self._build_table(table_type, read, key)

    def _build_table(self, table_type: type[Table], read: dict[str, Any], key: str) -> Table:
        whole = table_type(**read)
        self._value_problems += (problem.below(key) for problem in run_checks(whole.validate()))
        return whole.normalise()

    def _read_key(self, key_type: Any, value: Any, key: str) -> Any:
        if is_table(key_type):
            return self.read_table(key_type, value, key)
        listed, limits, _ = split_annotated(key_type)
        if not is_list_of_tables(listed):
            return self._read_value(key_type, value, key)
        entry_type: type[Table] = typing.get_args(listed)[0]
        if not isinstance(value, list) or len(value) < (limits.min_length or 0):
            either = " that is not empty, each of it a text or a table"
            tables = " of tables" if "[" in key else f" of tables, [[{key}]]"
            return self._report(key, f"has to be a list{either if entry_type.text_key else tables}")
        return tuple(self.read_table(entry_type, entry, f"{key}[{n}]") for n, entry in enumerate(value))

    def _read_value(self, key_type: Any, value: Any, key: str) -> Any:
        variables = set(find_variables(value))
        if variables and not self._is_used(key):
            return UNREAD
        mistakes = self.variables.find_mistakes(variables)
        for name, what in mistakes.items():
            self._report(key, f"the environment variable {name} {what}")
        if mistakes:
            return UNREAD
        try:
            filled = msgspec.convert(self.variables.fill_in(value), key_type)
            check_choices(key_type, filled)
        except msgspec.ValidationError:
            is_unshown = key.rpartition(".")[2] in self.unshown_keys
            may_be_secret = variables or is_unshown or is_secret(key_type)
            what = "its value" if may_be_secret else _format_value(value)
            why = f"; {self.unusable_kinds[value]}" if isinstance(value, str) and value in self.unusable_kinds else ""
            return self._report(key, f"{what} is not allowed; it has to be {describe_allowed(key_type)}{why}")
        if variables and filled == "" and _NOT_EMPTY_BY_VARIABLE.fullmatch(key):
            return self._report(key, "is filled in by a variable that is empty; leave the key out, or set it")
        self._value_problems += (problem.below(key) for problem in find_broken_rules(key_type, filled))
        content = find_note(key_type, FileContent)
        return filled if content is None or not filled else self._read_file(content, filled, key)

    def _read_file(self, content: FileContent, name: str, key: str) -> Any:
        """What is extracted from the file of this name."""
        if not self._is_used(key):
            return UNREAD
        try:
            path = self._folder / name
            if path.exists() and not path.is_file():
                return self._report(key, "is not a file")  # reading a pipe would wait for ever
            with path.open("rb") as file:
                whole = file.read(_LONGEST_FILE + 1)
            if len(whole) > _LONGEST_FILE:
                return self._report(key, f"is a file of more than {_LONGEST_FILE} bytes")
            return content.extract(whole)
        except OSError as error:
            return self._report(key, f"cannot be read: {error.strerror}")
        except ValueError as error:
            return self._report(key, str(error))

    def _report(self, key: str, text: str) -> Any:
        """Keep what is wrong, and give what stands for the value."""
        self._reading_problems.append(Problem(key, text))
        return UNREAD


def _format_value(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = "a number that long"
    if "://" in text:  # an address in the wrong place may have its key in it, too
        return "an address"
    return shorten(text, 60)
