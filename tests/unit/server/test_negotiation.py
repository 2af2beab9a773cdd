"""Accept-Encoding against a table of RFC 9110's rules, a slow reading of them, and hostile headers."""

import time
from fractions import Fraction
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.server.negotiation import prefers_gzip

TABLE: Final = [
    pytest.param("gzip", True, id="gzip is understood"),
    pytest.param("gzip, deflate, br, zstd", True, id="what browsers send"),
    pytest.param("x-gzip", True, id="its old name"),
    pytest.param("GZip;Q=0.5", True, id="in any case of letters"),
    pytest.param("deflate, br", False, id="only others are understood"),
    pytest.param("gzipped", False, id="another name that begins with it"),
    pytest.param("", False, id="nothing is named: plain"),
    pytest.param(" ,, ,\t", False, id="a list of nothing"),
    pytest.param("*", True, id="a star is everything"),
    pytest.param("br, *;q=0.1", True, id="a star is everything else, however little it is liked"),
    pytest.param("*;q=0", False, id="everything is refused: plain"),
    pytest.param("gzip;q=0", False, id="gzip is refused"),
    pytest.param("gzip;q=0.000, *", False, id="gzip is refused by name, and the star is for the others"),
    pytest.param("x-gzip;q=0, *", False, id="so it is by its old name"),
    pytest.param("*;q=0, gzip", True, id="gzip by name, whatever the star says"),
    pytest.param("identity;q=0", False, id="plain is refused and nothing else named: plain all the same"),
    pytest.param("identity;q=0, gzip;q=0", False, id="both are refused by name: plain"),
    pytest.param("identity;q=0, *", True, id="anything but plain"),
    pytest.param("identity;q=0, gzip;q=0.001", True, id="the least weight that is one"),
    pytest.param("gzip;q=0.5", True, id="plain is not named, and comes after all that are"),
    pytest.param("identity", False, id="only plain is named"),
    pytest.param("identity, gzip", True, id="both alike: the smaller one"),
    pytest.param("identity;q=0.5, gzip;q=0.500", True, id="both alike, in other digits"),
    pytest.param("identity;q=0.8, gzip;q=0.799", False, id="plain is liked better"),
    pytest.param("identity;q=0.799, gzip;q=0.8", True, id="gzip is liked better"),
    pytest.param("gzip;q=0.5, *", False, id="plain is among what the star likes better"),
    pytest.param("gzip ; q=0.5 ,identity;\tq=0.4", True, id="blanks around separators"),
    pytest.param("gzip;q=1.000", True, id="one, in all its digits"),
    pytest.param("gzip;q=0.", False, id="nought, with a point and no digit"),
    pytest.param("gzip;q=1., identity;q=0.5", True, id="one, with a point and no digit"),
    pytest.param("gzip, gzip;q=0", False, id="named twice, the lower weight counts"),
    pytest.param("gzip;q=0, x-gzip", False, id="both names are of one coding"),
    pytest.param("identity, gzip;q=1.001", False, id="more than one is no weight: it says nothing"),
    pytest.param("gzip;q=0.1234", False, id="four digits are no weight"),
    pytest.param("gzip;q=-1", False, id="less than nought is no weight"),
    pytest.param("gzip;q=", False, id="nothing is no weight"),
    pytest.param("gzip;q=.5", False, id="a weight begins with a digit"),
    pytest.param("gzip;q=\u0661", False, id="digits of other scripts are none"),
    pytest.param("gzip;q = 1", False, id="no blanks inside a weight"),
    pytest.param("gzip;level=9", False, id="a coding has no other parameter"),
    pytest.param("gzip;q=1;level=9", False, id="nor one after its weight"),
    pytest.param("gzip deflate", False, id="two codings need a comma"),
    pytest.param("gzip;q=2, deflate;q, \u00e9, gzip", True, id="what is malformed takes nothing from the others"),
    pytest.param("gzip\n", False, id="a line break is no blank"),
    pytest.param("gzip" + "," * 252, True, id="as long as is read"),
    pytest.param("gzip" + "," * 253, False, id="longer than is read: plain"),
]


@pytest.mark.clause("A15")
@pytest.mark.parametrize(("accept_encoding", "expected"), TABLE)
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


def test_no_header_takes_long_or_is_kept_for_being_long() -> None:
    began_s = time.perf_counter()
    for number in range(20_000):
        prefers_gzip("gzip;q=0.5," + " " * 100_000 + str(number % 7))
    for number in range(2_000):
        prefers_gzip(f"{'a ' * 100};q={number}")
    assert time.perf_counter() - began_s < 5
