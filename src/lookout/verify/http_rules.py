"""The rules of what both endpoints answer over HTTP (clauses A). ``cache`` is the sign of a cache in front, if there is
one: some answers are then its own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from lookout.verify.client import MOST_BYTES, TOO_LARGE, HttpAnswer, NoAnswer
from lookout.verify.documents import (
    Remark,
    Unreadable,
    decode_document,
    failed,
    find_difference,
    inconclusive,
    passed,
    quote,
    read_generated_at,
    unpack_gzip,
)
from lookout.verify.visit import (
    CODINGS,
    OTHER_METHODS,
    QUERY,
    EndpointVisit,
    Exchange,
    find_newest_tag,
    parse_opaque_tag,
    read_coding,
)

_METHODS: Final = "GET, HEAD, OPTIONS"
# Of the API itself: 404 and 429 are the gateway's.
_API_CODES: Final = (200, 204, 304, 405, 503)
_ERROR_CODES: Final = (405, 503)
_JSON: Final = "application/json; charset=utf-8"
_ALLOW_ORIGIN: Final = "access-control-allow-origin"
_EXPOSE: Final = "access-control-expose-headers"
_PREFLIGHT: Final = {
    "access-control-allow-methods": _METHODS,
    "access-control-allow-headers": "Accept, Content-Type, If-None-Match",
    "access-control-max-age": "86400",
}
# The headers of the API; what servers and caches add on the way is theirs.
_OWN: Final = (
    *("content-type", "cache-control", "etag", "content-length", "content-encoding", "vary"),
    *(_ALLOW_ORIGIN, _EXPOSE),
)
_CACHING: Final = {
    "live report": "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300",
    "history": "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300",
}
# Which answers to GET those to HEAD are compared with.
_GETS_LIKE: Final = {"head": ("get", "query", "again"), "gzip head": ("gzip",)}
# What is sent in If-None-Match, and the coding whose ETag it is.
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
_OLDER_MS: Final = 5_000  # servers read the store a little after one another

HttpRule = Callable[[EndpointVisit, str | None], Iterator[Remark]]


def _split_list(text: str | None) -> set[str]:
    return {part.strip().lower() for part in (text or "").split(",")}


def _is_same_list(found: str | None, wanted: str) -> bool:
    """Whether two headers list the same, in any order."""
    return found is not None and _split_list(found) == _split_list(wanted)


def _is_json(found: str | None) -> bool:
    return found is not None and found.lower().replace(" ", "") == _JSON.replace(" ", "")


def _maybe_from_cache(answer: HttpAnswer, cache: str | None) -> bool:
    """Whether a cache in front may have made this answer itself: the API's own would let every origin read it."""
    return cache is not None and answer.header(_ALLOW_ORIGIN) is None


def _find_answer(endpoint: EndpointVisit, name: str, what: str) -> HttpAnswer | Remark:
    """The answer to a request, or all there is to say of one that has none, or that met the rate limit."""
    outcome = endpoint.outcome(name)
    if isinstance(outcome, NoAnswer):
        return (failed if outcome.was_sent else inconclusive)(f"{what}: {outcome.why}")
    return inconclusive(f"{what} met the rate limit") if outcome.http_code == 429 else outcome


def verify_reachable(endpoint: EndpointVisit, _cache: str | None) -> Iterator[Remark]:
    first = endpoint.outcome("get")
    if isinstance(first, NoAnswer):
        yield (failed if first.was_sent else inconclusive)(f"GET: {first.why}")
        return
    code = first.http_code
    if code == 200:
        yield passed(f"{endpoint.noun}: GET gets 200")
    elif code == 429:
        yield inconclusive("429, too many requests: wait a minute and try again")
    elif code == 503:
        yield inconclusive("503, so there is no document to look at")
    elif 300 <= code < 400:
        yield failed(f"{code} to {quote(first.header('location'))} instead of 200; redirects are not followed")
    elif code not in (401, 403):
        hint = "; is this the base address, and --protocol right?" if code == 404 and endpoint.is_live else ""
        yield failed(f"GET gets {code} instead of 200{hint}")


def verify_callers(endpoint: EndpointVisit, _cache: str | None) -> Iterator[Remark]:
    """Nothing about the caller is required, or kept."""
    if endpoint.first_code in (401, 403):
        yield failed(f"{endpoint.first_code}, although nothing about the caller may be required")
    if endpoint.first_code != 200:
        return
    yield passed("200 without credentials")
    bare = _find_answer(endpoint, "bare", "a request without any header but Host")
    if isinstance(bare, Remark):
        yield bare
    elif bare.http_code != 200:
        yield failed(f"a request without any header but Host gets {bare.http_code}")
    for _, answer in endpoint.answers(*_API_CODES):
        if answer.header("set-cookie"):
            yield failed("it sets a cookie, by which callers could be known")


def verify_content_type(endpoint: EndpointVisit, _cache: str | None) -> Iterator[Remark]:
    for exchange, answer in endpoint.answers(200):
        if exchange.request.method == "GET":
            kind = answer.header("content-type")
            yield passed(f"a 200 is {_JSON}") if _is_json(kind) else failed(f"Content-Type is {quote(kind)}")


def verify_caching(endpoint: EndpointVisit, _cache: str | None) -> Iterator[Remark]:
    caching = _CACHING[endpoint.noun]
    for exchange, answer in endpoint.answers(200, 304):
        found = answer.header("cache-control")
        if exchange.request.method not in ("GET", "HEAD"):
            continue
        if _is_same_list(found, caching):
            yield passed(f"Cache-Control is {caching}")
        elif found is not None or answer.http_code == 200:
            yield failed(f"Cache-Control of a {answer.http_code} to {exchange.name} is {quote(found)}")


def makes_no_difference(name: str, what: str) -> HttpRule:
    """The rule that a request gets what any other gets. Of such requests a cache may obey Range alone."""

    def verify(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
        answer = _find_answer(endpoint, name, what)
        if isinstance(answer, Remark):
            yield answer
        elif answer.http_code == 206 and name == "range" and cache:
            yield inconclusive(f"{what} gets 206, perhaps by the cache ({cache})")
        elif answer.http_code != 200:
            yield failed(f"{what} gets {answer.http_code} instead of 200")
        elif not answer.problem and not answer.header("content-encoding"):
            plain = [body for exchange, body in endpoint.documents() if exchange.name in ("get", "again")]
            differences = [find_difference(body, answer.body) for body in plain]
            if None in differences:
                yield passed(f"{what} makes no difference")
            elif differences:
                yield failed(f"{what} gets {differences[0]}")

    return verify


verify_query: Final = makes_no_difference("query", f"a query string ({QUERY})")
verify_range: Final = makes_no_difference("range", "Range")
verify_accept: Final = makes_no_difference("accept", "Accept: text/html")


def verify_head(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    for name, like in _GETS_LIKE.items():
        head = _find_answer(endpoint, name, "HEAD")
        if isinstance(head, Remark):
            yield head
        elif head.http_code != 200:
            yield failed(f"HEAD gets {head.http_code}, and GET 200")
        else:
            gets = [answer for exchange, answer in endpoint.answers(200) if exchange.name in like]
            same = [answer for answer in gets if answer.header("etag") == head.header("etag")]
            if gets:
                yield _compare_headers(head, (same or gets)[0], bool(same), cache)
    codes = {exchange.name: answer.http_code for exchange, answer in endpoint.answers(200, 304)}
    if codes.get("conditional head") == 200 and codes.get("exact") == 304 and not cache:
        yield failed("HEAD with the ETag in If-None-Match gets 200, and GET 304")
    for exchange, answer in endpoint.answers(304):
        if exchange.request.method == "HEAD" and answer.body:
            yield failed("a 304 to HEAD has a body of its own")


def _compare_headers(head: HttpAnswer, get: HttpAnswer, same: bool, cache: str | None) -> Remark:
    """``same`` says that both are of the same document."""
    if head.body:
        return failed("HEAD is answered with a body")
    for name in _OWN:
        in_get, in_head = get.each(name), head.each(name)
        if in_get == in_head or (not same and name in ("etag", "content-length") and len(in_get) == len(in_head)):
            continue
        if name == "content-length" and (not in_get or (cache and not in_head)):
            continue
        return failed(f"{name} is {quote(', '.join(in_get))} for GET, {quote(', '.join(in_head))} for HEAD")
    return passed("HEAD has the headers of GET, and no body")


def verify_other_methods(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    for method in OTHER_METHODS:
        answer = _find_answer(endpoint, method, method)
        if isinstance(answer, Remark):
            yield inconclusive(answer.what) if cache else answer
        elif answer.http_code == 405 and _is_same_list(answer.header("allow"), _METHODS):
            yield passed(f"{', '.join(OTHER_METHODS)} get 405 with Allow: {_METHODS}")
        elif answer.http_code >= 400 and _maybe_from_cache(answer, cache):
            yield inconclusive(f"{method} gets {answer.http_code} from the cache ({cache})")
        elif answer.http_code == 405:
            yield failed(f"{method} gets 405 with Allow: {quote(answer.header('allow'))}")
        else:
            yield failed(f"{method} gets {answer.http_code} instead of 405")


def verify_preflights(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    for name in ("options", "preflight"):
        answer = _find_answer(endpoint, name, "OPTIONS")
        if isinstance(answer, Remark):
            yield answer
        elif answer.http_code >= 400 and _maybe_from_cache(answer, cache):
            yield inconclusive(f"OPTIONS gets {answer.http_code} on the way")
        elif answer.http_code != 204:
            yield failed(f"OPTIONS gets {answer.http_code} instead of 204")
        elif answer.body:
            yield failed("a 204 with a body")
        else:
            wrong = [name for name, wanted in _PREFLIGHT.items() if not _is_same_list(answer.header(name), wanted)]
            for header in wrong:
                yield failed(f"{header} is {quote(answer.header(header))}")
            if not wrong:
                yield passed("OPTIONS gets 204 with the methods, the headers and a day to keep them")


def verify_cors(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    seen = sorted({answer.http_code for _, answer in endpoint.answers(*_API_CODES)})
    for exchange, answer in endpoint.answers(*_API_CODES):
        at = f"{answer.http_code} to {exchange.request.method} ({exchange.name})"
        if answer.each(_ALLOW_ORIGIN) != ["*"] or "etag" not in _split_list(answer.header(_EXPOSE)):
            allow, expose = answer.header(_ALLOW_ORIGIN), answer.header(_EXPOSE)
            verdict = inconclusive if answer.http_code in _ERROR_CODES and _maybe_from_cache(answer, cache) else failed
            yield verdict(f"{at}: {_ALLOW_ORIGIN} is {quote(allow)}, {_EXPOSE} {quote(expose)}")
        elif answer.header("access-control-allow-credentials") is not None:
            yield failed(f"{at}: it has Access-Control-Allow-Credentials")
        elif "origin" in _split_list(answer.header("vary")):
            yield failed(f"{at}: it has Vary: Origin")
        else:
            yield passed(f"every origin may read each answer ({', '.join(map(str, seen))})")


def verify_errors(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    for exchange, answer in _list_errors(endpoint, cache):
        at = f"{answer.http_code} to {exchange.request.method}"
        body = decode_document(answer.body)
        if isinstance(body, Unreadable) or list(body) != ["error"] or not isinstance(body["error"], str):
            yield failed(f"{at}: the body is not an object of one string, error: {quote(answer.body[:60])}")
        elif not _is_json(answer.header("content-type")):
            yield failed(f"{at}: Content-Type is {quote(answer.header('content-type'))}")
        elif answer.header("cache-control") != "no-store":
            yield failed(f"{at}: Cache-Control is {quote(answer.header('cache-control'))}")
        else:
            yield passed("an error is an object of one string, error, and not to be kept")


def _list_errors(endpoint: EndpointVisit, cache: str | None) -> Iterator[tuple[Exchange, HttpAnswer]]:
    """The errors of the API itself that have a body."""
    for exchange, answer in endpoint.answers(*_ERROR_CODES):
        if exchange.request.method != "HEAD" and not _maybe_from_cache(answer, cache):
            yield exchange, answer


def verify_live_503(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    for _, answer in _list_errors(endpoint, cache):
        body = decode_document(answer.body)
        if answer.http_code != 503:
            continue
        if "unavailable" in ("" if isinstance(body, Unreadable) else str(body.get("error"))):
            yield inconclusive("503, which only a server may say that has just started")
        else:
            yield failed("a 503 that does not say that the liveness report is unavailable")


def verify_history_503(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    for _, answer in _list_errors(endpoint, cache):
        if answer.http_code == 503 and answer.header("retry-after") == "30":
            yield passed("history: 503 with Retry-After: 30")
        elif answer.http_code == 503:
            yield failed(f"a 503 with Retry-After {quote(answer.header('retry-after'))}")


def verify_etags(endpoints: Iterable[EndpointVisit], cache: str | None) -> Iterator[Remark]:
    """An ETag is that of one body as it is sent, so of both endpoints together."""
    sent = [
        (f"{endpoint.noun}{'' if read_coding(answer) == 'identity' else f' as {quote(read_coding(answer))}'}", answer)
        for endpoint in endpoints
        for exchange, answer in endpoint.answers(200)
        if exchange.request.method == "GET" and endpoint.first_code == 200
    ]
    plain_tags = {answer.header("etag") for _, answer in sent if read_coding(answer) == "identity"}
    contents: dict[str, dict[bytes, str]] = defaultdict(dict)  # by ETag: whose they are
    tags: dict[bytes, set[str]] = defaultdict(set)
    for noun, answer in sent:
        etag = answer.header("etag")
        tag = parse_opaque_tag(etag)
        if etag is None or tag is None:
            yield failed(f"{noun}: the ETag is {quote(etag)}, and not a quoted hash")
            continue
        if etag != tag:
            # A proxy that compresses makes the plain form's ETag weak, and a cache may do the opposite too.
            is_changed = cache or (read_coding(answer) != "identity" and tag in plain_tags)
            yield (inconclusive if is_changed else failed)(f"{noun}: the ETag {quote(etag)} is weak")
        elif len(tag) != 18:
            yield failed(f"{noun}: the ETag {quote(etag)} is not 16 characters long")
        else:
            yield passed("the ETag is strong, 16 characters in quotes, and each body has its own")
        if answer.problem:
            continue
        if etag == tag:
            contents[etag][answer.body] = noun
            tags[answer.body].add(tag)
        else:  # a weak one is of the document, whatever its form
            contents[etag][unpack_gzip(answer.body, MOST_BYTES) or answer.body] = noun
    for etag, nouns in contents.items():
        if len(nouns) > 1:
            of = " and ".join(dict.fromkeys(nouns.values()))
            yield failed(f"{of}: {len(nouns)} different bodies have the ETag {quote(etag)}")
    if any(len(same) > 1 for same in tags.values()):
        yield failed("the same body came with two ETags, so they are no hash of it")


def verify_tags_of_304(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    for exchange, answer in endpoint.answers(304):
        sent, tag = dict(exchange.request.headers).get("If-None-Match", ""), parse_opaque_tag(answer.header("etag"))
        if exchange.name in _CONDITIONAL and tag is not None and tag not in sent:
            yield failed(f"a 304 with the ETag {quote(tag)}, where {quote(sent)} was sent")
        elif exchange.name == "star" and not cache:
            # If it is only one before and after, the document has not changed meanwhile.
            before = endpoint.exchanges[: endpoint.exchanges.index(exchange)]
            around = {find_newest_tag(before, "identity"), _find_next_tag(endpoint, exchange, "identity")}
            if len(around) == 1 and not {None, tag} & around:
                yield failed(f"If-None-Match: * gets a 304 with the ETag {quote(tag)}, not the plain form's")


def _find_next_tag(endpoint: EndpointVisit, exchange: Exchange, coding: str) -> str | None:
    """The ETag of the next document in a coding, from a request on."""
    return find_newest_tag(reversed(endpoint.exchanges[endpoint.exchanges.index(exchange) :]), coding)


def _is_current(endpoint: EndpointVisit, exchange: Exchange, sent: str, coding: str) -> bool:
    """Whether the ETag that was sent is still the document's, by the next answer with a document in that coding."""
    tag = _find_next_tag(endpoint, exchange, coding)
    return tag is not None and tag in sent


def verify_conditional(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    if find_newest_tag(endpoint.exchanges, "identity") is None:
        yield inconclusive("there is no proper ETag to send back")
    for name, (form, coding) in _CONDITIONAL.items():
        exchange = endpoint.named(name)
        if exchange is None:
            continue
        answer = _find_answer(endpoint, name, f"If-None-Match with {form}")
        sent = dict(exchange.request.headers)["If-None-Match"]
        if isinstance(answer, Remark):
            yield answer
        elif answer.http_code == 304:
            yield from _verify_304(answer)
        elif answer.http_code == 200 and not _is_current(endpoint, exchange, sent, coding):
            yield inconclusive("the document changed each time")
        elif answer.http_code == 200 and cache and name not in _PLAINEST:
            yield inconclusive(f"{form} in If-None-Match gets 200, perhaps by the cache ({cache})")
        else:
            yield failed(f"{form} in If-None-Match gets {answer.http_code} instead of 304")
    star = _find_answer(endpoint, "star", "If-None-Match: *")
    if isinstance(star, Remark):
        yield star
    elif star.http_code == 304:
        yield from _verify_304(star)
    elif star.http_code == 200 and cache:
        yield inconclusive(f"If-None-Match: * gets 200, perhaps by the cache ({cache})")
    else:
        yield failed(f"If-None-Match: * gets {star.http_code} instead of 304")
    other = _find_answer(endpoint, "other tag", "If-None-Match with another tag")
    if isinstance(other, Remark):
        yield other
    elif other.http_code != 200:
        yield failed(f"If-None-Match with another tag gets {other.http_code} instead of 200")


def _verify_304(answer: HttpAnswer) -> Iterator[Remark]:
    wrong = [name for name in ("etag", "cache-control", _ALLOW_ORIGIN, _EXPOSE) if answer.header(name) is None]
    if wrong:
        yield failed(f"a 304 without {', '.join(wrong)}")
    if answer.body:
        yield failed("a 304 with a body")
    if not wrong and not answer.body:
        yield passed("the ETag itself, with W/, in a list and as * gets 304 without a body")


def verify_whole_bodies(endpoint: EndpointVisit, _cache: str | None) -> Iterator[Remark]:
    for exchange, answer in endpoint.answers(200):
        if exchange.request.method == "GET" and answer.problem:
            yield (inconclusive if answer.problem == TOO_LARGE else failed)(answer.problem)


def verify_codings(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    tried = []
    for name, accept in CODINGS.items():
        answer = _find_answer(endpoint, name, f"Accept-Encoding: {accept}")
        if isinstance(answer, Remark):
            yield answer
        elif answer.http_code != 200:
            yield failed(f"Accept-Encoding: {accept} gets {answer.http_code} instead of 200")
        elif _accepts(accept, "gzip"):
            tried.append(name)
    for exchange, answer in endpoint.answers(200):
        accept, coding = dict(exchange.request.headers).get("Accept-Encoding", ""), read_coding(answer)
        if coding != "identity" and not _accepts(accept, coding):
            yield failed(f"{quote(coding)}, although Accept-Encoding was {quote(accept)}")
    if tried and _is_plain_only(endpoint):
        # A proxy in between may take Accept-Encoding away from the origin.
        yield (inconclusive if cache else failed)(f"no gzip in {len(tried)} answers to those who accept it")


def _is_plain_only(endpoint: EndpointVisit) -> bool:
    return {read_coding(answer) for _, answer in endpoint.answers(200)} == {"identity"}


def _accepts(accept: str, coding: str) -> bool:
    """Whether a request with this Accept-Encoding can be sent that coding, by RFC 9110."""
    weights = {}
    for part in accept.lower().split(","):
        name, _, weight = part.partition(";q=")
        weights[name.strip()] = float(weight or 1)
    return weights.get(coding, weights.get("*", 0)) > 0


def verify_gzip(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    plain = list(dict.fromkeys(body for _, body in endpoint.documents()))
    packed = {
        answer.body: exchange  # the last request that got it
        for exchange, answer in endpoint.answers(200)
        if exchange.request.method == "GET" and not answer.problem and read_coding(answer) == "gzip"
    }
    for body, exchange in packed.items():
        document = unpack_gzip(body, MOST_BYTES)
        if document is None:
            yield failed(f"a body that does not unpack as gzip: {quote(body[:20])}")
            continue
        differences = [find_difference(plain_body, document) for plain_body in plain]
        before = [plain_body for plainly, plain_body in endpoint.documents() if plainly.at <= exchange.at]
        older_ms = _measure_age_ms(document, before[-1]) if before and not cache else 0
        if differences and None not in differences:
            yield failed(f"gzip unpacks to {differences[0]}")
        elif older_ms > _OLDER_MS:
            yield failed(f"gzip unpacks to a document {older_ms / 1000:.0f} s older than the plain one")
        else:
            yield passed("gzip unpacks to the same document")


def _measure_age_ms(document: bytes, before: bytes) -> int:
    """How much older a document is than one that was there before it."""
    at, before_at = read_generated_at(document), read_generated_at(before)
    return 0 if at is None or before_at is None else before_at - at


def verify_vary(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    """A cache that makes all answers the same may have left out that they differ."""
    verdict = inconclusive if cache and _is_plain_only(endpoint) else failed
    for exchange, answer in endpoint.answers(200, 304):
        if exchange.request.method not in ("GET", "HEAD"):
            continue
        vary = answer.header("vary")
        if "*" in _split_list(vary):
            yield failed(f"Vary: {quote(vary)} on a {answer.http_code}: no cache can keep it")
        elif "accept-encoding" not in _split_list(vary):
            yield verdict(f"Vary is {quote(vary)} on a {answer.http_code}, without Accept-Encoding")
        else:
            yield passed("answers say that they vary by Accept-Encoding")
