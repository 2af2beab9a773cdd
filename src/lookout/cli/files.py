"""Several files written together."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from stat import S_IMODE

from lookout.cli.arguments import fail


def write_all(documents: Mapping[Path, bytes]) -> None:
    """Write every file or, if one cannot be written, none; but each gets its name by itself, and if that fails for a
    later one, the earlier ones have theirs. Pipes and devices come last, and are never replaced. A new file is for its
    owner alone; one that was there stays for whom it was."""
    temporary: dict[Path, Path] = {}
    try:
        for path, body in documents.items():
            with _name_in_failure(path):
                if not _is_device(path):
                    target = path.resolve()
                    file, name = tempfile.mkstemp(prefix=".lookout-", dir=target.parent)
                    temporary[path] = Path(name)
                    with os.fdopen(file, "wb") as opened:
                        if target.exists():
                            os.fchmod(file, S_IMODE(target.stat().st_mode))
                        opened.write(body)
        for path, beside in temporary.items():
            with _name_in_failure(path):
                beside.replace(path.resolve())
        for path, body in documents.items():
            if path not in temporary:
                with _name_in_failure(path):
                    path.write_bytes(body)
    finally:
        for beside in temporary.values():
            beside.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    """Whether it is written in place. A folder cannot be written at all."""
    if path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    return path.exists() and not path.is_file()


@contextmanager
def _name_in_failure(path: Path) -> Iterator[None]:
    """A failure names the file as the user did."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go round in a circle
        fail(f"{path}: {error.strerror if isinstance(error, OSError) else error}")
