"""Many connections at once that are slow, half closed, reset or dropped: readers are served, and nothing is left over.

A case is the name of what they do and how many there are.
"""

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Final

from tests.fuzz.exchange import END_WITHIN_S, exchange
from tests.fuzz.fuzzer import Judge, Kind, Verdict
from tests.fuzz.http_answers import NotHttpError, answers_in
from tests.fuzz.web import Address, Known, a_server, check_survival, learn_replies, measure_size, still_answers
from tests.integration.raw import a_request
from tests.integration.served import HISTORY, LIVE

_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: nothing is waited for
_MOST: Final = 400
_ROUNDS: Final = 12


def _connect(address: Address) -> socket.socket:
    return socket.create_connection(address, timeout=END_WITHIN_S)


def slow(server: Known, number: int) -> str:
    """A byte at a time from each of many; in the end each gets its answer."""
    whole = a_request("GET", LIVE)
    with ExitStack() as opened:
        connections = [opened.enter_context(_connect(server.address)) for _ in range(number)]
        for place in range(_ROUNDS):
            for connection in connections:
                connection.sendall(whole[place : place + 1])
            if problem := still_answers(server):
                return problem
        for connection in connections:
            connection.sendall(whole[_ROUNDS:])
        for connection in connections:
            (answer,) = answers_in(_all_of(connection), [b"GET"])
            if server.reply(answer) != server.replies["GET", LIVE]:
                return f"a slow reader got another answer: {answer.http_code}"
    return ""


def dropped(server: Known, number: int) -> str:
    for _ in range(number):
        _connect(server.address).close()
    return ""


def reset(server: Known, number: int) -> str:
    """In the middle of a request, after it, and while its answer is on the way."""
    whole = a_request("GET", HISTORY)
    for count in range(number):
        with _connect(server.address) as connection:
            connection.sendall(whole[: (7, len(whole), len(whole) - 2)[count % 3]] * (1 + count % 5))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    return ""


def half_closed(server: Known, number: int) -> str:
    """Who says that this was all is answered."""
    for _ in range(min(number, 60)):
        with _connect(server.address) as connection:
            connection.sendall(a_request("GET", LIVE, close=False))
            connection.shutdown(socket.SHUT_WR)
            answers = answers_in(_all_of(connection), [b"GET"])
            if [server.reply(answer) for answer in answers] != [server.replies["GET", LIVE]]:
                return "a reader that half closed its connection got another answer, or none"
    return ""


def pipelined(server: Known, number: int) -> str:
    """Every one of many requests that are sent at once is answered, in order."""
    paths = [(LIVE, HISTORY)[count % 2] for count in range(number)]
    sent = b"".join(a_request("GET", path, close=False) for path in paths) + a_request("GET", LIVE)
    answers = answers_in(exchange(server.address, sent, END_WITHIN_S).said, [])
    wanted = [server.replies["GET", path] for path in (*paths, LIVE)]
    return "" if [server.reply(answer) for answer in answers] == wanted else f"{len(answers)} answers of {len(wanted)}"


def deaf(server: Known, number: int) -> str:
    """Who asks and never reads keeps nobody else from reading."""
    with ExitStack() as opened:
        for _ in range(number):
            connection = opened.enter_context(_connect(server.address))
            connection.sendall(a_request("GET", HISTORY, close=False) * 20)
        return still_answers(server)


CROWDS_BY_NAME: Final[dict[str, Callable[[Known, int], str]]] = {
    each.__name__: each for each in (slow, dropped, reset, half_closed, pipelined, deaf)
}


def _all_of(connection: socket.socket) -> bytes:
    try:
        return b"".join(iter(lambda: connection.recv(65_536), b""))
    except ConnectionError:
        return b""


def judge_case(server: Known, case: bytes) -> Verdict:
    name, _, number = case.decode("latin-1").partition(" ")
    if name not in CROWDS_BY_NAME or not number.isdecimal():
        return Verdict("nobody")
    try:
        problem = CROWDS_BY_NAME[name](server, min(int(number), _MOST)) or still_answers(server)
    except (OSError, ValueError, NotHttpError) as error:
        return Verdict(name, f"{name}: {type(error).__name__}: {error}")
    return Verdict(name, problem)


def _change(chance: Random, _case: bytes, _other: bytes) -> bytes:
    return f"{chance.choice(list(CROWDS_BY_NAME))} {chance.randint(1, _MOST)}".encode()


@contextmanager
def _judging() -> Iterator[Judge]:
    with a_server() as server:
        tried = learn_replies((server.host, server.port))
        (worker,) = server.workers()
        before = measure_size(worker)

        def each(cases: Sequence[bytes]) -> list[Verdict]:
            return [judge_case(tried, case) for case in cases]

        yield Judge(each, lambda: check_survival(server, worker, before))


def _seeds() -> list[bytes]:
    return [f"{name} 100".encode() for name in CROWDS_BY_NAME]


CROWDS: Final = Kind("crowds of connections", _seeds, _change, _judging, is_steady=False)
