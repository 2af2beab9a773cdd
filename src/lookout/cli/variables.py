"""The part of an address that may be a secret, and the variable that takes its place."""

import re
from collections.abc import Container, Iterator
from itertools import chain, count
from typing import Final

from lookout.store.kinds import find_kind

_AUTHORITY: Final = re.compile(r"(?<=://)(?P<user>[^/?#@:]*)(?::(?P<password>[^/?#]*))?(?=@)")
_SEGMENT: Final = re.compile(r"(?<=/)[\w-]{16,}(?=[/?#]|$)|(?<==)[\w-]{16,}(?=[&#]|$)", re.ASCII)
# Telegram's have their number before them.
_NUMBERED: Final = re.compile(r"(?<=/)\w*[0-9]:[\w-]{20,}(?=[/?#]|$)", re.ASCII)
# A label of a host that is no domain: two more come after it.
_LABEL: Final = re.compile(
    r"(?:(?<=//)|(?<=[.@]))(?:[A-Za-z0-9]{16,}|[0-9A-Fa-f-]{32,})(?=\.[^./:?#]+\.[^/?#]+)", re.ASCII
)
_QUERY: Final = re.compile(r"(?<=\?)[^#]*(?:key|token|pass|secret|auth|sig)[^#]*", re.IGNORECASE)


def find_secret(address: str) -> slice | None:
    """Where in an address there may be a key or a password: from the first one to the end of the last."""
    spans = list(_find_spans(address))
    return slice(min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None


def name_variable(label: str, taken: Container[str]) -> str:
    """A variable's name for what a label says."""
    return number_name(f"LOOKOUT_{re.sub('[^A-Z0-9]+', '_', label.upper()).strip('_')}", "_", taken)


def number_name(name: str, separator: str, taken: Container[str]) -> str:
    """This name, with a number after it if it is taken."""
    numbered = (f"{name}{separator}{number}" for number in count(2))
    return next(each for each in chain([name], numbered) if each not in taken)


def can_be_written(value: str) -> bool:
    """Whether ``write_variable`` can write it."""
    return value.isprintable() and not re.search(r"['\\]", value)


def write_variable(name: str, value: str) -> str:
    """A line of an environment file."""
    return f"{name}='{value}'\n"


def _find_spans(address: str) -> Iterator[tuple[int, int]]:
    authority, query = _AUTHORITY.search(address), _QUERY.search(address)
    if query:
        yield query.span()
    store = find_kind(address)
    if store and store.name_database:  # a database: its user and its socket's folder are no secrets
        if authority and authority["password"]:
            yield authority.span("password")
        return
    if authority and authority[0]:
        yield authority.span()
    for pattern in (_SEGMENT, _NUMBERED, _LABEL):
        yield from (each.span() for each in pattern.finditer(address) if _looks_random(each[0]))


def _looks_random(text: str) -> bool:
    """Words and a version number do not; keys have digits all over, or both cases."""
    return len(re.findall("[0-9]", text)) > 1 or (text.lower() != text and text.upper() != text)
