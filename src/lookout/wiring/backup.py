"""A store backed up into a file and restored from it, whichever kind it is."""

from pathlib import Path

from lookout.core.instants import format_instant
from lookout.core.pieces import Pieces, StateError
from lookout.core.wire import assembled_at
from lookout.monitor.alerting import decoded_alerts
from lookout.monitor.running import seen_in
from lookout.settings import Settings
from lookout.store import sqlite
from lookout.store.backup import Contents, contents_of, read_file, write_file
from lookout.store.protocol import Snapshot, StoreBusyError, StoreError, Writer
from lookout.wiring.stores import reader_of, sqlite_path


def back_up(settings: Settings, folder: Path, out: Path) -> tuple[Contents, int]:
    """What the new backup holds, and its size. Monitor and servers may be running. StoreError if the store or the file
    cannot be used, or the store holds nothing that could be restored."""
    if not out.absolute().parent.is_dir():
        raise StoreError(f"{out}: there is no folder {out.parent}; make it first")
    snapshot = _snapshot_of(settings, folder)
    contents = _checked(snapshot, "the store")
    return contents, write_file(snapshot, out)


def restore(settings: Settings, folder: Path, backup: Path, *, force: bool) -> Contents:
    """Make the store what the backup holds, all of it or nothing. StoreError if a monitor is writing to it, if the
    backup is none or not whole, or, without ``force``, if the store holds anything."""
    snapshot = read_file(backup)
    contents = _checked(snapshot, backup)
    try:
        writer = _open_writer(settings, folder)
    except StoreBusyError as error:
        raise StoreError(f"{error}; stop it, and restore then") from None
    try:
        if not force:
            _check_empty(writer, settings, folder, contents)
        writer.write(snapshot.documents, Pieces(snapshot.pieces, (), whole=True))
    finally:
        writer.close()
    return contents


def _checked(snapshot: Snapshot, name: object) -> Contents:
    """StoreError if a monitor could not go on from it, with all that it remembers."""
    contents = contents_of(snapshot, name)
    try:
        seen_in(snapshot.pieces)
        decoded_alerts(snapshot.pieces)
    except StateError as error:
        raise StoreError(f"{name}: is damaged: {error}") from None
    return contents


def _snapshot_of(settings: Settings, folder: Path) -> Snapshot:
    if path := sqlite_path(settings.store.url, folder):
        return read_file(path)
    from lookout.store.postgres_backup import read_database  # only who uses it pays for loading it

    return read_database(settings.store.url)


def _open_writer(settings: Settings, folder: Path) -> Writer:
    if path := sqlite_path(settings.store.url, folder):
        return sqlite.open_writer(path)
    from lookout.store import postgres

    return postgres.open_writer(settings.store.url)


def _check_empty(writer: Writer, settings: Settings, folder: Path, backed_up: Contents) -> None:
    reader = reader_of(settings, folder)
    try:
        live = reader.read("live")
    finally:
        reader.close()
    if live is None and not writer.load():
        return
    at = None if live is None else assembled_at(live.body)
    held = "a monitor's state" if at is None else f"a report of {format_instant(at)}"
    raise StoreError(
        f"the store holds {held}, and the backup one of {backed_up.generated_at}; --force replaces what is stored"
    )
