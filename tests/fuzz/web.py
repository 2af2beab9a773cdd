"""Hostile bytes to a real ``lookout serve``: what it answers is HTTP, one of the replies it has, and asked for.

The server has a finite set of replies. So every answer is held against the ones that ordinary requests got before, with
every header and byte: nothing of a request can be in them, and no contract of theirs can be broken in just one case.
"""

import re
import select
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from tests.fuzz.http_answers import REFUSALS, Answered, Asked, CutOffError, NotHttpError, answers_in, requests_in
from tests.fuzz.hunt import Found, Kind
from tests.fuzz.requests import LOTS, MARKER, ORDINARY, PATHS
from tests.integration.raw import RawServer, a_raw_server, a_request
from tests.integration.served import HISTORY, LIVE, a_ledger, publish
from tests.wait import until

Address = tuple[str, int]

_AT_ONCE: Final = 24
_QUIET_S: Final = 0.3  # so long nothing came: it waits for more
_END_WITHIN_S: Final = 20.0
_AUTHORITY: Final = re.compile(rb"[^/?]*://[^/?]*")
_MOST_KB: Final = 60_000
_MOST_FILES: Final = 8
# Of each hop and moment; all else is the reply's own.
_OWN_TO_THE_SERVER: Final = frozenset({b"date", b"connection", b"keep-alive"})


class Reply(NamedTuple):
    http_code: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class Known(NamedTuple):
    """A server that is tried, and its replies to ordinary requests by method and path."""

    address: Address
    replies: Mapping[tuple[str, str], Reply]
    not_found: frozenset[Reply]

    def reply(self, answer: Answered) -> Reply:
        kept = tuple(sorted((name, text) for name, text in answer.headers if name not in _OWN_TO_THE_SERVER))
        return Reply(answer.http_code, kept, answer.body)


def learn_replies(address: Address) -> Known:
    """Ask for everything once."""
    bare = Known(address, {}, frozenset())

    def ask(method: str, path: str, *headers: str) -> Reply:
        came = exchange(address, a_request(method, path, *headers), _END_WITHIN_S)
        (answer,) = answers_in(came.said, [method.encode()])
        return bare.reply(answer)

    replies = {(method, path): ask(method, path) for path in PATHS for method in ("GET", "HEAD", "OPTIONS", "POST")}
    replies |= {("304", path): ask("GET", path, "If-None-Match: *") for path in PATHS}
    for path in (LIVE, HISTORY):
        codes = [replies[each, path].http_code for each in ("GET", "HEAD", "OPTIONS", "POST", "304")]
        assert codes == [200, 200, 204, 405, 304], f"{path}: {codes}"
    nowhere = frozenset(ask(method, "/nowhere") for method in ("GET", "HEAD", "POST", "OPTIONS"))
    return bare._replace(replies=replies, not_found=nowhere)


class Came(NamedTuple):
    said: bytes
    is_closed: bool
    """Whether the server ended the connection, at the latest after this end said that it was done."""
    is_reset: bool = False
    """Whether it did so with bytes of this end unread: the last of its answer may then be lost on the way."""


def exchange(address: Address, sent: bytes, quiet_s: float = _QUIET_S) -> Came:
    """Send all of it and hear all of the answer; once nothing came for ``quiet_s``, say that this was all. A server may
    then hang up on what it has not answered yet: a caller that needs the answer waits longer."""
    with socket.create_connection(address, timeout=_END_WITHIN_S) as connection:
        connection.setblocking(False)
        left, said, is_done = memoryview(sent), b"", False
        waiting = select.poll()
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < (_END_WITHIN_S if is_done else quiet_s):
            waiting.register(connection, select.POLLIN | (select.POLLOUT if left else 0))
            is_ready = sum(events for _, events in waiting.poll(50))
            try:
                if is_ready & select.POLLOUT:
                    left = left[connection.send(left) :]
                    quiet_since = time.monotonic()
                if is_ready & ~select.POLLOUT:
                    piece = connection.recv(65_536)
                    if not piece:
                        return Came(said, True)
                    said += piece
                    quiet_since = time.monotonic()
                if not is_done and time.monotonic() - quiet_since >= quiet_s - 0.05:
                    is_done, quiet_since = True, time.monotonic()
                    connection.shutdown(socket.SHUT_WR)
            except BlockingIOError:
                continue
            except OSError:
                return Came(said, True, True)
    return Came(said, False)


def _whole_answers(came: Came, sent: bytes, methods: Sequence[bytes]) -> list[Answered]:
    """Found if anything else came, or the connection was left open."""
    if not came.is_closed:
        raise Found("the connection was left open after its client had said that it was done", sent)
    try:
        return answers_in(came.said, methods)
    except NotHttpError as error:
        if not (came.is_reset and isinstance(error, CutOffError)):
            raise Found(str(error), sent) from None
        return error.whole


def judge_exchange(server: Known, sent: bytes, came: Came) -> str:
    """Found unless every answer is a refusal at the end, or the reply to the request at its place."""
    requests = requests_in(sent)
    asked, answers = requests.heads, _whole_answers(came, sent, requests.methods)
    for number, answer in enumerate(answers):
        if answer.http_code in REFUSALS:
            if number < len(answers) - 1:
                after = answers[number + 1].http_code
                raise Found(f"{after} was answered after a refusal, {answer.http_code}", sent)
        elif number >= len(asked):
            raise Found(f"{len(answers)} answers to {len(asked)} requests: the last is {answer.http_code}", sent)
        elif server.reply(answer) not in _possible(server, asked[number]):
            found = f"{answer.http_code} {answer.headers!r} {answer.body[:80]!r}"
            raise Found(f"{asked[number].method[:20]!r} {asked[number].target[:80]!r} was answered {found}", sent)
    return " ".join(str(answer.http_code) for answer in answers) + f" of {len(asked)}"


def _possible(server: Known, asked: Asked) -> set[Reply]:
    """The replies that such a request may get."""
    path, method = _path(asked.target), asked.method.decode("ascii")
    if method == "CONNECT":
        return {server.replies["POST", LIVE]}
    if path == "*":
        return {server.replies["OPTIONS", LIVE]}
    if path not in PATHS:
        return set(server.not_found)
    if method not in ("GET", "HEAD"):
        return {server.replies["OPTIONS" if method == "OPTIONS" else "POST", path]}
    possible = {server.replies[method, path]}
    tags = [text.strip(b" \t") for name, text in asked.headers if name == b"if-none-match"]
    if tags == [b"*"]:
        return {server.replies["304", path]}
    tag = dict(server.replies["GET", path].headers)[b"etag"]
    if any(each == b"*" or tag in each for each in tags):  # it depends on the rest of the list
        possible.add(server.replies["304", path])
    return possible


def _path(target: bytes) -> str:
    """Of any form of a target, percent-decoded, as the server compares it."""
    authority = _AUTHORITY.match(target)
    bare = target[authority.end() if authority else 0 :].partition(b"?")[0]
    if authority and not bare:
        return "/"  # RFC 9112, 3.2.2
    return unquote_to_bytes(bare).decode("utf-8", "replace")


class Size(NamedTuple):
    memory_kb: int
    files: int


def measure_size(pid: int) -> Size:
    (line,) = (s for s in Path(f"/proc/{pid}/status").read_text().splitlines() if s.startswith("VmRSS:"))
    return Size(int(line.split()[1]), len(list(Path(f"/proc/{pid}/fd").iterdir())))


@contextmanager
def a_server() -> Iterator[RawServer]:
    """Over a store with both documents, in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lookout-hostile-"))
    try:
        publish(folder, a_ledger())
        with a_raw_server(folder, server="connections_per_address = 0\n") as server:
            yield server
    finally:
        shutil.rmtree(folder)


def _try_side_by_side(server: Known) -> Callable[[Sequence[bytes]], str]:
    """Tries connections side by side; after each lot ordinary requests are answered as ever."""

    def try_one(case: bytes) -> str:
        sent = case + MARKER
        return judge_exchange(server, sent, exchange(server.address, sent))

    def try_all(cases: Sequence[bytes]) -> str:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            outcomes = list(pool.map(try_one, cases))
        for path in (LIVE, HISTORY):
            said = exchange(server.address, a_request("GET", path), _END_WITHIN_S).said
            (answer,) = answers_in(said, [b"GET"])
            assert server.reply(answer) == server.replies["GET", path], f"{path}: {answer.http_code} {answer.body!r}"
        return " ".join(outcomes)

    return try_all


@contextmanager
def judging() -> Iterator[Callable[[Sequence[bytes]], str]]:
    """In the end the process is the same, no larger, and has no connection left over."""
    with a_server() as server:
        try_all = _try_side_by_side(learn_replies((server.host, server.port)))
        try_all(ORDINARY)  # by now it has everything that it ever needs
        process = server.process.pid
        before = measure_size(process)
        yield try_all
        until(lambda: measure_size(process).files <= before.files + _MOST_FILES, "its files are closed", 30)
        assert measure_size(process).memory_kb - before.memory_kb < _MOST_KB


HTTP: Final = Kind(LOTS, judging)
