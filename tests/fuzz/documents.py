"""Damaged documents in a real store, under a server that has read good ones, and under one that starts on them.

Whatever stands there: what was served stays (A11, A12), the failure is counted and logged, and the next good document
is taken over. A server that never saw a good one answers 503, and lives.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hypothesis import strategies as st

from lookout.base.clock import SystemClock
from lookout.base.pieces import Pieces
from lookout.documents.document import Document, DocumentName, etag, paths
from lookout.documents.reports import documents_of
from lookout.server.poller import Poller
from lookout.server.replies import Site
from lookout.server.responder import respond
from lookout.store.sqlite import SqliteReader, open_writer
from tests.fuzz.hunt import Found, Kind
from tests.integration.served import a_ledger
from tests.simulation.silence import without_logs
from tests.untyped import untyped_documents

_FIVE_MINUTES: Final = 300_000
_PATHS: Final = dict(zip(("live", "history"), paths("protocol"), strict=True))
_ODD: Final[tuple[Any, ...]] = (
    None, 0, -1, 1, 2**63 - 1, -(2**63), 1.5, 1e300, "", "x", "\x00", '"0000000000000000"', '""', "*",
    '"a"\r\nX-Injected: yes', "\u0130" * 20, "12", "2026-11-15T12:00:00.000Z", b"", b"\x00", b"\xff" * 50, b"{}",
    b"\xef\xbb\xbf{}",
)  # fmt: skip
# A row is a body, an ETag and an instant. The ETag "right" is that of the body.
Row = tuple[Any, ...]
_GOOD: Final[Row] = (b"{}", "right", 1793880000000)
# Every wrong value in every place, the other row being good.
TABLE: Final = [
    {"live": _GOOD, "history": _GOOD, name: (*_GOOD[:place], odd, *_GOOD[place + 1 :])}
    for name in _PATHS
    for place in range(len(_GOOD))
    for odd in _ODD
]


def judge_rows(folder: Path, rows: dict[str, Row]) -> str:
    stored = {name: (row[0], _right(row[0]) if row[1] == "right" else row[1], row[2]) for name, row in rows.items()}
    shown = repr(rows).encode()
    with _servers(folder) as (path, poller, late):
        _put(path, stored)
        poller.poll()
        started = _poller(late)
        started.poll()
        for name, good in _good_documents().items():
            served, answered = _answer(poller, name), _answer(started, name)
            if name not in stored or _is_good(*stored[name][:2]):
                if 200 not in (served[0], answered[0]):
                    raise Found(f"a good {name} document was kept back", shown)
                continue
            if served != (200, good.body):
                raise Found(f"a damaged {name} document replaced the last good one by {served}", shown)
            if answered[0] != 503:
                raise Found(f"a server that starts on a damaged {name} document answers {answered[0]}", shown)
            if not poller.state.store_errors or not started.state.store_errors:
                raise Found(f"a damaged {name} document was not reported", shown)
        _put(path, {name: (each.body, each.etag, each.generated_at) for name, each in _good_documents().items()})
        poller.poll()
        for name, good in _good_documents().items():
            if _answer(poller, name) != (200, good.body):
                raise Found(f"the good {name} document was not taken over again", shown)
        return f"{started.state.generated_at is None} {poller.state.store_errors} {sorted(stored)}"


def judge_flips(folder: Path, flips: list[int]) -> str:
    """Bits of the file itself, by number: a server serves what it had, and one that starts now has that or none."""
    damaged = bytearray(good_store())
    for bit in flips:
        damaged[bit // 8] ^= 1 << bit % 8
    with _servers(folder) as (path, poller, _):
        path.unlink()
        path.write_bytes(damaged)
        poller.poll()
        with closing(SqliteReader(path)) as reader:
            started = _poller(reader)
            started.poll()
            for name, good in _good_documents().items():
                http_code, body = _answer(started, name)
                if _answer(poller, name) != (200, good.body) or (http_code == 200 and body != good.body):
                    raise Found(f"a damaged {name} document is served, or a good one no more", repr(flips).encode())
            return f"flips {[_answer(started, name)[0] for name in _PATHS]}"


@contextmanager
def _servers(folder: Path) -> Iterator[tuple[Path, Poller, SqliteReader]]:
    """A store, a server that has read it, and the reader of one that is still to start."""
    for left in folder.iterdir():
        left.unlink()
    path = folder / "lookout.db"
    path.write_bytes(good_store())
    with closing(SqliteReader(path)) as reader, closing(SqliteReader(path)) as late:
        poller = _poller(reader)
        poller.poll()
        yield path, poller, late


def _is_good(body: Any, tag: Any) -> bool:
    """Whether a monitor could have written this document; the instant beside it is nobody's business but its own."""
    return type(body) is bytes and tag == etag(body)


def _right(body: Any) -> str:
    return etag(body if type(body) is bytes else str(body).encode())


def _put(path: Path, rows: dict[Any, Row]) -> None:
    """Past the monitor, and past the types of the table."""
    with untyped_documents(path) as connection:
        connection.execute("DELETE FROM untyped")
        connection.executemany(
            "INSERT INTO untyped VALUES (?, ?, ?, ?)", ((name, *values) for name, values in rows.items())
        )


@cache
def _good_documents() -> dict[DocumentName, Document]:
    return {name: document for name, document in documents_of(a_ledger()).items() if name in _PATHS}


@cache
def good_store() -> bytes:
    """The file of a store, without its write-ahead log."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lookout.db"
        with closing(open_writer(path)) as writer:
            writer.write(_good_documents(), Pieces({}))
        return path.read_bytes()


def _poller(reader: SqliteReader) -> Poller:
    return Poller(reader, SystemClock(), _FIVE_MINUTES, Site(paths("protocol")))


def _answer(poller: Poller, name: str) -> tuple[int, bytes]:
    reply = respond(poller.resources, "GET", _PATHS[name], None)
    return reply.http_code, reply.body


_ROWS: Final = st.tuples(*(st.sampled_from((good, *_ODD)) | st.integers(-(2**63), 2**63 - 1) for good in _GOOD))
_DAMAGE: Final = st.dictionaries(st.sampled_from(list(_PATHS)), _ROWS)
_FLIPS: Final = st.lists(st.integers(0, 8 * len(good_store()) - 1), min_size=1, max_size=100)


@contextmanager
def _judging() -> Iterator[Callable[[Any], str]]:
    with without_logs(), TemporaryDirectory() as folder:
        yield lambda case: (judge_rows if isinstance(case, dict) else judge_flips)(Path(folder), case)


DOCUMENTS: Final = Kind(_DAMAGE | _FLIPS, _judging)
