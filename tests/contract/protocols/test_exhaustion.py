"""What the monitor itself lacks is told from what an upstream does, over real sockets and with nothing left."""

import errno
import gzip
import os
import socket
import ssl
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from lookout.protocols.client.failure import OwnFault, ProbeFailed, can_open_files, has_free_port, own_fault
from lookout.protocols.client.request import MIB, Request
from lookout.protocols.client.session import open_session
from tests.contract.protocols.upstreams import saying, talking
from tests.exhaustion import with_little_memory, without_descriptors, without_threads

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BOMB = gzip.compress(bytes(64 * MIB), 1)
LARGE = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB
Taken = Callable[[], AbstractContextManager[None]]


async def ended(taken: Taken, *said: bytes, host: str = "127.0.0.1", scheme: str = "http") -> str:
    """How asking ends while something is taken away."""
    async with talking(saying(*said)) as url, open_session(60) as session:
        address = url.replace("127.0.0.1", host).replace("http", scheme, 1)
        with taken():
            try:
                await session.fetch(Request("GET", address, limit_bytes=200 * MIB))
            except OwnFault as fault:
                return f"own: {fault.lacking}"
            except ProbeFailed as failure:
                return f"failed: {failure.reason}"
            return "answered"


@pytest.mark.clause("M17")
@pytest.mark.parametrize(
    ("taken", "host", "scheme", "lacking"),
    [
        pytest.param(without_descriptors, "127.0.0.1", "http", "descriptors", id="no socket for an address"),
        pytest.param(without_descriptors, "localhost", "http", "descriptors", id="no file to look up a name in"),
        pytest.param(
            without_descriptors, "nobody.invalid", "http", "descriptors", id="a name that is not there either"
        ),
        pytest.param(lambda: without_descriptors(1), "nobody.invalid", "http", "descriptors", id="one is not enough"),
        pytest.param(without_descriptors, "127.0.0.1", "https", "descriptors", id="no socket for TLS"),
        pytest.param(without_threads, "localhost", "http", "threads", id="no thread to look up a name"),
    ],
)
async def test_what_cannot_be_asked_for_want_of_our_own_is_no_failure(
    taken: Taken, host: str, scheme: str, lacking: str
) -> None:
    assert await ended(taken, OK, host=host, scheme=scheme) == f"own: {lacking}"


@pytest.mark.clause("M17")
async def test_an_answer_that_memory_has_no_room_for_is_no_failure() -> None:
    assert await ended(lambda: with_little_memory(32 * MIB), LARGE) == "own: memory"


@pytest.mark.parametrize(
    ("host", "scheme", "how"),
    [
        pytest.param("127.0.0.1", "http", "answered", id="it is asked"),
        pytest.param("nobody.invalid", "http", "failed: dns", id="a name that is not there"),
    ],
)
async def test_with_enough_of_everything_a_failure_is_the_upstreams(host: str, scheme: str, how: str) -> None:
    assert await ended(nullcontext, OK, host=host, scheme=scheme) == how


def caused(cause: BaseException) -> Exception:
    error = RuntimeError("what a library makes of it")
    error.__cause__ = cause
    return error


def an_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.clause("M17")
@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        pytest.param(an_error(errno.EMFILE), "descriptors", id="the process has no descriptor left"),
        pytest.param(an_error(errno.ENFILE), "descriptors", id="the system has no descriptor left"),
        pytest.param(an_error(errno.ENOMEM), "memory", id="the kernel has no memory left"),
        pytest.param(an_error(errno.ENOBUFS), "buffers", id="no buffer left"),
        pytest.param(an_error(errno.EADDRNOTAVAIL), "ports", id="no port left"),
        pytest.param(MemoryError(), "memory", id="Python has no memory left"),
        pytest.param(caused(MemoryError()), "memory", id="no memory left, inside a library"),
        pytest.param(socket.gaierror(socket.EAI_MEMORY, ""), "memory", id="the resolver has no memory left"),
        pytest.param(socket.gaierror(socket.EAI_AGAIN, ""), "descriptors", id="a name, without descriptors"),
        pytest.param(an_error(errno.EBUSY), "descriptors", id="a name, by a module of systemd"),
        pytest.param(ssl.SSLError("no issuer"), "descriptors", id="a certificate, without descriptors"),
        pytest.param(OSError("several"), "descriptors", id="several addresses, without descriptors"),
        pytest.param(OwnFault("threads"), "threads", id="what is known already"),
    ],
)
def test_with_nothing_left_it_is_our_own_fault(error: Exception, lacking: str) -> None:
    with without_descriptors():
        fault = own_fault(error)
    assert fault is not None
    assert fault.lacking == lacking


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(an_error(errno.EADDRNOTAVAIL), id="an address that nothing leads to from here"),
        pytest.param(an_error(errno.ECONNREFUSED), id="refused"),
        pytest.param(socket.gaierror(socket.EAI_AGAIN, ""), id="a name server that stays silent"),
        pytest.param(an_error(errno.EBUSY), id="a module of systemd that is busy"),
        pytest.param(ssl.SSLError("no issuer"), id="a certificate that nobody vouches for"),
        pytest.param(OSError("several"), id="several addresses"),
        pytest.param(zlib.error("Error -3 while decompressing data"), id="bad_encoding"),
        pytest.param(RuntimeError("a bug"), id="a bug"),
    ],
)
def test_with_enough_left_it_is_not(error: Exception) -> None:
    assert own_fault(error) is None


def test_whether_there_are_descriptors_is_found_by_trying() -> None:
    assert can_open_files()
    assert has_free_port()
    with without_descriptors(3):
        assert not can_open_files()
    with without_descriptors():
        assert not has_free_port()
    assert can_open_files()
