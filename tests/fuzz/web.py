"""Hostile bytes to a real ``lookout serve``: what it answers is HTTP, one of the replies it has, and asked for.

The server has a finite set of replies. So every answer is held against the ones that ordinary requests got before, with
every header and byte: nothing of a request can be in them, and no contract of theirs can be broken in just one case.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from tests.fuzz.exchange import END_WITHIN_S, Came, exchange
from tests.fuzz.fuzzer import Judge, Kind, Verdict
from tests.fuzz.http_answers import REFUSALS, Answered, Asked, CutOffError, NotHttpError, answers_in, requests_in
from tests.fuzz.requests import MARKER, change_connection
from tests.integration.raw import RawServer, a_raw_server, a_request
from tests.integration.served import HISTORY, LIVE, a_ledger, publish
from tests.wait import until

Address = tuple[str, int]

_AT_ONCE: Final = 24
_PATHS: Final = (LIVE, HISTORY, "/", "/openapi.json", "/schemas/liveness.json", "/assets/page.js")
_AUTHORITY: Final = re.compile(rb"[^/?#]*://[^/?#]*")
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
    own: frozenset[bytes]

    def reply(self, answer: Answered) -> Reply:
        kept = tuple(sorted((name, text) for name, text in answer.headers if name not in self.own))
        return Reply(answer.http_code, kept, answer.body)


def learn_replies(address: Address, own: frozenset[bytes] = frozenset()) -> Known:
    """Ask for everything once."""
    bare = Known(address, {}, frozenset(), own | _OWN_TO_THE_SERVER)

    def ask(method: str, path: str, *headers: str) -> Reply:
        came = exchange(address, a_request(method, path, *headers), END_WITHIN_S)
        (answer,) = answers_in(came.said, [method.encode()])
        return bare.reply(answer)

    replies = {(method, path): ask(method, path) for path in _PATHS for method in ("GET", "HEAD", "OPTIONS", "POST")}
    replies |= {("304", path): ask("GET", path, "If-None-Match: *") for path in _PATHS}
    for path in (LIVE, HISTORY):
        codes = [replies[each, path].http_code for each in ("GET", "HEAD", "OPTIONS", "POST", "304")]
        assert codes == [200, 200, 204, 405, 304], f"{path}: {codes}"
    nowhere = frozenset(ask(method, "/nowhere") for method in ("GET", "HEAD", "POST", "OPTIONS"))
    return bare._replace(replies=replies, not_found=nowhere)


def judge_exchange(server: Known, sent: bytes, came: Came) -> Verdict:
    """What is wrong with what came, if anything."""
    asked = requests_in(sent).heads
    if not came.is_closed:
        return Verdict("open", "the connection was left open after its client had said that it was done")
    try:
        answers = answers_in(came.said, [each.method for each in asked])
    except NotHttpError as error:
        if not (came.is_reset and isinstance(error, CutOffError)):
            return Verdict("not HTTP", str(error))
        answers = error.whole
    for number, answer in enumerate(answers):
        if answer.http_code in REFUSALS:
            if number < len(answers) - 1:
                return Verdict(
                    "more", f"{answers[number + 1].http_code} was answered after a refusal, {answer.http_code}"
                )
        elif number >= len(asked):
            return Verdict(
                "smuggled", f"{len(answers)} answers to {len(asked)} requests: the last is {answer.http_code}"
            )
        elif server.reply(answer) not in _possible(server, asked[number]):
            found = f"{answer.http_code} {answer.headers!r} {answer.body[:80]!r}"
            return Verdict("other", f"{asked[number].method[:20]!r} {asked[number].target[:80]!r} was answered {found}")
    return Verdict(" ".join(str(answer.http_code) for answer in answers) + f" of {len(asked)}")


def _possible(server: Known, asked: Asked) -> set[Reply]:
    """The replies that such a request may get."""
    path, method = _path(asked.target), asked.method.decode("ascii")
    if path not in _PATHS:
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
    bare = target[authority.end() if authority else 0 :].partition(b"#")[0].partition(b"?")[0]
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


def try_side_by_side(
    server: Known, judge: Callable[[Known, bytes, Came], Verdict]
) -> Callable[[Sequence[bytes]], list[Verdict]]:
    """Tries cases side by side; after each lot an ordinary request is answered as ever."""

    def verdict(case: bytes) -> Verdict:
        sent = case + MARKER
        try:
            return judge(server, sent, exchange(server.address, sent))
        except OSError as error:
            return Verdict("no connection", f"the server could not be reached: {error}")

    def each(cases: Sequence[bytes]) -> list[Verdict]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            verdicts = list(pool.map(verdict, cases))
        if problem := still_answers(server):
            return [Verdict(each.outcome, each.problem or problem) for each in verdicts]
        return verdicts

    return each


def still_answers(server: Known) -> str:
    """What is wrong with the answers to ordinary requests, if anything."""
    for path in (LIVE, HISTORY):
        try:
            (answer,) = answers_in(exchange(server.address, a_request("GET", path), END_WITHIN_S).said, [b"GET"])
        except (OSError, ValueError, NotHttpError) as error:
            return f"an ordinary request for {path} was not answered as it should: {error}"
        if server.reply(answer) != server.replies["GET", path]:
            return f"an ordinary request for {path} got another answer: {answer.http_code} {answer.body[:80]!r}"
    return ""


@contextmanager
def _judging() -> Iterator[Judge]:
    with a_server() as server:
        address = (server.host, server.port)
        tried = learn_replies(address)
        (worker,) = server.workers()
        before: list[Size] = []

        def each(cases: Sequence[bytes]) -> list[Verdict]:
            verdicts = tries(cases)
            if not before:  # by now it has everything that it ever needs
                before.append(measure_size(worker))
            return verdicts

        def afterwards() -> list[str]:
            return check_survival(server, worker, before[0]) if before else []

        tries = try_side_by_side(tried, judge_exchange)
        yield Judge(each, afterwards)


def check_survival(server: RawServer, worker: int, before: Size) -> list[str]:
    """What is wrong with a server's process after all that: another one, larger, or with connections left over."""
    if server.workers() != [worker]:
        return [f"the worker {worker} died: now there are {server.workers()}"]
    try:
        until(lambda: measure_size(worker).files <= before.files + _MOST_FILES, "its files are closed", 30)
    except AssertionError:
        return [f"{measure_size(worker).files} open files, {before.files} before"]
    grown_kb = measure_size(worker).memory_kb - before.memory_kb
    return [f"its memory grew by {grown_kb} kB"] if grown_kb > _MOST_KB else []


def ordinary_requests() -> list[bytes]:
    return [a_request("GET", path, close=False) for path in _PATHS]


HTTP: Final = Kind("requests over raw sockets", ordinary_requests, change_connection, _judging)
