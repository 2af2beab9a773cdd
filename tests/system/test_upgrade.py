"""An upgrade from the real version 0.1.0, whose code is in git's history, and the way back from a backup of it."""

import asyncio
import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from lookout.base.instants import parse_instant
from lookout.store.kinds import kind_of
from lookout.store.protocol import Snapshot, StoreError
from tests.commands import Meanwhile, a_command, meanwhile, said
from tests.integration.fast import a_world
from tests.integration.receivers import Receiver, a_hook
from tests.integration.whole_service import BUCKET_S, a_place
from tests.leases import or_skipped
from tests.postgres import Postgres, a_postgres, from_a_wheel
from tests.wait import until_async

ROOT: Final = Path(__file__).parents[2]
LAST_OF_0_1_0: Final = "b5ff00c181b7ba72e783b0d48f27c8f285de7f64"
ALERTS: Final = """
[alerts]
group_s = 0
[alerts.targets]
hook = "{address}"
[[alerts.rules]]
from = "unavailable"
for_s = 1
"""
# In messages of 0.1.0 a chain had its id, and today it has its name.
BEGAN: Final = ("Unavailable", "indexer on 1")
INDEXER: Final = "indexer on c1"
ENDS: Final = ("Recovered", "Improved")
TIME_S: Final = 120

pytestmark = pytest.mark.long


class Old(NamedTuple):
    """The code of 0.1.0 on today's packages."""

    source: Path

    @property
    def _environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.source / "src")}

    def monitor(self, folder: Path) -> Meanwhile:
        return meanwhile(folder, sys.executable, "-m", "lookout", "monitor", "-c", "lookout.toml", **self._environment)

    def lookout(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lookout", *arguments],
            cwd=folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIME_S,
            check=False,
        )


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Old:
    command: list[str | Path] = ["git", "-C", ROOT, "archive", LAST_OF_0_1_0, "src"]
    archive = subprocess.run(command, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip("needs the whole history: git fetch --unshallow")
    source = tmp_path_factory.mktemp("0.1.0")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="data")
    return Old(source)


@pytest.fixture(scope="module", params=[from_a_wheel()])
def server(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with or_skipped(a_postgres(request.param)) as server:
        yield server


def stored(folder: Path, url: str) -> Snapshot:
    return kind_of(url).read_snapshot(url, folder)


def document(snapshot: Snapshot, name: Any) -> Any:
    return json.loads(snapshot.documents[name].body)


def waiting(snapshot: Snapshot) -> list[tuple[str, str]]:
    """The messages that nobody has accepted yet."""
    pieces = sorted((int(name[7:]), piece) for name, piece in snapshot.pieces.items() if name.startswith("alerts/"))
    queued = [json.loads(piece) for _, piece in pieces]
    return [(message["title"], message["body"]) for message in queued]


def check_kept(before: Snapshot, after: Snapshot, gap_ms: int) -> None:
    """Hold every bucket that had ended against what it is now; nothing is missing but the time of the restart."""
    was, now = document(before, "history"), document(after, "history")
    assert now["from"] == was["from"]
    assert len(was["rows"]) == len(now["rows"]) == 21
    allowed = gap_ms // (1000 * BUCKET_S) + 1
    for old, new in zip(was["rows"], now["rows"], strict=True):
        assert (new["service"], new["chainId"]) == (old["service"], old["chainId"])
        ended = old["buckets"][:-1]
        assert new["buckets"].startswith(ended)
        assert new["buckets"][len(ended) :].count("-") <= allowed


@pytest.mark.clause("M7", "H16")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_an_upgrade_loses_nothing_and_a_backup_made_before_leads_back(
    kind: str, old: Old, server: Postgres, tmp_path: Path
) -> None:
    url = "sqlite:lookout.db" if kind == "sqlite" else server.url(server.a_database())
    with a_hook() as hook:
        hook.mood = "500"
        async with a_world(tmp_path) as world:
            place = a_place(tmp_path / "place", world.base, url, 0)
            with (place / "lookout.toml").open("a") as config:
                config.write(ALERTS.format(address=hook.address))

            def is_long(buckets: int) -> bool:
                with suppress(StoreError, KeyError):
                    return len(document(stored(place, url), "history")["rows"][0]["buckets"]) > buckets
                return False

            with old.monitor(place) as process:
                await until_async(lambda: is_long(4), "0.1.0 has stored buckets", TIME_S)
                await world.order("squid/1", "status")
                await until_async(
                    lambda: any(f"- {BEGAN[1]}:" in body for _, body in waiting(stored(place, url))),
                    "0.1.0 has a message that waits",
                    TIME_S,
                )
                made = old.lookout(place, "backup", "-c", "lookout.toml", "before.db")
                assert made.returncode == 0, made.stderr
                process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(process.wait, TIME_S) == 0
            left = stored(place, url)
            queued = waiting(left)
            left_at = left.documents["live"].generated_at
            buckets = len(document(left, "history")["rows"][0]["buckets"])

            with a_command(place, "monitor", "-c", "lookout.toml") as process:
                await until_async(
                    lambda: stored(place, url).documents["live"].generated_at > left_at, "today's", TIME_S
                )
                gap_ms = parse_instant(document(stored(place, url), "live")["generatedAt"]) - left_at
                hook.mood = "accept"
                await until_async(lambda: len(hook.accepted) >= len(queued), "what waited was sent", TIME_S)
                assert BEGAN in hook.listed()
                assert [(message.title, message.body) for message in hook.accepted[: len(queued)]] == queued
                await world.order("squid/1", None)
                await until_async(lambda: headings(hook) != [], "the alert of 0.1.0 has its end", TIME_S)
                await until_async(lambda: is_long(buckets + 2), "buckets go on", TIME_S)
                process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(process.wait, TIME_S) == 0
            check_kept(left, stored(place, url), gap_ms)
            assert hook.listed()[BEGAN] == 1
            assert headings(hook)[0] in ENDS  # it did not begin a second time

            go_back(old, place, kind)
            back = stored(place, url)
            assert document(back, "history")["from"] == document(left, "history")["from"]
            known = len(document(back, "history")["rows"][0]["buckets"])
            with old.monitor(place):
                await until_async(lambda: is_long(known + 2), "0.1.0 goes on from its backup", TIME_S)
            for was, now in zip(
                document(back, "history")["rows"], document(stored(place, url), "history")["rows"], strict=True
            ):
                assert now["buckets"].startswith(was["buckets"][:-1])
    assert "Traceback" not in said(place)


def headings(hook: Receiver) -> list[str]:
    """Those under which today's messages have the indexer, in their order."""
    return [heading for heading, check in hook.listed() if check == INDEXER]


def go_back(old: Old, place: Path, kind: str) -> None:
    """As docs/operations.md says."""
    if kind == "sqlite":
        refused = old.lookout(place, "restore", "--force", "-c", "lookout.toml", "before.db")
        assert (refused.returncode, "written by a newer version of Lookout" in refused.stderr) == (2, True)
        for path in place.glob("lookout.db*"):
            shutil.move(path, place / f"newer-{path.name}")
    restored = old.lookout(place, "restore", "--force", "-c", "lookout.toml", "before.db")
    assert restored.returncode == 0, restored.stderr
