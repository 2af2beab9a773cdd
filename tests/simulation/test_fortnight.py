"""The past that the demo starts from."""

import json
from pathlib import Path

from lookout.app.demo import build_demo_store
from lookout.demo.fortnight import FORTNIGHT_MS, draw_incidents, make_events
from lookout.demo.sim.world import launch_world
from lookout.store.sqlite import SqliteReader
from tests.builders import NOON


def test_the_fortnight_shows_every_status_and_ends_well(tmp_path: Path) -> None:
    build_demo_store(tmp_path, "127.0.0.1:8080", seed=7)
    reader = SqliteReader(tmp_path / "lookout.db")
    live, history = (reader.read(name) for name in ("live", "history"))
    reader.close()
    assert live is not None
    assert history is not None
    characters = {character for row in json.loads(history.body)["rows"] for character in row["buckets"]}
    assert characters == set("ckdu?-.")
    assert {row["status"] for row in json.loads(live.body)["checks"]} == {"current", "unmonitored"}


def test_a_seed_gives_the_same_events() -> None:
    world = launch_world(3, NOON)
    one, other = ([*make_events(world, draw_incidents(world, 3, NOON), NOON - FORTNIGHT_MS, NOON)] for _ in range(2))
    assert one == other
    assert draw_incidents(world, 4, NOON) != draw_incidents(world, 3, NOON)
