"""Names to addresses, each lookup in a thread of its own."""

import socket
from functools import partial
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from lookout.base.concurrency import DaemonThread
from lookout.protocols.client.exhaustion import own_fault
from lookout.protocols.client.failure import OwnFault

_Resolved = tuple[Any, ...]


class ThreadPerLookup(AbstractResolver):
    """Asks the system, as everybody does, but never waits behind another name.

    ``loop.getaddrinfo`` shares a pool of a few threads: a handful of names whose servers stay silent would fill it for
    half a minute and fail every other probe (M6). The connector asks for a name once at a time and keeps the answer for
    some seconds, so there are never more threads than names that stall. They are daemons: none delays the exit.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            with DaemonThread("name lookup") as thread:
                resolved = await thread.call(partial(_look_up, host, port, family))
        except RuntimeError:  # the library's way to say that the system gives no thread
            raise OwnFault("threads") from None
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=address[1],
                family=found_family,
                proto=proto,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found_family, _, proto, _, address in resolved
        ]

    async def close(self) -> None:
        """Nothing is kept open."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[_Resolved]:
    try:
        return list(socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG))
    except MemoryError:
        raise OwnFault("memory") from None
    except OSError as error:
        raise own_fault(error) or error from None  # asked now: a moment later there may be descriptors again
    except UnicodeError:  # an empty or overlong part of the name
        raise socket.gaierror(socket.EAI_NONAME, "not a name") from None
