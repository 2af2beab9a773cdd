"""Stops and starts: what is carried over, what is shown of the time between, and what a replay makes of it."""

import json
from collections.abc import Iterable
from datetime import datetime
from random import Random
from typing import Any

import pytest

from lookout.config.tables import PolicyTable
from lookout.core.ledger import Ledger
from lookout.core.model import Check
from lookout.demo.rehearsal import Life, Listeners, rehearse
from lookout.demo.sim.episodes import draw_episodes
from lookout.demo.sim.world import World, drawn_world
from lookout.documents.reports import history_document
from lookout.replay.replay import Replay
from lookout.state.log import Event, format_event, parse_event
from tests.builders import DAY, HOUR, MINUTE, NOON, PPOI, SECOND
from tests.oracles.history import Publication, expected_history
from tests.simulation.rehearsed import ONE_CHAIN, TWO_CHAINS, Record, a_life, a_world, an_episode, plan_of, watch

BUCKET = 300 * SECOND


def lived(world: World, lives: Iterable[Life], listeners: Listeners | None = None) -> Ledger:
    told = Listeners() if listeners is None else listeners
    return rehearse(plan_of(world.layout), world, lives, Random(9), listeners=told)


def buckets(ledger: Ledger) -> dict[Check, dict[int, str]]:
    """Every check's ended buckets, by when they began."""
    history: dict[str, Any] = json.loads(history_document(ledger.view()).body)
    from_at = round(datetime.fromisoformat(history["from"]).timestamp()) * 1000
    return {
        Check(row["service"], row["chainId"]): {
            from_at + number * BUCKET: character for number, character in enumerate(row["buckets"][:-1])
        }
        for row in history["rows"]
    }


@pytest.mark.clause("M7", "S8")
def test_a_node_trails_on_over_a_restart() -> None:
    """Trailing began in the first life, so the second life's first observation is already beyond the 45 s."""
    world = a_world(an_episode("ppoi/1", "freeze", 0, 300))
    seconds = range(NOON, NOON + 100 * MINUTE, SECOND)
    trailing_since_at = next(at for at in seconds if world.indexes(1, at).validated < world.indexes(1, at).current)
    lives = Life(NOON, trailing_since_at + 40 * SECOND), Life(trailing_since_at + 3 * MINUTE, NOON + HOUR)
    rows = [row for _, row in watch(world, lives).of("ppoi", 1)]
    assert rows[0].status == "unknown"
    observed = [row for row in rows if row.observed_at is not None]
    assert [row.status for row in observed if (row.observed_at or 0) < lives[1].begin_at][-1] == "current"
    assert {row.status for row in observed if (row.observed_at or 0) >= lives[1].begin_at} == {
        "catching-up",
        "degraded",
    }


@pytest.mark.clause("M7", "M14")
def test_rows_are_carried_over_as_they_were_until_their_first_new_probe() -> None:
    lives = a_life(0, 60), a_life(70, 80)
    publications = watch(a_world(), lives).publications
    last = [rows for at, rows in publications if at < NOON + 60 * MINUTE][-1]
    (resumed,) = (rows for at, rows in publications if at == NOON + 70 * MINUTE)
    assert resumed == last
    assert all((row.expires_at or 0) < NOON + 70 * MINUTE for row in resumed)
    assert not any(NOON + 60 * MINUTE <= at < NOON + 70 * MINUTE for at, _ in publications)


@pytest.mark.clause("H17", "M7", "M14")
def test_rows_that_ran_out_while_the_monitor_was_away_count_as_unknown_until_they_are_probed() -> None:
    """The second life is over before any probe completes: all it ever published are rows from an hour ago."""
    moment_ms = 30
    begin_at = NOON + 120 * MINUTE
    lives = a_life(0, 60), Life(begin_at, begin_at + moment_ms), a_life(180, 200)
    for told in buckets(lived(a_world(), lives)).values():
        assert told[begin_at] == "?"
        assert (told[begin_at - BUCKET], told[begin_at + BUCKET], told[NOON + 180 * MINUTE]) == ("-", "-", "c")


@pytest.mark.clause("H6", "H7", "H8", "H9", "H10", "H16")
@pytest.mark.parametrize("seed", [31, *(pytest.param(seed, marks=pytest.mark.long) for seed in (32, 33))])
def test_the_history_is_what_a_slow_count_of_all_publications_gives(seed: int) -> None:
    drawn = draw_episodes(ONE_CHAIN, seed, NOON, NOON + DAY, intensity=20)
    world = a_world(*drawn, an_episode("ppoi", "missing-list", 12 * 60, 30), seed=seed)
    lives = (
        Life(NOON, NOON + 5 * HOUR + 17 * SECOND),
        Life(NOON + 5 * HOUR + 45 * SECOND, NOON + 9 * HOUR + 2 * MINUTE),
        Life(NOON + 9 * HOUR + 4 * MINUTE, NOON + 15 * HOUR + 299 * SECOND),
        Life(NOON + 17 * HOUR, NOON + DAY),
    )
    record = Record()
    ledger = lived(world, lives, Listeners(published=record.published))
    plan = plan_of(ONE_CHAIN)
    expected = expected_history([Publication(at, rows) for at, rows in record.publications], plan.span)
    history: dict[str, Any] = json.loads(history_document(ledger.view()).body)
    for row in history["rows"]:
        check = Check(row["service"], row["chainId"])
        assert row["buckets"] == expected.buckets[check]
        assert tuple(row["uptime"].values()) == expected.uptime[check]
    characters = {character for row in history["rows"] for character in row["buckets"]}
    assert characters >= set("cdu?-")


def recorded(world: World, lives: Iterable[Life]) -> tuple[Ledger, Ledger]:
    """The ledgers of a rehearsal and of a replay of its log, which went through the log's own format."""
    lines: list[bytes] = []

    def note(event: Event) -> None:
        lines.append(format_event(event))

    plan = plan_of(world.layout)
    ledger = rehearse(plan, world, lives, Random(9), listeners=Listeners(event=note))
    replay = Replay(plan)
    for line in lines:
        replay.feed(parse_event(line))
    return ledger, replay.ledger


@pytest.mark.clause("H8", "M7")
def test_a_replayed_log_gives_the_same_buckets_when_nothing_was_gathered() -> None:
    """A replay also publishes at each head, which holds the last status a little longer after a stop: the buckets in
    which the monitor stopped or started are left out."""
    world = drawn_world(TWO_CHAINS, 41, NOON, NOON + 10 * HOUR, intensity=40)
    breaks = [(NOON + 2 * HOUR + 7 * SECOND, 40 * SECOND), (NOON + 4 * HOUR, HOUR), (NOON + 8 * HOUR, 10 * MINUTE)]
    begins = [NOON, *(at + lasts for at, lasts in breaks)]
    ends = [*(at for at, _ in breaks), NOON + 10 * HOUR]
    lives = [Life(begin, end, gather_ms=0) for begin, end in zip(begins, ends, strict=True)]
    rehearsed, replayed = (buckets(ledger) for ledger in recorded(world, lives))
    apart = {at // BUCKET * BUCKET for at in (*begins, *ends)} | {(at + MINUTE) // BUCKET * BUCKET for at in ends}
    assert rehearsed.keys() == replayed.keys()
    for check, characters in rehearsed.items():
        assert characters.keys() == replayed[check].keys()
        assert {at for at, character in characters.items() if character != replayed[check][at]} <= apart
    assert {character for of_check in rehearsed.values() for character in of_check.values()} >= set("ckdu?-")


@pytest.mark.clause("M5", "H8")
def test_a_replayed_log_differs_from_what_was_published_by_half_seconds_alone() -> None:
    world = drawn_world(TWO_CHAINS, 42, NOON, NOON + 10 * HOUR, intensity=40)
    rehearsed, replayed = (buckets(ledger) for ledger in recorded(world, (Life(NOON, NOON + 10 * HOUR),)))
    total = sum(len(characters) for characters in rehearsed.values())
    differing = [
        (check, at)
        for check, characters in rehearsed.items()
        for at, character in characters.items()
        if character != replayed[check][at]
    ]
    assert len(differing) <= total / 500
    assert set(rehearsed[PPOI].values()) > {"c"}


def test_leaving_out_probes_that_would_only_find_that_all_is_well_hardly_changes_a_bucket() -> None:
    world = drawn_world(TWO_CHAINS, 41, NOON, NOON + 12 * HOUR, intensity=8)
    plan = plan_of(TWO_CHAINS, PolicyTable(row_lifetime_s=2_400, head_max_age_s=2_400))

    def lived(calm_ms: int) -> tuple[int, list[str]]:
        events: list[Event] = []
        listeners = Listeners(event=events.append)
        ledger = rehearse(plan, world, [Life(NOON, NOON + 12 * HOUR, calm_ms=calm_ms)], Random(9), listeners)
        return len(events), [character for row in buckets(ledger).values() for character in row.values()]

    (all_events, whole), (few_events, coarse) = lived(0), lived(30 * MINUTE)
    assert few_events < all_events / 5
    wrong = sum(character in "kdu" for character in whole)
    differing = sum(one != other for one, other in zip(whole, coarse, strict=True))
    assert wrong > 50
    assert differing < wrong / 10
