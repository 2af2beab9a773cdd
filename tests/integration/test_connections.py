"""Connections that would keep others out: they are closed, and nobody else's are (A16)."""

import resource
import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.commands import meanwhile, said
from tests.fuzz.web import measure_size
from tests.integration.raw import RawServer, a_request, metrics, store
from tests.integration.served import HISTORY, Server, a_free_port, wait_until_it_answers, write_config
from tests.wait import until

PROGRAM: Final = """\
import resource, sys
from pathlib import Path
from lookout.config.file import read_server_config
from lookout.app.process import configure_log
from lookout.app.server import run_server
from lookout.server.assembly import Machine
stalled_s, files = float(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
settings = read_server_config(Path("lookout.toml"))
configure_log(settings.log)
run_server(settings, Path.cwd(), Machine(stalled_s=stalled_s))
"""
LARGE: Final = b'{"history":"' + b"c" * 500_000 + b'"}'
STALLED_S: Final = 2.0
ATTACKER, READER, PROXY = "127.0.0.1", "127.0.0.2", "127.0.0.3"
PIPELINED: Final = 120


@contextmanager
def a_guarded_server(
    folder: Path, *, server: str = "", stalled_s: float = 30, files: int = 4_096
) -> Iterator[RawServer]:
    """``lookout serve`` meanwhile, with further lines of its [server] table."""
    port, admin_port = a_free_port(), a_free_port()
    write_config(folder, port, server=server, admin_port=admin_port)
    with meanwhile(folder, sys.executable, "-c", PROGRAM, str(stalled_s), str(files)) as process:
        running = RawServer(port, process, folder, admin_port=admin_port)
        wait_until_it_answers(Server(running.host, port), process, folder)
        until(lambda: '"admin port"' in said(folder), "the admin port is open, too")
        yield running


def connect_from(address: str, server: RawServer, *, receive_bytes: int = 0) -> socket.socket:
    """From one of the addresses of loopback, 127.0.0.0/8; with a receive buffer of about this size."""
    connection = socket.socket()
    connection.settimeout(10)
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.bind((address, 0))
    connection.connect((server.host, server.port))
    return connection


def is_open(connection: socket.socket) -> bool:
    """Whether the server has not closed it yet, as seen by a reader that has read all there was."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def filled(folder: Path) -> Path:
    store(folder, live=b'{"live":1}', history=LARGE)
    return folder


def ask_on(deaf: socket.socket) -> None:
    with suppress(ConnectionError):
        deaf.send(b"G")


@pytest.mark.clause("A16")
def test_one_address_with_more_connections_than_there_are_files_keeps_nobody_out(tmp_path: Path) -> None:
    with a_guarded_server(filled(tmp_path), files=128) as server, ExitStack() as opened:
        flood = [opened.enter_context(connect_from(ATTACKER, server)) for _ in range(200)]
        began = time.monotonic()
        for _ in range(5):
            assert server.ask(peer=READER).body == b'{"live":1}'
        until(lambda: sum(map(is_open, flood)) == 32, "half of what the process accepts is left to them", 25)
        assert time.monotonic() - began < 28, "they waited for those before them, and not for their end"
        assert metrics(server)["lookout_connections_closed_total", "crowded"] == 168


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    """It waits for two seconds instead of thirty."""
    with a_guarded_server(filled(tmp_path_factory.mktemp("served")), stalled_s=STALLED_S) as server:
        yield server


def count_stalled(server: RawServer) -> float:
    return metrics(server)["lookout_connections_closed_total", "stalled"]


@pytest.mark.clause("A16")
def test_who_does_not_read_is_closed_also_if_it_goes_on_asking(impatient: RawServer) -> None:
    closed_before = count_stalled(impatient)
    with (
        connect_from(ATTACKER, impatient, receive_bytes=2_048) as silent,
        connect_from(ATTACKER, impatient, receive_bytes=2_048) as asking,
    ):
        ended = select.poll()
        for deaf in (silent, asking):
            deaf.sendall(a_request("GET", HISTORY, close=False) * PIPELINED)
            ended.register(deaf, 0)  # its end and errors come in any case

        def are_ended() -> bool:
            ask_on(asking)
            return len(ended.poll(0)) == 2

        assert until(are_ended, "they are closed") > STALLED_S / 2
        assert count_stalled(impatient) == closed_before + 2
    assert impatient.ask(peer=READER).body == b'{"live":1}'


@pytest.mark.clause("A16")
def test_who_reads_slowly_but_reads_gets_all_of_it(impatient: RawServer) -> None:
    closed_before = count_stalled(impatient)
    with connect_from(READER, impatient, receive_bytes=65_536) as slow:
        slow.sendall(a_request("GET", HISTORY, close=False) * 2 + a_request("GET", HISTORY))
        began, read = time.monotonic(), b""
        while piece := slow.recv(60_000):
            read += piece
            time.sleep(0.2)
    assert read.count(LARGE) == 3
    assert time.monotonic() - began > 2 * STALLED_S
    assert count_stalled(impatient) == closed_before


@pytest.mark.clause("A16")
def test_empty_lines_begin_no_request_and_keep_no_connection_open(impatient: RawServer) -> None:
    with impatient.connect() as idle:
        began = time.monotonic()
        with suppress(ConnectionError):
            while is_open(idle) and time.monotonic() - began < 10 * STALLED_S:
                idle.setblocking(True)
                for part in (b"\r", b"\n"):
                    idle.sendall(part)
                    time.sleep(STALLED_S / 5)
        assert not is_open(idle)


@pytest.mark.clause("A16")
def test_who_closes_the_writing_half_is_answered(impatient: RawServer) -> None:
    for asked in (1, 40):
        with impatient.connect() as half:
            half.sendall(a_request(close=False) * asked)
            half.shutdown(socket.SHUT_WR)
            answers = b"".join(iter(lambda: half.recv(65_536), b""))
        assert answers.count(b'{"live":1}') == asked


@pytest.mark.clause("A16")
def test_an_address_has_its_share_and_a_proxy_all(tmp_path: Path) -> None:
    settings = f'connections_per_address = 20\ntrusted_proxies = ["{PROXY}"]\n'
    with a_guarded_server(filled(tmp_path), server=settings) as server, ExitStack() as opened:
        of_proxy = [opened.enter_context(connect_from(PROXY, server)) for _ in range(50)]
        readers = [opened.enter_context(connect_from(READER, server)) for _ in range(100)]

        until(lambda: sum(map(is_open, readers)) == 20, "those beyond are closed")
        assert metrics(server)["lookout_connections_closed_total", "crowded"] == 80
        assert all(map(is_open, of_proxy))


@pytest.mark.clause("A16")
@pytest.mark.parametrize(
    ("connections", "sent", "most_mb"),
    [
        pytest.param(490, a_request()[:-4] + b"\r\nX: " + b"a" * 32_000, 25, id="heads that never end"),
        pytest.param(1_000, a_request("GET", HISTORY, close=False) * 200, 40, id="many requests, never read"),
    ],
)
def test_an_attack_takes_little_memory_and_closes_nobody_within_the_limits(
    tmp_path: Path, connections: int, sent: bytes, most_mb: int
) -> None:
    with a_guarded_server(filled(tmp_path)) as server, ExitStack() as opened:
        process = server.process.pid
        for _ in range(20):
            server.ask(peer=READER)
        before_kb = measure_size(process).memory_kb
        attackers = [
            opened.enter_context(connect_from(f"127.0.1.{1 + n // 98}", server, receive_bytes=2_048))
            for n in range(connections)
        ]
        for attacker in attackers:
            attacker.settimeout(0.5)
            with suppress(TimeoutError):  # it is not read any more
                attacker.sendall(sent)
        assert server.ask(peer=READER).body == b'{"live":1}'
        assert measure_size(process).memory_kb - before_kb < 1_000 * most_mb
        assert all(map(is_open, attackers))
        assert metrics(server)["lookout_connections_closed_total", "crowded"] == 0


@pytest.mark.clause("A16", "M17")
def test_a_server_that_was_out_of_files_answers_when_it_has_some_again(tmp_path: Path) -> None:
    with a_guarded_server(filled(tmp_path)) as server:
        process = server.process.pid
        limits = resource.prlimit(process, resource.RLIMIT_NOFILE, (3, 4_096))
        with server.connect(READER) as waiting:
            waiting.sendall(a_request())
            waiting.settimeout(1)
            with pytest.raises(TimeoutError):
                waiting.recv(1)
            resource.prlimit(process, resource.RLIMIT_NOFILE, limits)
            waiting.settimeout(30)
            assert waiting.recv(65_536).endswith(b'{"live":1}')
