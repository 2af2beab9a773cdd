"""A configuration while it is made, and the text that it becomes."""

import json
import os
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from lookout.base.known_chains import KNOWN_CHAINS, find_chain
from lookout.base.setting_types import Positive
from lookout.cli.template import Section, read_sections
from lookout.cli.variables import find_secret, name_variable, number_name, write_variable
from lookout.config.alerts import AlertRule
from lookout.config.environment_file import parse_environment
from lookout.config.file import ConfigError, read_config_text
from lookout.config.settings import Settings
from lookout.config.tables import StoreTable
from lookout.core.services import SERVICES
from lookout.protocols.lists import ListTable
from lookout.protocols.ppoi import NETWORKS
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.tables import KindTable

_BEGINNING: Final = """\
# Written by lookout init. What is not here has its default: docs/configuration.md explains every key.
# ${NAME} in a value is the environment variable NAME; so secrets need not be in this file.
"""
REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"  # of the launch
CONFIRMATIONS: Final = 5
DEFAULT_STORE: Final = StoreTable().url
_COMMENT_COLUMN: Final = 36
_LONGEST_LINE: Final = 120
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class DraftTable(NamedTuple):
    """A table with the keys that are to be written, in their order."""

    name: str
    keys: Mapping[str, Any]

    def with_keys(self, **keys: Any) -> "DraftTable":
        return self._replace(keys={**self.keys, **keys})

    def chain_ids(self) -> list[int]:
        """The chains that it is about."""
        one = [self.keys[key] for key in ("id", "chain") if key in self.keys]
        return [*one, *self.keys.get("chains", ())]


class Draft(Struct, frozen=True):
    path: Path
    """Of the file that it becomes."""
    tables: tuple[DraftTable, ...] = ()
    secrets: Mapping[str, str] = {}
    """The variables that are not in the environment yet."""

    def add(self, *tables: DraftTable) -> "Draft":
        return replace(self, tables=(*self.tables, *tables))

    def narrow_to(self, table: DraftTable) -> "Draft":
        """This table, and the chains that it names."""
        chains = [
            each for each in self.find("chains") if each.keys["id"] in table.chain_ids() and table.name != "chains"
        ]
        return replace(self, tables=(*chains, table))

    def find(self, name: str) -> list[DraftTable]:
        return [each for each in self.tables if each.name == name]

    def chain_names(self) -> dict[int, str]:
        """The chains' names, by their ids."""
        return {each.keys["id"]: name_chain(each) for each in self.find("chains")}

    def is_watching(self) -> bool:
        """Whether a service is named, and not only chains."""
        return any(each.name in SERVICES.names for each in self.tables)

    def has_sources(self) -> bool:
        """Whether anything is named that can be probed."""
        return self.is_watching() or bool(self.find("chains"))

    def may_have_secrets(self) -> bool:
        """Whether an address in its text may have a key in it."""
        texts = (text for table in self.tables for text in _texts_in(table.keys))
        return any("${" not in text and find_secret(text) for text in texts)

    def name_variable(self, label: str) -> str:
        """A name that is not in use, for the variable that a label describes."""
        return name_variable(label, {*os.environ, *self.secrets, *self._read_names()})

    def _read_names(self) -> list[str]:
        """The variables in the file of the environment that is there already."""
        with suppress(OSError, UnicodeDecodeError):
            return re.findall(r"^(\w+)=", self.environment_path.read_text(encoding="utf-8"), re.MULTILINE)
        return []

    def find_overridden(self) -> list[str]:
        """The variables of this draft that the file of the environment has already, with another value."""
        try:
            there, _ = parse_environment(self.environment_path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return []
        return [name for name, value in self.secrets.items() if there.get(name, value) != value]

    @property
    def environment_path(self) -> Path:
        """The path of the file that has the secrets, beside the configuration."""
        return self.path.with_name(f"{self.path.name.removesuffix('.toml')}.environment")

    def environment(self) -> str:
        """What that file is to hold: the variables that are used."""
        text = self.text()
        used = {name: value for name, value in self.secrets.items() if f"${{{name}}}" in text}
        return "".join(write_variable(*each) for each in used.items())

    def settings(self) -> Settings:
        """What a command would read; ConfigError says all that is wrong."""
        return read_config_text(self.text(), self.path, {**os.environ, **self.secrets})

    def problems(self) -> list[str]:
        try:
            self.settings()
        except ConfigError as error:
            return [str(each) for each in error.problems]
        return []

    def text(self) -> str:
        sections = read_sections()
        parts = [_BEGINNING]
        for name, section in sections.items():
            for number, table in enumerate(self.find(name)):
                if section.paragraph and not number:
                    parts.append(section.paragraph)
                parts.append("".join(f"{line}\n" for line in _write_table(table, section)))
        return "\n".join(parts)


def build_ppoi_table(url: str, chain_ids: list[int], names: Mapping[int, str] = {}) -> DraftTable:
    """The table of a ppoi node; ``names`` are its own names of chains, where they are not built in."""
    networks = {str(each): names[each] for each in chain_ids if each in names and each not in NETWORKS}
    more = {"networks": networks} if networks else {}
    return DraftTable("ppoi", {"url": url, "required_list": REQUIRED_LIST, "chains": chain_ids, **more})


def build_alert_tables(targets: Mapping[str, str]) -> tuple[DraftTable, DraftTable]:
    """The targets, and one rule for all that is watched."""
    rule = AlertRule()
    return (
        DraftTable("alerts", {"targets": dict(targets)}),
        DraftTable("alerts.rules", {"from": rule.from_, "for_s": rule.for_s}),
    )


def name_target(address: str, taken: Container[str]) -> str:
    """A name for a target, by the kind of its address; what is no address may be a key, and no name is made of it."""
    kind = re.match(r"([A-Za-z0-9]{1,20})\w*://", address)
    return number_name(kind[1] if kind else "target", "-", taken)


def parse_chain(text: str) -> int | None:
    """The id of a chain that is given by its id, or named, if it is known."""
    try:
        return msgspec.convert(text, Positive, strict=False)
    except msgspec.ValidationError:
        return find_chain(text)


def parse_number(text: str) -> float | str:
    """As it is to be written; the configuration says what is wrong with what is no number."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def name_chain(table: DraftTable) -> str:
    known = KNOWN_CHAINS.get(table.keys["id"])
    return table.keys.get("name") or (f"chain {table.keys['id']}" if known is None else known.name)


def list_own_keys(kind: str) -> list[str]:
    """The keys that a kind adds to those of every kind."""
    settings = PROTOCOLS[kind].settings if kind in PROTOCOLS else KindTable
    return [each.name for each in fields(settings) if each.name not in ListTable.__struct_fields__]


def _texts_in(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            yield from (text for each in value for text in _texts_in(each))
        case dict():
            yield from _texts_in([*value.values()])


def _write_table(table: DraftTable, section: Section) -> Iterator[str]:
    yield section.header
    for key, value in table.keys.items():
        comment = section.comments.get(key, "")
        if key in ("id", "chain") and value in KNOWN_CHAINS:
            comment = KNOWN_CHAINS[value].name
        if key == "rpc":
            yield from (f"{key} = [", *(f"    {_write_value(each)}," for each in value), "]")
        else:
            written = f"{key} = {_write_value(value)}"
            beside = f"{written:{_COMMENT_COLUMN - 1}} # {comment}"
            if comment and len(beside) > _LONGEST_LINE:
                yield f"# {key}: {comment}"
            yield beside if comment and len(beside) <= _LONGEST_LINE else written


def _write_value(value: Any) -> str:
    match value:
        case dict():
            entries = (f"{_write_key(key)} = {_write_value(entry)}" for key, entry in value.items())
            return f"{{{', '.join(entries)}}}"
        case list():
            return f"[{', '.join(map(_write_value, value))}]"
        case str():  # TOML's strings are JSON's, but for one character that has to be escaped
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:
            return json.dumps(value)


def _write_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _write_value(key)
