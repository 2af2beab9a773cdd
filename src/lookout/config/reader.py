"""Reads the tables of a file strictly, by the declarations of their classes, and gathers all problems."""

import difflib
import json
import re
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo, fields

from lookout.base.problem import Problem, join_keys
from lookout.base.setting_types import (
    NAMES_CHAIN,
    NOT_EMPTY,
    SECRET,
    FileContent,
    OneOf,
    Table,
    ValueRule,
    chain_ids,
    find_note,
    has_note,
)
from lookout.base.text import shorten
from lookout.protocols.client.request import KindTable

if TYPE_CHECKING:
    from lookout.config.services import KindForm

Form: TypeAlias = "type[Table] | KindForm"

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")  # valid in TOML without quotation marks
_PARAMETER_BEGINS: Final = re.compile(r"[^?]*://[^?]*\?(.*&)?[^&=]*=[^&]*", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")  # of the environment


class TableReader:
    """Makes tables from the written values. An invalid value or table is a problem, and read as None."""

    def __init__(
        self,
        environment: Mapping[str, str],
        folder: Path,
        unusable_kinds: Mapping[str, str],
        unused: Collection[str] = (),
    ) -> None:
        """``unusable_kinds`` has the reasons by kind. The variables of ``unused`` keys are not filled in."""
        self.problems: list[Problem] = []
        self.tables: dict[str, Table] = {}
        """The tables that were read completely, by key."""
        self.gaps = 0
        """The number of values that could not be read, or are unused and stay as written."""
        self.named_chains: list[tuple[str, int]] = []
        """The keys that name chains, with the chains' ids."""
        self.variables: set[str] = set()
        """The environment variables that were filled in, and those that are not set."""
        self.unset_variables: set[str] = set()
        self._environment = environment
        self._folder = folder
        self._unused = unused
        self._unusable_kinds = unusable_kinds

    def report_unknown(self, written: Iterable[str], known: Collection[str], key: str) -> None:
        for name in written:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(known)}"
                shown = name if _BARE_KEY.fullmatch(name) else _format_value(name)
                self.problems.append(Problem(join_keys(key, shown), f"unknown key; {hint}"))

    def read_rows(self, form: Form, value: Any, key: str, least: int = 0) -> tuple[Any, ...] | None:
        """The tables of a list; None if one of them could not be read."""
        has_text = isinstance(form, type) and form.text_key
        if not isinstance(value, list) or len(value) < least:
            what = f"a list of {'texts or ' if has_text else ''}tables{' that is not empty' if least else ''}"
            self._report(key, f"has to be {what}" + (f", [[{key}]]" if "[" not in key else ""))
            return None
        rows = tuple(self.read_table(form, row, f"{key}[{number}]") for number, row in enumerate(value))
        return None if any(row is None for row in rows) else rows

    def read_table(self, form: Form, table: Any, key: str) -> Any:
        """The table; None if a part of it could not be read."""
        text_key = form.text_key if isinstance(form, type) else ""
        keys = keys_of(form)
        if isinstance(table, str) and text_key:
            keys, table = {"": keys[text_key]}, {"": table}
        elif not isinstance(table, dict):
            either = "a text or " if text_key else ""
            return self._report(key, f"has to be {either}a table" + (f", [{key}]" if "[" not in key else ""))
        gaps = self.gaps
        self.report_unknown(table, keys, key)
        whole: Any
        if isinstance(form, type):
            read = self._read_keys(keys, form.fill_in(table), key)
            whole = None if read is None else form(**read)
        else:
            whole = self._read_kind_table(form, table, key)
        if whole is not None and self.gaps == gaps:  # no value in it is unused
            self.tables[key] = whole
            self.add_problems(whole.check() if isinstance(form, type) else form.check(whole), key)
        return whole

    def _read_kind_table(self, form: "KindForm", table: dict[str, Any], key: str) -> KindTable | None:
        kind = table.get("kind")
        protocol = form.kinds.get(self._fill_in(kind)) if isinstance(kind, str) else None
        self.add_problems(form.find_other_keys(protocol, table), key)
        read = self._read_keys(form.keys_of(protocol), table, key)
        return None if read is None else form.table_of(protocol)(**{"chain": None} | read)

    def add_problems(self, problems: Iterable[Problem], key: str = "") -> None:
        self.problems += (problem.below(key) for problem in problems)

    def _read_keys(self, keys: Mapping[str, FieldInfo], table: Mapping[str, Any], parent: str) -> dict[str, Any] | None:
        """The values of these keys by field name; None if one could not be read."""
        read = {}
        for name, key in keys.items():
            path = join_keys(parent, name)
            if name in table:
                read[key.name] = self.read_key(key.type, table[name], path)
            elif key.required:
                read[key.name] = self._report(path, "missing")
        return None if any(value is None for value in read.values()) else read

    def read_key(self, key_type: Any, value: Any, key: str) -> Any:
        """The value of a key of this type; None if a part of it could not be read."""
        form, (held, limits, _) = form_in(key_type), _split(key_type)
        if form is None:
            return self._read_value(key_type, value, key)
        if typing.get_origin(held) is tuple:
            return self.read_rows(form, value, key, limits.min_length or 0)
        return self.read_table(form, value, key)

    def _read_value(self, key_type: Any, value: Any, key: str) -> Any:
        variables, content = set(_find_variables(value)), find_note(key_type, FileContent)
        if variables and key in self._unused:
            self.gaps += 1
            return value
        self.variables |= variables
        if unset := [name for name in sorted(variables) if name not in self._environment]:
            self.unset_variables.update(unset)
            for name in unset:
                self._report(key, f"the environment variable {name} is not set")
            return None
        try:
            filled = msgspec.convert(self._fill_in(value), key_type)
            _check_choices(key_type, filled)
        except msgspec.ValidationError:
            shown = "its value" if variables or has_note(key_type, SECRET) else _format_value(value)
            why = f"; {self._unusable_kinds[value]}" if isinstance(value, str) and value in self._unusable_kinds else ""
            return self._report(key, f"{shown} is not allowed; it has to be {_describe_allowed(key_type)}{why}")
        if (cut := next(self._find_cut(value), None)) is not None:
            what = "has a & or # in it, which would end it within this address"
            return self._report(key, f"the environment variable {cut} {what}; write %26 or %23 in its place")
        if variables and filled == "" and has_note(key_type, NOT_EMPTY):
            return self._report(key, "is filled in by a variable that is empty; leave the key out, or set it")
        self.add_problems(_find_broken_rules(key_type, filled), key)
        self.named_chains += ((key, chain_id) for chain_id in _find_chain_ids(key_type, filled))
        return filled if content is None or not filled else self._read_file(content, filled, key)

    def _read_file(self, content: FileContent, name: str, key: str) -> Any:
        """The value extracted from the file of this name."""
        try:
            return content.extract((self._folder / name).read_bytes())
        except OSError as error:
            return self._report(key, f"cannot be read: {error.strerror}")
        except ValueError as error:
            return self._report(key, str(error))

    def _report(self, key: str, text: str) -> Any:
        """Add a problem, and return None as the value."""
        self.problems.append(Problem(key, text))
        self.gaps += 1
        return None

    def _find_cut(self, value: Any) -> Iterator[str]:
        """The variables in a parameter of an address whose content would be taken apart there."""
        if isinstance(value, str):
            for match in _VARIABLE.finditer(value):
                is_special = not set("&#").isdisjoint(self._environment[match[1]])
                if is_special and _PARAMETER_BEGINS.fullmatch(value, 0, match.start()):
                    yield match[1]
        elif isinstance(value, list | dict):
            for entry in value.values() if isinstance(value, dict) else value:
                yield from self._find_cut(entry)

    def _fill_in(self, value: Any) -> Any:
        """The value with ``${NAME}`` replaced by variables; an unset one is empty."""
        match value:
            case str():
                return _VARIABLE.sub(lambda match: self._environment.get(match[1], ""), value)
            case list():
                return [self._fill_in(entry) for entry in value]
            case dict():
                return {name: self._fill_in(entry) for name, entry in value.items()}
            case _:
                return value


def _find_variables(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _VARIABLE.findall(value)
    elif isinstance(value, list | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _find_variables(entry)


def keys_of(form: Form) -> dict[str, FieldInfo]:
    """The keys that a table may have, by their names in the file."""
    return {key.encode_name: key for key in fields(form)} if isinstance(form, type) else form.keys()


def form_in(key_type: Any) -> "Form | None":
    """The form of the table, or of the list's tables, that a key of this type holds; None if it holds a value."""
    held = _split(key_type)[0]
    of = typing.get_args(held)[0] if typing.get_origin(held) is tuple else held
    if not isinstance(of, type) or not issubclass(of, Table):
        return None
    if of is not KindTable:
        return of
    from lookout.config.services import form_of_own_checks  # with all protocols, which a server does without

    return form_of_own_checks()


def _split(key_type: Any) -> tuple[Any, Meta, tuple[ValueRule, ...]]:
    """A type without None and annotations, its limits, and its rules."""
    if typing.get_origin(key_type) in (typing.Union, types.UnionType) and types.NoneType in typing.get_args(key_type):
        (key_type,) = (held for held in typing.get_args(key_type) if held is not types.NoneType)
    if typing.get_origin(key_type) is not Annotated:
        return key_type, Meta(), ()
    rules = tuple(note for note in key_type.__metadata__ if isinstance(note, ValueRule))
    return key_type.__origin__, find_note(key_type, Meta) or Meta(), rules


def _find_broken_rules(key_type: Any, value: Any) -> Iterator[Problem]:
    """Problems of a value, and of values in it."""
    key_type, _, rules = _split(key_type)
    for rule in rules:
        yield from rule.problems(value)
    inner = typing.get_args(key_type)
    if typing.get_origin(key_type) is tuple:
        for number, entry in enumerate(value):
            yield from (problem.below(f"[{number}]") for problem in _find_broken_rules(inner[0], entry))
    elif typing.get_origin(key_type) is dict:
        for name, entry in value.items():
            yield from (problem.below(name) for problem in _find_broken_rules(inner[1], entry))


def _find_chain_ids(key_type: Any, value: Any) -> Iterable[int]:
    if not has_note(key_type, NAMES_CHAIN):
        return ()
    return (
        chain_ids(value) if isinstance(value, dict) else dict.fromkeys(value) if isinstance(value, tuple) else (value,)
    )


def _check_choices(key_type: Any, value: Any) -> None:
    """ValidationError for a text that is not one of the declared texts."""
    if (choices := _find_choices(key_type)) is not None and value not in choices:
        raise msgspec.ValidationError
    if typing.get_origin(key_type) is tuple:
        for entry in value:
            _check_choices(typing.get_args(key_type)[0], entry)


def _find_choices(key_type: Any) -> tuple[str, ...] | None:
    if typing.get_origin(key_type) is Literal:
        return typing.get_args(key_type)
    declared = find_note(key_type, OneOf)
    return None if declared is None else tuple(declared.choices())


def _describe_allowed(key_type: Any) -> str:
    """The allowed values in words."""
    if (texts := _find_choices(key_type)) is not None:
        return f"one of {', '.join(texts)}"
    key_type, limits, _ = _split(key_type)
    if limits.description:
        return limits.description
    inner = typing.get_args(key_type)
    if typing.get_origin(key_type) is tuple:
        return f"a list{' that is not empty' if limits.min_length else ''}, each entry {_describe_allowed(inner[0])}"
    if typing.get_origin(key_type) is dict:
        return f"a table, each value {_describe_allowed(inner[1])}"
    if key_type is bool:
        return "true or false"
    if key_type is str:
        return f"a text{' that is not empty' if limits.min_length else ''}"
    return f"{'a whole number' if key_type is int else 'a number'} from {limits.ge} to {limits.le}"


def _format_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return "an address" if "://" in text else shorten(text, 60)  # an address may have a key in it
