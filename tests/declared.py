"""Values that are declared for the time of a test."""

from collections.abc import Iterator
from contextlib import contextmanager

from lookout.core.services import Registry, Value


@contextmanager
def including(registry: Registry[Value], value: Value) -> Iterator[None]:
    before = registry._by_name
    registry.add(value)
    try:
        yield
    finally:
        registry._by_name = before
