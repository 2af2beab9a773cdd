"""Hostile bytes to a real Varnish: whatever it makes of them, it and the server behind it understand each other.

Varnish itself reads some bytes more leniently than a strict reader would. What counts is what it says to the server: as
many requests as it gets answers, and nothing of a reader's making but what the server is to hear.
"""

import gzip
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fuzz.http_answers import REFUSALS, Answered, NotHttpError, answers_in, answers_to_anything, requests_in
from tests.fuzz.hunt import Found, Kind
from tests.fuzz.requests import LOTS
from tests.fuzz.web import Came, Known, a_server, answers_that, learn_replies, try_side_by_side
from tests.integration.edged import an_edge

# Of each hop and moment; all else is the reply's own.
_OWN_TO_A_CACHE: Final = frozenset({b"age", b"cache-status", b"server", b"accept-ranges", b"content-encoding", b"vary"})


def _judge_through_a_cache(server: Known, sent: bytes, came: Came) -> str:
    """Every answer is a refusal or one of the replies there are."""
    answers = answers_that(came, sent, answers_to_anything)
    there_are = {(reply.http_code, reply.body) for reply in server.not_found.union(server.replies.values())}
    for answer in answers:
        if answer.http_code not in REFUSALS and (answer.http_code, _plain(answer)) not in there_are:
            raise Found(f"an answer of no ordinary request: {answer.http_code} {answer.body[:80]!r}", sent)
    return " ".join(str(answer.http_code) for answer in answers)


def _plain(answer: Answered) -> bytes:
    is_gzip = (b"content-encoding", b"gzip") in answer.headers and answer.body
    return gzip.decompress(answer.body) if is_gzip else answer.body


@dataclass
class Talk:
    """A connection of a cache to its origin, as it is heard in between."""

    asked: bytearray = field(default_factory=bytearray)
    answered: bytearray = field(default_factory=bytearray)

    def problem(self) -> str:
        """Whether both ends took it for the same: an answer to each request, and at most one more, a refusal of what a
        strict reader cannot read."""
        requests = requests_in(bytes(self.asked))
        try:
            answers = answers_in(bytes(self.answered), [each.method for each in requests.whole])
        except NotHttpError as error:
            return f"the origin's answers: {error}"
        if answers and answers[-1].http_code in REFUSALS:
            answers.pop()
        if len(answers) > len(requests.whole):
            asked = bytes(self.asked[-400:])
            return f"{len(answers)} answers to {len(requests.whole)} requests of the cache: {asked!r}"
        return ""


@contextmanager
def _overheard(origin: tuple[str, int]) -> Iterator[tuple[int, list[Talk]]]:
    """A port that leads to an origin, and all that is said there."""
    talks: list[Talk] = []
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def pass_on(source: socket.socket, target: socket.socket, heard: bytearray) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                heard += piece
                target.sendall(piece)
        end(source, target)

    def end(*sockets: socket.socket) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def listen() -> None:
        with suppress(OSError):
            while True:
                cache, _ = listening.accept()
                server, talk = socket.create_connection(origin), Talk()
                talks.append(talk)
                opened.extend((cache, server))
                for way in ((cache, server, talk.asked), (server, cache, talk.answered)):
                    threads.append(threading.Thread(target=pass_on, args=way))
                    threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield listening.getsockname()[1], talks
        finally:
            end(listening)
            listener.join()
            end(*opened)
            for thread in threads:
                thread.join()
            for each in opened:
                each.close()


@contextmanager
def judging() -> Iterator[Callable[[Sequence[bytes]], str]]:
    with (
        tempfile.TemporaryDirectory(prefix="lookout-edge-") as folder,
        a_server() as server,
        _overheard((server.host, server.port)) as (port, talks),
        an_edge(Path(folder), port) as edge,
    ):
        yield try_side_by_side(learn_replies(("127.0.0.1", edge.port), _OWN_TO_A_CACHE), _judge_through_a_cache)
        assert {talk.problem() for talk in talks} <= {""}


EDGE: Final = Kind(LOTS, judging)
