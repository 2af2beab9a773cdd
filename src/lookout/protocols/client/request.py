"""What a source asks for, how it is reached, and for how long. A configuration can be read without an HTTP client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from lookout.base.setting_types import CaFile, Headers, ProxyUrl, Table
from lookout.protocols.client.failure import ProbeFailed

MIB: Final = 1_048_576
# What the request under way in this task waits for: where a timeout happened.
STAGE: Final[ContextVar[str]] = ContextVar("stage", default="")


class AccessTable(Table, frozen=True, kw_only=True):
    """The keys that every table with an address of a third party has. ``ca_file`` holds the certificates of that file,
    as they were when the configuration was read: so a reload notices that they changed."""

    headers: Headers = msgspec.field(default_factory=dict)
    ca_file: CaFile = ""
    proxy: ProxyUrl = ""


DIRECT: Final = AccessTable()


# A dataclass and not a Struct: its repr, and what debuggers and tracebacks make of it, leaves the secrets out.
@dataclass(frozen=True, slots=True)
class Request:
    method: Literal["GET", "POST"]
    url: str = field(repr=False)
    access: AccessTable = field(default=DIRECT, repr=False)
    body: bytes | None = field(default=None, repr=False)  # JSON
    limit_bytes: int = MIB
    expect_code: int = 200
    """The HTTP code of an answer; any other is a failure."""


@asynccontextmanager
async def at_most(timeout_s: float) -> AsyncIterator[None]:
    """What happens inside ends after so many seconds, whatever the upstream does (M3)."""
    import asyncio

    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError:
        raise ProbeFailed("timeout", STAGE.get()) from None


def below(url: str, path: str, query: str = "") -> str:
    """The address of something under a base address, which may have a query of its own (a key, say)."""
    parts = urlsplit(url)
    both = "&".join(filter(None, (parts.query, query)))
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, both, ""))
