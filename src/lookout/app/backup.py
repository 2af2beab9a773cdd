"""A store backed up into a file and restored from it, whichever kind it is."""

from collections.abc import Mapping
from pathlib import Path

from lookout.app.stores import reader_of, sqlite_path
from lookout.base.instants import format_instant
from lookout.config.settings import Settings
from lookout.documents.document import assembled_at
from lookout.monitor.monitor import seen_in
from lookout.state.alerts import decode_alerts, mark_restored, select_alerts
from lookout.state.pieces import Pieces, StateError, decode_state, sealed
from lookout.state.seal import Seal
from lookout.store.backup import Contents, contents_of, read_file, write_file
from lookout.store.protocol import Snapshot, StoreBusyError, StoreError, Writer
from lookout.store.sqlite import writer as sqlite


def back_up(settings: Settings, folder: Path, out: Path) -> tuple[Contents, int]:
    """What the new backup holds, and its size. Monitor and servers may be running. StoreError if the store or the file
    cannot be used, or the store holds nothing that could be restored."""
    if not out.absolute().parent.is_dir():
        raise StoreError(f"{out}: there is no folder {out.parent}; make it first")
    snapshot = _snapshot_of(settings, folder)
    contents = _checked(snapshot, "the store")
    # Here already, since not only ``restore`` puts a backup back: its file is a store, too.
    return contents, write_file(Snapshot(snapshot.documents, _sealed(_marked(snapshot.pieces, settings)).put), out)


def restore(settings: Settings, folder: Path, backup: Path, *, force: bool) -> Contents:
    """Make the store what the backup holds, all of it or nothing, but for alerts: what was sent since stays sent.
    StoreError if a monitor is writing to it, if the backup is none or not whole, or, without ``force``, if the store
    holds anything."""
    snapshot = read_file(backup)
    contents = _checked(snapshot, backup)
    try:
        writer = _open_writer(settings, folder)
    except StoreBusyError as error:
        raise StoreError(f"{error}; stop it first") from None
    try:
        if not force:
            _check_empty(writer, settings, folder, contents)
        writer.write(snapshot.documents, _sealed(_with_later_alerts(snapshot, writer, settings)))
    finally:
        writer.close()
    return contents


def _with_later_alerts(snapshot: Snapshot, writer: Writer, settings: Settings) -> dict[str, bytes]:
    """The backup's pieces, with the episodes and messages of the store, unless that is older: an alert that was sent
    since the backup needs its end. If only the backup is left, the monitor has to say that it does not know of such
    alerts."""
    backed_up, stored = snapshot.pieces, _usable(writer)
    if stored is not None and _published_at(stored) >= _published_at(backed_up):
        others = {name: piece for name, piece in backed_up.items() if name not in select_alerts(backed_up)}
        return others | select_alerts(stored)
    return _marked(backed_up, settings)  # an earlier version, or one that alerted nobody, did not


def _marked(pieces: dict[str, bytes], settings: Settings) -> dict[str, bytes]:
    return mark_restored(pieces, _published_at(pieces)) if settings.alerts.targets else pieces


def _sealed(pieces: dict[str, bytes]) -> Pieces:
    return sealed(Pieces(pieces, (), whole=True), Seal())


def _usable(writer: Writer) -> dict[str, bytes] | None:
    """What is stored, unless it is damaged: then it is about to be replaced for that."""
    try:
        stored = writer.load()
        decode_alerts(stored)
        return None if decode_state(stored) is None else stored
    except (StateError, StoreError):
        return None


def _published_at(pieces: Mapping[str, bytes]) -> int:
    state = decode_state(pieces)
    return 0 if state is None or state.history is None else state.history.reached.published_at


def _checked(snapshot: Snapshot, name: object) -> Contents:
    """StoreError if a monitor could not go on from it, with all that it remembers."""
    contents = contents_of(snapshot, name)
    try:
        seen_in(snapshot.pieces)
        decode_alerts(snapshot.pieces)
    except StateError as error:
        raise StoreError(f"{name}: is damaged: {error}") from None
    return contents


def _snapshot_of(settings: Settings, folder: Path) -> Snapshot:
    if path := sqlite_path(settings.store.url, folder):
        return read_file(path)
    from lookout.store.postgres.backup import read_database  # only who uses it pays for loading it

    return read_database(settings.store.url)


def _open_writer(settings: Settings, folder: Path) -> Writer:
    if path := sqlite_path(settings.store.url, folder):
        return sqlite.open_writer(path)
    from lookout.store.postgres import writer as postgres

    return postgres.open_writer(settings.store.url)


def _check_empty(writer: Writer, settings: Settings, folder: Path, backed_up: Contents) -> None:
    reader = reader_of(settings.store.url, folder)
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
