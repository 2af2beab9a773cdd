"""Reads a configuration file strictly: everything wrong with it is said at once, and nothing is guessed."""

import difflib
import os
import re
import tomllib
import types
import typing
from collections import Counter
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import NODEFAULT, Struct

from lookout.settings import Indexer, Settings


class ConfigError(Exception):
    """A configuration that cannot be used; ``problems`` has a sentence for each thing that is wrong."""

    def __init__(self, path: Path, problems: Iterable[str]) -> None:
        self.problems = [f"{path}: {problem}" for problem in problems]
        super().__init__("\n".join(self.problems))


def read_config(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file; ConfigError says all that is wrong with it."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"not valid UTF-8: {error.reason} at byte {error.start}"]) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, [f"not TOML: {error}"]) from None
    reader = _Reader(environment)
    settings = reader.build(Settings, tables, "")
    if not reader.problems:
        reader.problems.extend(_contradictions(settings))
    if reader.problems:
        raise ConfigError(path, reader.problems)
    return typing.cast("Settings", settings)


class _Reader:
    """Turns tables into settings and gathers what is wrong on the way."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.problems: list[str] = []
        self._environment = environment

    def build(self, kind: Any, value: Any, key: str) -> Any:
        table = _table_type(kind)
        if table is not None:
            return self._build_table(table, value, key)
        row = _row_type(kind)
        if row is not None:
            if not isinstance(value, list):
                self.problems.append(f"{key}: has to be a list of tables, [[{key}]]")
                return ()
            return tuple(self.build(row, entry, f"{key}[{n}]") for n, entry in enumerate(value))
        return self._build_value(kind, value, key)

    def _build_table(self, kind: type[Struct], table: Any, key: str) -> Any:
        if not isinstance(table, dict):
            self.problems.append(f"{key}: has to be a table, [{key}]")
            return None
        prefix = f"{key}." if key else ""
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        for name in table.keys() - fields.keys():
            near = difflib.get_close_matches(name, fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(fields)}"
            self.problems.append(f"{prefix}{name}: unknown key; {hint}")
        built = {}
        for name, field in fields.items():
            if name in table:
                built[field.name] = self.build(field.type, table[name], prefix + name)
            elif field.default is NODEFAULT and field.default_factory is NODEFAULT:
                self.problems.append(f"{prefix}{name}: missing")
        return None if self.problems else kind(**built)

    def _build_value(self, kind: Any, value: Any, key: str) -> Any:
        filled = self._fill(value, key)
        try:
            return msgspec.convert(filled, kind)
        except msgspec.ValidationError as error:
            self.problems.append(f"{key}: {_shown(key, value)} is not allowed: {error}")
            return None

    def _fill(self, value: Any, key: str) -> Any:
        """Put environment variables in the place of ``${NAME}``; their values are never shown."""
        if isinstance(value, str):
            return re.sub(r"\$\{([^}]*)\}", lambda match: self._variable(match[1], key), value)
        if isinstance(value, list):
            return [self._fill(entry, key) for entry in value]
        if isinstance(value, dict):
            return {name: self._fill(entry, f"{key}.{name}") for name, entry in value.items()}
        return value

    def _variable(self, name: str, key: str) -> str:
        if name in self._environment:
            return self._environment[name]
        self.problems.append(f"{key}: the environment variable {name} is not set")
        return ""


def _table_type(kind: Any) -> type[Struct] | None:
    """The table that a field holds, if it holds one: ``Server`` or ``Ppoi | None``."""
    for option in typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,):
        if isinstance(option, type) and issubclass(option, Struct):
            return option
    return None


def _row_type(kind: Any) -> type[Struct] | None:
    """The table that a field repeats, if it does: ``tuple[Chain, ...]``."""
    return _table_type(typing.get_args(kind)[0]) if typing.get_origin(kind) is tuple else None


def _shown(key: str, value: Any) -> str:
    """A value as the file has it, unless it may hold a secret."""
    if re.search(r"\b(url|rpc|headers)\b", key):
        return "the value"
    return repr(value)


def _contradictions(settings: Settings) -> Iterable[str]:
    """What only several keys together, or a closer look at one, can get wrong."""
    chains = [chain.id for chain in settings.chains]
    yield from (f"chains: {chain_id} is there twice" for chain_id in _repeated(chains))
    for key, named in _chains_named(settings):
        yield from (
            f"{key}: there is no chain {chain_id} in [[chains]]" for chain_id in named if chain_id not in chains
        )
        yield from (f"{key}: chain {chain_id} is there twice" for chain_id in _repeated(named))
    for key, url in _urls(settings):
        if not _is_http(url):
            yield f"{key}: has to be an http:// or https:// address with a host"
    for key, indexers in (("indexer", settings.indexer), ("hosted-indexer", settings.hosted_indexer)):
        for n, indexer in enumerate(indexers):
            yield from _indexer_contradictions(f"{key}[{n}]", indexer)
    for key, address in _listeners(settings):
        if address and not _is_host_port(address):
            yield f"{key}: {address!r} is not HOST:PORT"
    for proxy in settings.server.trusted_proxies:
        if not _is_network(proxy):
            yield f"server.trusted_proxies: {proxy!r} is not an address or a CIDR network"
    if 86_400 % settings.history.bucket_s:
        yield f"history.bucket_s: {settings.history.bucket_s} does not divide a day of 86400 s"
    if settings.broadcasters is not None and "{chainId}" not in settings.broadcasters.content_topic:
        yield "broadcasters.content_topic: has to contain {chainId}"
    if not re.match(r"(sqlite:.|postgres(ql)?://)", settings.store.url):
        yield "store.url: has to begin with sqlite: and a path, or be a postgresql:// address"


def _chains_named(settings: Settings) -> Iterable[tuple[str, list[int]]]:
    yield "indexer", [indexer.chain for indexer in settings.indexer]
    yield "hosted-indexer", [indexer.chain for indexer in settings.hosted_indexer]
    if settings.ppoi is not None:
        yield "ppoi.chains", list(settings.ppoi.chains)
    if settings.broadcasters is not None:
        yield "broadcasters.chains", list(settings.broadcasters.chains)


def _urls(settings: Settings) -> Iterable[tuple[str, str]]:
    for n, chain in enumerate(settings.chains):
        yield from ((f"chains[{n}].rpc[{m}]", url) for m, url in enumerate(chain.rpc))
    yield from ((f"indexer[{n}].url", indexer.url) for n, indexer in enumerate(settings.indexer))
    yield from ((f"hosted-indexer[{n}].url", indexer.url) for n, indexer in enumerate(settings.hosted_indexer))
    for name, source in (
        ("ppoi", settings.ppoi),
        ("messaging", settings.messaging),
        ("broadcasters", settings.broadcasters),
    ):
        if source is not None:
            yield f"{name}.url", source.url


def _listeners(settings: Settings) -> Iterable[tuple[str, str]]:
    yield "server.listen", settings.server.listen or "nothing"
    yield "admin.monitor", settings.admin.monitor
    yield "admin.server", settings.admin.server
    yield "edge.listen", settings.edge.listen or "nothing"
    yield "edge.origin", settings.edge.origin or "nothing"


def _indexer_contradictions(key: str, indexer: Indexer) -> Iterable[str]:
    if indexer.kind == "json" and not indexer.pointer.startswith("/"):
        yield f'{key}.pointer: kind "json" needs a JSON Pointer such as "/status/lastBlock"'
    if indexer.kind != "json" and indexer.pointer:
        yield f'{key}.pointer: is for kind "json" alone'
    if indexer.kind != "subgraph" and indexer.deployment:
        yield f'{key}.deployment: is for kind "subgraph" alone'


def _repeated(values: list[int]) -> list[int]:
    return [value for value, times in Counter(values).items() if times > 1]


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_host_port(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and int(port) <= 65_535


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True
