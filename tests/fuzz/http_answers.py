"""HTTP/1.1 as an independent judge, h11, reads it: requests in bytes that were sent, answers in those that came.

What a strict reader makes of a request is what every cache in front of the server would make of it. A server that finds
more requests in the same bytes can be made to answer one that nobody asked for.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import h11

Headers = tuple[tuple[bytes, bytes], ...]

# What a server says of bytes that are no request.
REFUSALS: Final = frozenset({400, 408, 411, 413, 414, 417, 431, 501, 505})
_ANY_SIZE: Final = 1 << 26
_LINE_END: Final = re.compile(rb"\r?\n")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_HOST: Final = re.compile(rb"host:", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"content-length:", re.IGNORECASE)
_LONG_LENGTH: Final = re.compile(rb"(content-length:[ \t]*)0+(?=[0-9])", re.IGNORECASE)
_CODING: Final = re.compile(rb"transfer-encoding:(.*)", re.IGNORECASE | re.DOTALL)
_BARE_REFUSAL: Final = re.compile(rb"HTTP/1\.1 (4[0-9][0-9]) [ -~]*\r\n(?:Connection: close\r\n)?\r\n")
_HIGH_BYTE: Final = re.compile(rb"[\x80-\xff]")


class Asked(NamedTuple):
    method: bytes
    target: bytes
    headers: Headers

    def header(self, name: bytes) -> bytes | None:
        lines = [text for of, text in self.headers if of == name]
        return b", ".join(lines) if lines else None


class Requests(NamedTuple):
    """``whole`` are those that are complete, ``begun`` is one of which the head alone is, and ``malformed`` is what
    follows and is no request."""

    whole: tuple[Asked, ...]
    begun: Asked | None = None
    malformed: bytes = b""

    @property
    def heads(self) -> tuple[Asked, ...]:
        """All that can be answered: a server need not wait for a body."""
        return self.whole if self.begun is None else (*self.whole, self.begun)

    @property
    def methods(self) -> list[bytes]:
        """What is malformed may still say that it is HEAD, whose refusal has no body."""
        return [*(each.method for each in self.heads), self.malformed.split(b" ")[0]]


class Answered(NamedTuple):
    http_code: int
    headers: Headers
    body: bytes


class NotHttpError(Exception):
    """What came back is not HTTP/1.1; the text says why."""


class CutOffError(NotHttpError):
    """The last answer is not whole; ``whole`` are those before it."""

    def __init__(self, came: bytes, whole: Sequence[Answered] = ()) -> None:
        super().__init__(f"an answer that was cut off: {came[:200]!r}")
        self.whole = list(whole)


class _Read(NamedTuple):
    asked: Asked | None
    is_whole: bool
    rest: bytes = b""
    goes_on: bool = False


def requests_in(sent: bytes) -> Requests:
    """Up to the first one that is malformed, incomplete, or the connection's last."""
    whole: list[Asked] = []
    rest, goes_on = sent, True
    while goes_on:
        before = rest.lstrip()  # a server may pass over what is empty
        asked, is_whole, rest, goes_on = _first_request(before)
        if asked is None:
            return Requests(tuple(whole), malformed=before)
        if not is_whole:
            return Requests(tuple(whole), asked)
        whole.append(asked)
    return Requests(tuple(whole))


def _first_request(sent: bytes) -> _Read:
    try:
        return _read_request(sent)
    except h11.RemoteProtocolError:
        try:
            return _read_request(_tolerated(sent))
        except h11.RemoteProtocolError:
            return _Read(None, is_whole=False)


def _read_request(sent: bytes) -> _Read:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_ANY_SIZE)
    connection.receive_data(sent)
    event = connection.next_event()
    if not isinstance(event, h11.Request):
        return _Read(None, is_whole=False)
    asked = Asked(event.method, event.target, tuple(event.headers))
    try:
        while isinstance(connection.next_event(), h11.Data):
            pass
    except h11.RemoteProtocolError:
        return _Read(asked, is_whole=False)
    if connection.their_state is h11.SEND_BODY:
        return _Read(asked, is_whole=False)
    # h11 itself ends every connection of HTTP/1.0, though its client may ask for more.
    keeps_alive = event.http_version == b"1.0" and b"keep-alive" in (asked.header(b"connection") or b"").lower()
    rest, _ = connection.trailing_data
    return _Read(asked, True, rest, keeps_alive or connection.their_state is not h11.MUST_CLOSE)


def _tolerated(sent: bytes) -> bytes:
    """Without what h11 refuses in a head though no length depends on it: no Host or several, a target in UTF-8, a
    length with many zeros before it, chunked said twice or after codings that nobody knows, any length beside it."""
    end = _HEAD_END.search(sent)
    if end is None:
        return sent
    line, *fields = _LINE_END.split(sent[: end.start()])
    line = _HIGH_BYTE.sub(lambda byte: b"%%%02X" % ord(byte[0]), line)
    fields = [_LONG_LENGTH.sub(rb"\1", each) for each in fields if not _HOST.match(each)]
    codings = b",".join(coding[1] for each in fields if (coding := _CODING.match(each)))
    *_, last = (b"", *filter(None, (coding.strip(b" \t") for coding in codings.split(b","))))
    if last.lower() == b"chunked":
        fields = [each for each in fields if not _CODING.match(each) and not _LENGTH.match(each)]
        fields.append(b"Transfer-Encoding: chunked")
    return b"\r\n".join((line, b"Host: a", *fields, b"", sent[end.end() :]))


def answers_in(came: bytes, methods: Sequence[bytes]) -> list[Answered]:
    """Every answer, read as answers to these methods in their order, all others as to GET; NotHttpError if anything is
    amiss, be it at the end."""
    found: list[Answered] = []
    while came:
        if refusal := _BARE_REFUSAL.fullmatch(came):  # it ends with the connection
            return [*found, Answered(int(refusal[1]), (), b"")]
        method = methods[len(found)] if len(found) < len(methods) else b"GET"
        try:
            answer, came = _first_answer(came, method)
        except CutOffError:
            raise CutOffError(came, found) from None
        found.append(answer)
    return found


def _first_answer(came: bytes, method: bytes) -> tuple[Answered, bytes]:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_ANY_SIZE)
    asking = b"HEAD" if method == b"HEAD" else b"GET"  # CONNECT would make all that follows a tunnel
    connection.send(h11.Request(method=asking, target=b"/", headers=[("host", "lookout")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(came)
    head: h11.Response | None = None
    body = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                head = event
                _check_that_it_ends(head, asking)
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return Answered(head.status_code, tuple(head.headers), body), connection.trailing_data[0]
            elif not isinstance(event, h11.InformationalResponse):
                raise CutOffError(came)
    except h11.RemoteProtocolError as error:
        raise NotHttpError(f"not HTTP/1.1 ({error}): {came[:200]!r}") from None


def _check_that_it_ends(head: h11.Response, method: bytes) -> None:
    has_length = {b"content-length", b"transfer-encoding"} & {name for name, _ in head.headers}
    if not has_length and head.status_code not in (204, 304) and method != b"HEAD":
        raise NotHttpError(f"an answer of {head.status_code} without a length")
