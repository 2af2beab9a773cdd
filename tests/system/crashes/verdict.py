"""What must hold of a store after anything happened to it: it is exactly what some publication left, and goes on."""

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from lookout.documents.document import Document, DocumentName, etag
from lookout.store.protocol import Reader, StoreError, Writer
from lookout.store.sqlite import SqliteReader, open_writer
from tests.builders import MINUTE, NOON
from tests.oracles.history import EndedBuckets
from tests.system.crashes.story import MonitorLife, Stored

NAMES: tuple[DocumentName, ...] = ("live", "history")

Documents = Mapping[DocumentName, Document]


class Wrong(Exception):  # noqa: N818  it is no error of the program's
    """Something that must never be; the text says what."""


class Heard(NamedTuple):
    """What a victim said before it ended."""

    stored: str | None  # the mark of the last publication that was acknowledged
    storing: tuple[str, ...]  # the marks of those that it tried to store since
    complaints: tuple[str, ...]
    ended: bool

    def may_be(self, before: str) -> frozenset[str]:
        """What the store may be: nothing that was acknowledged is lost, and nothing is there by half."""
        return frozenset({self.stored or before, *self.storing})


def parse_said(said: str) -> Heard:
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
        with closing(_open(path)) as writer:
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
    monitor = MonitorLife(stored.pieces)
    live = stored.documents.get("live")
    at = 10 * MINUTE + (NOON if live is None else live.generated_at)
    monitor.start(at)
    publication = monitor.publication(1, at)
    writer.write(*publication)
    after = stored.after(publication)
    check_nothing_is_forgotten(stored.documents, after.documents)
    return after


def check_nothing_is_forgotten(before: Documents, now: Documents) -> None:
    """No success, and no ended bucket."""
    if "live" in before:
        _check_rows(before["live"], now["live"])
    if "history" in before:
        ended = EndedBuckets()
        for document in (before["history"], now["history"]):
            for changed in ended.changed(msgspec.json.decode(document.body)):
                raise Wrong(changed)


def _check_rows(before: Document, now: Document) -> None:
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


def _open(path: Path) -> Writer:
    try:
        return open_writer(path)
    except StoreError as error:
        raise Wrong(f"a monitor cannot open it: {error}") from error
