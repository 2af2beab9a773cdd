"""What a cache says to its origin and hears back, taken down on the way."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from tests.fuzz.http_answers import REFUSALS, NotHttpError, answers_in, requests_in

_PIECE: Final = 65_536


@dataclass
class Talk:
    """One connection."""

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
            return (
                f"{len(answers)} answers to {len(requests.whole)} requests of the cache: {bytes(self.asked[-400:])!r}"
            )
        return ""


class Listener:
    """Stands between a cache and its origin."""

    def __init__(self, origin: tuple[str, int]) -> None:
        self._origin = origin
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.talks: list[Talk] = []
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._listen)]
        self._threads[0].start()

    def close(self) -> None:
        for each in (self._listening, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _listen(self) -> None:
        while True:
            try:
                cache, _ = self._listening.accept()
            except OSError:
                return
            origin = socket.create_connection(self._origin)
            talk = Talk()
            self.talks.append(talk)
            self._open += [cache, origin]
            for source, target, heard in ((cache, origin, talk.asked), (origin, cache, talk.answered)):
                thread = threading.Thread(target=_pass_on, args=(source, target, heard))
                self._threads.append(thread)
                thread.start()


def _pass_on(source: socket.socket, target: socket.socket, heard: bytearray) -> None:
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            heard += piece
            target.sendall(piece)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def an_eavesdropper(origin: tuple[str, int]) -> Iterator[Listener]:
    listener = Listener(origin)
    try:
        yield listener
    finally:
        listener.close()
