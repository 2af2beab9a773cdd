"""A deployment whose replies are the real ones but for what a test breaks in them."""

import json
import socket
import socketserver
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Blocks, Check, Failed, Found, Indexes, Members, Nothing, Observation, Peers
from lookout.documents.document import Document, compress, etag
from lookout.documents.reports import history_document, live_document
from lookout.replay.replay import Replay
from lookout.server.replies import HISTORY_CACHING, LIVE_CACHING, Resource, endpoint, respond
from lookout.server.request import prefers_gzip
from lookout.server.site import build_description_routes
from lookout.state.log import HeadRead, Started
from tests.builders import BROADCASTERS, HOUR, INDEXER, MESSAGING, MINUTE, PPOI, SECOND, a_plan
from tests.descriptions import a_description
from tests.integration.served import HISTORY, LIVE

Json = dict[str, Any]

# Beside the healthy checks of chain 1: one of each trouble.
_INDEXER_137, _PPOI_137, _BROADCASTERS_137 = (Check(name, 137) for name in ("indexer", "ppoi", "broadcasters"))
_SEEN: Final[dict[Check, Found]] = {
    MESSAGING: Peers(5),
    PPOI: Indexes(41, 41),
    _PPOI_137: Failed("timeout"),
    BROADCASTERS: Members(3, 5),
    _BROADCASTERS_137: Nothing(),
    _INDEXER_137: Blocks(7),
}
_HOURS: Final = 26  # more than the shortest window of uptime


def a_fresh_ledger(now: int) -> Ledger:
    """A day and more of rows in every status, the last of them just seen."""
    replay = Replay(a_plan(*_SEEN, INDEXER, chains=(1, 137)))
    began = now - _HOURS * HOUR
    replay.feed(Started(began))
    for at in range(began + 5 * SECOND, now - 2 * SECOND, 2 * MINUTE):
        ago = (now - at) // MINUTE
        _feed(replay, at, lag=40 if 300 < ago < 330 or ago > 1500 else 0)
    _feed(replay, now - 2 * SECOND, lag=0)
    replay.finish(now)
    return replay.ledger


def _feed(replay: Replay, at: int, lag: int) -> None:
    head = at // MINUTE  # a block a minute
    replay.feed(HeadRead(at, 1, Reading(at, head, at)))
    replay.feed(Observation(INDEXER, at, Blocks(head - 5 - lag)))
    for check, found in _SEEN.items():
        replay.feed(Observation(check, at, found))


_SITE: Final = build_description_routes("protocol", a_description())


@cache
def ledger() -> Ledger:
    return a_fresh_ledger(time.time_ns() // 1_000_000)


class Asked(NamedTuple):
    method: str
    path: str
    query: str
    headers: dict[str, str]


@dataclass
class Sent:
    """A reply on its way, which a test may change."""

    http_code: int
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str | None:
        return next((text for of, text in self.headers if of == name), None)

    def __setitem__(self, name: str, text: str) -> None:
        del self[name]
        self.headers.append((name, text))

    def __delitem__(self, name: str) -> None:
        self.headers = [header for header in self.headers if header[0] != name]

    def become(self, http_code: int, body: bytes, kind: str = "application/json; charset=utf-8") -> None:
        """Another reply altogether, with nothing but a body."""
        self.http_code, self.body = http_code, body
        self.headers = [("content-type", kind), ("content-length", str(len(body)))]

    def rewrite(self, body: bytes) -> None:
        self.body = body
        self["content-length"] = str(len(body))


Break = Callable[[Asked, Sent], None]
Edit = Callable[[Json, Json], None]
Resources = dict[str, Resource]


def documents(edit: Edit | None = None) -> tuple[bytes, bytes]:
    """Both documents, with what a test changes in them."""
    live, history = live_document(ledger().report()).body, history_document(ledger().view()).body
    if edit is None:
        return live, history
    live_json, history_json = json.loads(live), json.loads(history)
    edit(live_json, history_json)
    return (json.dumps(live_json).encode(), json.dumps(history_json).encode())


def resources(
    live: bytes, history: bytes, tag: Callable[[bytes], str] = etag, pack: Callable[[bytes], bytes] = compress
) -> Resources:
    """Every reply there is."""

    def resource(body: bytes, caching: str) -> Resource:
        plain, packed = (Document(form, tag(form), 0) for form in (body, pack(body)))
        return endpoint(plain, caching, packed)

    return _SITE | {LIVE: resource(live, LIVE_CACHING), HISTORY: resource(history, HISTORY_CACHING)}


@dataclass
class Deployment:
    base: str
    counts: Counter[str] = field(default_factory=Counter)  # requests by path


@contextmanager
def a_deployment(replies: Callable[[int], Resources], breaks: Break | None = None) -> Iterator[Deployment]:
    """Serve the replies meanwhile; those to the n-th request are ``replies(n)``."""
    deployment = Deployment("")
    lock = threading.Lock()

    def answer(raw: bytes) -> bytes:
        line, *fields = raw.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ")
        path, _, query = target.partition("?")
        headers = {name.lower(): text for name, _, text in (each.partition(": ") for each in fields)}
        with lock:
            deployment.counts[path] += 1
            number = deployment.counts.total()
        reply = respond(
            replies(number),
            method,
            path,
            headers.get("if-none-match"),
            prefers_gzip=prefers_gzip(headers.get("accept-encoding", "")),
        )
        sent = Sent(reply.http_code, list(reply.headers), b"" if method == "HEAD" else reply.body)
        if breaks is not None:
            breaks(Asked(method, path, query, headers), sent)
        lines = [f"HTTP/1.1 {sent.http_code} said", *(f"{name}: {text}" for name, text in sent.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1") + sent.body

    with a_listener(answer) as base:
        deployment.base = base
        yield deployment


@contextmanager
def a_listener(answer: Callable[[bytes], bytes | Iterator[bytes]], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Answer every connection with bytes, and close it; the address of it all."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if tls is None:
                _converse(self.request, answer)
                return
            with suppress(OSError), tls.wrap_socket(self.request, server_side=True) as secured:
                _converse(secured, answer)

    class Listener(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = 64

    with Listener(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{listener.server_address[1]}"
        finally:
            listener.shutdown()
            thread.join()


def _converse(connection: socket.socket, answer: Callable[[bytes], bytes | Iterator[bytes]]) -> None:
    raw = b""
    while b"\r\n\r\n" not in raw:
        chunk = connection.recv(65_536)
        if not chunk:
            return
        raw += chunk
    answered = answer(raw.partition(b"\r\n\r\n")[0])
    with suppress(OSError):  # the caller may have had enough
        for part in (answered,) if isinstance(answered, bytes) else answered:
            connection.sendall(part)
