"""The rules of what is answered over HTTP (clauses A, E and V)."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lookout.verify.documents import Remark, Unread, expect, fine, list_rows, quote, read_document, unsure, wrong
from lookout.verify.visit import (
    DESCRIPTIONS,
    LIMIT_PER_MINUTE,
    NOT_ASKED,
    EndpointVisit,
    Exchange,
    HttpAnswer,
    Visit,
    parse_opaque_tag,
)

_JSON: Final = "application/json; charset=utf-8"
_METHODS: Final = "GET, HEAD, OPTIONS"
LIVE_CACHING: Final = "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300"
HISTORY_CACHING: Final = "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300"

_OF_API: Final = (200, 204, 304, 405, 503)
# The clause, of which answers, and the header with a pattern that it has to fit, in any case of letters; a header that
# is not there is empty. Of every request, or of an endpoint or a method alone.
_HEADERS: Final[dict[str, tuple[tuple[str, tuple[int, ...], str, str], ...]]] = {
    "": (
        ("A2", (405,), "allow", _METHODS),
        ("A3", (200,), "content-type", _JSON),
        ("A6", _OF_API, "access-control-allow-origin", r"\*"),
        ("A6", _OF_API, "access-control-expose-headers", r"(.*,)?\s*etag\s*(,.*)?"),
        ("A6", _OF_API, "access-control-allow-credentials", ""),
        ("A6", _OF_API, "vary", r"(?!.*origin).*"),
        ("A7", (204,), "access-control-allow-methods", _METHODS),
        ("A7", (204,), "access-control-allow-headers", "Accept, Content-Type, If-None-Match"),
        ("A7", (204,), "access-control-max-age", "86400"),
        ("A8", (405, 503), "content-type", _JSON),
        ("A8", (405, 503), "cache-control", "no-store"),
        ("A14", _OF_API, "set-cookie", ""),
        ("A15", (200, 304), "vary", r"(?!.*\*).*accept-encoding.*"),
        ("E2", (429,), "retry-after", "[1-8]?[0-9]|90"),
        ("E2", (429,), "content-type", "text/plain.*"),
        ("E2", (429,), "access-control-allow-origin", ""),
    ),
    "live report": (("A9", (200, 304), "cache-control", LIVE_CACHING),),
    "history": (("A10", (200, 304), "cache-control", HISTORY_CACHING), ("A12", (503,), "retry-after", "30")),
    "GET": (("A4", (200,), "etag", r'"[^"]{16}"'),),
    "HEAD": (("A2", (200,), "etag", ".+"),),
}
_OLDEST_S: Final = {"live report": 330, "history": 420}


def judge(visit: Visit) -> Iterator[Remark]:
    for endpoint in visit.endpoints:
        for exchange in endpoint.exchanges:
            yield from _judge_code(endpoint, exchange)
            yield from _judge_headers(endpoint, exchange)
            for clause, is_right in _judge_body(endpoint, exchange):
                text = f"{exchange} gets {exchange.answer.http_code} with {quote(exchange.answer.body[:60])}"
                yield expect(clause, is_right, text)
        yield from _judge_documents(endpoint)
        yield from _judge_limit(endpoint)
    yield from _judge_etags(visit)
    yield from _judge_descriptions(visit)


def _judge_code(endpoint: EndpointVisit, exchange: Exchange) -> Iterator[Remark]:
    """Each request gets the code of its line wherever a document is served, and no body where none belongs. A 200
    instead of a 304 is right if the document has changed since its ETag came."""
    ask, answer = exchange.ask, exchange.answer
    if not ask.clause or not (endpoint.is_served or ask.name == "get"):
        return
    if answer.http_code is None:
        text = f"{exchange}: {answer.problem}"
        yield unsure(ask.clause, text) if answer.problem == NOT_ASKED else wrong(ask.clause, text)
    elif answer.http_code == 429:
        yield unsure(ask.clause, f"{endpoint.noun}: 429, too many requests: wait a minute and try again")
    elif answer.http_code == ask.http_code:
        is_empty = ask.http_code in (204, 304) or ask.method == "HEAD"
        yield expect(ask.clause, not (is_empty and answer.body), f"{exchange} gets a body: {quote(answer.body[:20])}")
    elif ask.name == "get" and answer.http_code == 503:
        yield unsure(ask.clause, f"{endpoint.noun}: 503, so there is no document to look at")
    elif ask.http_code != 304 or answer.http_code != 200 or _has_a_sent_tag(exchange):
        hint = "; is this the base address, and --protocol right?" if ask.name == "get" else ""
        target = f" with Location: {quote(answer.header('location'))}" if answer.header("location") else ""
        yield wrong(ask.clause, f"{exchange} gets {answer.http_code}{target} instead of {ask.http_code}{hint}")


def _has_a_sent_tag(exchange: Exchange) -> bool:
    """Whether the answer has an ETag that was sent, or * was."""
    sent = exchange.headers.get("If-None-Match", "")
    return sent == "*" or (parse_opaque_tag(exchange.answer.header("etag")) or "none") in sent


def _judge_headers(endpoint: EndpointVisit, exchange: Exchange) -> Iterator[Remark]:
    answer = exchange.answer
    rules = (*_HEADERS[""], *_HEADERS[endpoint.noun], *_HEADERS.get(exchange.method, ()))
    for clause, codes, name, pattern in rules:
        if answer.http_code in codes:
            is_right = re.fullmatch(pattern, answer.header(name) or "", re.IGNORECASE) is not None
            yield expect(
                clause, is_right, f"{exchange} gets {answer.http_code} with {name}: {quote(answer.header(name))}"
            )
    age = answer.header("age") or ""
    if answer.http_code in (200, 304) and age.isascii() and age.isdigit():
        yield expect("E3", int(age) <= _OLDEST_S[endpoint.noun], f"{exchange} gets a copy that is {age} s old")
    if answer.http_code == 304 and exchange.headers.get("If-None-Match") != "*":  # any ETag would do
        text = f"{exchange} gets 304 with the ETag {quote(answer.header('etag'))}"
        yield expect("A4", _has_a_sent_tag(exchange), text)
    accept, is_plain = exchange.headers.get("Accept-Encoding", ""), answer.coding == "identity"
    if answer.http_code == 200 and accept != "*":  # any coding would do
        is_right = is_plain == (not accept.startswith("gzip") or accept == "gzip;q=0")
        yield expect("A15", is_right, f"{exchange} gets {answer.coding}")


def _judge_body(endpoint: EndpointVisit, exchange: Exchange) -> Iterator[tuple[str, bool]]:
    answer = exchange.answer
    if exchange.method == "HEAD":
        return
    found = read_object(answer)
    if answer.http_code == 200:
        yield "A15", answer.plain_body is not None
    if answer.http_code in (401, 403) and exchange.method == "GET":
        yield "A14", False
    if answer.http_code == 404:
        yield "E1", isinstance(found.get("message"), str)
    if answer.http_code in (405, 503):
        yield "A8", list(found) == ["error"] and isinstance(found["error"], str)
    if answer.http_code == 429:
        yield "E2", b"1015" in answer.body
    if answer.http_code == 503 and endpoint.noun == "live report":
        yield "A11", b"unavailable" in answer.body


def _judge_documents(endpoint: EndpointVisit) -> Iterator[Remark]:
    """Whatever is asked for in another way, the document has the same rows."""
    first = endpoint.exchanges[0].answer.body if endpoint.is_served else b""
    usual = read_document(first, endpoint.shape)
    for exchange in () if isinstance(usual, Unread) else endpoint.exchanges:
        body = exchange.answer.plain_body
        if exchange.answer.http_code == 200 and exchange.ask.clause in ("A1", "A14", "A15") and body is not None:
            is_same = list_rows(read_document(body, endpoint.shape)) == list_rows(usual)
            clause = "A1" if exchange.ask.clause == "A1" else "A15"
            yield expect(clause, is_same, f"{exchange} gets another document")


def _judge_etags(visit: Visit) -> Iterator[Remark]:
    """An ETag is that of one body as it is sent, so of both endpoints together."""
    bodies: dict[str, set[bytes]] = defaultdict(set)
    tags: dict[bytes, set[str | None]] = defaultdict(set)
    for exchange in (exchange for endpoint in visit.endpoints for exchange in endpoint.exchanges):
        etag = exchange.answer.header("etag")
        if exchange.answer.http_code == 200 and exchange.method == "GET" and etag is not None:
            bodies[etag].add(exchange.answer.body)
            tags[exchange.answer.body].add(parse_opaque_tag(etag))
    for etag, tagged in bodies.items():
        yield expect("A4", len(tagged) == 1, f"{len(tagged)} different bodies have the ETag {quote(etag)}")
    if any(len(same) > 1 for same in tags.values()):
        yield wrong("A4", "the same body came with two ETags, so they are not a hash of it")


def _judge_limit(endpoint: EndpointVisit) -> Iterator[Remark]:
    exchanges = endpoint.exchanges
    refused = [number for number, exchange in enumerate(exchanges, 1) if exchange.answer.http_code == 429]
    made = refused[0] if refused else len(exchanges)
    took_s = (exchanges[made - 1].at - exchanges[0].at) / 1000 if made else 0
    text = f"{'429' if refused else 'no 429'} after {made} requests in {took_s:.0f} s"
    if refused:
        is_right, doubt = made > LIMIT_PER_MINUTE, f"{text}, as right only if others ask from this address too"
        yield fine("E2") if is_right else unsure("E2", doubt)
    elif any(exchange.ask.name == "limit" for exchange in exchanges):
        is_wrong = made > 2 * LIMIT_PER_MINUTE and took_s <= 60
        yield wrong("E2", text) if is_wrong else unsure("E2", text)


def read_object(answer: HttpAnswer) -> dict[str, Any]:
    try:
        return msgspec.json.decode(answer.plain_body or b"", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _judge_descriptions(visit: Visit) -> Iterator[Remark]:
    """What they say is proved where they are made, and no deployment changes it."""
    for path in DESCRIPTIONS if visit.live.exchanges else ():
        is_served = path in visit.descriptions and bool(read_object(visit.descriptions[path]))
        yield fine("V3") if is_served else unsure("V3", f"{path} is not served here; it is a convenience")
