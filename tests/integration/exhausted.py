"""What takes the descriptors of a monitor that runs as a process of its own."""

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from threading import Event, Thread

from aiohttp import web

from lookout.base.url import host_and_port
from lookout.demo.sim.server import UpstreamFront


class Closing(UpstreamFront):
    """Upstreams that close each connection after an answer, as if there were more time between two probes: each needs a
    descriptor."""

    def put_before(self, application: web.Application) -> None:
        async def close(_request: web.Request, response: web.StreamResponse) -> None:
            response.headers["Connection"] = "close"
            response.force_close()

        application.on_response_prepare.append(close)


@contextmanager
def dripping(address: str, connections: int) -> Iterator[Event]:
    """So many connections that send a byte now and then, opened again when they are closed. The event is set once all
    were opened."""
    all_opened, ended = Event(), Event()

    def drip() -> None:
        opened: dict[int, socket.socket] = {}
        while not ended.wait(0.1):
            for number in range(connections):
                try:
                    if number not in opened:
                        opened[number] = socket.create_connection(host_and_port(address), timeout=1)
                        opened[number].sendall(b"GET /metrics HTTP/1.1\r\nX: ")
                    opened[number].sendall(b"x")
                except OSError:
                    if number in opened:
                        opened.pop(number).close()
            all_opened.set()
        for connection in opened.values():
            connection.close()

    thread = Thread(target=drip)
    thread.start()
    try:
        yield all_opened
    finally:
        ended.set()
        thread.join()


def limit(pid: int, descriptors: int) -> None:
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors, hard))


def leaving(pid: int, spare: int) -> int:
    """The limit that leaves so many descriptors: a number is used again once it is free."""
    used = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
    free = (number for number in count() if number not in used)
    return next(islice(free, spare, None))
