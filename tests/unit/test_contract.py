"""The contract's own papers agree with each other."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CONTRACT = (ROOT / "docs" / "contract.md").read_text()


def test_the_clauses_listed_are_those_of_the_contract() -> None:
    listed = (ROOT / "clauses.txt").read_text().split()
    written = re.findall(r"^\| ([A-Z][0-9]+) \|", CONTRACT, flags=re.MULTILINE)
    assert listed == written
