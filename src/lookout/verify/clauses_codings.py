"""Clauses A4 and A15: the forms of a document that a request chooses from, and the ETag of each."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from lookout.verify.client import MOST_BYTES, HttpAnswer, NoAnswer
from lookout.verify.documents import find_difference, read_generated_at, unpack_gzip
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout.verify.headers import report_missing, split_list
from lookout.verify.visit import CODINGS, EndpointVisit, Exchange, parse_opaque_tag, read_coding

_OLDER_MS: Final = 5_000  # servers read the store a little after one another


def verify_codings(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    """A15, as far as it is about Accept-Encoding."""
    noun = endpoint.noun
    for name, accept in CODINGS.items():
        outcome = endpoint.outcome(name)
        if isinstance(outcome, NoAnswer):
            yield report_missing(endpoint, "A15", f"Accept-Encoding: {accept}", outcome)
        elif outcome.http_code != 200:
            verdict = inconclusive if outcome.http_code == 429 else failed
            yield verdict("A15", f"{noun}: Accept-Encoding: {accept} gets {outcome.http_code} instead of 200")
    codings = set()
    for exchange, answer in endpoint.answers(200):
        accept = dict(exchange.request.headers).get("Accept-Encoding", "")
        coding = read_coding(answer)
        codings.add(coding)
        if coding != "identity" and not _accepts(accept, coding):
            yield failed("A15", f"{noun}: {quote(coding)}, although Accept-Encoding was {quote(accept)}")
    yield from _verify_gzip(endpoint, cache)
    tried = [
        name for name in CODINGS if _accepts(CODINGS[name], "gzip") and isinstance(endpoint.outcome(name), HttpAnswer)
    ]
    is_plain_only = codings == {"identity"} and bool(tried)
    if is_plain_only:
        # A proxy in between may take Accept-Encoding away from the origin.
        yield (inconclusive if cache else failed)(
            "A15", f"{noun}: no gzip in {len(tried)} answers to those who accept it"
        )
    yield from _verify_vary(endpoint, cache if is_plain_only else None)


def _accepts(accept: str, coding: str) -> bool:
    """Whether a request with this Accept-Encoding can be sent that coding, by RFC 9110."""
    weights = {}
    for part in accept.lower().split(","):
        name, _, weight = part.partition(";q=")
        weights[name.strip()] = float(weight or 1)
    return weights.get(coding, weights.get("*", 0)) > 0


def _verify_gzip(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun, plain = endpoint.noun, list(dict.fromkeys(body for _, body in endpoint.documents()))
    for exchange, answer in _list_gzip_answers(endpoint):
        document = unpack_gzip(answer.body, MOST_BYTES)
        if document is None:
            yield failed("A15", f"{noun}: a body that does not unpack as gzip: {quote(answer.body[:20])}")
            continue
        differences = [find_difference(body, document) for body in plain]
        before = [body for plainly, body in endpoint.documents() if plainly.at <= exchange.at]
        older_ms = _measure_age_ms(document, before[-1]) if before and not cache else 0
        if differences and None not in differences:
            yield failed("A15", f"{noun}: gzip unpacks to {differences[0]}")
        elif older_ms > _OLDER_MS:
            yield failed("A15", f"{noun}: gzip unpacks to a document {older_ms / 1000:.0f} s older than the plain one")
        else:
            yield passed("A15", "gzip unpacks to the same document")


def _measure_age_ms(document: bytes, before: bytes) -> int:
    """How much older a document is than one that was there before it."""
    at, before_at = read_generated_at(document), read_generated_at(before)
    return 0 if at is None or before_at is None else before_at - at


def _list_gzip_answers(endpoint: EndpointVisit) -> list[tuple[Exchange, HttpAnswer]]:
    """The different bodies in gzip that came whole, and when they did for the last time."""
    found = {
        answer.body: (exchange, answer)
        for exchange, answer in endpoint.answers(200)
        if exchange.request.method == "GET" and not answer.problem and read_coding(answer) == "gzip"
    }
    return list(found.values())


def _verify_vary(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    """``cache`` may have left out that answers differ, if it makes them all the same."""
    for exchange, answer in endpoint.answers(200, 304):
        if exchange.request.method not in ("GET", "HEAD"):
            continue
        vary = answer.header("vary")
        if "*" in split_list(vary):
            yield failed("A15", f"{endpoint.noun}: Vary: {quote(vary)} on a {answer.http_code}: no cache can keep it")
        elif "accept-encoding" not in split_list(vary):
            verdict = inconclusive if cache else failed
            yield verdict(
                "A15", f"{endpoint.noun}: Vary is {quote(vary)} on a {answer.http_code}, without Accept-Encoding"
            )
        else:
            yield passed("A15", "answers say that they vary by Accept-Encoding")


def verify_etags(endpoints: Iterable[EndpointVisit], cache: str | None) -> Iterator[ClauseFinding]:
    """A4. An ETag is that of one body as it is sent, so of both endpoints together."""
    sent = [
        (f"{endpoint.noun}{'' if read_coding(answer) == 'identity' else f' as {quote(read_coding(answer))}'}", answer)
        for endpoint in endpoints
        for exchange, answer in endpoint.answers(200)
        if exchange.request.method == "GET"
    ]
    plain_tags = {answer.header("etag") for _, answer in sent if read_coding(answer) == "identity"}
    bodies: dict[str, dict[bytes, str]] = defaultdict(dict)  # of a strong ETag
    documents: dict[str, dict[bytes, str]] = defaultdict(dict)  # of any
    tags: dict[bytes, set[str]] = defaultdict(set)
    for noun, answer in sent:
        etag = answer.header("etag")
        tag = parse_opaque_tag(etag)
        if etag is None or tag is None:
            yield failed("A4", f"{noun}: the ETag is {quote(etag)}, and not a quoted hash")
            continue
        if etag != tag:
            # A proxy that compresses makes the plain form's ETag weak, and a cache may do the opposite too.
            is_changed = cache or (read_coding(answer) != "identity" and tag in plain_tags)
            yield (inconclusive if is_changed else failed)("A4", f"{noun}: the ETag {quote(etag)} is weak")
        elif len(tag) != 18:
            yield failed("A4", f"{noun}: the ETag {quote(etag)} is not 16 characters long")
        else:
            yield passed("A4", "the ETag is strong, 16 characters in quotes, and each body has its own")
        if answer.problem:
            continue
        if etag == tag:
            bodies[tag][answer.body] = noun
            tags[answer.body].add(tag)
        document = unpack_gzip(answer.body, MOST_BYTES) if read_coding(answer) == "gzip" else answer.body
        if document is not None and read_coding(answer) in ("gzip", "identity"):
            documents[tag][document] = noun
    for tag, nouns in (*bodies.items(), *documents.items()):
        if len(nouns) > 1:
            of = " and ".join(dict.fromkeys(nouns.values()))
            yield failed("A4", f"{of}: {len(nouns)} different bodies have the ETag {quote(tag)}")
    if any(len(same) > 1 for same in tags.values()):
        yield failed("A4", "the same body came with two ETags, so they are no hash of it")
