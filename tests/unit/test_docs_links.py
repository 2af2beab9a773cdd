"""Every relative link in the documents leads to a file, and its anchor to a heading."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

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


def test_a_missing_file_or_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One page, `two`\n[a](#one-page-two) [b](#three) [c](no.md) [d](page.md#four)\n", encoding="utf-8"
    )
    assert list(broken_links(page)) == ["#three", "no.md", "page.md#four"]
