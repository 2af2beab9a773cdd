"""If-None-Match, by RFC 9110 (A5)."""

import re
from typing import Final

# A tag with the comma or the end of the list after it; tags may hold commas, but no quotation mark.
_TAG: Final = re.compile(r'(?:\A|,)[ \t]*(?:W/)?("[^"]*")(?=[ \t]*(?:,|\Z))')


def matches(if_none_match: str, etag: str) -> bool:
    """Whether the header names this ETag, weakly compared: ``W/`` makes no difference. ``*`` names every one."""
    if if_none_match == etag:
        return True
    return etag in _TAG.findall(if_none_match) if etag in if_none_match else if_none_match.strip(" \t") == "*"
