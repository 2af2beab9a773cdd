"""Clauses A about the two documents themselves: where they are, their headers, and what makes no difference."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.asking import Answer, NoAnswer, Reply
from lookout.verify.documents import difference
from lookout.verify.findings import Finding, failed, passed, quoted, untold
from lookout.verify.headers import API_CODES, JSON, is_json, missing, same_list
from lookout.verify.visit import QUERY, Endpoint, opaque_tag

_CACHING: Final = {
    "live report": ("A9", "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300"),
    "history": ("A10", "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300"),
}


def document_findings(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    """``cache`` is the sign of a cache in front, if there is one: some answers are then its own."""
    first = endpoint.reply("get")
    yield from _reachable(endpoint, first)
    if isinstance(first, Answer) and first.http_code == 200:
        yield from _documents(endpoint, cache)


def _reachable(endpoint: Endpoint, first: Reply) -> Iterator[Finding]:
    noun = endpoint.noun
    if isinstance(first, NoAnswer):
        yield missing(endpoint, "A1", "GET", first)
        return
    code = first.http_code
    if code == 200:
        yield passed("A1", f"{noun}: GET gets 200")
        yield passed("A14", "200 without credentials")
    elif code == 429:
        yield untold("A1", f"{noun}: 429, too many requests: wait a minute and try again")
    elif code == 503:
        yield untold("A1", f"{noun}: 503, so there is no document to look at")
    elif code in (401, 403):
        yield failed("A14", f"{noun}: {code}, although nothing about the caller may be required")
    elif 300 <= code < 400:
        where = quoted(first.header("location"))
        yield failed("A1", f"{noun}: {code} to {where} instead of 200; redirects are not followed")
    else:
        hint = "; is this the base address, and --protocol right?" if code == 404 and noun == "live report" else ""
        yield failed("A1", f"{noun}: GET gets {code} instead of 200{hint}")


def _documents(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    gets = [(asked, answer) for asked, answer in endpoint.answers(200) if asked.request.method == "GET"]
    clause, caching = _CACHING[noun]
    for asked, answer in gets:
        kind = answer.header("content-type")
        if is_json(kind):
            yield passed("A3", f"a 200 is {JSON}")
        else:
            yield failed("A3", f"{noun}: Content-Type is {quoted(kind)}")
        if answer.problem:
            told = untold if "larger" in answer.problem else failed
            yield told("A15", f"{noun}: {answer.problem}")
        if answer.header("content-encoding") and asked.name not in ("encoding", "bare"):
            yield failed("A15", f"{noun}: compressed, although only identity was asked for")
    for asked, answer in endpoint.answers(200, 304):
        found = answer.header("cache-control")
        if asked.request.method not in ("GET", "HEAD"):
            continue
        if same_list(found, caching):
            yield passed(clause, f"Cache-Control is {caching}")
        elif found is not None or answer.http_code == 200:
            yield failed(clause, f"{noun}: Cache-Control of a {answer.http_code} to {asked.name} is {quoted(found)}")
    yield from _etags(noun, [answer for _, answer in gets], cache)
    yield from _indifference(endpoint, [answer for asked, answer in gets if asked.name in ("get", "again")], cache)
    yield from _callers(endpoint, cache)


def _etags(noun: str, answers: list[Answer], cache: str | None) -> Iterator[Finding]:
    bodies: dict[str, set[bytes]] = {}
    tags: dict[bytes, set[str]] = {}
    for answer in answers:
        etag = answer.header("etag")
        tag = opaque_tag(etag)
        if etag is None or tag is None:
            yield failed("A4", f"{noun}: the ETag is {quoted(etag)}, and not a quoted hash")
        elif etag != tag:
            told = untold if cache or answer.header("content-encoding") else failed
            yield told("A4", f"{noun}: the ETag {quoted(etag)} is weak")
        elif len(tag) != 18:
            yield failed("A4", f"{noun}: the ETag {quoted(etag)} is not 16 characters long")
        else:
            yield passed("A4", "the ETag is strong, 16 characters in quotes, and the same for the same body")
        if tag is not None and not answer.problem and not answer.header("content-encoding"):
            bodies.setdefault(tag, set()).add(answer.body)
            tags.setdefault(answer.body, set()).add(tag)
    if any(len(same) > 1 for same in bodies.values()):
        yield failed("A4", f"{noun}: the body changed, and the ETag did not")
    if any(len(same) > 1 for same in tags.values()):
        yield failed("A4", f"{noun}: the same body came with two ETags, so they are no hash of it")


def _indifference(endpoint: Endpoint, plain: list[Answer], cache: str | None) -> Iterator[Finding]:
    """A query string, Range, Accept and Accept-Encoding make no difference (A1, A15)."""
    noun = endpoint.noun
    names = {
        "query": ("A1", f"a query string ({QUERY})"),
        "range": ("A15", "Range"),
        "accept": ("A15", "Accept: text/html"),
        "encoding": ("A15", "Accept-Encoding: gzip"),
    }
    for name, (clause, what) in names.items():
        reply = endpoint.reply(name)
        if isinstance(reply, NoAnswer):
            yield missing(endpoint, clause, what, reply)
        elif reply.http_code == 429:
            yield untold(clause, f"{noun}: {what} met the rate limit")
        elif reply.http_code != 200:
            told = untold if cache and name != "query" else failed
            by_whom = f"; perhaps by the cache ({cache})" if cache else ""
            yield told(clause, f"{noun}: {what} gets {reply.http_code} instead of 200{by_whom}")
        elif reply.header("content-encoding"):
            yield untold(clause, f"{noun}: compressed when asked for, which only the origin may not do")
        elif not reply.problem:
            differences = [difference(answer.body, reply.body) for answer in plain]
            if None in differences:
                yield passed(clause, f"{what} makes no difference")
            else:
                yield failed(clause, f"{noun}: {what} gets {differences[0]}")


def _callers(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    """Nothing about the caller is required, or kept (A14)."""
    noun = endpoint.noun
    bare = endpoint.reply("bare")
    if isinstance(bare, NoAnswer):
        yield missing(endpoint, "A14", "a request without any header but Host", bare)
    elif bare.http_code not in (200, 429):
        told = untold if cache else failed
        yield told("A14", f"{noun}: a request without any header but Host gets {bare.http_code}")
    for _, answer in endpoint.answers(*API_CODES):
        if answer.header("set-cookie"):
            told = untold if cache else failed
            yield told("A14", f"{noun}: it sets a cookie, by which callers could be known")
