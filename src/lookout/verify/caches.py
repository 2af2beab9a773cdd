"""Whether something stands between the deployment's servers and the caller, by what it leaves in the headers.

A cache answers some requests itself. That excuses what a cache may do (RFC 9111), and nothing else: it refuses methods,
obeys Range, compares If-None-Match with the one form it has, unpacks and so weakens an ETag, and keeps copies."""

from collections.abc import Iterable
from typing import Final

from lookout.verify.client import HttpAnswer
from lookout.verify.findings import quote

_SIGNS: Final = (
    *("age", "via", "cache-status", "x-cache", "x-cache-status", "x-cache-hits", "x-proxy-cache", "x-varnish"),
    *("x-served-by", "x-vercel-cache", "x-amz-cf-id", "cf-cache-status", "cf-ray"),
)
# nginx is here because one with proxy_cache gives no other sign.
_SERVERS: Final = ("cloudflare", "varnish", "akamai", "cloudfront", "fastly", "bunnycdn", "nginx")


def find_cache_sign(answers: Iterable[HttpAnswer]) -> str | None:
    """The first header that gives one away."""
    for answer in answers:
        for name, text in answer.headers:
            if name in _SIGNS or (name == "server" and any(server in text.lower() for server in _SERVERS)):
                return f"{name}: {quote(text)[1:-1]}"
    return None


def is_hit(answer: HttpAnswer) -> bool:
    """Whether an answer says of itself that it was in a cache before it was asked for."""
    age, varnish = answer.header("age") or "", answer.header("x-varnish") or ""
    states = " ".join(answer.header(name) or "" for name in ("x-cache", "cf-cache-status", "cache-status")).lower()
    return (age.isdigit() and int(age) > 0) or len(varnish.split()) == 2 or "hit" in states.split()
