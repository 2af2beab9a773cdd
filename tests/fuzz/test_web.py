"""Hostile bytes to the real server and the real cache, in short; and weak servers, which have to be found out."""

import os
import re
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.fuzz.crowds import CROWDS
from tests.fuzz.cuts import CUTS
from tests.fuzz.eavesdropper import Talk
from tests.fuzz.edge import EDGE
from tests.fuzz.exchange import Came, exchange
from tests.fuzz.exhaustion import EXHAUSTION
from tests.fuzz.fuzzer import Judge, Until, fuzz, read_kept
from tests.fuzz.http_answers import requests_in
from tests.fuzz.requests import SMUGGLED
from tests.fuzz.web import HTTP, Known, Reply, a_server, judge_exchange, learn_replies, try_side_by_side
from tests.integration.edged import needs_varnish
from tests.integration.raw import a_request
from tests.integration.served import HISTORY, LIVE


@pytest.mark.clause("A2", "A3", "A4", "A5", "A6", "A7", "A8", "A11", "A15")
def test_whatever_bytes_come_every_answer_is_asked_for_and_is_one_that_there_is() -> None:
    tried = fuzz("http", HTTP, 1, Until(cases=len(read_kept("http")) + 150), keep_failures=False)
    assert tried.failures == ()
    assert tried.outcomes > 20


@pytest.mark.clause("A16")
def test_bytes_that_come_in_pieces_are_answered_as_in_one() -> None:
    tried = fuzz("cuts", CUTS, 1, Until(cases=3_000), keep_failures=False)
    assert tried.failures == ()
    assert tried.outcomes > 20


def test_bytes_are_exchanged_also_where_others_have_taken_the_first_thousand_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4_096), hard))
    taken = []
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            taken = [os.dup(server.fileno()) for _ in range(1_100)]
            answering = threading.Thread(target=_answer_once, args=(server,))
            answering.start()
            came = exchange(server.getsockname(), b"hello" * 100_000)
            answering.join()
    finally:
        for file in taken:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert came == Came(b"500000", True)


def _answer_once(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        heard = 0
        while heard < 500_000:
            heard += len(connection.recv(65_536))
        connection.sendall(str(heard).encode())


@pytest.mark.long
@pytest.mark.clause("A11")
def test_crowds_of_slow_half_closed_reset_and_deaf_clients_keep_no_reader_waiting() -> None:
    tried = fuzz("crowds", CROWDS, 1, Until(cases=6), keep_failures=False)
    assert tried.failures == ()


@pytest.mark.long
@pytest.mark.clause("M17")
def test_a_monitor_from_which_something_is_taken_publishes_nothing_that_it_did_not_see() -> None:
    tried = fuzz("exhaustion", EXHAUSTION, 1, Until(cases=3), keep_failures=False)
    assert tried.failures == ()


@pytest.mark.long
@needs_varnish
@pytest.mark.clause("E5")
def test_a_cache_and_the_server_behind_it_understand_each_other_whatever_bytes_come() -> None:
    cases = list(read_kept("http").values())
    with EDGE.judging() as judge:
        assert [verdict.problem for verdict in judge.each(cases) if verdict.problem] == []
        assert judge.afterwards() == []


@pytest.fixture(scope="module")
def edge() -> Iterator[Judge]:
    with EDGE.judging() as judge:
        yield judge


@needs_varnish
@pytest.mark.parametrize("name", read_kept("edge"))
def test_what_the_cache_alone_could_not_bear_is_borne(edge: Judge, name: str) -> None:
    assert edge.each([read_kept("edge")[name]])[0].problem == ""


# ---- Servers with a weakness

Answering = Callable[[bytes], Iterator[bytes]]


@contextmanager
def a_weak_server(answering: Answering) -> Iterator[tuple[str, int]]:
    """One that says to all that it hears what ``answering`` makes of it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            heard = b""
            while b"Connection: close\r\n" not in heard and (piece := connection.recv(65_536)):
                heard += piece
            for answer in answering(heard):
                connection.sendall(answer)

    def listen() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        host, port = listener.getsockname()
        yield host, port
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.fixture(scope="module")
def real() -> Iterator[Known]:
    with a_server() as server:
        yield learn_replies((server.host, server.port))


def raw(reply: Reply) -> bytes:
    headers = b"".join(name + b": " + text + b"\r\n" for name, text in reply.headers)
    return b"HTTP/1.1 %d So\r\n%s\r\n%s" % (reply.http_code, headers, reply.body)


def by_length_alone(real: Known) -> Answering:
    """A request ends where Content-Length says; chunked bodies are not known."""

    def answering(heard: bytes) -> Iterator[bytes]:
        while b"\r\n\r\n" in heard:
            head, _, heard = heard.partition(b"\r\n\r\n")
            method, path, *_ = (*head.decode("latin-1").split(" "), "", "")
            if "If-None-Match: *" in head.decode("latin-1"):
                method = "304"
            length = re.search(rb"Content-Length: (\d+)", head)
            heard = heard[int(length[1]) if length else 0 :]
            yield raw(real.replies.get((method, path)) or real.replies["POST", LIVE])

    return answering


def test_a_server_that_does_not_know_chunked_bodies_is_found_out(real: Known) -> None:
    with a_weak_server(by_length_alone(real)) as address:
        tries = try_side_by_side(real._replace(address=address), judge_exchange)
        smuggling = f"POST {LIVE} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)
        plain, smuggled = tries([a_request(close=False), smuggling + body])
    assert plain.problem == ""
    assert "answers to" in smuggled.problem or "was answered" in smuggled.problem


ASKED = a_request("GET", LIVE)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        pytest.param(lambda said: said, "", id="nothing"),
        pytest.param(lambda said: said * 2, "2 answers to 1 requests", id="a second answer"),
        pytest.param(lambda said: said.replace(b"200 So", b"500 So"), "was answered 500", id="a 5xx"),
        pytest.param(
            lambda said: said.replace(b"\r\n", b"\r\nx-seen: evil\r\n", 1), "was answered 200", id="a reflection"
        ),
        pytest.param(lambda said: said[:-1] + b"!", "was answered 200", id="another body"),
        pytest.param(lambda said: said[:-1], "cut off", id="a body cut off"),
        pytest.param(lambda said: said.replace(b"HTTP/1.1", b"HTTP/2"), "not HTTP/1.1", id="another protocol"),
        pytest.param(lambda said: b"HTTP/1.1 400 No\r\n\r\n" + said, "length", id="a refusal, and going on"),
        pytest.param(lambda said: said.replace(b"content-length", b"x-length"), "length", id="no length"),
    ],
)
def test_an_answer_that_is_not_as_it_should_be_is_found_out(
    real: Known, spoil: Callable[[bytes], bytes], problem: str
) -> None:
    verdict = judge_exchange(real, ASKED, Came(spoil(raw(real.replies["GET", LIVE])), True))
    assert problem in verdict.problem
    assert bool(verdict.problem) == bool(problem)


def test_a_connection_that_is_left_open_is_found_out(real: Known) -> None:
    assert "left open" in judge_exchange(real, ASKED, Came(raw(real.replies["GET", LIVE]), False)).problem


def test_a_304_that_nobody_asked_for_is_found_out(real: Known) -> None:
    assert judge_exchange(real, ASKED, Came(raw(real.replies["304", LIVE]), True)).problem
    conditional = a_request("GET", HISTORY, "If-None-Match: *")
    assert not judge_exchange(real, conditional, Came(raw(real.replies["304", HISTORY]), True)).problem


def test_an_origin_that_answers_more_than_its_cache_asked_is_found_out(real: Known) -> None:
    answer = raw(real.replies["GET", LIVE])
    assert Talk(bytearray(a_request(close=False)), bytearray(answer)).problem() == ""
    assert "2 answers to 1 requests" in Talk(bytearray(a_request(close=False)), bytearray(answer * 2)).problem()


def test_a_strict_reader_finds_the_requests_that_there_are() -> None:
    plain = a_request(close=False)
    assert [each.method for each in requests_in(plain + SMUGGLED).whole] == [b"GET", b"OPTIONS"]
    assert requests_in(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx").whole == ()
    assert requests_in(ASKED + plain).whole == requests_in(ASKED).whole
    assert requests_in(b"garbage\r\n\r\n" + plain).heads == ()


def test_the_known_attacks_are_there() -> None:
    assert len(read_kept("http")) > 80
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in read_kept("http"))
