"""Who may ask an admin port, for how long, by which name, and where it listens."""

import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from lookout.base.admin_port import AdminReply, AdminRoutes, Change
from lookout.base.sockets import ListenError
from lookout.base.url import host_and_port
from tests.cases import cases
from tests.commands import a_command, lookout, said
from tests.integration.admin import always, ask, open_port, received
from tests.wait import until

DRIPPERS = 40
PATIENCE_S = 5
ROUTES = AdminRoutes(CollectorRegistry(), always)


def connect(address: str) -> socket.socket:
    return socket.create_connection(host_and_port(address), timeout=10)


def is_open(connection: socket.socket) -> bool:
    """Whether it takes another byte of a request that never ends."""
    try:
        connection.sendall(b"x")
        connection.setblocking(False)
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@pytest.mark.first
@pytest.mark.clause("M17")
def test_a_crowd_that_drips_has_few_threads_and_is_cut_off_in_time() -> None:
    threads = threading.active_count()
    with open_port("127.0.0.1:0", ROUTES) as address, ExitStack() as opened:
        drippers = [opened.enter_context(connect(address)) for _ in range(DRIPPERS)]
        for each in drippers:
            with suppress(OSError):  # it was closed to let later ones in
                each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        until(lambda: sum(map(is_open, drippers)) <= 16, "those beyond the cap are closed", 3)
        assert threading.active_count() - threads <= 1 + 16
        until(lambda: not any(map(is_open, drippers)), "each is cut off, though it never fell silent", PATIENCE_S + 5)


@pytest.mark.clause("M17")
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="says nothing"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nX: ", id="begins a request"),
        pytest.param(b"POST /change HTTP/1.1\r\nMay: 1\r\nContent-Length: 9\r\n\r\n", id="owes a body"),
        pytest.param(b"GET /large HTTP/1.1\r\n\r\n", id="does not read its answer"),
    ],
)
def test_a_scrape_is_answered_whatever_a_crowd_does(sent: bytes) -> None:
    large = AdminReply(200, "text/plain", bytes(8 * 1_048_576))

    async def apply(_body: bytes, _config: str | None) -> AdminReply:
        return large

    routes = ROUTES._replace(reads={"/large": lambda: large}, changes={"/change": Change("May", apply)})
    with open_port("127.0.0.1:0", routes) as address, ExitStack() as opened:
        for _ in range(DRIPPERS):
            connection = opened.enter_context(connect(address))
            with suppress(OSError):
                connection.sendall(sent)
            assert ask(address, "GET", "/healthz")[0] == 200


@pytest.mark.parametrize(("host", "http_code"), cases("admin_port", "it is asked by an address or a name of its own"))
def test_it_is_asked_by_an_address_or_a_name_of_its_own(host: str, http_code: int) -> None:
    with open_port("127.0.0.1:0", ROUTES, hosts=["monitor.example.internal"]) as address:
        for method in ("GET", "HEAD", "POST"):
            with connect(address) as connection:
                connection.sendall(f"{method} /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                head, _, body = received(connection).partition(b"\r\n\r\n")
            expected = 405 if (method, http_code) == ("POST", 200) else http_code
            assert head.startswith(b"HTTP/1.1 %d " % expected)
            if http_code == 421 and method == "GET":
                assert "admin.hosts" in json.loads(body)["error"]


class OverUnix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("any.name.example", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def healthy(path: Path) -> bool:
    connection = OverUnix(path)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (ConnectionRefusedError, FileNotFoundError):  # the file is there before it is listened on
        return False
    finally:
        connection.close()


def test_a_socket_in_the_file_system_is_its_owners_and_not_there_for_longer(tmp_path: Path) -> None:
    path = tmp_path / "monitor.sock"
    before = os.umask(0)
    try:
        with open_port(f"unix:{path}", ROUTES) as address:
            assert address == f"unix:{path}"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert healthy(path)
    finally:
        os.umask(before)
    assert not path.exists()


def test_one_that_a_killed_process_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "monitor.sock"
    left = f"import socket; socket.socket(socket.AF_UNIX).bind({str(path)!r})"
    subprocess.run([sys.executable, "-c", left], check=True)
    assert path.is_socket()
    with open_port(f"unix:{path}", ROUTES):
        assert healthy(path)


def test_one_in_use_and_what_is_no_socket_are_left_alone_and_named(tmp_path: Path) -> None:
    path, file = tmp_path / "monitor.sock", tmp_path / "notes"
    file.write_text("precious")
    with open_port(f"unix:{path}", ROUTES):
        with pytest.raises(ListenError) as taken, open_port(f"unix:{path}", ROUTES):
            pass
        assert str(taken.value) == f"unix:{path}: Address already in use"
        assert healthy(path)
    with pytest.raises(ListenError) as other, open_port(f"unix:{file}", ROUTES):
        pass
    assert str(other.value) == f"unix:{file}: there is a file that is not a socket"
    assert file.read_text() == "precious"
    long = tmp_path / ("x" * 120)
    with pytest.raises(ListenError, match="too long"), open_port(f"unix:{long}", ROUTES):
        pass


def test_a_monitor_on_a_socket_of_its_folder_reloads_and_takes_the_socket_away(tmp_path: Path) -> None:
    config = '[store]\nurl = "sqlite:lookout.db"\n[admin]\nmonitor = "unix:monitor.sock"\nserver = ""\n'
    config += '[messaging]\nurl = "http://127.0.0.1:9"\n'
    (tmp_path / "lookout.toml").write_text(config)
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
        until(lambda: healthy(tmp_path / "monitor.sock"), "it answers")
        until(lambda: "started" in said(tmp_path), "it runs")
        outcome = lookout(outside, "reload", "-c", tmp_path / "lookout.toml")
        assert (outcome.returncode, outcome.stderr) == (0, "")
        process.terminate()
        assert process.wait(20) == 0
    assert not (tmp_path / "monitor.sock").exists()
    outcome = lookout(outside, "reload", "-c", tmp_path / "lookout.toml")
    assert outcome.returncode == 1
    assert f"no monitor answers at unix:{tmp_path}/monitor.sock" in outcome.stderr
