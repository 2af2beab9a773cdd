"""Backs a store of any kind up into a file, and restores it."""

import re
from pathlib import Path
from typing import Final, NamedTuple, get_args

import msgspec

from lookout.base.instants import format_instant, format_second
from lookout.config.settings import Settings
from lookout.documents.document import PlainName, etag
from lookout.documents.reports import HistoryReport, LiveReport
from lookout.features.registry import decode_all
from lookout.state.codec import decode_state, encode_state
from lookout.state.errors import StateError
from lookout.store.kinds import kind_of
from lookout.store.protocol import Snapshot, StoreBusyError, StoreError, Writer
from lookout.store.sqlite import read_snapshot, write_file

_KEPT_NAME: Final = re.compile(r"lookout-[0-9]{8}T[0-9]{6}Z\.db")
_NAMES: Final[tuple[PlainName, ...]] = get_args(PlainName)


class Contents(NamedTuple):
    """A summary of a snapshot, from its documents."""

    rows: int
    from_: str
    to: str
    generated_at: str


def back_up(settings: Settings, folder: Path, out: Path) -> tuple[Contents, int]:
    """Make a backup; returns its contents and size. Monitor and servers may be running. StoreError if the store or the
    file cannot be used, or the store holds nothing to restore."""
    if not out.absolute().parent.is_dir():
        raise StoreError(f"{out}: there is no folder {out.parent}; make it first")
    url = settings.store.url
    snapshot = kind_of(url).read_snapshot(url, folder)
    contents, state = _check(snapshot, "the store")
    return contents, write_file(Snapshot(snapshot.documents, state), out)


def name_backup(at: int) -> str:
    return f"lookout-{re.sub('[-:]', '', format_second(at))}.db"


def remove_old_backups(made: Path, keep: int) -> list[Path]:
    """Remove the oldest backups in the folder of the new one until ``keep`` remain. The new one always stays, whatever
    the clock says: only it was verified. StoreError if a backup cannot be removed."""
    kept = (
        path
        for path in made.parent.iterdir()
        if _KEPT_NAME.fullmatch(path.name) and path.name != made.name and path.is_file() and not path.is_symlink()
    )
    # A name with a later instant comes from a clock that was ahead: its age is unknown.
    others = sorted(kept, key=lambda path: (path.name < made.name, path.name))
    old = others[: max(0, len(others) + 1 - keep)]
    for path in old:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: cannot be removed: {error.strerror}") from None
    return old


def restore(settings: Settings, folder: Path, backup: Path, *, force: bool) -> Contents:
    """Replace the store's content by the backup's, atomically.
    StoreError if a monitor is writing to the store, if the backup is not one or damaged, or, without ``force``, if the
    store is not empty."""
    snapshot = read_snapshot(backup)
    contents, state = _check(snapshot, backup)
    url = settings.store.url
    try:
        writer = kind_of(url).open_writer(url, folder)
    except StoreBusyError as error:
        raise StoreError(f"{error}; stop it first") from None
    try:
        if not force:
            _check_empty(writer, url, folder, contents)
        writer.write(snapshot.documents, state)
    finally:
        writer.close()
    return contents


def _check(snapshot: Snapshot, name: object) -> tuple[Contents, dict[str, bytes]]:
    """A summary, and the state's documents in today's form. StoreError, with this name, if the snapshot is damaged: a
    document is missing or not what was stored, or no monitor could resume its state."""
    for needed in _NAMES:
        if needed not in snapshot.documents:
            raise StoreError(f"{name}: holds no {needed} document: no monitor has published into it yet")
    for which, document in snapshot.documents.items():
        if etag(document.body) != document.etag:
            raise StoreError(f"{name}: is damaged: the {which} document is not the one that its ETag was made of")
    try:
        decode_all(snapshot.state)
        state, others = decode_state(snapshot.state)
        if state is None:
            raise StoreError(f"{name}: holds no state that a monitor could go on from")
        live = msgspec.json.decode(snapshot.documents["live"].body, type=LiveReport)
        history = msgspec.json.decode(snapshot.documents["history"].body, type=HistoryReport)
    except (StateError, msgspec.DecodeError) as error:
        raise StoreError(f"{name}: is damaged: {error}") from None
    contents = Contents(len(live.checks), history.from_, history.to, live.generated_at)
    return contents, encode_state(state, others).documents


def _check_empty(writer: Writer, url: str, folder: Path, backed_up: Contents) -> None:
    reader = kind_of(url).open_reader(url, folder, "store.url")
    try:
        live = reader.read("live")
    finally:
        reader.close()
    if live is None and not writer.load():
        return
    held = "a monitor's state" if live is None else f"a report of {format_instant(live.generated_at)}"
    raise StoreError(
        f"the store holds {held}, and the backup one of {backed_up.generated_at}; --force replaces what is stored"
    )
