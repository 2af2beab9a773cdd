"""Logs replayed, with a note of every publication that is made on the way."""

from collections.abc import Iterable

from lookout.core.plan import Plan
from lookout.replay.replay import Replay
from lookout.state.log import Event, Started, Stopped
from tests.oracles.history import Publication


def published(events: Iterable[Event], plan: Plan, until_at: int | None = None) -> tuple[Replay, list[Publication]]:
    """The heartbeats' instants are worked out here, apart from the code; they go on until the instant asked for."""
    replay = Replay(plan)
    noted: list[Publication] = []
    running = False

    def beat(before_at: int) -> None:
        while noted[-1].at + plan.limits.heartbeat_ms < before_at:
            noted.append(Publication(noted[-1].at + plan.limits.heartbeat_ms, noted[-1].rows))

    for event in events:
        if running and not isinstance(event, Started):
            beat(event.at)
        replay.feed(event)
        running = not isinstance(event, Stopped)
        if running:
            noted.append(Publication(event.at, replay.ledger.published_rows))
    if running and until_at is not None:
        beat(until_at)
        noted.append(Publication(until_at, noted[-1].rows))
    return replay, noted
