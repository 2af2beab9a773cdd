"""Accept-Encoding, by RFC 9110 (A15)."""

import re
from functools import lru_cache
from typing import Final

# A coding and perhaps its weight, from 0 to 1 with at most three digits after the point. What is written in any other
# way says nothing.
_CODING: Final = re.compile(
    r"[ \t]*([!#$%&'*+.^_`|~0-9a-z-]+)(?:[ \t]*;[ \t]*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?[ \t]*", re.ASCII
)
_LONGEST: Final = 256  # ten times what browsers send; reading more costs more than it can save


def prefers_gzip(accept_encoding: str) -> bool:
    """Whether to answer with gzip rather than plain. A client that refuses both gets the plain answer."""
    return len(accept_encoding) <= _LONGEST and _prefers_gzip(accept_encoding)


@lru_cache(1024)
def _prefers_gzip(accept_encoding: str) -> bool:
    weights: dict[str, float] = {}
    for element in accept_encoding.lower().split(","):
        if coding := _CODING.fullmatch(element):
            name, weight = coding.groups(default="1")
            name = "gzip" if name == "x-gzip" else name
            # Of a coding that is there twice the lower weight counts: all clients can read the plain form.
            weights[name] = min(float(weight), weights.get(name, 1.0))
    others = weights.get("*", 0.0)
    gzip = weights.get("gzip", others)
    return gzip > 0 and gzip >= weights.get("identity", others)
