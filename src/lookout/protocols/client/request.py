"""Requests, access to upstreams, and time limits, without an HTTP client: a configuration is read without one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from lookout.base.setting_types import CaFile, ChainId, Headers, Natural, ProxyUrl, Table, Url
from lookout.protocols.client.failure import ProbeFailed

MIB: Final = 1_048_576
# What this task's request waits for, to name the place of a timeout.
STAGE: Final[ContextVar[str]] = ContextVar("stage", default="")


class AccessTable(Table, frozen=True, kw_only=True):
    """The keys that every table with an address of a third party has. ``ca_file`` holds the certificates read with
    the configuration, so that a reload notices their change."""

    headers: Headers = msgspec.field(default_factory=dict)
    """Sent with every request, such as `{Authorization = "Bearer ${KEY}"}`. A user and a password in an address are
    sent as `Authorization: Basic` unless this has one."""
    ca_file: CaFile = ""
    """Authorities to trust instead of the system's, as with `curl --cacert`. It is read with the configuration.
    `$SSL_CERT_FILE` names such a file for all sources without one."""
    proxy: ProxyUrl = ""
    """An HTTP proxy to ask through, such as `"http://user:${PASSWORD}@proxy.example:3128"`. It can read what is sent to
    `http://` sources. `HTTPS_PROXY` is never used."""


class SourceTable(AccessTable, frozen=True):
    """A table of the configuration that names a source."""

    def address(self) -> str:
        """The address that is asked."""
        raise NotImplementedError

    def chain_ids(self) -> tuple[int | None, ...]:
        """The chains for which it gives its service a row; None is the row without a chain."""
        return (None,)

    def by_source(self) -> "tuple[SourceTable, ...]":
        """The settings of the sources that are built from it."""
        return (self,)


class KindTable(SourceTable, frozen=True):
    """A table whose ``kind`` is a protocol's name. The service decides which of these keys it has: ``chain`` if it
    has a row per chain, ``confirmations`` if its position is compared with the chain's head."""

    chain: ChainId | None
    """Where it is monitored."""
    kind: str
    """Its protocol ([Kinds](#kinds))."""
    url: Url
    """The address that is asked ([Kinds](#kinds))."""
    confirmations: Natural = 0
    """Blocks that its position stays behind the head on purpose (R11)."""

    def address(self) -> str:
        return self.url

    def chain_ids(self) -> tuple[int | None, ...]:
        return (self.chain,)


DIRECT: Final = AccessTable()


# A dataclass and not a Struct: its repr, also in debuggers and tracebacks, omits the secrets.
@dataclass(frozen=True, slots=True)
class Request:
    method: Literal["GET", "POST"]
    url: str = field(repr=False)
    access: AccessTable = field(default=DIRECT, repr=False)
    body: bytes | None = field(default=None, repr=False)  # JSON
    limit_bytes: int = MIB
    expect_code: int = 200
    """The expected HTTP code; any other is a failure."""


@asynccontextmanager
async def at_most(timeout_s: float) -> AsyncIterator[None]:
    """End the block after this many seconds, whatever the upstream does (M3)."""
    import asyncio

    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError:
        raise ProbeFailed("timeout", STAGE.get()) from None


def below(url: str, path: str, query: str = "") -> str:
    """The address of a path below a base address, which may have its own query (with a key, for example)."""
    parts = urlsplit(url)
    both = "&".join(filter(None, (parts.query, query)))
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, both, ""))
