"""Texts in tests/data, and the tables of cases among them: what a case is called says what it is."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

_FOLDER: Final = Path(__file__).parent / "data"


def text_of(file: str) -> str:
    return (_FOLDER / file).read_text(encoding="utf-8")


def bytes_of(file: str) -> dict[str, tuple[bytes, ...]]:
    """Lists of bytes, which are written as characters of Latin-1; in a list a number repeats what is before it."""
    return {name: tuple(map(_repeated, written)) for name, written in tomllib.loads(text_of(file)).items()}


def _repeated(written: str | list[str | int]) -> bytes:
    parts: list[str] = []
    for part in [written] if isinstance(written, str) else written:
        if isinstance(part, int):
            parts[-1] *= part
        else:
            parts.append(part)
    return "".join(parts).encode("latin-1")


def cases(file: str, table: str) -> list[Any]:
    """What a test takes in turn: of each case one value, or a list of several."""
    found = _read(file)[table]
    if "cases" in found:  # which have no names
        return list(found["cases"])
    return [pytest.param(*(value if isinstance(value, list) else [value]), id=name) for name, value in found.items()]


@cache
def _read(file: str) -> dict[str, Any]:
    return tomllib.loads(text_of(f"cases/{file}.toml"))
