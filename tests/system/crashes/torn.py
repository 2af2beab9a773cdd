"""The files of a killed monitor's store, torn as a disk that loses power may tear them, and worse.

``synchronous=FULL`` makes SQLite wait for the disk before a publication is acknowledged, so what is torn is what was
not. A torn log must leave exactly the last publication before the tear. Where more is broken than a crash can break
(the log is gone or another's, the database itself is damaged), the least that must hold: no document is served as
right that is not, what cannot be used is refused in a sentence, and no monitor goes on from a piece that nobody stored.
"""

import re
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from lookout.base.pieces import StateError
from lookout.documents.document import etag
from lookout.store.protocol import StoreError
from lookout.store.sqlite import SqliteReader, open_writer
from tests.builders import DAY, NOON
from tests.system.crashes.kinds import Attempt, Kind
from tests.system.crashes.story import EMPTY, MonitorLife, Publication, Stored, publications
from tests.system.crashes.verdict import NAMES, Wrong, examine_sqlite
from tests.system.crashes.victim import FILE

SECTOR: Final = 512
PAGE: Final = 4096
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
FRAME: Final = _FRAME_HEADER + PAGE
_FLIP_EVERY: Final = 37  # bytes, one bit each; the next has another place in its byte
_SEALED: Final = re.compile(rb'progress\{[^}]*\},"seal":"[0-9a-f]{16}"\}')  # every byte of what holds the seal
_GARBAGE: Final = bytes(range(1, 256)) * 17
_FILLINGS: Final = {"zero": bytes(SECTOR), "garbage": _GARBAGE[:SECTOR]}


class Files(NamedTuple):
    """A store's files; None for one that is not there."""

    database: bytes
    log: bytes | None
    shared: bytes | None


class Scene(NamedTuple):
    """The files that a killed monitor left, and what the store is after each transaction in the log."""

    files: Files
    states: tuple[Stored, ...]  # the first is what the database is without its log
    written_back: bytes  # the database once the whole log was written back into it
    earlier: tuple[Stored, ...] = ()

    @property
    def log(self) -> bytes:
        if self.files.log is None:
            raise ValueError("it has none")
        return self.files.log


class Case(NamedTuple):
    """Torn files, and the mark that the store must have; None if it may be refused. If it is not, a
    monitor goes on from one of the states in ``goes_on_from``, where those are known."""

    files: Files
    mark: str | None
    goes_on_from: tuple[Stored, ...] = ()


def scenes() -> dict[str, Scene]:
    """A store whose log is all there is; one with an older state in the database; one whose log began again over what
    was written back, so that old frames follow the new ones."""
    with tempfile.TemporaryDirectory(prefix="lookout-torn-") as name:
        tale = list(publications())
        first, second = tale[:5], tale[5:]
        new = _scene(Path(name) / "new", (EMPTY, EMPTY), first)  # raising the epoch is a transaction, too
        # Closing writes the log back and removes it, so that the second life begins with a log of its own.
        resumed = _scene(Path(name) / "new", (first[-1][1], first[-1][1]), second)
        path = Path(name) / "again" / FILE
        path.parent.mkdir()
        with closing(open_writer(path)) as writer, closing(SqliteReader(path)) as reader:
            for publication, _ in first:
                writer.write(*publication)
            reader.read("live")
            _write_back(path)
            again = _written(path, (first[-1][1],), second, writer.write)
    earlier = tuple(stored for _, stored in first)
    return {"new": new, "resumed": resumed._replace(earlier=earlier), "again": again._replace(earlier=earlier)}


def _scene(folder: Path, base: tuple[Stored, ...], tale: Sequence[tuple[Publication, Stored]]) -> Scene:
    folder.mkdir(exist_ok=True)
    with closing(open_writer(folder / FILE)) as writer:
        return _written(folder / FILE, base, tale, writer.write)


def _written(
    path: Path,
    base: tuple[Stored, ...],
    tale: Sequence[tuple[Publication, Stored]],
    write: Callable[..., None],
) -> Scene:
    for publication, _ in tale:
        write(*publication)
    files = Files(*(path.with_name(FILE + suffix).read_bytes() for suffix in ("", "-wal", "-shm")))
    with tempfile.TemporaryDirectory() as name:
        copy = put(files, Path(name))
        _write_back(copy)
        return Scene(files, (*base, *(stored for _, stored in tale)), copy.read_bytes())


def _write_back(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        if busy:
            raise RuntimeError("the log could not be written back")


def put(files: Files, folder: Path) -> Path:
    """The database's path."""
    for content, suffix in zip(files, ("", "-wal", "-shm"), strict=True):
        if content is not None:
            (folder / (FILE + suffix)).write_bytes(content)
    return folder / FILE


def cases(scene: Scene, other: Scene) -> Iterator[tuple[str, Callable[[], Case]]]:
    """Everything that is torn, by name; made when it is tried, since all of it would fill the memory."""
    files, last = scene.files, scene.states[-1].mark
    log = scene.log
    for length in sorted({*range(0, len(log) + 1, SECTOR), *range(_LOG_HEADER, len(log) + 1, FRAME), len(log) - 1}):
        yield f"cut-{length}", partial(_with_log, scene, slice(0, length))
    for frame in range(len(log) // FRAME):
        begin = _LOG_HEADER + frame * FRAME
        for at in (begin, begin + 9, begin + _FRAME_HEADER, begin + FRAME // 2, begin + FRAME - 1):
            yield f"flip-{at}", partial(_with_log, scene, at=at, filling=bytes([log[at] ^ 0x40]))
    end = _LOG_HEADER + _valid(log) * FRAME
    for begin in range(end - 2 * FRAME, end, SECTOR):
        for name, filling in _FILLINGS.items():
            yield f"{name}-{begin}", partial(_with_log, scene, at=begin, filling=filling)
    for at in range(_LOG_HEADER):
        yield f"header-{at}", partial(_with_log, scene, at=at, filling=bytes([log[at] ^ 0xFF]))
    for name, torn, mark in (
        ("log-garbage", files._replace(log=_GARBAGE * 20), scene.states[0].mark),
        ("log-gone", files._replace(log=None, shared=None), scene.states[0].mark),
        ("log-gone-alone", files._replace(log=None), scene.states[0].mark),
        ("log-of-another", files._replace(log=other.log, shared=None), None),
        ("index-gone", files._replace(shared=None), last),
        ("index-garbage", files._replace(shared=_GARBAGE * 8), last),
        ("index-of-another", files._replace(shared=other.files.shared), last),
    ):
        yield name, partial(Case, torn, mark)
    for page in range(len(scene.written_back) // PAGE):
        tears: tuple[int | str, ...] = (SECTOR, PAGE // 2, PAGE - 1, *_FILLINGS)
        for tear in tears:
            yield f"page-{page}-{tear}", partial(_written_back_by_half, scene, page, tear)
        yield f"needed-{page}", partial(_without_a_log_that_is_needed, scene, page)
    for begin in range(0, len(scene.written_back), SECTOR):
        flipped = bytes([scene.written_back[begin] ^ 0x11])
        for name, filling in {**_FILLINGS, "flip": flipped}.items():
            yield f"damage-{begin}-{name}", partial(_damaged, scene, begin, filling)
        yield f"short-{begin}", partial(_damaged, scene, begin, None)
    sealed = (found.span() for found in _SEALED.finditer(scene.written_back))
    for at in {*range(0, len(scene.written_back), _FLIP_EVERY), *(at for span in sealed for at in range(*span))}:
        yield f"rot-{at}", partial(_damaged, scene, at, bytes([scene.written_back[at] ^ 1 << at % 8]))


def _with_log(scene: Scene, kept: slice = slice(None), at: int = 0, filling: bytes = b"") -> Case:
    """With a log that is torn, the store is what the transactions made of it that are whole in it."""
    log = (scene.log[:at] + filling + scene.log[at + len(filling) :])[kept]
    whole = sum(_commits(log, frame) for frame in range(_valid(log)))
    return Case(scene.files._replace(log=log, shared=None), scene.states[whole].mark)


def _written_back_by_half(scene: Scene, page: int, tear: int | str) -> Case:
    """Killed while the log was written back: some pages are new, one is torn, and the whole log is there."""
    old, new = scene.files.database, scene.written_back
    if isinstance(tear, int):
        at = page * PAGE + tear
        database = new[:at] + old[at:]
    else:
        at = (page + 1) * PAGE
        database = new[: at - SECTOR] + _FILLINGS[tear] + new[at:]
    return Case(scene.files._replace(database=database), scene.states[-1].mark)


def _without_a_log_that_is_needed(scene: Scene, page: int) -> Case:
    """Worse than a crash: and then the log is gone."""
    at = page * PAGE
    return Case(Files(scene.written_back[:at] + scene.files.database[at:], None, None), None)


def _damaged(scene: Scene, begin: int, filling: bytes | None) -> Case:
    """Worse than a crash: the database alone, and something in it is broken, or it ends too early."""
    whole = scene.written_back
    database = whole[:begin] if filling is None else whole[:begin] + filling + whole[begin + len(filling) :]
    return Case(Files(database, None, None), None, (scene.states[-1] if database else EMPTY,))


def _valid(log: bytes) -> int:
    """How many frames there are before the first that is torn, by the format's own checksums."""
    if len(log) < _LOG_HEADER:
        return 0
    magic, _, page, _, *salts, one, two = struct.unpack(">8I", log[:_LOG_HEADER])
    order = {0x377F0682: "<", 0x377F0683: ">"}.get(magic)
    if order is None or page != PAGE:
        return 0
    sums = _checksum(order, log[: _LOG_HEADER - 8], (0, 0))
    frames = 0
    if sums != (one, two):
        return 0
    while len(log) >= _LOG_HEADER + (frames + 1) * FRAME:
        begin = _LOG_HEADER + frames * FRAME
        _, _, *salts_here, one, two = struct.unpack(">6I", log[begin : begin + _FRAME_HEADER])
        sums = _checksum(order, log[begin : begin + 8] + log[begin + _FRAME_HEADER : begin + FRAME], sums)
        if salts_here != salts or sums != (one, two):
            break
        frames += 1
    return frames


def _checksum(order: str, content: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def _commits(log: bytes, frame: int) -> bool:
    begin = _LOG_HEADER + frame * FRAME
    return log[begin + 4 : begin + 8] != b"\0\0\0\0"


@contextmanager
def prepare_tears() -> Iterator[tuple[Sequence[str], Attempt]]:
    made = scenes()
    others = {"new": "resumed", "resumed": "new", "again": "new"}
    everything = {
        f"{name}:{torn}": case for name, scene in made.items() for torn, case in cases(scene, made[others[name]])
    }
    known = {d.body for scene in made.values() for s in (*scene.states, *scene.earlier) for d in s.documents.values()}
    yield list(everything), partial(attempt, everything, known)


def attempt(everything: Mapping[str, Callable[[], Case]], known: Set[bytes], point: str) -> None:
    case = everything[point]()
    with tempfile.TemporaryDirectory(prefix="lookout-torn-") as name:
        path = put(case.files, Path(name))
        if case.mark is not None:
            examine_sqlite(path, {case.mark}, EMPTY.mark)
        else:
            _bear(path, known, [stored.pieces for stored in case.goes_on_from])


def _bear(path: Path, known: Set[bytes], may_be: Sequence[Mapping[str, bytes]]) -> None:
    """The least that must hold of a store with which anything may have happened."""
    _check_served(path, known)
    try:
        with closing(open_writer(path)) as writer:
            pieces = writer.load()
            monitor = MonitorLife(pieces)
            if may_be and pieces not in may_be:
                raise Wrong("a monitor goes on from pieces that nobody stored")
            at = NOON + 20 * DAY
            monitor.start(at)
            publication = monitor.publication(0, at)
            writer.write(*publication)
    except (StoreError, StateError) as refusal:
        if "\n" in str(refusal) or not str(refusal):
            raise Wrong(f"not a sentence: {refusal!r}") from refusal
        return
    _check_served(path, known | {document.body for document in publication.documents.values()})


def _check_served(path: Path, known: Set[bytes]) -> None:
    with closing(SqliteReader(path)) as reader:
        for name in NAMES:
            try:
                reader.changed()
                document = reader.read(name)
            except StoreError:
                continue
            if document is None or etag(document.body) != document.etag:
                continue  # a server notices
            if document.body not in known:
                raise Wrong(f"a wrong {name} document has the right ETag")


KINDS: Final = {"sqlite-torn": Kind("torn stores", prepare_tears)}
