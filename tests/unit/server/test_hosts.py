"""Host: which lines of a request name one host."""

import pytest

from lookout.server.request import is_one_host
from tests.header_cases import BAD_HOSTS, GOOD_HOSTS


@pytest.mark.parametrize("text", GOOD_HOSTS)
def test_a_host_is_known_as_one(text: str) -> None:
    assert is_one_host([text])


@pytest.mark.parametrize("lines", BAD_HOSTS)
def test_anything_else_is_not(lines: list[str]) -> None:
    assert not is_one_host(lines)
