"""Changes to bytes and to JSON, as chance has it."""

import json
from random import Random
from typing import Any, Final

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

# Bytes that mean something to somebody.
ODD_BYTES: Final = (
    b"\x00", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\xff", b"\xef\xbb\xbf", b"\xc0\xaf", b"\xed\xa0\x80",
    b"\xe2\x80\xa8", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"=", b"#", b"${", b"}", b"'", b"'''", b'"""',
    b"-", b"e999", b".", b"0", b"9" * 30, b" ", b"\t", b"\x7f",
)  # fmt: skip

_BYTE_CHANGES: Final = ("flip", "overwrite", "overwrite", "noise", "cut", "end", "double", "splice")
_HOLE: Final = "\ue000hole\ue000"  # where an odd value goes


def change_bytes(chance: Random, case: bytes, other: bytes) -> bytes:
    """Some of it cut out, doubled, overwritten, or taken from the other one."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        at = chance.randrange(len(case) + 1)
        length = chance.choice((1, 1, 2, 4, 16, 64, 1_000))
        before, piece, after = case[:at], case[at : at + length], case[at + length :]
        match chance.choice(_BYTE_CHANGES):
            case "flip":
                flipped = bytes(byte ^ (1 << chance.randrange(8)) for byte in case[at : at + 1])
                case = before + flipped + case[at + 1 :]
            case "overwrite":
                case = before + chance.choice(ODD_BYTES) + case[at + chance.choice((0, 1, length)) :]
            case "noise":
                case = before + chance.randbytes(min(length, 16)) + after
            case "cut":
                case = before + after
            case "end":
                case = before
            case "double":
                case = before + piece * chance.choice((2, 3, 20)) + after
            case "splice":
                begin = chance.randrange(len(other) + 1)
                case = before + other[begin : begin + length] + case[at:]
    return case


def change_json(chance: Random, case: bytes, other: bytes) -> bytes:
    """JSON with values, names or members changed; bytes where it is no JSON (any more), or now and then."""
    if chance.random() < 0.2:
        return change_bytes(chance, case, other)
    try:
        document = json.loads(case)
    except (ValueError, RecursionError):
        return change_bytes(chance, case, other)
    holes = []
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        document, filling = _with_a_change(chance, document)
        holes.extend(filling)
    text = json.dumps(document).encode("ascii")
    mark = json.dumps(_HOLE).encode("ascii")
    for filling_bytes in holes:
        text = text.replace(mark, filling_bytes, 1)
    return text + chance.choice((b"", b"", b"", b"", b" ", b"\n", b"{}", b"\x00", text))


def _with_a_change(chance: Random, document: Any) -> tuple[Any, list[bytes]]:
    """The document with one change, and what goes into the hole it has now, if it has one."""
    place, key = _somewhere(chance, document)
    odd = chance.choice(ODD_JSON)
    if place is None:
        return (_HOLE, [odd]) if chance.random() < 0.1 else (document, [])
    how = chance.randrange(6)
    if how <= 2:
        place[key] = _HOLE
        return document, [odd]
    if how == 3:
        del place[key]
    elif how == 4 and isinstance(place, list):
        place.extend([place[key]] * chance.choice((1, 1, 3, 200)))
    elif how == 4:
        place[chance.choice(("", key + " ", key.upper(), key[:-1], "__proto__", "constructor"))] = place[key]
    else:
        elsewhere, name = _somewhere(chance, document)
        if elsewhere is not None:
            # A copy, or a document might come to hold itself.
            place[key] = json.loads(json.dumps(elsewhere[name]))
    return document, []


def _somewhere(chance: Random, document: Any) -> tuple[Any, Any]:
    """An object or list in the document with a key in it; None if it has none."""
    place, key = None, None
    inner = document
    while isinstance(inner, dict | list) and inner and (place is None or chance.random() < 0.8):
        place = inner
        key = chance.choice(list(inner)) if isinstance(inner, dict) else chance.randrange(len(inner))
        inner = place[key]
    return place, key
