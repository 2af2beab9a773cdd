"""A clock that stands until it is set, a store that fails on demand, and a poller or a whole server of the two."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lookout.config.tables import ServerSettings, ServerTable
from lookout.documents.api import paths
from lookout.documents.document import Document, DocumentName, PlainName, etag, with_compressed
from lookout.server.assembly import Machine, Server, build_server
from lookout.server.connection import Connection
from lookout.server.poller import Poller
from lookout.server.replies import convenience_resource
from lookout.server.site import Site
from lookout.store.protocol import StoreError
from tests.builders import NOON


class SetClock:
    """A clock that says what a test sets."""

    def __init__(self) -> None:
        self.elapsed = 1_000_000
        self.wall = NOON

    def now(self) -> int:
        return self.wall

    def elapsed_ms(self) -> int:
        return self.elapsed


class FakeReader:
    """Has what ``put`` put there, and fails for the names in ``unreadable``, "changed" among them. A call by a name in
    ``hangs`` lets the test pass the time first."""

    def __init__(self) -> None:
        self.documents: dict[DocumentName, Document] = {}
        self.unreadable: set[str] = set()
        self.hangs: dict[str, Callable[[], None]] = {}
        self.reads = 0
        self._changed = True

    def put(self, name: DocumentName, body: bytes, generated_at: int = NOON) -> Document:
        self.documents[name] = Document(body, etag(body), generated_at)
        self._changed = True
        return self.documents[name]

    def publish(self, name: PlainName, body: bytes, generated_at: int = NOON) -> None:
        """In both forms, as a monitor does."""
        self.documents |= with_compressed({name: Document(body, etag(body), generated_at)})
        self._changed = True

    def changed(self) -> bool:
        self._fail_if("changed")
        changed, self._changed = self._changed, False
        return changed

    def read(self, name: DocumentName) -> Document | None:
        self.reads += 1
        self._fail_if(name)
        return self.documents.get(name)

    def close(self) -> None:
        self.documents = {}

    def _fail_if(self, name: str) -> None:
        if name in self.hangs:
            self.hangs.pop(name)()
        if name in self.unreadable:
            raise StoreError(f"store: {name} is unreadable")


def a_poller(store: FakeReader, clock: SetClock, unreadable_ms: int = 300_000, **site: Any) -> Poller:
    """One whose route /about has the description that is in the store; that of its own file has none."""

    def redescribe(about: bytes) -> Site:
        others = {**site.get("others", {}), "/about": convenience_resource("text/plain", about)}
        return Site(paths("protocol"), **{**site, "others": others})

    return Poller(store, clock, unreadable_ms, Site(paths("protocol"), **site), redescribe)


def a_server(store: FakeReader, clock: SetClock, **table: Any) -> Server:
    """The product's, with these keys of [server]; it has polled the store."""
    server = build_server(
        ServerSettings(server=ServerTable(**table)), Path(), Machine(clock=clock, open_reader=lambda *_: store)
    )
    server.poller.poll()
    return server


def a_connection(server: Server, peer: str = "1.1.1.1") -> Connection:
    """One that nothing comes from."""
    with socket.socket() as unused:
        return Connection(server.listen(unused), server.callers.look_up(peer))
