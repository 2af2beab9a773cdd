"""How fast a log is replayed, whether that is linear in its length, and what the reading alone would take."""

import io
import json
import random
from collections.abc import Iterator

from bench.figures import Figure, seconds
from bench.plans import a_plan
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Check, Failed, Found, Indexes, Members, Observation, Peers
from lookout.core.plan import Plan
from lookout.documents.reports import history_document, live_document
from lookout.replay.replay import Replay, read_log, run_log
from lookout.state.log import Event, HeadRead, Started, format_event

MOST_TIMES_JSON = 3  # a machine's own speed is in both


def measure() -> Iterator[Figure]:
    plan = a_plan(5)
    logs = {lines: a_log(plan, lines) for lines in (100_000, 200_000, 400_000)}
    took = {lines: seconds(lambda log=log: replay(plan, log)) for lines, log in logs.items()}  # type: ignore[misc]
    longest = max(logs)
    rate = longest / took[longest]
    reading = seconds(lambda: [json.loads(line) for line in logs[longest].splitlines()])
    yield Figure(
        f"replay of {longest:,} observations, 21 rows",
        f"{rate:,.0f}/s",
        "json.loads of the same lines",
        took[longest] / reading,
        f"at most {MOST_TIMES_JSON}",
        took[longest] / reading > MOST_TIMES_JSON,
    )
    linear = (took[longest] / took[min(logs)]) / (longest / min(logs))
    yield Figure(
        f"the same, {longest:,} against {min(logs):,}",
        f"{took[longest]:.2f} s",
        f"{took[min(logs)]:.2f} s, as many times longer",
        linear,
        "linear: under 1.25",
        linear > 1.25,
    )


def replay(plan: Plan, log: bytes) -> None:
    replayed = Replay(plan)
    run_log(read_log(io.BytesIO(log), []), replayed)
    live_document(replayed.ledger.report())
    history_document(replayed.ledger.view())


def a_log(plan: Plan, lines: int) -> bytes:
    """What a monitor of this plan would record: every check and every chain's head about every 30 and 15 seconds."""
    return b"".join(format_event(event) for _, event in zip(range(lines), _events(plan), strict=False))


def _events(plan: Plan) -> Iterator[Event]:
    chance = random.Random(7)
    at = start_at = 1_793_880_000_000
    yield Started(at)
    while True:
        for half in range(2):
            for chain_id in plan.chains:
                at += chance.randrange(100, 1_000)
                height = 20_000_000 + (at - start_at) // 12_000
                yield HeadRead(at, chain_id, Reading(at, height, at - at % 12_000))
            for check in plan.checks()[half::2]:
                at += chance.randrange(100, 1_000)
                yield Observation(check, at, _found(check, chance, 20_000_000 + (at - start_at) // 12_000))


def _found(check: Check, chance: random.Random, height: int) -> Found:
    if chance.random() < 0.03:
        return Failed("timeout")
    match check.service:
        case "messaging":
            return Peers(chance.randrange(1, 20))
        case "ppoi":
            return Indexes(height - chance.choice((0, 0, 1)), height)
        case "broadcasters":
            return Members(chance.choice((5, 5, 5, 4)), 5)
        case _:
            return Blocks(height - chance.choice((6, 8, 200)))
