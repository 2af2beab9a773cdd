"""The JavaScript reader's own tests, run by Node."""

import re
import subprocess

import pytest

from tests.nodejs import READER, find_node


@pytest.mark.first
@pytest.mark.clause("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13", "C14", "C15")
def test_the_javascript_reader_passes_its_tests() -> None:
    ran = subprocess.run([find_node(), "--test"], cwd=READER, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_titles_of_its_tests_name_every_clause_of_readers() -> None:
    titles = "\n".join(file.read_text() for file in (READER / "test").glob("*.test.js"))
    named = {clause for title in re.findall(r'["`]((?:[CH]\d+(?:, )?)+)["`:]', titles) for clause in title.split(", ")}
    assert {f"C{number}" for number in range(1, 16)} <= named
