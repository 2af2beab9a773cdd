"""A clock and a network under the hand of whoever tests a poller."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event
from typing import Any, NamedTuple

from lookout_reader import Answer, NoAnswer, Reader, Update, effective_status, find_row, poll

NOON = 1_794_744_000_000


@dataclass
class Clock:
    """Moves only by sleeping; the wall clock can be set."""

    elapsed_s: float = 0.0
    ahead_ms: int = 0

    def now(self) -> int:
        return NOON + round(self.elapsed_s * 1000) + self.ahead_ms

    def monotonic(self) -> float:
        return self.elapsed_s

    def sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds


Respond = Callable[[str, int, Clock], Answer | NoAnswer]


@dataclass
class Network:
    """Answers as told, and remembers what it was asked."""

    clock: Clock
    respond: Respond
    asked: list[tuple[float, str, Mapping[str, str]]] = field(default_factory=list)

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
        self.asked.append((self.clock.elapsed_s, url, headers))
        return self.respond(url, len(self.asked), self.clock)

    def times(self, end: str) -> list[float]:
        return [at for at, url, _ in self.asked if url.endswith(end)]


def instant(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def report_text(at: int) -> str:
    row = {"service": "ppoi", "chainId": 1, "status": "current", "reason": "synced", "metrics": {}}
    row |= {"observedAt": instant(at), "lastSuccessAt": instant(at), "expiresAt": instant(at + 150_000)}
    return json.dumps({"schemaVersion": 1, "generatedAt": instant(at), "checks": [row]})


def history_text(at: int) -> str:
    to = instant(at // 300_000 * 300_000)
    fields = {"schemaVersion": 1, "generatedAt": instant(at), "bucketSeconds": 300, "from": to, "to": to, "rows": []}
    return json.dumps(fields)


def fresh(url: str, _times: int, clock: Clock) -> Answer:
    body = history_text(clock.now()) if url.endswith("/history") else report_text(clock.now())
    return Answer(200, body, etag=f'"{clock.elapsed_s:g}"')


class Seen(NamedTuple):
    """An update, and what it was worth when it came."""

    update: Update
    at: float
    worth: str
    received_ago_ms: float | None


def polled(respond: Respond, for_s: float, **options: Any) -> tuple[list[Seen], Network]:
    """All updates of so many seconds after the first, which comes before anything is asked and knows nothing."""
    clock = options.pop("clock", Clock())
    network = Network(clock, respond)
    stop = Event()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.elapsed_s > for_s:
            stop.set()

    updates = poll(
        "https://liveness.example/",
        "protocol",
        **{"fetch": network.fetch, "stop": stop, "now": clock.now, "monotonic": clock.monotonic, **options},
        chance=lambda: 0.0,
        sleep=sleep,
    )
    first, asked_before = next(updates), len(network.asked)
    assert (first.report, first.report_problem, asked_before) == (None, None, 0)
    return [see(update) for update in updates], network


def a_reader(network: Network, **options: Any) -> Reader:
    """Of the live report alone."""
    clock = network.clock
    clocks = {"now": clock.now, "monotonic": clock.monotonic, "sleep": clock.sleep, "chance": lambda: 0.0}
    return Reader(
        "https://liveness.example", "protocol", **{"history": None, "fetch": network.fetch, **clocks, **options}
    )


def polling(network: Network, stop: Event | None = None, **options: Any) -> Iterator[Update]:
    """Its updates, for as long as the next is asked for."""
    return a_reader(network, **options).updates(stop)


def see(update: Update) -> Seen:
    return Seen(update, update.now, ppoi(update), update.received_ago_ms)


def ppoi(update: Update) -> str:
    return effective_status(find_row(update.report, "ppoi", 1))


class ItsOwnError(Exception):
    """As httpx has them: no OSError."""
