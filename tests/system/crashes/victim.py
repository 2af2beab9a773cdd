"""A program: publishes the tale into the SQLite store in a folder, and says what it is about to store and what it has.

It is what is killed, and what is given failing system calls.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import click

from lookout.store.protocol import StoreBehindError, StoreError, Writer
from lookout.store.sqlite import open_writer
from tests.system.crashes.story import EMPTY, LIVES, MonitorLife, Publication, Stored, life_begins_at

FILE: Final = "lookout.db"
_TRIES: Final = 40  # a call that fails for a while fails less often than that

T = TypeVar("T")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--life", "lives", type=int, multiple=True)
def main(folder: Path, lives: tuple[int, ...]) -> None:
    for life in lives:
        _live(life, folder / FILE)
    _say("end")


def _live(life: int, path: Path) -> None:
    writer = _until_it_goes_well(lambda: open_writer(path), "not opened")
    pieces = _until_it_goes_well(writer.load, "not loaded")
    monitor, stored, begins_at = MonitorLife(pieces), EMPTY, life_begins_at(life)
    monitor.start(begins_at)
    for number, wait in enumerate(LIVES[life]):
        for _ in range(_TRIES if wait == LIVES[life][-1] else 1):  # a monitor goes on; it has no last publication
            publication = monitor.publication(number, begins_at + wait)
            after = stored.after(publication)
            if _is_stored(writer, monitor, publication, after):
                monitor.stored()
                stored = after
                break
    writer.close()


def _is_stored(writer: Writer, monitor: MonitorLife, publication: Publication, after: Stored) -> bool:
    _say(f"storing {after.mark}")
    try:
        writer.write(*publication)
    except StoreError as error:
        if isinstance(error, StoreBehindError):
            monitor.write_whole()
        _complain("not stored", error)
        return False
    _say(f"stored {after.mark}")
    return True


def _until_it_goes_well(attempt: Callable[[], T], complaint: str) -> T:
    for _ in range(_TRIES):
        try:
            return attempt()
        except StoreError as error:
            _complain(complaint, error)
    sys.exit("it never went well")


def _complain(what: str, error: StoreError) -> None:
    _say(f"{what}: {error}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
