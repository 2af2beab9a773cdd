"""A real ``lookout serve`` on a store that a test fills."""

import http.client
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lookout.base.sockets import a_free_port as a_free_port
from lookout.core.ledger import Ledger
from lookout.core.model import Blocks, Failed, Members, Observation, Peers
from lookout.documents.reports import documents_of
from lookout.replay.replay import Replay
from lookout.state.log import Started
from lookout.store.sqlite import open_writer
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, MINUTE, NOON, PPOI, SECOND, a_plan
from tests.commands import a_command, said
from tests.stores import once_free
from tests.wait import until

LIVE = "/api/v1/protocol/liveness"
HISTORY = "/api/v1/protocol/liveness/history"
START_WITHIN_S = 60


class Answer(NamedTuple):
    """An answer as it came over the wire; headers in their order, with their names in lower case."""

    http_code: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((text for of, text in self.headers if of == name), None)


class Server(NamedTuple):
    host: str
    port: int

    @property
    def base(self) -> str:
        return f"http://{self.host}:{self.port}"

    def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            told = [(name.lower(), text) for name, text in answer.getheaders()]
            return Answer(answer.status, told, answer.read())
        finally:
            connection.close()


def a_ledger() -> Ledger:
    """Rows of several statuses, and some more than an hour of history."""
    replay = Replay(a_plan(MESSAGING, INDEXER, BROADCASTERS, PPOI, chains=(1, 137)))
    for event in (
        Started(NOON),
        Observation(MESSAGING, NOON + SECOND, Peers(5)),
        Observation(BROADCASTERS, NOON + 2 * SECOND, Members(3, 5)),
        Observation(INDEXER, NOON + 3 * SECOND, Blocks(7)),
        Observation(PPOI, NOON + 4 * SECOND, Failed("timeout")),
    ):
        replay.feed(event)
    replay.finish(NOON + 70 * MINUTE)
    return replay.ledger


def a_later_ledger() -> Ledger:
    """Another one, of a single row, that goes on for longer."""
    replay = Replay(a_plan(MESSAGING))
    replay.feed(Started(NOON))
    replay.feed(Observation(MESSAGING, NOON + MINUTE, Peers(9)))
    replay.finish(NOON + 90 * MINUTE)
    return replay.ledger


def publish(folder: Path, ledger: Ledger) -> None:
    """Store both documents of a ledger, as a monitor would."""
    writer = once_free(lambda: open_writer(folder / "lookout.db"))
    try:
        documents = documents_of(ledger)
        writer.write(documents, {})
    finally:
        writer.close()


def write_config(
    folder: Path,
    port: int,
    *,
    server: str = "",
    more: str = "",
    top: str = "",
    admin_port: int = 0,
    host: str = "127.0.0.1",
) -> Path:
    """``server`` are further lines of its table, ``more`` further tables and ``top`` lines before all tables; there is
    no limit unless they say so."""
    admin = f"127.0.0.1:{admin_port}" if admin_port else ""
    listen = f'listen = "{f"[{host}]" if ":" in host else host}:{port}"\n'
    limit = "" if "rate_limit" in server else "rate_limit_per_minute = 0\n"
    path = folder / "lookout.toml"
    tables = f'[admin]\nmonitor = ""\nserver = "{admin}"\n[log]\nformat = "json"\n'
    path.write_text(f"{top}{tables}[server]\n{listen}{limit}{server}\n{more}")
    return path


@contextmanager
def a_server(folder: Path, *, rate_limit_per_minute: int = 0, more: str = "") -> Iterator[Server]:
    """Serve what is in the folder's store meanwhile; ``more`` are further lines of the [server] table."""
    server = Server("127.0.0.1", a_free_port())
    limit = f"rate_limit_per_minute = {rate_limit_per_minute}\n"
    with a_command(folder, "serve", "-c", write_config(folder, server.port, server=limit + more)) as process:
        wait_until_it_answers(server, process, folder)
        yield server


def wait_until_it_answers(server: Server, process: subprocess.Popen[bytes], folder: Path) -> None:
    def answers() -> bool:
        assert process.poll() is None, said(folder)
        try:
            return bool(server.ask("GET", "/openapi.json"))  # which no test of a limit or a count asks for
        except OSError:
            return False

    until(answers, "it answers", START_WITHIN_S)


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True
