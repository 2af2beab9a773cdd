"""The rules of what is answered over HTTP (clauses A, E and V). Most are built from what an answer has to have."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from lookout.verify.documents import FINE, Remark, quote, read_generated_at, unsure, wrong
from lookout.verify.visit import (
    DESCRIPTIONS,
    LIMIT_PER_MINUTE,
    EndpointVisit,
    Exchange,
    HttpAnswer,
    Rule,
    Visit,
    parse_opaque_tag,
)

*_SCHEMAS, _OPENAPI = DESCRIPTIONS
_METHODS: Final = ("get", "head", "options")
_OPENAPI_CODES: Final = {"200", "204", "304", "405", "429", "503"}
_OPENAPI_HEADERS: Final = {"etag", "cache-control", "access-control-allow-origin", "access-control-expose-headers"}
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
# What keeps a schema from being permissive.
_CLOSING: Final = re.compile(rb'"(additional|unevaluated)(Properties|Items)"\s*:\s*false|"enum"\s*:\s*\[\s*"')

# Whether an answer is right; None if it does not show.
Question = Callable[[HttpAnswer], bool | None]


def of_answers(question: Question, *codes: int, method: str = "", noun: str = "", header: str = "") -> Rule:
    """The rule of the answers of these codes: to any method and of both endpoints, unless said. ``header`` is what the
    question is about; otherwise it is the body."""

    def judge(visit: Visit) -> Iterator[Remark]:
        for endpoint in visit.endpoints:
            for exchange, answer in endpoint.answers(*codes):
                is_meant = method in ("", exchange.method) and noun in ("", endpoint.noun)
                is_meant = is_meant and (bool(header) or exchange.method != "HEAD")
                found = question(answer) if is_meant else None
                seen = f"{header}: {quote(answer.header(header))}" if header else quote(answer.body[:60])
                if found is not None:
                    text = f"{exchange} gets {answer.http_code} with {answer.problem or seen}"
                    yield FINE if found else wrong(text)

    return judge


def has_header(name: str, pattern: str, *codes: int, method: str = "", noun: str = "") -> Rule:
    """The rule that a header fits a pattern, in any case of letters; one that is not there is empty."""

    def fits(answer: HttpAnswer) -> bool:
        return re.fullmatch(pattern, answer.header(name) or "", re.IGNORECASE) is not None

    return of_answers(fits, *codes, method=method, noun=noun, header=name)


def is_no_older(most_s: int) -> Question:
    def is_younger(answer: HttpAnswer) -> bool | None:
        age = answer.header("age") or ""
        return int(age) <= most_s if age.isascii() and age.isdigit() else None

    return is_younger


def is_error(answer: HttpAnswer) -> bool:
    body = read_object(answer)
    return list(body) == ["error"] and isinstance(body["error"], str)


def gets(http_code: int, *names: str) -> Rule:
    """The rule that these requests get such a code wherever a document is served, and no body where none belongs. A 200
    instead of a 304 is right if the document has changed since its ETag came."""

    def judge(visit: Visit) -> Iterator[Remark]:
        for endpoint, name in ((endpoint, name) for endpoint in visit.endpoints for name in names):
            if not endpoint.is_served:
                continue
            answer, text = _find_answer(endpoint, name), f"{endpoint.find(name)} gets"
            if isinstance(answer, Remark):
                yield answer
            elif answer.http_code == http_code:
                is_empty = http_code in (204, 304) or "head" in name
                yield wrong(f"{text} a body: {quote(answer.body[:20])}") if is_empty and answer.body else FINE
            elif http_code != 304 or answer.http_code != 200 or _is_unchanged(endpoint, endpoint.find(name), answer):
                yield wrong(f"{text} {answer.http_code} instead of {http_code}")

    return judge


def _is_unchanged(endpoint: EndpointVisit, exchange: Exchange | None, answer: HttpAnswer) -> bool:
    sent = "" if exchange is None else exchange.headers.get("If-None-Match", "")
    tagged = {parse_opaque_tag(other.header("etag")): other.plain_body for _, other in endpoint.answers(200)}
    documents = [body for tag, body in tagged.items() if tag is not None and tag in sent]
    return sent == "*" or (parse_opaque_tag(answer.header("etag")) or "none") in sent or answer.plain_body in documents


def gets_the_document(*names: str) -> Rule:
    """The rule that these requests get what an ordinary one gets, unless it is changing meanwhile."""

    def judge(visit: Visit) -> Iterator[Remark]:
        for endpoint in visit.endpoints:
            plain = endpoint.documents()
            instants = {read_generated_at(body) for body in plain}
            for exchange, answer in endpoint.answers(200):
                body = answer.plain_body
                if exchange.name not in names or body is None:
                    continue
                if body in plain:
                    yield FINE
                elif len(plain) == 1 or read_generated_at(body) in instants:
                    yield wrong(f"{exchange} gets another document")

    return judge


def _find_answer(endpoint: EndpointVisit, name: str) -> HttpAnswer | Remark:
    """The answer to a request, or all there is to say of one that has none."""
    exchange = endpoint.find(name)
    if exchange is None:
        return unsure(f"{endpoint.noun}: {name!r} was not asked: earlier answers were not whole, or had no ETag")
    if exchange.answer.http_code is None:
        return wrong(f"{exchange}: {exchange.answer.problem}")
    if exchange.answer.http_code == 429:
        return unsure(f"{endpoint.noun}: 429, too many requests: wait a minute and try again")
    return exchange.answer


def is_reachable(visit: Visit) -> Iterator[Remark]:
    for endpoint in visit.endpoints:
        first = _find_answer(endpoint, "get")
        if isinstance(first, Remark):
            yield first
        elif first.http_code == 503:
            yield unsure(f"{endpoint.noun}: 503, so there is no document to look at")
        elif first.http_code != 200:
            hint = "; is this the base address, and --protocol right?" if first.http_code == 404 else ""
            target = f" with Location: {quote(first.header('location'))}" if first.header("location") else ""
            yield wrong(f"{endpoint.noun}: GET gets {first.http_code}{target} instead of 200{hint}")
        else:
            yield FINE


def has_its_own_etag(visit: Visit) -> Iterator[Remark]:
    """An ETag is that of one body as it is sent, so of both endpoints together."""
    bodies: dict[str, set[bytes]] = defaultdict(set)
    tags: dict[bytes, set[str | None]] = defaultdict(set)
    for exchange, answer in (pair for endpoint in visit.endpoints for pair in endpoint.answers(200)):
        etag = answer.header("etag")
        if exchange.method == "GET" and etag is not None and not answer.problem:
            bodies[etag].add(answer.body)
            tags[answer.body].add(parse_opaque_tag(etag))
    for etag, tagged in bodies.items():
        yield wrong(f"{len(tagged)} different bodies have the ETag {quote(etag)}") if len(tagged) > 1 else FINE
    if any(len(same) > 1 for same in tags.values()):
        yield wrong("the same body came with two ETags, so they are no hash of it")


def has_the_matching_etag(visit: Visit) -> Iterator[Remark]:
    """A 304 has the ETag that was sent back; to * that of the plain form, which is asked for."""
    for endpoint in visit.endpoints:
        plain = {answer.header("etag") for _, answer in endpoint.answers(200) if answer.coding == "identity"}
        packed = {answer.header("etag") for _, answer in endpoint.answers(200)} - plain
        for exchange, answer in endpoint.answers(304):
            sent, etag = exchange.headers.get("If-None-Match", ""), answer.header("etag")
            is_right = etag not in packed if sent == "*" else (parse_opaque_tag(etag) or "none") in sent
            yield FINE if is_right else wrong(f"{exchange} gets 304 with the ETag {quote(etag)}")


def has_an_accepted_coding(visit: Visit) -> Iterator[Remark]:
    """Those who accept gzip get it, and others do not."""
    for endpoint in visit.endpoints:
        for exchange, answer in endpoint.answers(200):
            accept, is_plain = exchange.headers.get("Accept-Encoding", ""), answer.coding == "identity"
            is_right = accept == "*" or is_plain == (not accept.startswith("gzip") or accept == "gzip;q=0")
            yield FINE if is_right else wrong(f"{exchange} gets {answer.coding}")


def limits_callers(visit: Visit) -> Iterator[Remark]:
    exchanges = visit.live.exchanges
    refused = [number for number, exchange in enumerate(exchanges, 1) if exchange.answer.http_code == 429]
    made = refused[0] if refused else len(exchanges)
    took_s = (exchanges[made - 1].at - exchanges[0].at) / 1000 if exchanges else 0
    text = f"{'429' if refused else 'no 429'} after {made} requests in {took_s:.0f} s"
    if refused:
        yield FINE if made > LIMIT_PER_MINUTE else unsure(f"{text}, as right only if others ask from this address too")
    elif any(exchange.name == "limit" for exchange in exchanges):
        yield wrong(text) if made > 2 * LIMIT_PER_MINUTE and took_s <= 60 else unsure(text)


def read_object(answer: HttpAnswer) -> dict[str, Any]:
    try:
        return msgspec.json.decode(answer.plain_body or b"", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def serves_descriptions(visit: Visit) -> Iterator[Remark]:
    for path in DESCRIPTIONS if visit.live.exchanges else ():
        is_served = path in visit.descriptions and bool(read_object(visit.descriptions[path]))
        yield FINE if is_served else unsure(f"{path} is not served here; it is a convenience")


def has_permissive_schemas(visit: Visit) -> Iterator[Remark]:
    for path in visit.descriptions.keys() & {*_SCHEMAS}:
        closing = _CLOSING.search(visit.descriptions[path].plain_body or b"")
        is_draft = read_object(visit.descriptions[path]).get("$schema") == _DRAFT
        yield FINE if is_draft and closing is None else wrong(f"{path}: {quote(closing[0]) if closing else 'no draft'}")


def has_openapi(visit: Visit) -> Iterator[Remark]:
    for path in visit.descriptions.keys() & {_OPENAPI}:
        description = read_object(visit.descriptions[path])
        version = str(description.get("openapi"))
        yield FINE if version.startswith("3.1") else wrong(f"{path}: openapi is {version}")
        for endpoint in (endpoint for endpoint in visit.endpoints if endpoint.is_served):
            try:
                methods = [description["paths"][endpoint.path][method]["responses"] for method in _METHODS]
                headers = {name.lower() for name in methods[0]["200"]["headers"]}
            except (KeyError, TypeError) as error:
                yield wrong(f"{path}: {endpoint.path} is not described whole: {type(error).__name__} {error}")
                continue
            lacking = _OPENAPI_CODES.difference(*methods) | (_OPENAPI_HEADERS - headers)
            yield wrong(f"{path}: {endpoint.path} without {', '.join(sorted(lacking))}") if lacking else FINE
