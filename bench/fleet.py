"""A hundred real servers on one PostgreSQL: how soon the last of them answers with what was published, and what
PostgreSQL does for that.

Here they share the cores of one machine, as a hundred servers in earnest would not: what they take is shown, too.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.databases import a_postgres, processes_of, transactions
from bench.figures import Figure, spread
from bench.plans import a_plan
from bench.processes import a_folder, a_process, available_mb, children, cpu_by_process
from bench.publish import a_full_fortnight
from bench.serve import LIVE, first_answer
from lookout.app.process import run
from lookout.base.sockets import a_free_port
from lookout.core.model import Observation, Peers
from lookout.documents.document import Document, DocumentName
from lookout.documents.reports import history_document, live_document
from lookout.state.codec import NOTHING_ENCODED, encode_state
from lookout.store.postgres import PostgresWriter, open_writer
from tests.leases import NotHereError
from tests.postgres import Postgres

SERVERS = 100
A_SERVER_MB = 80  # its parent and its worker
AT_ONCE = 4  # that start
START_WITHIN_S = 60
PUBLICATIONS = 100
PUBLISH_EVERY_S = 0.5
HISTORY_EVERY = 120  # publications: once a minute
ASK_EVERY_S = 0.01
NAME = "servers on one PostgreSQL"


Publication = tuple[dict[DocumentName, Document], dict[str, bytes]]


class Server(NamedTuple):
    pid: int
    port: int


def measure() -> Iterator[Figure]:
    servers = min(SERVERS, int(available_mb() / A_SERVER_MB))
    try:
        with a_postgres(connections=servers + 20) as postgres, a_folder() as folder:
            yield from follow(postgres, folder, servers)
    except NotHereError as why:
        yield Figure(f"{SERVERS} {NAME}", "not measured", str(why))


def follow(postgres: Postgres, folder: Path, number: int) -> Iterator[Figure]:
    database = postgres.a_database()
    reports = publications()
    writer = open_writer(postgres.url(database))
    try:
        writer.write(*next(reports))
        with a_fleet(folder, postgres.url(database), number) as servers:
            began_s, asked = time.monotonic(), transactions(postgres, database)
            theirs, ours = cpu_by_process(processes_of(postgres)), sum(map(_cpu_s, servers))
            delays_s = run(publish(writer, reports, servers))
            took_s, asked = time.monotonic() - began_s, transactions(postgres, database) - asked
            after = cpu_by_process(processes_of(postgres))
            share = sum(s - theirs.get(pid, 0.0) for pid, s in after.items()) / took_s
            servers_share = (sum(map(_cpu_s, servers)) - ours) / took_s
    finally:
        writer.close()
    yield Figure(f"{number} {NAME}: commit to the last one's answer", spread([max(each) for each in delays_s]))
    yield Figure(f"{number} {NAME}: commit to one's answer", spread([delay_s for each in delays_s for delay_s in each]))
    yield Figure(
        f"PostgreSQL below {number} servers, {len(delays_s) / took_s:.1f} publications a second",
        f"{share:.0%} of a core, {asked / took_s:,.0f} transactions a second",
        f"the servers together {servers_share:.0%} of a core",
    )


def publications() -> Iterator[Publication]:
    """What a monitor of 21 rows with a full fortnight behind them writes: the history at first and once a minute."""
    plan = a_plan(5)
    ledger, at = a_full_fortnight(plan)
    checks = plan.checks()
    number, documents, encoded = 0, dict[DocumentName, Document](), NOTHING_ENCODED
    while True:
        documents = {**documents, "live": live_document(ledger.report())}
        if number % HISTORY_EVERY == 0:
            documents["history"] = history_document(ledger.view())
        encoded = encode_state(ledger.state(), last=encoded)
        yield documents, encoded.documents
        number += 1
        at += round(PUBLISH_EVERY_S * 1000)
        ledger.judge(Observation(checks[number % len(checks)], at, Peers(5)))
        ledger.publish(at)


@contextmanager
def a_fleet(folder: Path, url: str, number: int) -> Iterator[list[Server]]:
    """So many servers that answer."""
    servers: list[Server] = []
    with ExitStack() as running:
        processes = []
        while len(servers) < number:
            started = []
            for n in range(len(servers), min(len(servers) + AT_ONCE, number)):
                place, port = folder / f"server{n}", a_free_port()
                place.mkdir()
                (place / "lookout.toml").write_text(
                    f'[store]\nurl = "{url}"\n[server]\nlisten = "127.0.0.1:{port}"\nrate_limit_per_minute = 0\n'
                    '[admin]\nserver = ""\n'
                )
                processes.append(running.enter_context(a_process(place, "serve", "-c", "lookout.toml")))
                started.append(Server(processes[-1].pid, port))
            for server in started:
                first_answer(server.port, within_s=START_WITHIN_S)
            servers += started
        yield servers
        for process in processes:  # all at once; one after the other is waited for
            process.terminate()


async def publish(
    writer: PostgresWriter,
    reports: Iterator[tuple[dict[DocumentName, Document], dict[str, bytes]]],
    servers: list[Server],
) -> list[list[float]]:
    """For every publication, after how many seconds each of the servers answered with it."""
    connections = [await asyncio.open_connection("127.0.0.1", server.port) for server in servers]
    delays_s = []
    for _ in range(PUBLICATIONS):
        next_s = time.monotonic() + PUBLISH_EVERY_S
        documents, state = next(reports)
        await asyncio.to_thread(writer.write, documents, state)
        committed_s = time.monotonic()
        etag = documents["live"].etag.encode()
        there_s = await asyncio.gather(*(_answers_with(etag, *connection) for connection in connections))
        delays_s.append([at_s - committed_s for at_s in there_s])
        await asyncio.sleep(max(0.0, next_s - time.monotonic()))
    for _, writing in connections:
        writing.close()
    return delays_s


async def _answers_with(etag: bytes, reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> float:
    """When a server first did; all headers of an answer stand in its head, and HEAD has no more."""
    while True:
        writing.write(f"HEAD {LIVE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reading.readuntil(b"\r\n\r\n")
        if etag in head:
            return time.monotonic()
        await asyncio.sleep(ASK_EVERY_S)


def _cpu_s(server: Server) -> float:
    return sum(cpu_by_process((server.pid, *children(server.pid))).values())
