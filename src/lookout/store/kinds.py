"""The kinds of stores there are, each declared once."""

import re
from typing import Final

from lookout.store.postgres.kind import POSTGRES
from lookout.store.protocol import StoreKind
from lookout.store.sqlite.kind import SQLITE

KINDS: Final[tuple[StoreKind, ...]] = (SQLITE, POSTGRES)
ADDRESS_FORM: Final = ", or ".join(kind.form for kind in KINDS)
"""Of any store, for people, after "has to"."""


def find_kind(url: str) -> StoreKind | None:
    """The kind of store that an address names; None if there is none of that form."""
    text = str(url)  # where the configuration could not be read, a value that cannot be used stands in for it
    return next((kind for kind in KINDS if re.match(kind.pattern, text)), None)


def kind_of(url: str) -> StoreKind:
    """The same, of an address that the configuration accepted."""
    kind = find_kind(url)
    if kind is None:
        raise ValueError(f"{url.partition(':')[0]}: is no kind of store")
    return kind
