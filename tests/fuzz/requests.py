"""Hostile requests, made from a grammar in which every part has its ordinary form and its odd ones, or of known
attacks."""

from typing import Final

from hypothesis import strategies as st

from tests.cases import bytes_of
from tests.fuzz.changes import changed_bytes
from tests.fuzz.hunt import read_kept
from tests.integration.raw import a_request
from tests.integration.served import HISTORY, LIVE

PATHS: Final = (LIVE, HISTORY, "/", "/openapi.json", "/schemas/liveness.json", "/assets/page.js")
ORDINARY: Final = tuple(a_request("GET", path, close=False) for path in PATHS)

MARKER: Final = f"GET {HISTORY} HTTP/1.1\r\nHost: lookout\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n".encode()
SMUGGLED: Final = f"OPTIONS {LIVE} HTTP/1.1\r\nHost: smuggled\r\n\r\n".encode()
_FORMS: Final = bytes_of("requests.toml")  # of each part, the ordinary one first


@st.composite
def _requests(draw: st.DrawFn) -> bytes:
    line_end = draw(_part("line ends"))
    line = draw(_part("methods")) + b" " + draw(_part("targets")) + draw(_part("versions"))
    fields = [b"Host: lookout"] if draw(st.integers(0, 19)) else []
    fields += draw(st.lists(st.sampled_from(_FORMS["fields"]), max_size=4))
    body = b""
    if draw(st.booleans()):
        framing, body = draw(_bodies())
        fields += framing
    fields = draw(st.permutations(fields))
    return line_end.join((line, *fields, b"", body if line_end else b"\r\n" + body))


def _part(name: str) -> st.SearchStrategy[bytes]:
    return _mostly_first(_FORMS[name])


def _mostly_first(forms: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """The first is the ordinary form."""
    return st.integers(0, 9).flatmap(lambda odds: st.just(forms[0]) if odds < 7 else st.sampled_from(forms))


@st.composite
def _bodies(draw: st.DrawFn) -> tuple[list[bytes], bytes]:
    """Headers that say where a body ends, which may contradict each other, and a body that suits one of them."""
    framing: list[bytes] = []
    body = draw(st.sampled_from((b"", b"hello", SMUGGLED, b"x=1")))
    how = draw(st.sampled_from(("length", "length", "coding", "both")))
    if how != "coding":
        lengths = (str(len(body)).encode(), *_FORMS["lengths"])
        framing += [
            b"Content-Length: " + each for each in draw(st.lists(_mostly_first(lengths), min_size=1, max_size=2))
        ]
    if how != "length":
        coding = st.builds(bytes.__add__, _part("coding names"), _part("codings"))
        framing += draw(st.lists(coding, min_size=1, max_size=2))
        body = draw(_chunks(body))
    return framing, body


@st.composite
def _chunks(draw: st.DrawFn, content: bytes) -> bytes:
    pieces = []
    for piece in (content, b"hello")[: draw(st.integers(0, 2))]:
        size = draw(_mostly_first((b"%x" % len(piece), *_FORMS["sizes"])))
        pieces.append(size + draw(_part("line ends")) + piece + draw(_part("line ends")))
    last = draw(st.sampled_from((b"0\r\n", b"0\r\n", b"0\r\n", b"00\r\n", b"0;a\r\n", b"0\n", b"0", b"")))
    return b"".join(pieces) + last + draw(st.sampled_from(_FORMS["trailers"])) + draw(_part("line ends"))


# What one client sends: a few requests, mostly odd ones, with something to be smuggled among them.
_MADE: Final = st.lists(_requests() | st.just(SMUGGLED), min_size=1, max_size=5).map(b"".join)
CONNECTIONS: Final[st.SearchStrategy[bytes]] = st.one_of(
    _MADE,
    _MADE.flatmap(lambda made: st.sampled_from(_FORMS["openings"]).map(lambda opening: opening + made)),
    st.sampled_from((*ORDINARY, *read_kept("http").values())).flatmap(changed_bytes),
)
LOTS: Final = st.lists(CONNECTIONS, min_size=12, max_size=48)  # tried side by side
