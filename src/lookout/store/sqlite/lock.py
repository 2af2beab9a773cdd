"""A lock on a file beside a store, which the system releases when its holder dies, however it dies."""

import fcntl
import os
from pathlib import Path

from lookout.store.protocol import StoreBusyError, StoreError


class FileLock:
    """Keeps two monitors apart. It does so for as long as its file is there: ``hold`` makes one that was removed again,
    and what happened meanwhile is for the store to notice."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = store.with_name(store.name + "-lock")
        self._file: int | None = None

    def hold(self) -> None:
        """Take the lock, unless it is held; StoreBusyError if another monitor holds it."""
        if self._file is not None and self._is_in_place(self._file):
            return
        if not self._path.parent.is_dir():
            folder = self._path.parent
            raise StoreError(f"{self._store}: there is no folder {folder}; make it first, or change store.url")
        if self._path.is_symlink():
            raise StoreError(f"{self._path}: is a link; remove it")
        # For its owner alone. A link is not followed: anybody who may write to the folder could have put it there.
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise StoreBusyError(f"{self._store}: another monitor is writing to it") from None
        self.release()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _is_in_place(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.lstat(self._path))
        except FileNotFoundError:
            return False
