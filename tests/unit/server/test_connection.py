"""A connection after its last answer: input is discarded for a while, or the kernel would take the answer back."""

import socket
import time
from collections.abc import Iterator

import pytest

from lookout.server.connection import Connection, HttpServer
from tests.fuzz.cuts import CutTransport
from tests.integration.raw import a_request
from tests.unit.server.fakes import FakeReader, SetClock, a_server


class SentTransport(CutTransport):
    """Its other end has taken all that was written."""

    def get_write_buffer_size(self) -> int:
        return 0


@pytest.fixture
def answered() -> Iterator[tuple[HttpServer, Connection, SentTransport]]:
    """A connection whose request was answered before its body came."""
    with socket.socket() as unused:
        built = a_server(FakeReader(), SetClock())
        server, transport = built.listen(unused), SentTransport(None)
        connection = Connection(server, built.callers.look_up("1.1.1.1"))
        connection.connection_made(transport)
        connection.data_received(a_request("POST", "/", "Content-Length: 99999999", close=False))
        assert (transport.said[:12], transport.end) == (b"HTTP/1.1 405", "half closed")
        yield server, connection, transport


@pytest.mark.clause("A16")
@pytest.mark.parametrize(
    ("bytes_at_s", "closed_at_s"),
    [
        pytest.param([], 5, id="nothing comes: five seconds"),
        pytest.param([4], 9, id="something comes: five seconds more"),
        pytest.param(range(4, 40, 4), 30, id="something always comes: half a minute"),
    ],
)
def test_input_is_discarded_for_a_while(
    answered: tuple[HttpServer, Connection, SentTransport], bytes_at_s: list[int], closed_at_s: int
) -> None:
    server, connection, transport = answered
    ended_at = time.monotonic()
    connection.is_stalled(ended_at, 600)  # as in every second
    for at_s in bytes_at_s:
        if at_s < closed_at_s:
            server.now = ended_at + at_s
            connection.data_received(b"b" * 1_000)
    transport.end = ""
    assert not connection.is_stalled(ended_at + closed_at_s - 1, 600)
    assert transport.end == ""
    assert not connection.is_stalled(ended_at + closed_at_s, 600), "no request and no answer was cut off"
    assert transport.end == "closed"


def test_as_much_as_nginx_takes_is_discarded_and_no_more(
    answered: tuple[HttpServer, Connection, SentTransport],
) -> None:
    _, connection, transport = answered
    for _ in range(16):
        connection.data_received(b"b" * 1_048_576)
    transport.end = ""
    connection.data_received(b"b")
    assert transport.end == "closed"


class SlowTransport(CutTransport):
    """Its other end has not taken so many bytes."""

    def __init__(self, its_socket: socket.socket) -> None:
        super().__init__(None)
        self.left = 0
        self._socket = its_socket

    def get_write_buffer_size(self) -> int:
        return self.left

    def get_extra_info(self, _name: str) -> socket.socket:
        return self._socket


@pytest.mark.clause("A16")
@pytest.mark.parametrize(
    ("left", "are_taken", "is_closed"),
    [
        pytest.param([900] * 5, False, True, id="nothing of an answer is taken"),
        pytest.param([900, 800, 700, 600, 500], False, False, id="some of it is"),
        pytest.param([900] * 5, True, False, id="all of it is, and as much is left of the next one"),
    ],
)
def test_a_reader_makes_progress_while_it_takes_answers(left: list[int], are_taken: bool, is_closed: bool) -> None:
    with socket.socket() as unused:
        built = a_server(FakeReader(), SetClock())
        server, transport = built.listen(unused), SlowTransport(unused)
        connection = Connection(server, built.callers.look_up("1.1.1.1"))
        connection.connection_made(transport)
        for bytes_left in left:
            server.now += 10
            if are_taken:
                connection.resume_writing()
            connection.data_received(a_request("GET", "/", close=False))
            transport.left = bytes_left
            connection.pause_writing()
            connection.is_stalled(server.now, 30)
    assert (transport.end == "closed") == is_closed
