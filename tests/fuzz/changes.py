"""Bytes and JSON, changed."""

import json
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from tests.cases import bytes_of
from tests.contract.protocols.hostile import paths_in, replaced, without

ODD_JSON: Final = bytes_of("odd.toml")["json"]
ODD_BYTES: Final = bytes_of("odd.toml")["bytes"]
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
