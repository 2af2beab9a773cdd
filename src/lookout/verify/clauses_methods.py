"""Clauses A about methods: HEAD, OPTIONS and the others; and about what every answer of the API has."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.documents import Unreadable, decoded
from lookout.verify.exchange import Answer, NoAnswer
from lookout.verify.findings import Finding, failed, passed, quoted, untold
from lookout.verify.headers import (
    ALLOW_ORIGIN,
    API_CODES,
    EXPOSE,
    METHODS,
    is_json,
    is_the_caches,
    missing,
    parts,
    same_list,
)
from lookout.verify.visit import OTHER_METHODS, Endpoint

_PREFLIGHT: Final = {
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": "Accept, Content-Type, If-None-Match",
    "access-control-max-age": "86400",
}
# The headers of the API; what servers and caches add on the way is theirs.
_OWN: Final = (
    "content-type",
    "cache-control",
    "etag",
    "content-length",
    "content-encoding",
    "vary",
    ALLOW_ORIGIN,
    EXPOSE,
)
_ERROR_CODES: Final = (405, 503)
# Which answers to GET those to HEAD are compared with.
_GETS_LIKE: Final = {"head": ("get", "query", "again"), "gzip head": ("gzip",)}


def method_findings(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    yield from _other_methods(endpoint, cache)
    yield from _preflights(endpoint, cache)
    yield from _cors(endpoint, cache)
    yield from _errors(endpoint, cache)


def head_findings(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    for name in ("head", "gzip head"):
        head = endpoint.reply(name)
        if isinstance(head, NoAnswer):
            yield missing(endpoint, "A2", "HEAD", head)
        elif head.http_code == 429:
            yield untold("A2", f"{noun}: HEAD met the rate limit")
        elif head.http_code != 200:
            yield failed("A2", f"{noun}: HEAD gets {head.http_code}, and GET 200")
        else:
            gets = [
                answer
                for asked, answer in endpoint.answers(200)
                if asked.request.method == "GET" and asked.name in _GETS_LIKE[name]
            ]
            same = [answer for answer in gets if answer.header("etag") == head.header("etag")]
            if gets:
                yield from _same_headers(noun, head, (same or gets)[0], bool(same), cache)
    conditional = endpoint.reply("conditional head")
    if isinstance(conditional, Answer) and conditional.http_code == 304:
        if conditional.body:
            yield failed("A2", f"{noun}: a 304 to HEAD has a body of its own")
        else:
            yield passed("A2", "HEAD has the headers of GET, and no body")
    elif isinstance(conditional, Answer) and conditional.http_code == 200:
        exact = endpoint.reply("exact")
        if isinstance(exact, Answer) and exact.http_code == 304 and not cache:
            yield failed("A2", f"{noun}: HEAD with the ETag in If-None-Match gets 200, and GET 304")


def _same_headers(noun: str, head: Answer, get: Answer, same: bool, cache: str | None) -> Iterator[Finding]:
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
            "A2", f"{noun}: {name} is {quoted(', '.join(in_get))} for GET, {quoted(', '.join(in_head))} for HEAD"
        )
        return
    yield passed("A2", "HEAD has the headers of GET, and no body")


def _other_methods(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    for method in OTHER_METHODS:
        reply = endpoint.reply(method)
        if isinstance(reply, NoAnswer):
            yield untold("A2", f"{noun}: {method}: {reply.why}") if cache else missing(endpoint, "A2", method, reply)
        elif reply.http_code == 405:
            if same_list(reply.header("allow"), METHODS):
                yield passed("A2", f"{', '.join(OTHER_METHODS)} get 405 with Allow: {METHODS}")
            elif is_the_caches(reply, cache):
                yield untold("A2", f"{noun}: {method} gets 405 from the cache ({cache})")
            else:
                yield failed("A2", f"{noun}: {method} gets 405 with Allow: {quoted(reply.header('allow'))}")
        elif reply.http_code == 429 or (reply.http_code >= 400 and is_the_caches(reply, cache)):
            yield untold("A2", f"{noun}: {method} gets {reply.http_code} on the way")
        else:
            yield failed("A2", f"{noun}: {method} gets {reply.http_code} instead of 405")


def _preflights(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    for name in ("options", "preflight"):
        reply = endpoint.reply(name)
        if isinstance(reply, NoAnswer):
            yield missing(endpoint, "A7", "OPTIONS", reply)
        elif reply.http_code == 429 or (reply.http_code >= 400 and is_the_caches(reply, cache)):
            yield untold("A7", f"{noun}: OPTIONS gets {reply.http_code} on the way")
        elif reply.http_code != 204:
            yield failed("A7", f"{noun}: OPTIONS gets {reply.http_code} instead of 204")
        elif reply.body:
            yield failed("A7", f"{noun}: a 204 with a body")
        else:
            wrong = [header for header, wanted in _PREFLIGHT.items() if not same_list(reply.header(header), wanted)]
            for header in wrong:
                yield failed("A7", f"{noun}: {header} is {quoted(reply.header(header))}")
            if not wrong:
                yield passed("A7", "OPTIONS gets 204 with the methods, the headers and a day to keep them")


def _cors(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    seen = sorted({answer.http_code for _, answer in endpoint.answers(*API_CODES)})
    for asked, answer in endpoint.answers(*API_CODES):
        at = f"{noun}: {answer.http_code} to {asked.request.method} ({asked.name})"
        if answer.each(ALLOW_ORIGIN) != ["*"] or not _exposes_etag(answer):
            allow, expose = answer.header(ALLOW_ORIGIN), answer.header(EXPOSE)
            verdict = untold if answer.http_code in _ERROR_CODES and is_the_caches(answer, cache) else failed
            yield verdict("A6", f"{at}: {ALLOW_ORIGIN} is {quoted(allow)}, {EXPOSE} {quoted(expose)}")
        elif answer.header("access-control-allow-credentials") is not None:
            yield failed("A6", f"{at}: it has Access-Control-Allow-Credentials")
        elif "origin" in parts(answer.header("vary") or ""):
            yield failed("A6", f"{at}: it has Vary: Origin")
        else:
            yield passed("A6", f"every origin may read each answer ({', '.join(map(str, seen))})")


def _exposes_etag(answer: Answer) -> bool:
    return "etag" in parts(answer.header(EXPOSE) or "")


def _errors(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    for asked, answer in endpoint.answers(*_ERROR_CODES):
        if asked.request.method == "HEAD" or is_the_caches(answer, cache):
            continue
        at = f"{noun}: {answer.http_code} to {asked.request.method}"
        body = decoded(answer.body)
        if isinstance(body, Unreadable) or list(body) != ["error"] or not isinstance(body["error"], str):
            yield failed("A8", f"{at}: the body is not an object of one string, error: {quoted(answer.body[:60])}")
        elif not is_json(answer.header("content-type")):
            yield failed("A8", f"{at}: Content-Type is {quoted(answer.header('content-type'))}")
        elif answer.header("cache-control") != "no-store":
            yield failed("A8", f"{at}: Cache-Control is {quoted(answer.header('cache-control'))}")
        else:
            yield passed("A8", "an error is an object of one string, error, and not to be kept")
        if answer.http_code == 503:
            yield from _unavailable(endpoint, answer)


def _unavailable(endpoint: Endpoint, answer: Answer) -> Iterator[Finding]:
    if endpoint.noun == "live report":
        body = decoded(answer.body)
        text = "" if isinstance(body, Unreadable) else str(body.get("error"))
        if "unavailable" in text:
            yield untold("A11", "live report: 503, which only a server may say that has just started")
        else:
            yield failed("A11", "live report: a 503 that does not say that the liveness report is unavailable")
    elif answer.header("retry-after") == "30":
        yield passed("A12", "history: 503 with Retry-After: 30")
    else:
        yield failed("A12", f"history: a 503 with Retry-After {quoted(answer.header('retry-after'))}")
