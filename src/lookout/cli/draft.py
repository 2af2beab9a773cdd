"""A configuration while ``lookout init`` makes it: one value, filled by questions or by options, and its text."""

import itertools
import json
import os
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lookout.base.known_chains import KNOWN_CHAINS
from lookout.base.problem import Problem
from lookout.config.file import ConfigError, read_config_text
from lookout.config.settings import Settings
from lookout.core.services import SERVICES

OWN: Final = "services"  # of one's own
_BEGINNING: Final = """\
# Written by lookout init. What is not here has its default: docs/configuration.md explains every key.
# ${NAME} in a value is the environment variable NAME; so secrets need not be in this file.
"""
# The tables that are written, in their order, each with the comment above the first of its name.
TABLES: Final = {
    "store": ("[store]", ""),
    "chains": ("[[chains]]", "Each with three RPC endpoints or more: the second-highest of their heights is the head."),
    "ppoi": ("[ppoi]", "The private-proof-of-innocence node."),
    "indexer": ("[[indexer]]", "Your own indexers. confirmations: blocks they stay behind the head on purpose."),
    "hosted-indexer": ("[[hosted-indexer]]", "Indexers that others run."),
    "messaging": ("[messaging]", "Your own waku node. It has to run with --rest-admin=true to list its peers."),
    "broadcasters": ("[broadcasters]", "The broadcasters that this waku node hears."),
    "services": ("[[services]]", "Services of your own: each answers, or has a position beside its chain's head."),
    "page": ("[page]", ""),
    "alerts": (
        "[alerts]",
        "Messages when a check is bad for long, and when it recovers: docs/operations.md.",
    ),
    "alerts.rules": ("[[alerts.rules]]", ""),
    "witnesses": ("[[witnesses]]", "Other deployments that ask the same services from other places."),
}
_ADDRESS: Final = re.compile(r"(?P<scheme>[A-Za-z0-9+]+)://(?P<rest>(?P<host>[^/?#\s'\\]*)[^#\s'\\]*)")
_PASSWORD: Final = re.compile(r"^[^/?]*:[^/?]*@|\?.*(?:key|token|pass|secret|auth|sig)", re.IGNORECASE)


class DraftTable(NamedTuple):
    """A table with the keys that are to be written, in their order."""

    name: str
    keys: Mapping[str, Any]

    @property
    def service(self) -> str | None:
        """The service that is watched."""
        return self.keys["name"] if self.name == OWN else self.name if self.name in SERVICES else None

    def with_keys(self, **keys: Any) -> "DraftTable":
        return self._replace(keys={**self.keys, **keys})

    def chain_ids(self) -> list[int]:
        """The chains that it is about."""
        single = [self.keys[key] for key in ("id", "chain") if key in self.keys]
        own = [check["chain"] for check in self.keys.get("checks", ()) if "chain" in check]
        return [*single, *self.keys.get("chains", ()), *own]


class Draft(Struct, frozen=True):
    path: Path
    """Of the file that it becomes."""
    is_probing: bool
    """Whether sources are asked while they are named."""
    tables: tuple[DraftTable, ...] = ()
    secrets: Mapping[str, str] = {}
    """Variables of the environment that the text names, and that are not set yet."""

    def put(self, table: DraftTable) -> "Draft":
        """Add a table, or replace the one of the same name and chain, or of the same service."""
        tables = {
            (row.name, row.service, row.keys.get("id", row.keys.get("chain"))): row for row in (*self.tables, table)
        }
        return replace(self, tables=tuple(tables.values()))

    def hide(self, secret: str, option: str) -> tuple["Draft", str]:
        """The draft with a variable, named after an option, that has a secret; and what to write for the secret."""
        name = number_name(f"LOOKOUT_{option.upper().replace('-', '_')}", "_", {*os.environ, *self.secrets})
        return replace(self, secrets={**self.secrets, name: secret}), f"${{{name}}}"

    def hide_unmonitored(self) -> "Draft":
        """For a wallet without RAILGUN's services the page leaves out the rows of what it does not have."""
        if any(self.find(name) for name in ("ppoi", "messaging", "broadcasters")):
            return self
        before = self.find("page")
        return self.put((before[0] if before else DraftTable("page", {})).with_keys(show_unmonitored=False))

    def narrow_to(self, table: DraftTable) -> "Draft":
        """This table, of a service of one's own with the newest check alone, and the chains that it names."""
        if table.name == OWN:
            table = table.with_keys(checks=table.keys["checks"][-1:])
        chains = [chain for chain in self.find("chains") if chain.keys["id"] in table.chain_ids()]
        return replace(self, tables=(table,) if table.name == "chains" else (*chains, table))

    def find(self, name: str) -> list[DraftTable]:
        return [table for table in self.tables if table.name == name]

    def find_chain(self, chain_id: int) -> DraftTable:
        """A chain's table, which is a new one if there is none."""
        found = (table for table in self.find("chains") if table.keys["id"] == chain_id)
        return next(found, DraftTable("chains", {"id": chain_id, "rpc": []}))

    def chain_names(self) -> dict[int, str]:
        """The names, by id, of the chains that have an endpoint."""
        return {table.keys["id"]: name_chain(table) for table in self.find("chains") if table.keys["rpc"]}

    def without_empty_chains(self) -> "Draft":
        tables = (table for table in self.tables if table.name != "chains" or table.keys["rpc"])
        return replace(self, tables=tuple(tables))

    @property
    def is_of_unit(self) -> bool:
        """Whether a unit of systemd reads the file (docs/start.md)."""
        return self.path.absolute().parent == Path("/etc/lookout")

    @property
    def environment_path(self) -> Path:
        """Of the file beside the configuration that gets the secrets."""
        stem = "" if self.is_of_unit else f"{self.path.name.removesuffix('.toml')}."
        return self.path.with_name(f"{stem}environment")

    def settings(self) -> Settings:
        """What a command would read; ConfigError says all that is wrong."""
        return read_config_text(self.text(), self.path, {**os.environ, **self.secrets})

    def problems(self) -> list[str]:
        """What is wrong with it, but for chains whose endpoints are still to be named; without the keys of the file."""
        named = (
            table if table.keys.get("rpc", True) else table.with_keys(rpc=["http://localhost"]) for table in self.tables
        )
        try:
            replace(self, tables=tuple(named)).settings()
        except ConfigError as error:
            return [problem.text if isinstance(problem, Problem) else problem for problem in error.problems]
        return []

    def text(self) -> str:
        parts = [_BEGINNING]
        for name, (header, comment) in TABLES.items():
            tables = self.find(name)
            if tables and comment:
                parts.append(f"# {comment}\n")
            parts += ("\n".join([header, *_write_keys(table.keys), ""]) for table in tables)
        return "\n".join(parts)


def name_chain(table: DraftTable) -> str:
    known = KNOWN_CHAINS.get(table.keys["id"])
    return table.keys.get("name") or (f"chain {table.keys['id']}" if known is None else known.name)


def number_name(name: str, separator: str, taken: Container[str]) -> str:
    """This name, with a number after it if it is taken."""
    numbered = (f"{name}{separator}{number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)


def find_secret(text: str) -> str | None:
    """The address in a text, after ://, if it seems to have a password or a key in it. A variable is no secret."""
    address = _ADDRESS.search(text)
    if address is None or "${" in text or not text.isprintable():
        return None
    host_of_http = address["host"] if address["scheme"].lower() in ("http", "https") else ""
    long_words = re.findall(r"[\w-]{16,}", address["rest"].removeprefix(host_of_http), re.ASCII)
    is_secret = "@" in host_of_http or _PASSWORD.search(address["rest"]) or any(map(_looks_random, long_words))
    return address["rest"] if is_secret else None


def _looks_random(text: str) -> bool:
    """Words and a version number do not; keys have several digits, or both cases."""
    return len(re.findall("[0-9]", text)) > 1 or (text.lower() != text and text.upper() != text)


def _write_keys(keys: Mapping[str, Any]) -> Iterator[str]:
    for key, value in keys.items():
        if key in ("rpc", "checks"):
            yield from (f"{key} = [", *(f"    {write_value(entry)}," for entry in value), "]")
        else:
            chain_name = f"  # {KNOWN_CHAINS[value].name}" if key in ("id", "chain") and value in KNOWN_CHAINS else ""
            yield f"{key} = {write_value(value)}{chain_name}"


def write_value(value: Any) -> str:
    match value:
        case dict():
            entries = (f"{_write_key(key)} = {write_value(entry)}" for key, entry in value.items())
            return f"{{{', '.join(entries)}}}"
        case list():
            return f"[{', '.join(map(write_value, value))}]"
        case str():  # TOML's strings are JSON's, but for one character that has to be escaped
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:
            return json.dumps(value)


def _write_key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else write_value(key)
