"""Clause A5: If-None-Match, and the 304 that answers it; and A4, as far as it is about the ETag of that 304."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.exchange import Answer, NoAnswer
from lookout.verify.findings import Finding, failed, passed, quoted, untold
from lookout.verify.headers import ALLOW_ORIGIN, EXPOSE, missing
from lookout.verify.visit import Asked, Endpoint, newest_tag, opaque_tag

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


def conditional_findings(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    if newest_tag(endpoint.asked, "identity") is None:
        yield untold("A5", f"{noun}: there is no proper ETag to send back")
    for name, (form, coding) in _CONDITIONAL.items():
        asked = endpoint.named(name)
        if asked is None:
            continue
        if isinstance(asked.reply, NoAnswer):
            yield missing(endpoint, "A5", f"If-None-Match with {form}", asked.reply)
            continue
        sent = dict(asked.request.headers)["If-None-Match"]
        code = asked.reply.http_code
        if code == 304:
            yield from _not_modified(noun, asked.reply)
            tag = opaque_tag(asked.reply.header("etag"))
            if tag is not None and tag not in sent:
                yield failed("A4", f"{noun}: a 304 with the ETag {quoted(tag)}, where {quoted(sent)} was sent")
        elif code == 429:
            yield untold("A5", f"{noun}: met the rate limit")
        elif code == 200 and not _is_current(endpoint, asked, sent, coding):
            yield untold("A5", f"{noun}: the document changed each time")
        elif code == 200 and cache and name not in _PLAINEST:
            yield untold("A5", f"{noun}: {form} in If-None-Match gets 200, perhaps by the cache ({cache})")
        else:
            yield failed("A5", f"{noun}: {form} in If-None-Match gets {code} instead of 304")
    yield from _star_and_other(endpoint, cache)


def _is_current(endpoint: Endpoint, asked: Asked, sent: str, coding: str) -> bool:
    """Whether the ETag that was sent is still the document's, by the next answer with a document in that coding."""
    after = endpoint.asked[endpoint.asked.index(asked) :]
    tag = _first_tag(after, coding)
    return tag is not None and tag in sent


def _star_and_other(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    star, other = endpoint.reply("star"), endpoint.reply("other tag")
    if isinstance(star, NoAnswer):
        yield missing(endpoint, "A5", "If-None-Match: *", star)
    elif star.http_code == 304:
        yield from _not_modified(noun, star)
        tag, around = opaque_tag(star.header("etag")), _tags_around(endpoint, "star")
        if not cache and len(around) == 1 and not {None, tag} & around:
            yield failed("A4", f"{noun}: If-None-Match: * gets a 304 with the ETag {quoted(tag)}, not the plain form's")
    elif star.http_code == 429 or (star.http_code == 200 and cache):
        yield untold("A5", f"{noun}: If-None-Match: * gets {star.http_code}, perhaps by the cache")
    else:
        yield failed("A5", f"{noun}: If-None-Match: * gets {star.http_code} instead of 304")
    if isinstance(other, NoAnswer):
        yield missing(endpoint, "A5", "If-None-Match with another tag", other)
    elif other.http_code not in (200, 429):
        yield failed("A5", f"{noun}: If-None-Match with another tag gets {other.http_code} instead of 200")


def _tags_around(endpoint: Endpoint, name: str) -> set[str | None]:
    """The plain form's ETags before and after a request: if it is only one, the document has not changed meanwhile."""
    at = [asked.name for asked in endpoint.asked].index(name)
    return {newest_tag(endpoint.asked[:at], "identity"), _first_tag(endpoint.asked[at:], "identity")}


def _first_tag(asked: tuple[Asked, ...], coding: str) -> str | None:
    return newest_tag(reversed(asked), coding)


def _not_modified(noun: str, answer: Answer) -> Iterator[Finding]:
    wrong = [name for name in ("etag", "cache-control", ALLOW_ORIGIN, EXPOSE) if answer.header(name) is None]
    if wrong:
        yield failed("A5", f"{noun}: a 304 without {', '.join(wrong)}")
    if answer.body:
        yield failed("A5", f"{noun}: a 304 with a body")
    if not wrong and not answer.body:
        yield passed("A5", "the ETag itself, with W/, in a list and as * gets 304 without a body")
