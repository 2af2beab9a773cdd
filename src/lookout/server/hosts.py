"""Host, by RFC 9112 and RFC 3986."""

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Final

_NAME: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)(?::[0-9]*)?")
_LONGEST: Final = 300  # a name has at most 255 characters; then the port


def is_one_host(lines: Sequence[str]) -> bool:
    """Whether these lines of a request name one host, as they have to."""
    return len(lines) == 1 and len(lines[0]) <= _LONGEST and _is_host(lines[0])


@lru_cache(1024)
def _is_host(text: str) -> bool:
    named = _NAME.fullmatch(text)
    if named is None or named[1] is None:
        return named is not None
    try:
        IPv6Address(named[1])
    except AddressValueError:
        return False
    return True
