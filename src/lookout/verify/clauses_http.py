"""Clauses A about the two documents themselves: where they are, their headers, and what makes no difference."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.client import TOO_LARGE, HttpAnswer, HttpOutcome, NoAnswer
from lookout.verify.documents import find_difference
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout.verify.headers import API_CODES, JSON, is_json, is_same_list, report_missing
from lookout.verify.visit import QUERY, EndpointVisit

_CACHING: Final = {
    "live report": ("A9", "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300"),
    "history": ("A10", "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300"),
}


def verify_documents(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    """``cache`` is the sign of a cache in front, if there is one: some answers are then its own."""
    first = endpoint.outcome("get")
    yield from _verify_reachable(endpoint, first)
    if isinstance(first, HttpAnswer) and first.http_code == 200:
        yield from _verify_headers(endpoint, cache)


def _verify_reachable(endpoint: EndpointVisit, first: HttpOutcome) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    if isinstance(first, NoAnswer):
        yield report_missing(endpoint, "A1", "GET", first)
        return
    code = first.http_code
    if code == 200:
        yield passed("A1", f"{noun}: GET gets 200")
        yield passed("A14", "200 without credentials")
    elif code == 429:
        yield inconclusive("A1", f"{noun}: 429, too many requests: wait a minute and try again")
    elif code == 503:
        yield inconclusive("A1", f"{noun}: 503, so there is no document to look at")
    elif code in (401, 403):
        yield failed("A14", f"{noun}: {code}, although nothing about the caller may be required")
    elif 300 <= code < 400:
        where = quote(first.header("location"))
        yield failed("A1", f"{noun}: {code} to {where} instead of 200; redirects are not followed")
    else:
        hint = "; is this the base address, and --protocol right?" if code == 404 and noun == "live report" else ""
        yield failed("A1", f"{noun}: GET gets {code} instead of 200{hint}")


def _verify_headers(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    noun = endpoint.noun
    gets = [answer for exchange, answer in endpoint.answers(200) if exchange.request.method == "GET"]
    clause, caching = _CACHING[noun]
    for answer in gets:
        kind = answer.header("content-type")
        if is_json(kind):
            yield passed("A3", f"a 200 is {JSON}")
        else:
            yield failed("A3", f"{noun}: Content-Type is {quote(kind)}")
        if answer.problem:
            verdict = inconclusive if answer.problem == TOO_LARGE else failed
            yield verdict("A15", f"{noun}: {answer.problem}")
    for exchange, answer in endpoint.answers(200, 304):
        found = answer.header("cache-control")
        if exchange.request.method not in ("GET", "HEAD"):
            continue
        if is_same_list(found, caching):
            yield passed(clause, f"Cache-Control is {caching}")
        elif found is not None or answer.http_code == 200:
            yield failed(clause, f"{noun}: Cache-Control of a {answer.http_code} to {exchange.name} is {quote(found)}")
    yield from _verify_indifference(endpoint, cache)
    yield from _verify_callers(endpoint)


def _verify_indifference(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    """A query string, Range and Accept make no difference (A1, A15). Of these a cache may obey Range alone."""
    noun = endpoint.noun
    plain = [body for exchange, body in endpoint.documents() if exchange.name in ("get", "again")]
    names = {
        "query": ("A1", f"a query string ({QUERY})"),
        "range": ("A15", "Range"),
        "accept": ("A15", "Accept: text/html"),
    }
    for name, (clause, what) in names.items():
        outcome = endpoint.outcome(name)
        if isinstance(outcome, NoAnswer):
            yield report_missing(endpoint, clause, what, outcome)
        elif outcome.http_code == 429:
            yield inconclusive(clause, f"{noun}: {what} met the rate limit")
        elif outcome.http_code == 206 and name == "range" and cache:
            yield inconclusive(clause, f"{noun}: {what} gets 206, perhaps by the cache ({cache})")
        elif outcome.http_code != 200:
            yield failed(clause, f"{noun}: {what} gets {outcome.http_code} instead of 200")
        elif not outcome.problem and not outcome.header("content-encoding"):
            differences = [find_difference(body, outcome.body) for body in plain]
            if None in differences:
                yield passed(clause, f"{what} makes no difference")
            elif differences:
                yield failed(clause, f"{noun}: {what} gets {differences[0]}")


def _verify_callers(endpoint: EndpointVisit) -> Iterator[ClauseFinding]:
    """Nothing about the caller is required, or kept (A14)."""
    noun = endpoint.noun
    bare = endpoint.outcome("bare")
    if isinstance(bare, NoAnswer):
        yield report_missing(endpoint, "A14", "a request without any header but Host", bare)
    elif bare.http_code not in (200, 429):
        yield failed("A14", f"{noun}: a request without any header but Host gets {bare.http_code}")
    for _, answer in endpoint.answers(*API_CODES):
        if answer.header("set-cookie"):
            yield failed("A14", f"{noun}: it sets a cookie, by which callers could be known")
