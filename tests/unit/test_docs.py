"""The documents agree with themselves: links lead somewhere, and the clauses are those of the contract."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tools.clauses import read_clauses

ROOT: Final = Path(__file__).parent.parent.parent
PAGES: Final = sorted(
    page for pattern in ("*.md", "docs/*.md", "edge/*.md", "readers/*/*.md") for page in ROOT.glob(pattern)
)
CODE: Final = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)
LINK: Final = re.compile(r"\]\(([^)\s]+)\)|\b(?:src|srcset)=\"([^\"]+)\"")


def anchors_in(page: Path) -> Iterator[str]:
    """The anchors of the headings, as GitHub makes them."""
    for heading in re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_links(page: Path) -> Iterator[str]:
    for link in map("".join, LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))):
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        if not link.startswith("https://") and not (target.exists() and (not anchor or anchor in anchors_in(target))):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_every_limit_is_reached_by_a_test_that_there_is() -> None:
    table = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").partition("## Limits")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for row in rows:
        file, name = re.findall(r"`(tests/\S+\.py)::(\w+)` \|$", row)[0]
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), row


CONTRACT = (ROOT / "docs" / "contract.md").read_text()


def test_the_clauses_listed_are_those_of_the_contract() -> None:
    written = re.findall(r"^\| ([A-Z][0-9]+) \|", CONTRACT, flags=re.MULTILINE)
    assert read_clauses() == written
