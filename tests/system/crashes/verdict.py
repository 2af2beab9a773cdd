"""What must hold of a store after anything happened to it: it is exactly what some publication left, and goes on."""

import sqlite3
from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from lookout.base.instants import parse_second
from lookout.documents.document import Document, DocumentName, etag
from lookout.store.protocol import Reader, StoreError, Writer
from lookout.store.sqlite.writer import SqliteReader, open_writer
from tests.builders import MINUTE, NOON
from tests.system.crashes.story import Stored, Teller

NAMES: tuple[DocumentName, ...] = ("live", "history")


class Wrong(Exception):  # noqa: N818  it is no error of the program's
    """Something that must never be; the text says what."""


class Heard(NamedTuple):
    """What a victim said before it ended."""

    stored: str | None  # the mark of the last publication that it was told is stored
    storing: tuple[str, ...]  # the marks of those that it tried to store since
    complaints: tuple[str, ...]
    ended: bool

    def may_be(self, before: str) -> frozenset[str]:
        """What the store may be: nothing that was acknowledged is lost, and nothing is there by half."""
        return frozenset({self.stored or before, *self.storing})


def heard(said: str) -> Heard:
    stored, storing, complaints, ended = None, list[str](), list[str](), False
    for line in said.splitlines():
        match line.split(" ", 1):
            case ["storing", mark]:
                storing.append(mark)
            case ["stored", mark]:
                stored, storing = mark, []
            case ["end"]:
                ended = True
            case _:
                complaints.append(line)
    return Heard(stored, tuple(storing), tuple(complaints), ended)


def read_documents(reader: Reader) -> dict[DocumentName, Document]:
    """Wrong if a server would be given bytes that are not those of the ETag."""
    reader.changed()
    documents: dict[DocumentName, Document] = {}
    for name in NAMES:
        document = reader.read(name)
        if document is not None:
            if etag(document.body) != document.etag:
                raise Wrong(f"the {name} document is not that of its ETag")
            documents[name] = document
    return documents


def examine_sqlite(path: Path, may_be: Collection[str], before: str, readers: Iterable[SqliteReader] = ()) -> None:
    """Wrong unless servers can read the store, a monitor can open it and go on, and it is one of what it may be.

    ``before`` is the mark of a store to which nothing was written: there a server may have to wait for the monitor.
    """
    with closing(SqliteReader(path)) as new:
        for reader in (*readers, new):
            try:
                seen = Stored(read_documents(reader), {})
            except StoreError as error:
                if before not in may_be:
                    raise Wrong(f"a server cannot read it: {error}") from error
            else:
                _check(seen.mark.partition("/")[0], {mark.partition("/")[0] for mark in may_be}, "a server reads")
        with closing(_opened(path)) as writer:
            pieces = writer.load()
            stored = Stored(read_documents(new), pieces)
            _check(stored.mark, may_be, "there is")
            check_integrity(path)
            after = resume(writer, stored)
            for reader in (*readers, new):
                if Stored(read_documents(reader), after.pieces) != after:
                    raise Wrong("a server does not read what was published after it")
            if Stored(after.documents, writer.load()) != after:
                raise Wrong("what was published after it is not what is stored")


def resume(writer: Writer, stored: Stored) -> Stored:
    """Go on from what is stored, as a monitor that starts; what is stored then."""
    teller = Teller(stored.pieces)
    live = stored.documents.get("live")
    at = 10 * MINUTE + (NOON if live is None else live.generated_at)
    teller.start(at)
    publication = teller.publication(1, at)
    writer.write(*publication)
    after = stored.after(publication)
    if live is not None:
        check_rows(live, after.documents["live"])
    if "history" in stored.documents:
        before, now = (ended_buckets(of.documents["history"]) for of in (stored, after))
        changed = [bucket for bucket in before.keys() & now.keys() if before[bucket] != now[bucket]]
        if changed:
            raise Wrong(f"an ended bucket changed: {changed[0]}")
    return after


def ended_buckets(history: Document) -> dict[tuple[str, int | None, int], str]:
    """The characters, by row and instant."""
    document = msgspec.json.decode(history.body)
    from_at, bucket_ms = parse_second(document["from"]), 1000 * document["bucketSeconds"]
    return {
        (row["service"], row["chainId"], from_at + n * bucket_ms): character
        for row in document["rows"]
        for n, character in enumerate(row["buckets"][:-1])
    }


def check_rows(before: Document, now: Document) -> None:
    """A success that is remembered is never forgotten."""
    last = {(row["service"], row["chainId"]): row["lastSuccessAt"] for row in msgspec.json.decode(now.body)["checks"]}
    for row in msgspec.json.decode(before.body)["checks"]:
        was, now_is = row["lastSuccessAt"], last[row["service"], row["chainId"]]
        if was is not None and (now_is is None or now_is < was):
            raise Wrong(f"{row['service']} {row['chainId']} had the lastSuccessAt {was} and has {now_is}")


def _check(mark: str, may_be: Collection[str], what: str) -> None:
    if mark not in may_be:
        raise Wrong(f"{what} {mark}, not what a publication left ({' or '.join(sorted(may_be))})")


def check_integrity(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("PRAGMA integrity_check").fetchall()
    if found != [("ok",)]:
        raise Wrong(f"integrity_check: {found[0][0]}")


def _opened(path: Path) -> Writer:
    try:
        return open_writer(path)
    except StoreError as error:
        raise Wrong(f"a monitor cannot open it: {error}") from error
