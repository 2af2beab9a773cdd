"""A real server whose connections a test fills: it may be less patient, and have fewer files."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.commands import meanwhile, said
from tests.integration.raw import RawServer
from tests.integration.served import Server, a_free_port, wait_until_it_answers, write_config
from tests.wait import until

PROGRAM: Final = """\
import resource, signal, sys
from pathlib import Path
from lookout.config.file import read_server_config
from lookout.app.process import configure_log
from lookout.app.server import serve
stalled_s, files = float(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
settings = read_server_config(Path("lookout.toml"))
configure_log(settings.log)
serve(settings, Path.cwd(), (signal.SIGTERM,), stalled_s)
"""


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
