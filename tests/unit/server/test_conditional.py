"""If-None-Match against a slow reading of RFC 9110, the shared cases, and hostile headers."""

import json
import time
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.server.replies import matches
from tests.cases import cases

ETAG: Final = '"0123456789abcdef"'


@pytest.mark.clause("A5")
@pytest.mark.parametrize(
    ("if_none_match", "expected"), cases("conditional", "a header is read as the standard writes it")
)
def test_a_header_is_read_as_the_standard_writes_it(if_none_match: str, expected: bool) -> None:
    assert matches(if_none_match, ETAG) is expected


SHARED: Final = Path(__file__).parents[2] / "data" / "vectors" / "if-none-match.json"
VECTORS: Final = json.loads(SHARED.read_text(encoding="utf-8"))


@pytest.mark.clause("A5")
@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_a_shared_case(case: Any) -> None:
    assert matches(case["ifNoneMatch"], VECTORS["etag"]) is case["matches"]


def slowly(header: str, etag: str) -> bool:
    """Character by character: elements between commas that are outside of quotation marks."""
    elements, quoted = [""], False
    for character in header:
        quoted ^= character == '"'
        if character == "," and not quoted:
            elements.append("")
        else:
            elements[-1] += character
    tags = [element.strip(" \t").removeprefix("W/") for element in elements]
    return tags == ["*"] or etag in tags


TAGS: Final = st.text(st.characters(codec="latin-1", min_codepoint=0x21, exclude_characters='"\x7f'), max_size=5)
ELEMENTS: Final = st.builds("{}{}".format, st.sampled_from(["", "W/"]), TAGS.map('"{}"'.format) | st.just(ETAG))
BLANKS: Final = st.text(" \t", max_size=2)
LISTS: Final = st.lists(st.builds("{}{}{}".format, BLANKS, ELEMENTS | st.just(""), BLANKS), max_size=6).map(",".join)


@pytest.mark.clause("A5")
@given(LISTS | st.builds("{}*{}".format, BLANKS, BLANKS))
def test_any_well_formed_header_is_read_as_slowly_as_faithfully(header: str) -> None:
    assert matches(header, ETAG) is slowly(header, ETAG)


@given(st.text('W/"0a,* \t', max_size=40))
def test_no_garbage_raises_or_matches_without_the_tag_standing_in_it(header: str) -> None:
    assert matches(header, '"0a"') <= ('"0a"' in header or header.strip(" \t") == "*")


@pytest.mark.parametrize(
    "piece", [",", '"', ', "', '",', "W/", ' "a', '"a" ', ",\t ", "*", '"W/"', f"{ETAG} x", f",{ETAG}x"]
)
def test_a_hostile_header_takes_time_in_proportion_to_its_length(piece: str) -> None:
    hostile = piece * (400_000 // len(piece)) + ETAG[:-1] + ETAG
    began = time.process_time()
    matches(hostile, ETAG)
    assert time.process_time() - began < 20  # on any machine: by the square of its length it would take minutes
