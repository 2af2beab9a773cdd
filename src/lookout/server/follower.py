"""Threads that keep a process's replies up to date, apart from the one that answers."""

import threading
from collections.abc import Callable
from typing import Final

from lookout.base.logger import get_logger
from lookout.server.responder import Responder

_LOOK_EVERY_S: Final = 0.125
_FIRST_LOOK_S: Final = 2.0
_LAST_LOOK_S: Final = 0.25

log = get_logger("server")


class Follower:
    """Looks at the store eight times a second, from ``start`` to ``stop``. A second thread looks at the time, since the
    first may hang with its store."""

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self._stopped = threading.Event()
        self._looked = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(name, work), name=f"look at {name}", daemon=True)
            for name, work in (("the store", self._look), ("the time", responder.check_time))
        ]

    def start(self) -> None:
        """The next request gets what is in the store, unless the store keeps it waiting."""
        for thread in self._threads:
            thread.start()
        self._looked.wait(_FIRST_LOOK_S)

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=_LAST_LOOK_S)

    def _look(self) -> None:
        try:
            self._responder.look()
        finally:
            self._looked.set()

    def _repeat(self, name: str, work: Callable[[], None]) -> None:
        while not self._stopped.is_set():
            try:
                work()
            except Exception:  # a bug; the replies stay as they are, and the next time may go well
                log.exception("a look died of a bug", look=name)
            self._stopped.wait(_LOOK_EVERY_S)
