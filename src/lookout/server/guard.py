"""Closes connections that keep others out: those that make no progress, and too many of one address (A16).

The server closes a connection that sends no request for 30 s. It waits without end for one that does not read its
answers, and counts nobody's connections.
"""

import sys
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.server.callers import Callers
from lookout.server.connections import (
    ConnectionProgress,
    ConnectionSnapshot,
    close_connection,
    find_peer,
    list_open_files,
    take_snapshot,
)
from lookout.server.counts import Closed, OwnCounts
from lookout.server.crowds import Crowds

STALLED_S: Final = 30.0
_LOOK_EVERY_S: Final = 1.0
_UNDER_ATTACK_S: Final = 0.1  # a caller that waits to be let in may be behind many that will be closed
_REST: Final = 20  # times as long as a look took: up to some thousand connections, not more than a twentieth of a core
_LONGEST_REST_S: Final = 3.0  # the other processes soon take one that is not heard of for gone
_AT_ONCE: Final = 100  # connections; then requests get their turn
_TURN_S: Final = 0.001

log = get_logger("server")


class Allowed(NamedTuple):
    """What one server allows its connections."""

    port: int
    per_address: int  # 0: any number
    stalled_s: float
    crowds: Crowds


@dataclass(slots=True)
class _Connection:
    cookie: bytes
    network_hash: int | None  # of its peer's network; None if that may have any number
    order: int  # in which they were met
    progress: ConnectionProgress
    moved_ms: int
    is_ended: bool = False


class Guard:
    """Looks at the connections of this process about once a second, from ``start`` to ``stop``."""

    def __init__(self, allowed: Allowed, callers: Callers, counts: OwnCounts, clock: Clock) -> None:
        self._allowed = allowed
        self._callers = callers  # its own: a flood of addresses is not to push readers out of the other one's memory
        self._crowds = allowed.crowds.attach()
        self._counts = counts
        self._clock = clock
        self._known: dict[int, _Connection] = {}  # by the number of its file
        self._met = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="look at the connections", daemon=True)

    def start(self) -> None:
        if sys.platform == "linux":  # others have no /proc
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def look(self) -> bool:
        """Close what has to be; whether one address had too many."""
        now_ms = self._clock.elapsed_ms()
        self._known = self._look_at_all(now_ms)
        for number, connection in self._known.items():
            if now_ms - connection.moved_ms >= self._allowed.stalled_s * 1000:
                self._close(number, connection, "stalled")
        was_crowded = self._close_excess(now_ms) if self._allowed.per_address else False
        self._counts.set_open(sum(not connection.is_ended for connection in self._known.values()))
        return was_crowded

    def _look_at_all(self, now_ms: int) -> dict[int, _Connection]:
        known: dict[int, _Connection] = {}
        for looked, number in enumerate(list_open_files(), 1):
            if not looked % _AT_ONCE:
                time.sleep(_TURN_S)
            snapshot = take_snapshot(number)
            if snapshot is None:
                continue
            connection = self._known.get(number)
            if connection is None or connection.cookie != snapshot.cookie:
                connection = self._meet(number, snapshot, now_ms)
                if connection is None:
                    continue
            elif snapshot.progress != connection.progress:
                if snapshot.progress.is_ahead_of(connection.progress):
                    connection.moved_ms = now_ms
                connection.progress = snapshot.progress
            known[number] = connection
        return known

    def _meet(self, number: int, snapshot: ConnectionSnapshot, now_ms: int) -> _Connection | None:
        """None if it is not one that a reader opened."""
        peer = find_peer(number, snapshot.cookie, self._allowed.port)
        if peer is None:
            return None
        self._met += 1
        network = self._callers.find_network(peer)
        network_hash = None if network is None else self._crowds.hash_network(network)
        return _Connection(snapshot.cookie, network_hash, self._met, snapshot.progress, now_ms)

    def _close_excess(self, now_ms: int) -> bool:
        """The newest go: they may be the flood."""
        of_address: dict[int, list[int]] = defaultdict(list)
        for number, connection in self._known.items():
            if connection.network_hash is not None and not connection.is_ended:
                of_address[connection.network_hash].append(number)
        numbers_of = Counter({name: len(numbers) for name, numbers in of_address.items()})
        excess = self._crowds.count_excess(numbers_of, self._allowed.per_address, now_ms)
        for name, too_many in excess.items():
            newest_first = sorted(of_address[name], key=lambda number: -self._known[number].order)
            for number in newest_first[:too_many]:
                self._close(number, self._known[number], "crowded")
        return bool(excess)

    def _close(self, number: int, connection: _Connection, reason: Closed) -> None:
        if not connection.is_ended and close_connection(
            number, ConnectionSnapshot(connection.cookie, connection.progress)
        ):
            self._counts.count_closed(reason)
            connection.is_ended = True

    def _repeat(self) -> None:
        rest_s = _LOOK_EVERY_S
        while not self._stopped.wait(rest_s):
            began_s = time.thread_time()
            try:
                is_crowded = self.look()
            except Exception:  # a bug; the next look may go well
                log.exception("a look died of a bug", look="the connections")
                is_crowded = False
            took_s = time.thread_time() - began_s
            rest_s = _UNDER_ATTACK_S if is_crowded else min(max(_LOOK_EVERY_S, _REST * took_s), _LONGEST_REST_S)
