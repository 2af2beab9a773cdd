"""Clause A5: If-None-Match, and the 304 that answers it."""

from collections.abc import Iterator
from typing import Final

from lookout.verify.asking import Answer, NoAnswer
from lookout.verify.findings import Finding, failed, passed, untold
from lookout.verify.headers import ALLOW_ORIGIN, EXPOSE, missing
from lookout.verify.visit import Endpoint, opaque_tag

_CONDITIONAL: Final = {"exact": "the ETag", "weak": "W/ and the ETag", "list": "a list with the ETag"}


def conditional_findings(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    first = endpoint.reply("get")
    if isinstance(first, Answer) and opaque_tag(first.header("etag")) is None:
        yield untold("A5", f"{noun}: there is no proper ETag to send back")
    for name, form in _CONDITIONAL.items():
        asked = endpoint.named(name)
        if asked is None:
            continue
        if isinstance(asked.reply, NoAnswer):
            yield missing(endpoint, "A5", f"If-None-Match with {form}", asked.reply)
            continue
        sent = dict(asked.request.headers)["If-None-Match"]
        tag = opaque_tag(asked.reply.header("etag"))
        code = asked.reply.http_code
        if code == 304:
            yield from _not_modified(noun, asked.reply)
        elif code == 429:
            yield untold("A5", f"{noun}: met the rate limit")
        elif code == 200 and tag is not None and tag not in sent:
            yield untold("A5", f"{noun}: the document changed each time")
        elif code == 200 and cache and name != "exact":
            yield untold("A5", f"{noun}: {form} in If-None-Match gets 200, perhaps by the cache ({cache})")
        else:
            yield failed("A5", f"{noun}: {form} in If-None-Match gets {code} instead of 304")
    yield from _star_and_other(endpoint, cache)


def _star_and_other(endpoint: Endpoint, cache: str | None) -> Iterator[Finding]:
    noun = endpoint.noun
    star, other = endpoint.reply("star"), endpoint.reply("other tag")
    if isinstance(star, NoAnswer):
        yield missing(endpoint, "A5", "If-None-Match: *", star)
    elif star.http_code == 304:
        yield from _not_modified(noun, star)
    elif star.http_code == 429 or (star.http_code == 200 and cache):
        yield untold("A5", f"{noun}: If-None-Match: * gets {star.http_code}, perhaps by the cache")
    else:
        yield failed("A5", f"{noun}: If-None-Match: * gets {star.http_code} instead of 304")
    if isinstance(other, NoAnswer):
        yield missing(endpoint, "A5", "If-None-Match with another tag", other)
    elif other.http_code not in (200, 429):
        yield failed("A5", f"{noun}: If-None-Match with another tag gets {other.http_code} instead of 200")


def _not_modified(noun: str, answer: Answer) -> Iterator[Finding]:
    wrong = [name for name in ("etag", "cache-control", ALLOW_ORIGIN, EXPOSE) if answer.header(name) is None]
    if wrong:
        yield failed("A5", f"{noun}: a 304 without {', '.join(wrong)}")
    if answer.body:
        yield failed("A5", f"{noun}: a 304 with a body")
    if not wrong and not answer.body:
        yield passed("A5", "the ETag itself, with W/, in a list and as * gets 304 without a body")
