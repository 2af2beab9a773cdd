"""Accept-Encoding against a table of RFC 9110's rules, and a slow reading of them."""

from fractions import Fraction
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.server.request import prefers_gzip
from tests.cases import cases


@pytest.mark.clause("A15")
@pytest.mark.parametrize(("accept_encoding", "expected"), cases("headers", "accept-encoding"))
def test_a_header_is_read_as_the_standard_writes_it(accept_encoding: str, expected: bool) -> None:
    assert prefers_gzip(accept_encoding) is expected


def weight_of(text: str) -> Fraction | None:
    """A weight, character by character; None if it is none."""
    whole, _, digits = text.partition(".")
    if whole not in ("0", "1") or len(digits) > 3 or any(digit not in "0123456789" for digit in digits):
        return None
    weight = Fraction(int(whole)) + (Fraction(int(digits), 10 ** len(digits)) if digits else 0)
    return weight if weight <= 1 else None


def slowly(header: str) -> bool:
    """The same rules, coding by coding: what each is worth, and then which is worth most."""
    named: list[tuple[str, Fraction]] = []
    for element in header.split(","):
        name, semicolon, parameter = (part.strip(" \t") for part in element.partition(";"))
        weight = Fraction(1)
        if semicolon:
            if parameter[:2] not in ("q=", "Q="):
                continue
            found = weight_of(parameter[2:])
            if found is None:
                continue
            weight = found
        named.append(("gzip" if name.lower() == "x-gzip" else name.lower(), weight))

    def worth(coding: str) -> Fraction:
        own = [weight for name, weight in named if name == coding]
        rest = [weight for name, weight in named if name == "*"]
        return min(own or rest or [Fraction(0)])

    return worth("gzip") > 0 and worth("gzip") >= worth("identity")


CODINGS: Final = st.sampled_from(["gzip", "x-gzip", "GZIP", "identity", "Identity", "*", "br", "deflate"])
WEIGHTS: Final = st.sampled_from(
    ["0", "0.", "0.0", "0.001", "0.5", "0.50", "0.999", "1", "1.", "1.000", "1.1", "2", "0.5000", ""]
)
BLANKS: Final = st.sampled_from(["", " ", "\t", "  "])
ELEMENTS: Final = st.one_of(
    st.builds("{}{}{}".format, BLANKS, CODINGS, BLANKS),
    st.builds("{}{}{};{}q={}{}".format, BLANKS, CODINGS, BLANKS, BLANKS, WEIGHTS, BLANKS),
    st.builds("{};Q={}".format, CODINGS, WEIGHTS),
)


@pytest.mark.clause("A15")
@given(st.lists(ELEMENTS, max_size=6).map(",".join))
def test_any_list_of_codings_has_the_outcome_of_a_slow_reading(accept_encoding: str) -> None:
    assert prefers_gzip(accept_encoding) is slowly(accept_encoding)
