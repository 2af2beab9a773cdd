"""Hostile requests, made from a grammar in which every part has its ordinary form and its odd ones, or of known
attacks."""

from typing import Final

from hypothesis import strategies as st

from tests.fuzz.changes import changed_bytes
from tests.fuzz.hunt import read_kept
from tests.integration.raw import a_request
from tests.integration.served import HISTORY, LIVE

PATHS: Final = (LIVE, HISTORY, "/", "/openapi.json", "/schemas/liveness.json", "/assets/page.js")
ORDINARY: Final = tuple(a_request("GET", path, close=False) for path in PATHS)

MARKER: Final = f"GET {HISTORY} HTTP/1.1\r\nHost: lookout\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n".encode()
SMUGGLED: Final = f"OPTIONS {LIVE} HTTP/1.1\r\nHost: smuggled\r\n\r\n".encode()
_PLAIN: Final = LIVE.encode()

_METHODS: Final = (
    b"GET", b"GET", b"GET", b"HEAD", b"OPTIONS", b"POST", b"POST", b"PUT", b"DELETE", b"TRACE", b"CONNECT", b"PATCH",
    b"PRI", b"get", b"GET ", b"G\x00T", b"", b"!#$%&'*+-.^_`|~", b"G(ET", b"\xffGET", b"SSTP_DUPLEX_POST",
    b"A" * 3_000, b"GET /x HTTP/1.1\r\nX:",
)  # fmt: skip
_TARGETS: Final = (
    _PLAIN, _PLAIN, _PLAIN, HISTORY.encode(), b"/", b"/openapi.json", b"*", b"", b"/..", b"//" + _PLAIN,
    _PLAIN + b"/", _PLAIN + b"?a=b", _PLAIN + b"?" + b"a" * 20_000, b"/" + b"a" * 70_000,
    b"http://evil.example" + _PLAIN, b"HTTP://evil.example:99999" + _PLAIN, b"http://", b"evil.example:443",
    b"[::1]:80", _PLAIN + b"%00", _PLAIN + b"%", _PLAIN + b"%zz", _PLAIN + b"%2", _PLAIN.replace(b"l", b"%6C"),
    _PLAIN.replace(b"/", b"%2f"), b"/%2e%2e/%2e%2e/etc/passwd", b"/%c0%ae%c0%ae/", b"/%ff%fe", b"/\xff\xfe",
    b"/\xc3\xbc", b"/a b", b"/\t", b"/\x00", _PLAIN + b"#fragment", b"/api/v1/%s", b"/${jndi:ldap://x}",
    b"/<script>alert(1)</script>", b"/%0d%0aX-Injected:%20yes", b"/\\..\\", b"/;a=b", b"?", b"javascript:alert(1)",
    b"/api/v1/../v1/protocol/liveness", b"/%25%32%65", b"/" + b"%41" * 9_000,
)  # fmt: skip
_VERSIONS: Final = (
    b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b" HTTP/0.9", b"",
    b" HTTP/2.0", b" HTTP/1.2", b" HTTP/1.10", b" http/1.1", b" HTTP/1.1 ", b"  HTTP/1.1", b"\tHTTP/1.1",
    b" HTTP/ 1.1", b" HTTP/1,1", b" HTTP/11", b" HTTP/1.1\x00", b" ICY/1.1", b" HTTPS/1.1",
)  # fmt: skip
_LENGTHS: Final = (
    b"0", b"1", b"5", b"+5", b"-5", b"-0", b"5 ", b" 5", b"05", b"0x5", b"5.0", b"5,5", b"5, 5", b"5,6", b"5;a",
    b"5\x00", b"", b"five", b"1e1", b"\xd9\xa5", b"9" * 30, b"18446744073709551616", b"18446744073709551621",
    b"9223372036854775808", b"4294967296", b"0" * 60 + b"5", b"5\r6",
)  # fmt: skip
_CODINGS: Final = (
    b"chunked", b"chunked", b"chunked", b"Chunked", b"CHUNKED", b" chunked ", b"\tchunked", b"xchunked", b"chunkedx",
    b"identity", b"gzip", b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"chunked,", b",chunked",
    b"chunked;q=1", b"\x0bchunked", b"chunked\x00", b"'chunked'", b'"chunked"', b"", b"x\r\n chunked",
)  # fmt: skip
_CODING_NAMES: Final = (
    b"Transfer-Encoding: ", b"Transfer-Encoding: ", b"Transfer-Encoding:", b"transfer-encoding: ",
    b"Transfer-Encoding : ", b" Transfer-Encoding: ", b"Transfer_Encoding: ", b"Transfer-Encoding\t: ",
    b"X: y\nTransfer-Encoding: ", b"X: y\rTransfer-Encoding: ", b"Transfer-Encoding:\x0b", b"TE: ",
    b"Transfer-Encoding\x00: ",
)  # fmt: skip
_SIZES: Final = (
    b"5", b"5", b"0", b"00000005", b"0x5", b"+5", b"-5", b"5 ", b" 5", b"5\t", b"5;a=b", b"5;a=\"b\r\n\"",
    b"5;" + b"e" * 5_000, b"5 ;a", b"_5", b"5_", b"", b"g", b"ff", b"FFFFFFFFFFFFFFFF", b"10000000000000005", b"5\r",
    b"5\x00", b"\xff", b"5,",
)  # fmt: skip
_ENDS: Final = (b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\n\r", b"\r\r\n", b"")
_FIELDS: Final = (
    b"Host: other", b"Host: a b", b"Host: ", b"Connection: close", b"Connection: keep-alive",
    b"Connection: close, keep-alive", b"Connection: Host", b"Keep-Alive: 99999999999", b"If-None-Match: *",
    b'If-None-Match: "', b'If-None-Match: W/"x", "y', b"If-None-Match: " + b'"a",' * 10_000 + b"*",
    b"If-None-Match: " + b'"' * 30_000, b"If-None-Match: \xff", b"Range: bytes=0-0",
    b"Range: bytes=" + b"0-1," * 5_000 + b"5-", b"Range: bytes=-99999999999999999999", b"If-Range: x",
    b"Expect: 100-continue", b"Expect: x",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
    b"Upgrade: TLS/1.0\r\nConnection: Upgrade", b"no colon", b": no name", b"X : y", b"X\x00: y", b"X: \x00",
    b"X: \xff\xfe\x80", b"X: a\rb", b"X: a\nb", b" folded", b"X: a\r\n b", b"X: a\r\n\tb\r\n c", b"\xff: y", b"X(: y",
    b"X: " + b"a" * 60_000, b"X" * 60_000 + b": a", b"\r\n".join([b"X: a"] * 300),
    b"Accept-Encoding: gzip, br, " + b"x" * 500, b"Accept: */*;q=9", b"Origin: null",
    b"X-Injected: <script>reflected</script>", b"X-Forwarded-For: " + b"1.2.3.4, " * 2_000 + b"::1",
    b"X-Forwarded-For: \xff", b"Forwarded: for=evil", b"X-HTTP-Method-Override: DELETE", b"X-Original-URL: /admin",
    b"Content-Type: " + b"a/" * 99, b"Cookie: " + b"a=b; " * 900, b"Authorization: Basic !!!",
    b"Trailer: Content-Length", b"Proxy-Connection: keep-alive", b"Max-Forwards: 0", b"Date: yesterday",
)  # fmt: skip
_OPENINGS: Final = (
    b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", b"PROXY UNKNOWN\r\n",
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12), b"\r\n", b"\n\n\n", b"\r\n" * 400, b"\x00",
    b"\xef\xbb\xbf", b" ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)),
    bytes.fromhex("16030100c8010000c40303") + bytes(range(200)), b"SSH-2.0-x\r\n", b"EHLO a\r\n",
    b"*1\r\n$4\r\nPING\r\n", b"\x04\x01\x00\x50\x01\x02\x03\x04\x00", b"GET /\r\n",
)  # fmt: skip
_TRAILERS: Final = (
    b"", b"", b"", b"X: y\r\n", b"no colon\r\n", b"Content-Length: 9\r\n", b"X: y\r\n" * 500, b" f\r\n",
    b"\x00\r\n",
)  # fmt: skip


@st.composite
def _requests(draw: st.DrawFn) -> bytes:
    line_end = draw(_mostly_first(_ENDS))
    line = draw(_mostly_first(_METHODS)) + b" " + draw(_mostly_first(_TARGETS)) + draw(_mostly_first(_VERSIONS))
    fields = [b"Host: lookout"] if draw(st.integers(0, 19)) else []
    fields += draw(st.lists(st.sampled_from(_FIELDS), max_size=4))
    body = b""
    if draw(st.booleans()):
        framing, body = draw(_bodies())
        fields += framing
    fields = draw(st.permutations(fields))
    return line_end.join((line, *fields, b"", body if line_end else b"\r\n" + body))


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
        lengths = (str(len(body)).encode(), *_LENGTHS)
        framing += [
            b"Content-Length: " + each for each in draw(st.lists(_mostly_first(lengths), min_size=1, max_size=2))
        ]
    if how != "length":
        coding = st.builds(bytes.__add__, _mostly_first(_CODING_NAMES), _mostly_first(_CODINGS))
        framing += draw(st.lists(coding, min_size=1, max_size=2))
        body = draw(_chunks(body))
    return framing, body


@st.composite
def _chunks(draw: st.DrawFn, content: bytes) -> bytes:
    pieces = []
    for piece in (content, b"hello")[: draw(st.integers(0, 2))]:
        size = draw(_mostly_first((b"%x" % len(piece), *_SIZES)))
        pieces.append(size + draw(_mostly_first(_ENDS)) + piece + draw(_mostly_first(_ENDS)))
    last = draw(st.sampled_from((b"0\r\n", b"0\r\n", b"0\r\n", b"00\r\n", b"0;a\r\n", b"0\n", b"0", b"")))
    return b"".join(pieces) + last + draw(st.sampled_from(_TRAILERS)) + draw(_mostly_first(_ENDS))


# What one client sends: a few requests, mostly odd ones, with something to be smuggled among them.
_MADE: Final = st.lists(_requests() | st.just(SMUGGLED), min_size=1, max_size=5).map(b"".join)
CONNECTIONS: Final[st.SearchStrategy[bytes]] = st.one_of(
    _MADE,
    _MADE.flatmap(lambda made: st.sampled_from(_OPENINGS).map(lambda opening: opening + made)),
    st.sampled_from((*ORDINARY, *read_kept("http").values())).flatmap(changed_bytes),
)
LOTS: Final = st.lists(CONNECTIONS, min_size=12, max_size=48)  # tried side by side
