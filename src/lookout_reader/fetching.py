"""Asking over HTTP with nothing but the standard library."""

import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Final

from lookout_reader.feed import Answer, NoAnswer

_TIMEOUT_S: Final = 10.0
_BODY_MOST: Final = 64 * 1024 * 1024
_CHUNK: Final = 65_536


def fetch_with_urllib(url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
    """One request, which takes about ten seconds at most however slowly it is answered."""
    deadline = time.monotonic() + _TIMEOUT_S
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - poll takes http and https only
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310 - the same
            return _answer(response.status, response.headers, _read(response, deadline))
    except urllib.error.HTTPError as answered:  # what urllib calls everything but success, a 304 too
        with answered:
            return _answer(answered.code, answered.headers, b"")
    except TimeoutError:
        return NoAnswer("no answer in time")
    except urllib.error.URLError as failed:
        return NoAnswer("no answer in time" if isinstance(failed.reason, TimeoutError) else "no answer")
    except (OSError, HTTPException, ValueError):  # a captive portal may lead to anything, even to what is no address
        return NoAnswer("no answer")


def _read(response: HTTPResponse, deadline: float) -> bytes:
    parts = []
    length = 0
    while part := response.read1(_CHUNK):
        parts.append(part)
        length += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
        if length > _BODY_MOST:
            raise ValueError(f"more than {_BODY_MOST} bytes")
    if response.length:  # read1 does not mind a body that breaks off
        raise IncompleteRead(b"".join(parts), response.length)
    return b"".join(parts)


def _answer(http_code: int, headers: Message, body: bytes) -> Answer:
    return Answer(
        http_code,
        body,
        etag=headers.get("ETag"),
        retry_after=headers.get("Retry-After"),
        date=headers.get("Date"),
        age=headers.get("Age"),
    )
