"""Parses a request's head, and identifies its caller; pure functions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

# A method may be any token (A2), of which llhttp knows some: others are parsed as PUT, and later versions as 1.1.
# llhttp also takes two spaces.
_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) [^ \r]+ HTTP/([0-9])\.([0-9])\r\n")
# Bytes that never become a head: a line that ends with LF alone, or control characters.
HOPELESS: Final = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n")
_READ_BY_NAME: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"CONNECT"})
_SCHEME: Final = re.compile(rb"https?://", re.IGNORECASE)
_AUTHORITY: Final = re.compile(rb"[^/?]*")
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)(?::[0-9]*)?")
# A coding and perhaps its weight, from 0 to 1 with at most three digits after the point. Other forms are ignored.
_CODING: Final = re.compile(
    r"[ \t]*([!#$%&'*+.^_`|~0-9a-z-]+)(?:[ \t]*;[ \t]*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?[ \t]*", re.ASCII
)
_LONGEST_CODINGS: Final = 256  # ten times what browsers send; a longer header costs more than gzip saves
# A head with any other header may identify its sender, and is not cached (A14).
_SAYS_NOTHING_OF_ITS_SENDER: Final = frozenset(
    (
        *("accept", "accept-encoding", "accept-language", "cache-control", "connection", "dnt", "host"),
        *("if-none-match", "origin", "pragma", "priority", "referer", "upgrade-insecure-requests", "user-agent"),
        *("sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform", "sec-gpc"),
        *("sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user"),
    )
)
_LONGEST_KEPT: Final = 1_024

# The bytes of an answer: in one piece, or its head and a large body.
Wire = tuple[bytes, ...]

_PREFIX_V6: Final = 64  # one caller has many addresses in it
_MOST_PROXIES: Final = 32


class RefusedError(Exception):
    """These bytes are no head of a request that can be answered; with the code of the answer."""

    def __init__(self, http_code: int = 400) -> None:
        super().__init__(http_code)
        self.http_code = http_code


@dataclass(frozen=True, slots=True, eq=False)
class HttpRequest:
    """``path`` is percent-decoded and without the query. ``headers`` are lines by name, in lower case. ``keeps_open``
    says whether another request may follow: not after a body, which is never read. ``may_be_kept`` says whether the
    head is short and identifies no sender."""

    method: str
    path: str
    query: str
    headers: Mapping[str, list[str]]
    names_one_host: bool
    prefers_gzip: bool
    if_none_match: str | None
    keeps_open: bool
    may_be_kept: bool

    def join(self, name: str) -> str | None:
        return _join(self.headers, name)


def parse_head(head: bytes) -> HttpRequest:
    """The request of a head, which ends with its only empty line; RefusedError if llhttp refuses it."""
    line = _LINE.match(head)
    if line is None:
        raise RefusedError
    method, major, minor = line.groups()
    if major != b"1":
        raise RefusedError(400 if HOPELESS.search(head) else 505)
    if minor > b"1":
        head = head[: line.start(3)] + b"1" + head[line.end(3) :]
    seen = _Seen()
    parser = HttpRequestParser(seen)
    try:
        parser.feed_data(head if method in _READ_BY_NAME else b"PUT" + head[line.end(1) :])
    except HttpParserUpgrade:  # not supported
        pass
    except HttpParserError:
        raise RefusedError from None
    return _digest(method.decode(), minor != b"0", seen, len(head), is_upgrade=parser.should_upgrade())


class _Seen:
    def __init__(self) -> None:
        self.target = b""
        self.headers: dict[str, list[str]] = {}

    def on_url(self, piece: bytes) -> None:
        self.target += piece

    def on_header(self, name: bytes, text: bytes) -> None:
        self.headers.setdefault(name.decode("latin-1").lower(), []).append(text.decode("latin-1").strip(" \t"))


def _digest(method: str, is_1_1: bool, seen: _Seen, size: int, *, is_upgrade: bool) -> HttpRequest:
    headers = seen.headers
    path, query = _split_target(method, seen.target)
    hosts = headers.get("host", ())
    names_one_host = is_one_host(hosts) or not (is_1_1 or hosts)  # optional before 1.1
    coding = _join(headers, "transfer-encoding")
    if coding is not None and coding.lower() != "chunked":
        raise RefusedError(501)
    has_body = coding is not None or any(length.strip("0") for length in headers.get("content-length", ()))
    has_more = has_body or "expect" in headers or is_upgrade
    wants_close = "close" in (token.strip(" \t") for token in (_join(headers, "connection") or "").lower().split(","))
    return HttpRequest(
        method,
        path,
        query,
        headers,
        names_one_host,
        prefers_gzip(_join(headers, "accept-encoding") or ""),
        _join(headers, "if-none-match"),
        # After a wrong Host it is unknown which client the next answer is for.
        is_1_1 and names_one_host and not has_more and not wants_close,
        size <= _LONGEST_KEPT and headers.keys() <= _SAYS_NOTHING_OF_ITS_SENDER,
    )


def _join(headers: Mapping[str, list[str]], name: str) -> str | None:
    lines = headers.get(name)
    return ", ".join(lines) if lines else None


def _split_target(method: str, target: bytes) -> tuple[str, str]:
    """The path, percent-decoded, and the query of a target in any form: RFC 9112, 3.2."""
    if method == "CONNECT" or (target == b"*" and method == "OPTIONS"):
        return target.decode("latin-1"), ""
    if scheme := _SCHEME.match(target):
        authority = _AUTHORITY.match(target, scheme.end())
        if authority is None or not is_one_host([authority[0].decode("latin-1")]):
            raise RefusedError
        target = target[authority.end() :]
        if not target.startswith(b"/"):
            target = b"/" + target
    if not target.startswith(b"/") or b"#" in target:
        raise RefusedError
    path, _, query = target.partition(b"?")
    return unquote_to_bytes(path).decode("utf-8", "replace"), query.decode("latin-1")


def is_one_host(lines: Sequence[str]) -> bool:
    """Whether these lines name one host, by RFC 9112 and RFC 3986."""
    named = _HOST.fullmatch(lines[0]) if len(lines) == 1 else None
    if named is None or named[1] is None:
        return named is not None
    try:
        IPv6Address(named[1])
    except AddressValueError:
        return False
    return True


def prefers_gzip(accept_encoding: str) -> bool:
    """Whether to answer with gzip rather than plain, by RFC 9110 (A15). A client that refuses both gets the plain
    answer."""
    if not 0 < len(accept_encoding) <= _LONGEST_CODINGS:
        return False
    weights: dict[str, float] = {}
    for element in accept_encoding.lower().split(","):
        if coding := _CODING.fullmatch(element):
            name, weight = coding.groups(default="1")
            name = "gzip" if name == "x-gzip" else name
            # The lower weight of a repeated coding counts: all clients can read the plain form.
            weights[name] = min(float(weight), weights.get(name, 1.0))
    others = weights.get("*", 0.0)
    gzip = weights.get("gzip", others)
    return gzip > 0 and gzip >= weights.get("identity", others)


class Caller(NamedTuple):
    """A network, as bytes; a trusted proxy forwards for other callers."""

    network: bytes
    is_trusted: bool


_UNKNOWN: Final = Caller(b"?", is_trusted=False)  # for all peers without an address


class Callers:
    """Distinguishes callers. Forwarding headers are believed from trusted proxies alone (E6)."""

    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._trusted = tuple(ip_network(proxy, strict=False) for proxy in trusted_proxies)

    def look_up(self, peer: str) -> Caller:
        return self._find(peer) or _UNKNOWN

    def follow(self, peer: Caller, forwarded: str) -> Caller:
        """The caller behind a peer with this X-Forwarded-For. A proxy appends its own peer, so the list is read from
        its end, as far as trusted proxies wrote it."""
        caller = peer
        entries = forwarded.rsplit(",", _MOST_PROXIES)
        while entries and caller.is_trusted:
            entry = entries.pop().strip(" \t")
            if not entry:
                continue
            before = self._find(entry)
            if before is None:
                break
            caller = before
        return caller

    def _find(self, text: str) -> Caller | None:
        address = _parse_address(text)
        if address is None:
            return None
        is_trusted = any(address in network for network in self._trusted)
        if isinstance(address, IPv6Address):
            return Caller(IPv6Network((address, _PREFIX_V6), strict=False).network_address.packed, is_trusted)
        return Caller(address.packed, is_trusted)


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """An address with or without a port, brackets or a zone."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
