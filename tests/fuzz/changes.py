"""Bytes and JSON, changed."""

import json
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from tests.contract.protocols.hostile import paths_in, replaced, without

# Written as they stand into JSON: values that no JSON library would write.
ODD_JSON: Final = (
    b"null", b"true", b"false", b"0", b"-0", b"-1", b"1.0", b"1.5", b"1e0", b"1e999", b"-1e999", b"1e-999",
    b"9007199254740991", b"9007199254740992", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616",
    b"-9223372036854775809", b"1" * 400, b"1" * 5_000, b"-" + b"9" * 400, b"0." + b"1" * 500, b"NaN", b"Infinity",
    b"-Infinity", b"0x10", b"+1", b"01", b".5", b"1.", b"--1", b'""', b'"0"', b'"-1"', b'"0x"', b'"0x10"',
    b'"0x' + b"f" * 64 + b'"', b'"0x1fffffffffffff"', b'"0x20000000000000"', b'"9007199254740991"',
    b'"9007199254740992"', b'"\xd9\xa1\xd9\xa2"', b'"\\u0000"', b'"\\ud800"', b'"\\udc00\\ud800"',
    b'"\\ud83d\\ude00"', b'"\xff\xfe"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\n"', b'"\\x"',
    b'"' + b"x" * 70_000 + b'"', b"[]", b"{}", b"[[]]", b"[{}]", b"[null]", b'{"":{}}', b'{"a":1,"a":2}',
    b"[" * 10_000 + b"]" * 10_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000, b"[" * 600 + b"]" * 600,
    b"[" * 90 + b"]" * 90, b"[" + b"1," * 6_000 + b"1]", b"", b"1 2", b"'a'", b"// a\n1", b"\xef\xbb\xbf1", b"\x00",
    b'"2026-11-15T12:00:00.000Z"', b'"9999-12-31T23:59:59.999Z"', b'"1970-01-01T00:00:00.000Z"',
    b'"0000-00-00T00:00:00.000Z"', b'"2026-02-30T00:00:00.000Z"', b'"2026-11-15T23:59:60.000Z"', b'"current"',
    b'"\xf0\x9f\x98\x80"',
)  # fmt: skip

# Bytes that mean something to a parser.
ODD_BYTES: Final = (
    b"\x00", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\xff", b"\xef\xbb\xbf", b"\xc0\xaf", b"\xed\xa0\x80",
    b"\xe2\x80\xa8", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"=", b"#", b"${", b"}", b"'", b"'''", b'"""',
    b"-", b"e999", b".", b"0", b"9" * 30, b" ", b"\t", b"\x7f",
)  # fmt: skip

_HOLE: Final = "\ue000hole\ue000"  # where an odd value goes


@st.composite
def changed_bytes(draw: st.DrawFn, case: bytes) -> bytes:
    """Some of it cut out, doubled or overwritten."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(case)))
        piece = case[at : at + draw(st.sampled_from((0, 1, 2, 16, 1_000)))]
        new = draw(st.sampled_from(ODD_BYTES) | st.binary(max_size=16) | st.sampled_from((2, 20)).map(piece.__mul__))
        case = case[:at] + new + case[at + len(piece) :]
    return case


@st.composite
def changed_json(draw: st.DrawFn, documents: Sequence[bytes]) -> bytes:
    """One of them with values replaced, members left out, or bytes changed."""
    case = draw(st.sampled_from(documents))
    try:
        document: Any = json.loads(case)
    except (ValueError, RecursionError):
        document = None
    if document is None or draw(st.integers(0, 4)) == 0:
        return draw(changed_bytes(case))
    fillings = []
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(paths_in(document)))
        if path and draw(st.integers(0, 3)) == 0:
            document = without(document, path)
        else:
            document = replaced(document, path, _HOLE)
            fillings.append(draw(st.sampled_from(ODD_JSON)))
    text = json.dumps(document).encode("ascii")
    for filling in fillings:
        text = text.replace(json.dumps(_HOLE).encode("ascii"), filling, 1)
    return text + draw(st.sampled_from((b"", b"", b" ", b"\n", b"{}", b"\x00", text)))
