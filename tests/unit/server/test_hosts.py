"""Host: which lines of a request name one host."""

import pytest

from lookout.server.request import is_one_host
from tests.cases import cases


@pytest.mark.parametrize("text", cases("headers", "a host"))
def test_a_host_is_known_as_one(text: str) -> None:
    assert is_one_host([text])


@pytest.mark.parametrize("lines", cases("headers", "no host, or several"))
def test_anything_else_is_not(lines: list[str]) -> None:
    assert not is_one_host(lines)
