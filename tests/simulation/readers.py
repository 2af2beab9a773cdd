"""Both readers for days on a virtual clock: behind caches that have older copies, on networks that lose requests.

``python -m tests.simulation.readers`` prints how often a day a healthy row is shown stale.
"""

import json
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from random import Random
from threading import Event
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from lookout_reader import Answer, NoAnswer, effective_status, find_row, poll
from tests.nodejs import READER, find_node

NOON: Final = 1_794_744_000_000
DAY_S: Final = 86_400
_SCRIPT: Final = Path(__file__).with_name("readers.mjs")
_FRESH_S, _STALE_S, _ERROR_S = 30, 60, 330  # of a shared copy: s-maxage, and what may be served after it (E3)


class Reply(NamedTuple):
    """A body, or None if the request is lost, after so many seconds."""

    after_s: float
    body: str | None


Respond = Callable[[float], Reply]
Shown = Sequence[tuple[float, str]]
"""What the row was shown as from which second on."""


class Origin:
    """One row: probed every 30 to 33 s for up to 10 s, and published a second later (M15); down from ``down_s`` on."""

    def __init__(self, chance: Random, down_s: float = float("inf")) -> None:
        self._chance, self._down_s = chance, down_s
        self._probed_s = -200.0
        self._published: list[tuple[float, str]] = []

    def report(self, now_s: float) -> str:
        while not self._published or self._published[-1][0] <= now_s:
            self._probed_s += self._chance.uniform(30, 33)
            seen_s = self._probed_s + self._chance.uniform(0, 10)
            status = "current" if seen_s < self._down_s else "unavailable"
            self._published.append((seen_s + 1, _report(seen_s, status)))
        return self._published[bisect_right(self._published, now_s, key=itemgetter(0)) - 1][1]


class Edge:
    """A shared cache by E3. A busy one is asked by others all the time; one that is cut off has its last copy alone."""

    def __init__(self, origin: Origin, *, is_busy: bool, cut_off_s: float = float("inf")) -> None:
        self._origin, self._is_busy, self._cut_off_s = origin, is_busy, cut_off_s
        self._fetched_s = float("-inf")
        self._copy = ""

    def report(self, now_s: float) -> str | None:
        if self._is_busy:
            last_s = min(now_s, self._cut_off_s)
            for at_s in range(int(max(self._fetched_s + _FRESH_S, last_s - _FRESH_S)), int(last_s) + 1):
                if at_s - self._fetched_s >= _FRESH_S:
                    self._fetch(at_s)
        age_s = now_s - self._fetched_s
        if age_s < _FRESH_S:
            return self._copy
        served = self._copy if age_s < _STALE_S else None
        if now_s < self._cut_off_s:
            self._fetch(now_s)
            return served or self._copy
        return self._copy if age_s < _ERROR_S else None

    def _fetch(self, now_s: float) -> None:
        self._fetched_s, self._copy = now_s, self._origin.report(now_s)


def a_day_behind(place: str, loss: float, seed: int) -> Respond:
    chance = Random(seed)
    origin = Origin(chance)
    edge = Edge(origin, is_busy=place == "busy edge")

    def respond(now_s: float) -> Reply:
        if chance.random() < loss:
            return Reply(chance.choice((0.0, 10.0)), None)
        return Reply(0.0, origin.report(now_s) if place == "origin" else edge.report(now_s))

    return respond


DOWN_S: Final = 600


def four_edges_of_which_one_is_cut_off(seed: int) -> Respond:
    chance = Random(seed)
    origin = Origin(chance, DOWN_S)
    cut_off_s = [DOWN_S + chance.uniform(-30, 10), *[float("inf")] * 3]
    edges = [Edge(origin, is_busy=True, cut_off_s=at_s) for at_s in cut_off_s]
    return lambda now_s: Reply(0.0, chance.choice(edges).report(now_s))


def _report(seen_s: float, status: str) -> str:
    row = {"service": "ppoi", "chainId": 1, "status": status, "reason": "synced", "metrics": {}}
    row |= {"observedAt": _instant(seen_s), "lastSuccessAt": _instant(seen_s), "expiresAt": _instant(seen_s + 150)}
    return json.dumps({"schemaVersion": 1, "generatedAt": _instant(seen_s + 1), "checks": [row]})


def _instant(at_s: float) -> str:
    at = datetime.fromtimestamp(NOON / 1000 + at_s, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def run_python(respond: Respond, for_s: float, seed: int) -> Shown:
    elapsed_s, stop = 0.0, Event()

    def sleep(seconds: float) -> None:
        nonlocal elapsed_s
        elapsed_s += seconds
        if elapsed_s > for_s:
            stop.set()

    def fetch(*_: object) -> Answer | NoAnswer:
        reply = respond(elapsed_s)
        sleep(reply.after_s)
        return NoAnswer() if reply.body is None else Answer(200, reply.body)

    updates = poll(
        "https://liveness.example",
        "protocol",
        history=None,
        stop=stop,
        fetch=fetch,
        sleep=sleep,
        chance=Random(seed).random,
        now=lambda: NOON + round(elapsed_s * 1000),
        monotonic=lambda: elapsed_s,
    )
    return [(elapsed_s, effective_status(find_row(update.report, "ppoi", 1))) for update in updates]


def run_javascript(responds: Sequence[Respond], for_s: float, folder: Path = READER) -> Iterator[Shown]:
    """The runs one after the other, in one process, which asks for each reply on a line."""
    command = [find_node(), str(_SCRIPT), folder.as_uri(), str(len(responds)), str(for_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for respond in responds:
            for line in running.stdout:
                message = json.loads(line)
                if "shown" in message:
                    yield [(at_s, status) for at_s, status in message["shown"]]
                    break
                running.stdin.write(json.dumps(respond(message["atS"])._asdict()) + "\n")
                running.stdin.flush()


def count_false_alarms(shown: Shown) -> int:
    """How often the row, which is well all the time, was no longer shown as current."""
    words = [status for _, status in shown]
    return sum(before == "current" != after for before, after in pairwise(words))


def is_green_after_red(shown: Shown) -> bool:
    words = [status for _, status in shown]
    return "unavailable" in words and "current" in words[words.index("unavailable") :]


PLACES: Final = ("origin", "busy edge", "quiet edge")
LOSSES: Final = (0.0, 0.01, 0.05)


def main(folder: Path = READER, days: int = 5) -> None:
    table = Table("place", "lost", "Python", "JavaScript", title="Times a day that a healthy row is shown stale")
    for place in PLACES:
        for loss in LOSSES:
            in_python = run_python(a_day_behind(place, loss, seed=1), days * DAY_S, seed=1)
            (shown,) = run_javascript([a_day_behind(place, loss, seed=1)], days * DAY_S, folder)
            counts = [f"{count_false_alarms(found) / days:g}" for found in (in_python, shown)]
            table.add_row(place, f"{loss:.0%}", *counts)
    Console().print(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else READER)
