"""A monitor's admin port: asked for its address, and asked."""

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import uvloop

from lookout.app.admin import answer_on
from lookout.base.admin_port import AdminRoutes, Readiness
from lookout.base.sockets import open_listener
from tests.commands import said
from tests.wait import until_async


@contextmanager
def open_port(address: str, routes: AdminRoutes, hosts: Sequence[str] = ()) -> Iterator[str]:
    """An admin port meanwhile, in the event loop of a thread; its address."""
    listener = open_listener(address)
    told: Queue[str] = Queue()
    loop = uvloop.new_event_loop()
    ended = asyncio.Event()

    async def answer() -> None:
        async with answer_on(listener, address, routes, hosts) as bound:
            told.put(bound)
            await ended.wait()

    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(loop.run_until_complete, answer())
        try:
            yield told.get(timeout=10)
        finally:
            loop.call_soon_threadsafe(ended.set)
            answering.result(20)
            loop.close()


def with_admin(config: str, address: str = "127.0.0.1:0") -> str:
    return config.replace('[admin]\nmonitor = ""', f'[admin]\nmonitor = "{address}"')


async def admin_address(folder: Path) -> str:
    """Where the monitor says that its admin port is."""

    def told() -> list[str]:
        whole, _, _ = said(folder).rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line["address"] for line in lines if line["event"] == "admin port"]

    await until_async(lambda: bool(told()), "an admin port is told of")
    return told()[0]


def ask(address: str, method: str, path: str) -> tuple[int, Mapping[str, str], bytes]:
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def always(_max_age_s: float | None) -> Readiness:
    return Readiness(True, "always", 0.0)


def received(connection: socket.socket) -> bytes:
    connection.settimeout(10)
    body = b""
    while part := connection.recv(65_536):
        body += part
    return body
