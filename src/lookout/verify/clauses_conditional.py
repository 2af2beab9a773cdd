"""Clause A5: If-None-Match, and the 304 that answers it; and A4, as far as it is about the ETag of that 304."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.client import HttpAnswer, NoAnswer
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout.verify.headers import ALLOW_ORIGIN, EXPOSE, report_missing
from lookout.verify.visit import EndpointVisit, Exchange, find_newest_tag, parse_opaque_tag

# What is sent, and the coding whose ETag it is.
_CONDITIONAL: Final = {
    "exact": ("the ETag", "identity"),
    "weak": ("W/ and the ETag", "identity"),
    "list": ("a list with the ETag", "identity"),
    "gzip exact": ("the ETag of gzip, asking for gzip,", "gzip"),
    "gzip for identity": ("the ETag of gzip, asking for the plain form,", "gzip"),
    "identity for gzip": ("the ETag of the plain form, asking for gzip,", "identity"),
}
# One that a cache with any form of the document has to understand; others it may answer with what it has.
_PLAINEST: Final = ("exact", "gzip exact")


def verify_conditional(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    if find_newest_tag(endpoint.exchanges, "identity") is None:
        yield inconclusive("A5", f"{noun}: there is no proper ETag to send back")
    for name, (form, coding) in _CONDITIONAL.items():
        exchange = endpoint.named(name)
        if exchange is None:
            continue
        if isinstance(exchange.outcome, NoAnswer):
            yield report_missing(endpoint, "A5", f"If-None-Match with {form}", exchange.outcome)
            continue
        sent = dict(exchange.request.headers)["If-None-Match"]
        code = exchange.outcome.http_code
        if code == 304:
            yield from _verify_304(noun, exchange.outcome)
            tag = parse_opaque_tag(exchange.outcome.header("etag"))
            if tag is not None and tag not in sent:
                yield failed("A4", f"{noun}: a 304 with the ETag {quote(tag)}, where {quote(sent)} was sent")
        elif code == 429:
            yield inconclusive("A5", f"{noun}: met the rate limit")
        elif code == 200 and not _is_current(endpoint, exchange, sent, coding):
            yield inconclusive("A5", f"{noun}: the document changed each time")
        elif code == 200 and cache and name not in _PLAINEST:
            yield inconclusive("A5", f"{noun}: {form} in If-None-Match gets 200, perhaps by the cache ({cache})")
        else:
            yield failed("A5", f"{noun}: {form} in If-None-Match gets {code} instead of 304")
    yield from _verify_star_and_other(endpoint, cache)


def _is_current(endpoint: EndpointVisit, exchange: Exchange, sent: str, coding: str) -> bool:
    """Whether the ETag that was sent is still the document's, by the next answer with a document in that coding."""
    after = endpoint.exchanges[endpoint.exchanges.index(exchange) :]
    tag = _find_first_tag(after, coding)
    return tag is not None and tag in sent


def _verify_star_and_other(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    star, other = endpoint.outcome("star"), endpoint.outcome("other tag")
    if isinstance(star, NoAnswer):
        yield report_missing(endpoint, "A5", "If-None-Match: *", star)
    elif star.http_code == 304:
        yield from _verify_304(noun, star)
        tag, around = parse_opaque_tag(star.header("etag")), _find_tags_around(endpoint, "star")
        if not cache and len(around) == 1 and not {None, tag} & around:
            yield failed("A4", f"{noun}: If-None-Match: * gets a 304 with the ETag {quote(tag)}, not the plain form's")
    elif star.http_code == 429 or (star.http_code == 200 and cache):
        yield inconclusive("A5", f"{noun}: If-None-Match: * gets {star.http_code}, perhaps by the cache")
    else:
        yield failed("A5", f"{noun}: If-None-Match: * gets {star.http_code} instead of 304")
    if isinstance(other, NoAnswer):
        yield report_missing(endpoint, "A5", "If-None-Match with another tag", other)
    elif other.http_code not in (200, 429):
        yield failed("A5", f"{noun}: If-None-Match with another tag gets {other.http_code} instead of 200")


def _find_tags_around(endpoint: EndpointVisit, name: str) -> set[str | None]:
    """The plain form's ETags before and after a request: if it is only one, the document has not changed meanwhile."""
    at = [exchange.name for exchange in endpoint.exchanges].index(name)
    return {find_newest_tag(endpoint.exchanges[:at], "identity"), _find_first_tag(endpoint.exchanges[at:], "identity")}


def _find_first_tag(exchanges: tuple[Exchange, ...], coding: str) -> str | None:
    return find_newest_tag(reversed(exchanges), coding)


def _verify_304(noun: str, answer: HttpAnswer) -> Iterator[ClauseFinding]:
    wrong = [name for name in ("etag", "cache-control", ALLOW_ORIGIN, EXPOSE) if answer.header(name) is None]
    if wrong:
        yield failed("A5", f"{noun}: a 304 without {', '.join(wrong)}")
    if answer.body:
        yield failed("A5", f"{noun}: a 304 with a body")
    if not wrong and not answer.body:
        yield passed("A5", "the ETag itself, with W/, in a list and as * gets 304 without a body")
