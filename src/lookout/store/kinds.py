"""The kinds of stores, declared once."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from lookout.store.protocol import Reader, Snapshot, Writer


class StoreKind(NamedTuple):
    """A kind of store. Relative paths in addresses are relative to a folder."""

    title: str
    pattern: str
    """A regular expression for the beginning of its addresses."""
    form: str
    """The pattern in words, after "has to"."""
    module: str
    """Loaded, with its driver, only when a store is opened."""
    locate: Callable[[str, Path], Path | str]
    """Gives the argument of the module's functions."""
    variables: str = ""
    """The variables of the environment that a server needs to read it, as a regular expression."""
    has_roles: bool = False
    """Whether servers may read it at an address of their own."""

    def open_writer(self, url: str, folder: Path) -> Writer:
        writer: Writer = import_module(self.module).open_writer(self.locate(url, folder))
        return writer

    def open_reader(self, url: str, folder: Path, key: str) -> Reader:
        """A reader of a store that may not exist yet. ``key`` is the address's place in the configuration."""
        reader: Reader = import_module(self.module).open_reader(self.locate(url, folder), key)
        return reader

    def read_snapshot(self, url: str, folder: Path) -> Snapshot:
        snapshot: Snapshot = import_module(self.module).read_snapshot(self.locate(url, folder))
        return snapshot


def _path(url: str, folder: Path) -> Path:
    return folder / url.partition(":")[2]


KINDS: Final[tuple[StoreKind, ...]] = (
    StoreKind(
        "SQLite",
        "sqlite:.",
        "begin with sqlite: and a path",
        "lookout.store.sqlite",
        _path,
    ),
    StoreKind(
        "PostgreSQL",
        "postgres(ql)?://",
        "be a postgresql:// address",
        "lookout.store.postgres",
        lambda url, _folder: url,
        variables="PG[A-Z]+|PGCONNECT_TIMEOUT|KRB5[A-Z_]+",
        has_roles=True,
    ),
)
ADDRESS_FORM: Final = ", or ".join(kind.form for kind in KINDS)
"""Any store's address in words, after "has to"."""


def find_kind(url: str) -> StoreKind | None:
    text = str(url)  # where the configuration could not be read, a value that cannot be used stands in for it
    return next((kind for kind in KINDS if re.match(kind.pattern, text)), None)


def kind_of(url: str) -> StoreKind:
    """Of an address that the configuration accepted."""
    return next(kind for kind in KINDS if re.match(kind.pattern, url))
