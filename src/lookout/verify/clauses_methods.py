"""Clauses A about methods: HEAD, OPTIONS and the others; and about what every answer of the API has."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.client import HttpAnswer, NoAnswer
from lookout.verify.documents import Unreadable, decode_document
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout.verify.headers import (
    ALLOW_ORIGIN,
    API_CODES,
    EXPOSE,
    METHODS,
    is_json,
    is_same_list,
    maybe_from_cache,
    report_missing,
    split_list,
)
from lookout.verify.visit import OTHER_METHODS, EndpointVisit

_PREFLIGHT: Final = {
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": "Accept, Content-Type, If-None-Match",
    "access-control-max-age": "86400",
}
# The headers of the API; what servers and caches add on the way is theirs.
_OWN: Final = (
    *("content-type", "cache-control", "etag", "content-length", "content-encoding", "vary"),
    *(ALLOW_ORIGIN, EXPOSE),
)
_ERROR_CODES: Final = (405, 503)
# Which answers to GET those to HEAD are compared with.
_GETS_LIKE: Final = {"head": ("get", "query", "again"), "gzip head": ("gzip",)}


def verify_methods(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    yield from _verify_other_methods(endpoint, cache)
    yield from _verify_preflights(endpoint, cache)
    yield from _verify_cors(endpoint, cache)
    yield from _verify_errors(endpoint, cache)


def verify_head(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    for name, like in _GETS_LIKE.items():
        head = endpoint.outcome(name)
        if isinstance(head, NoAnswer):
            yield report_missing(endpoint, "A2", "HEAD", head)
        elif head.http_code == 429:
            yield inconclusive("A2", f"{noun}: HEAD met the rate limit")
        elif head.http_code != 200:
            yield failed("A2", f"{noun}: HEAD gets {head.http_code}, and GET 200")
        else:
            gets = [answer for exchange, answer in endpoint.answers(200) if exchange.name in like]
            same = [answer for answer in gets if answer.header("etag") == head.header("etag")]
            if gets:
                yield from _verify_same_headers(noun, head, (same or gets)[0], bool(same), cache)
    conditional = endpoint.outcome("conditional head")
    if isinstance(conditional, HttpAnswer) and conditional.http_code == 304:
        if conditional.body:
            yield failed("A2", f"{noun}: a 304 to HEAD has a body of its own")
        else:
            yield passed("A2", "HEAD has the headers of GET, and no body")
    elif isinstance(conditional, HttpAnswer) and conditional.http_code == 200:
        exact = endpoint.outcome("exact")
        if isinstance(exact, HttpAnswer) and exact.http_code == 304 and not cache:
            yield failed("A2", f"{noun}: HEAD with the ETag in If-None-Match gets 200, and GET 304")


def _verify_same_headers(
    noun: str, head: HttpAnswer, get: HttpAnswer, same: bool, cache: str | None
) -> Iterator[ClauseFinding]:
    """``same`` says that both are of the same document."""
    if head.body:
        yield failed("A2", f"{noun}: HEAD is answered with a body")
        return
    for name in _OWN:
        in_get, in_head = get.each(name), head.each(name)
        if in_get == in_head or (not same and name in ("etag", "content-length") and len(in_get) == len(in_head)):
            continue
        if name == "content-length" and (not in_get or (cache and not in_head)):
            continue
        if name == "content-type" and not (in_get or in_head):
            continue
        yield failed(
            "A2", f"{noun}: {name} is {quote(', '.join(in_get))} for GET, {quote(', '.join(in_head))} for HEAD"
        )
        return
    yield passed("A2", "HEAD has the headers of GET, and no body")


def _verify_other_methods(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    for method in OTHER_METHODS:
        outcome = endpoint.outcome(method)
        if isinstance(outcome, NoAnswer):
            yield (
                inconclusive("A2", f"{noun}: {method}: {outcome.why}")
                if cache
                else report_missing(endpoint, "A2", method, outcome)
            )
        elif outcome.http_code == 405:
            if is_same_list(outcome.header("allow"), METHODS):
                yield passed("A2", f"{', '.join(OTHER_METHODS)} get 405 with Allow: {METHODS}")
            elif maybe_from_cache(outcome, cache):
                yield inconclusive("A2", f"{noun}: {method} gets 405 from the cache ({cache})")
            else:
                yield failed("A2", f"{noun}: {method} gets 405 with Allow: {quote(outcome.header('allow'))}")
        elif outcome.http_code == 429 or (outcome.http_code >= 400 and maybe_from_cache(outcome, cache)):
            yield inconclusive("A2", f"{noun}: {method} gets {outcome.http_code} on the way")
        else:
            yield failed("A2", f"{noun}: {method} gets {outcome.http_code} instead of 405")


def _verify_preflights(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    for name in ("options", "preflight"):
        outcome = endpoint.outcome(name)
        if isinstance(outcome, NoAnswer):
            yield report_missing(endpoint, "A7", "OPTIONS", outcome)
        elif outcome.http_code == 429 or (outcome.http_code >= 400 and maybe_from_cache(outcome, cache)):
            yield inconclusive("A7", f"{noun}: OPTIONS gets {outcome.http_code} on the way")
        elif outcome.http_code != 204:
            yield failed("A7", f"{noun}: OPTIONS gets {outcome.http_code} instead of 204")
        elif outcome.body:
            yield failed("A7", f"{noun}: a 204 with a body")
        else:
            wrong = [
                header for header, wanted in _PREFLIGHT.items() if not is_same_list(outcome.header(header), wanted)
            ]
            for header in wrong:
                yield failed("A7", f"{noun}: {header} is {quote(outcome.header(header))}")
            if not wrong:
                yield passed("A7", "OPTIONS gets 204 with the methods, the headers and a day to keep them")


def _verify_cors(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    seen = sorted({answer.http_code for _, answer in endpoint.answers(*API_CODES)})
    for exchange, answer in endpoint.answers(*API_CODES):
        at = f"{noun}: {answer.http_code} to {exchange.request.method} ({exchange.name})"
        if answer.each(ALLOW_ORIGIN) != ["*"] or "etag" not in split_list(answer.header(EXPOSE)):
            allow, expose = answer.header(ALLOW_ORIGIN), answer.header(EXPOSE)
            verdict = inconclusive if answer.http_code in _ERROR_CODES and maybe_from_cache(answer, cache) else failed
            yield verdict("A6", f"{at}: {ALLOW_ORIGIN} is {quote(allow)}, {EXPOSE} {quote(expose)}")
        elif answer.header("access-control-allow-credentials") is not None:
            yield failed("A6", f"{at}: it has Access-Control-Allow-Credentials")
        elif "origin" in split_list(answer.header("vary")):
            yield failed("A6", f"{at}: it has Vary: Origin")
        else:
            yield passed("A6", f"every origin may read each answer ({', '.join(map(str, seen))})")


def _verify_errors(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    for exchange, answer in endpoint.answers(*_ERROR_CODES):
        if exchange.request.method == "HEAD" or maybe_from_cache(answer, cache):
            continue
        at = f"{noun}: {answer.http_code} to {exchange.request.method}"
        body = decode_document(answer.body)
        if isinstance(body, Unreadable) or list(body) != ["error"] or not isinstance(body["error"], str):
            yield failed("A8", f"{at}: the body is not an object of one string, error: {quote(answer.body[:60])}")
        elif not is_json(answer.header("content-type")):
            yield failed("A8", f"{at}: Content-Type is {quote(answer.header('content-type'))}")
        elif answer.header("cache-control") != "no-store":
            yield failed("A8", f"{at}: Cache-Control is {quote(answer.header('cache-control'))}")
        else:
            yield passed("A8", "an error is an object of one string, error, and not to be kept")
        if answer.http_code == 503:
            yield from _verify_503(endpoint, answer)


def _verify_503(endpoint: EndpointVisit, answer: HttpAnswer) -> Iterator[ClauseFinding]:
    if endpoint.noun == "live report":
        body = decode_document(answer.body)
        text = "" if isinstance(body, Unreadable) else str(body.get("error"))
        if "unavailable" in text:
            yield inconclusive("A11", "live report: 503, which only a server may say that has just started")
        else:
            yield failed("A11", "live report: a 503 that does not say that the liveness report is unavailable")
    elif answer.header("retry-after") == "30":
        yield passed("A12", "history: 503 with Retry-After: 30")
    else:
        yield failed("A12", f"history: a 503 with Retry-After {quote(answer.header('retry-after'))}")
