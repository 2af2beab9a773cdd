"""Values of one kind, declared once; other code derives from the registry."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    @property
    def name(self) -> str: ...


Value = TypeVar("Value", bound=Named)


class Registry(Generic[Value]):
    """The declared values by name, in the order of declaration."""

    def __init__(self, *values: Value) -> None:
        self._by_name = {value.name: value for value in values}

    def __iter__(self) -> Iterator[Value]:
        return iter(self._by_name.values())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._by_name

    def __getitem__(self, name: str) -> Value:
        return self._by_name[name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def add(self, value: Value) -> None:
        self._by_name = {**self._by_name, value.name: value}

    @contextmanager
    def including(self, value: Value) -> Iterator[None]:
        """Add a value inside the block, for tests."""
        before = self._by_name
        self._by_name = {**before, value.name: value}
        try:
            yield
        finally:
            self._by_name = before
