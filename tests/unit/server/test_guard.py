"""Which connections are closed so that others are let in: real ones on loopback, on a clock that is set."""

import os
import socket
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from lookout.server.callers import Callers
from lookout.server.connections import ConnectionProgress, ConnectionSnapshot, take_snapshot
from lookout.server.counts import Closed, Counts
from lookout.server.crowds import Crowds
from lookout.server.guard import STALLED_S, Allowed, Guard
from tests.integration.served import has_ipv6
from tests.unit.server.fakes import SetClock
from tests.wait import until

STALLED_MS: Final = round(STALLED_S * 1000)
ANSWER: Final = b"a" * 5_000_000  # more than the system buffers


class Place:
    """A server that accepts and says nothing by itself, and its guard."""

    def __init__(
        self, opened: ExitStack, per_address: int = 0, trusted: tuple[str, ...] = (), host: str = "127.0.0.1"
    ) -> None:
        self._opened = opened
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = opened.enter_context(socket.create_server((host, 0), family=family))
        self.clock = SetClock()
        self.counts = Counts(1)
        allowed = Allowed(self._listener.getsockname()[1], per_address, STALLED_S, Crowds(1))
        self.guard = Guard(allowed, Callers(trusted), self.counts.attach(), self.clock)

    def connect(self, address: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
        """A reader's side of a connection, and the server's."""
        return self.knock(address), self.accept()

    def knock(self, address: str = "127.0.0.1") -> socket.socket:
        reader = socket.create_connection(self._listener.getsockname()[:2], timeout=5, source_address=(address, 0))
        return self._opened.enter_context(reader)

    def accept(self) -> socket.socket:
        server, _ = self._listener.accept()
        server.setblocking(False)
        return self._opened.enter_context(server)

    def look_after(self, elapsed_ms: int) -> None:
        self.clock.elapsed += elapsed_ms
        self.guard.look()

    def closed(self) -> dict[Closed, int]:
        return self.counts.summarize(self.clock.elapsed).closed


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def is_ended(server: socket.socket) -> bool:
    try:
        return server.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False


def fill(server: socket.socket) -> None:
    """Until the reader's buffers are full as well."""
    assert server.send(ANSWER) < len(ANSWER)
    seen: deque[ConnectionSnapshot | None] = deque(
        maxlen=10
    )  # half a second: then the system has tried whether there is more room

    def has_settled() -> bool:
        seen.append(take_snapshot(server.fileno()))
        return seen.count(seen[0]) == seen.maxlen

    until(has_settled, "nothing moves any more")


@pytest.mark.parametrize(
    ("earlier", "later", "went_on"),
    [
        pytest.param(ConnectionProgress(5, 7, False), ConnectionProgress(5, 7, False), False, id="nothing happened"),
        pytest.param(
            ConnectionProgress(5, 7, False), ConnectionProgress(5, 8, False), True, id="a byte of a request came"
        ),
        pytest.param(
            ConnectionProgress(5, 7, True), ConnectionProgress(6, 7, True), True, id="a byte of an answer was read"
        ),
        pytest.param(ConnectionProgress(5, 7, False), ConnectionProgress(5, 8, True), True, id="an answer has begun"),
        pytest.param(
            ConnectionProgress(5, 7, True),
            ConnectionProgress(9, 7, False),
            True,
            id="the last byte of an answer was read",
        ),
        pytest.param(ConnectionProgress(5, 7, True), ConnectionProgress(5, 7, True), False, id="nobody reads"),
        pytest.param(
            ConnectionProgress(5, 7, True),
            ConnectionProgress(5, 900, True),
            False,
            id="nobody reads, and asks for more",
        ),
    ],
)
def test_progress_is_what_is_read_and_of_who_has_nothing_to_read_what_is_sent(
    earlier: ConnectionProgress, later: ConnectionProgress, went_on: bool
) -> None:
    assert later.is_ahead_of(earlier) is went_on


@pytest.mark.clause("A16")
def test_a_connection_without_progress_is_closed_after_thirty_seconds(opened: ExitStack) -> None:
    place = Place(opened)
    idle, (asking, asked), (deaf, unread) = place.connect()[1], place.connect(), place.connect()
    fill(unread)
    place.look_after(0)
    place.look_after(STALLED_MS - 1)
    assert not any(map(is_ended, (idle, asked, unread)))
    asking.sendall(b"G")
    deaf.sendall(b"G")
    place.look_after(1)
    assert is_ended(idle)
    assert asked.recv(9) == b"G"
    assert not is_ended(asked)
    with pytest.raises(BrokenPipeError):
        unread.send(b"more")
    assert place.closed() == {"stalled": 2, "crowded": 0}
    assert place.counts.summarize(place.clock.elapsed).connections == 0, (
        "a process that nobody has seen counts for none"
    )
    place.look_after(STALLED_MS)
    assert is_ended(asked)
    assert place.closed() == {"stalled": 3, "crowded": 0}, "what is ended is counted once"


def test_what_nobody_read_is_thrown_away(opened: ExitStack) -> None:
    place = Place(opened)
    reader, server = place.connect()
    fill(server)
    place.look_after(0)
    place.look_after(STALLED_MS)
    server.close()
    with pytest.raises(ConnectionResetError):
        b"".join(iter(lambda: reader.recv(1_000_000), b""))


@pytest.mark.clause("A16")
def test_of_one_address_the_newest_connections_go_and_others_stay(opened: ExitStack) -> None:
    place = Place(opened, per_address=3, trusted=("127.0.0.3",))
    first = [place.connect()[1] for _ in range(3)]
    others = [place.connect(address)[1] for address in ("127.0.0.2", *["127.0.0.3"] * 9)]
    place.look_after(0)
    later = [place.connect()[1] for _ in range(4)]
    place.look_after(1_000)
    assert [is_ended(server) for server in (*first, *others)] == [False] * 13
    assert [is_ended(server) for server in later] == [True] * 4
    assert place.closed() == {"stalled": 0, "crowded": 4}


@pytest.mark.skipif(not has_ipv6(), reason="IPv6 is not there")
def test_connections_over_ipv6_are_counted_too(opened: ExitStack) -> None:
    place = Place(opened, per_address=1, host="::1")
    first, second = (place.connect("::1")[1] for _ in range(2))
    place.look_after(0)
    assert sorted(map(is_ended, (first, second))) == [False, True]
    place.look_after(STALLED_MS)
    assert is_ended(first)
    assert is_ended(second)


def with_number(connection: socket.socket, number: int) -> socket.socket:
    """The same connection under another file's number, which is free."""
    before = connection.detach()
    if before != number:
        os.dup2(before, number)
        os.close(before)
    moved = socket.socket(fileno=number)
    moved.setblocking(False)
    return moved


def test_a_number_that_another_connection_has_now_is_another_connection(opened: ExitStack) -> None:
    place = Place(opened)
    _, server = place.connect()
    place.look_after(0)
    number = server.fileno()
    place.knock()
    server.close()
    next_server = opened.enter_context(with_number(place.accept(), number))
    place.look_after(STALLED_MS)
    assert not is_ended(next_server)
    assert place.closed() == {"stalled": 0, "crowded": 0}
    place.look_after(STALLED_MS)
    assert is_ended(next_server)


def test_connections_of_others_are_left_alone(opened: ExitStack) -> None:
    place, elsewhere = Place(opened), Place(opened)
    reader, server = elsewhere.connect()
    place.look_after(0)
    place.look_after(STALLED_MS)
    server.sendall(b"still here")
    assert reader.recv(99) == b"still here"


@pytest.mark.clause("A16")
def test_processes_that_look_in_turn_leave_as_many_as_are_allowed_and_never_fewer() -> None:
    crowds = Crowds(2)
    processes = [crowds._open_list(number) for number in range(2)]  # as if each were a process
    open_here = [Counter({7: 90, 8: 3}), Counter({7: 60, 9: 2})]
    for turn in range(40):
        here = turn % 2
        open_here[here] -= Counter(processes[here].count_excess(open_here[here], 100, 1_000 + turn))
        assert open_here[0][7] + open_here[1][7] >= 100
    assert open_here[0][7] + open_here[1][7] == 100
    assert (open_here[0][8], open_here[1][9]) == (3, 2)
    assert processes[0].count_excess(Counter({7: 100}), 100, 99_000) == {}, "who is gone has no connections"
