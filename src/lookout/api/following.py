"""A thread that keeps a process's replies up to date, apart from the one that answers."""

import threading
from typing import Final

import structlog

from lookout.api.front import Front

_LOOK_EVERY_S: Final = 0.25

log = structlog.get_logger("server")


class Follower:
    """Looks at the store four times a second, from ``start`` to ``stop``."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow the store", daemon=True)

    def start(self) -> None:
        """The first look is taken at once: whoever asks next gets what is there."""
        self._look()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1)

    def _run(self) -> None:
        while not self._stopped.wait(_LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        try:
            self._front.look()
        except Exception:  # a bug; the replies stay as they are, and the next look may go well
            log.exception("a look at the store died of a bug")
