"""``unix:PATH``: a socket that is a file, for its owner alone."""

import errno
import os
import socket
import stat
from pathlib import Path
from typing import Final

PREFIX: Final = "unix:"


def is_unix(address: str) -> bool:
    return address.startswith(PREFIX)


def resolve(address: str, folder: Path) -> str:
    """The address with an absolute path; one that is not ``unix:`` is returned unchanged."""
    return f"{PREFIX}{folder.absolute() / path_of(address)}" if is_unix(address) else address


def can_be_asked(address: str) -> bool:
    """Whether the address of an admin port says where to ask: there may be none, or a port that the system chooses."""
    return address != "" and (is_unix(address) or not address.endswith(":0"))


def path_of(address: str) -> str:
    return address.removeprefix(PREFIX)


def bind(listener: socket.socket, path: str) -> None:
    """Make the file, in the place of one that nobody listens on any more. OSError if it is somebody's, or no socket."""
    if _is_left_over(path):
        Path(path).unlink()
    listener.bind(path)
    Path(path).chmod(0o600)  # nobody can connect before it listens


def _is_left_over(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "there is a file that is no socket")
    with socket.socket(socket.AF_UNIX) as trial:
        trial.settimeout(1)
        try:
            trial.connect(path)
        except ConnectionRefusedError:
            return True
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
