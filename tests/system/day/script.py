"""What the chapters of a day are made of: waiting, faults that are set and cleared, harm to the monitor that writes."""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any, Final

from lookout.base.instants import parse_instant
from lookout.core.buckets import CHARACTERS
from lookout.core.model import Check
from tests.integration.served import HISTORY, LIVE
from tests.system.day.diary import Gap, Life, Mishap, Standing
from tests.system.day.histories import compare
from tests.system.day.readers import verify_place
from tests.system.day.stage import Stage
from tests.system.day.verdict import EDGE, Judge

log: Final = logging.getLogger("campaign.day")
HOUR_S: Final = 3_600
_ORDERED_WITHIN_S: Final = 30
_MOST_AT_A_TIME: Final = 32  # mishaps


class Script:
    def __init__(self, stage: Stage, judge: Judge) -> None:
        self.stage = stage
        self.scale = stage.scale
        self.judge = judge
        self.diary = judge.diary
        self.servers = [name for name in stage.places if name != EDGE]
        self.tried: dict[str, int] = {}
        self.exact: set[str] = set()
        """The characters of buckets that had to be exactly those."""
        self._ends: list[Future[None]] = []
        self._pool = ThreadPoolExecutor(_MOST_AT_A_TIME)
        self._is_over = threading.Event()

    def begin(self, chapter: str) -> None:
        self.judge.chapter = chapter
        log.info(f"{chapter} ({self.judge.answers.total():,} answers judged so far)")

    def end(self) -> None:
        """Hold every place against the contract, and log the longest time between reports."""
        for name, place in self.stage.places.items():
            for wrong in verify_place(name, place, self.stage.wall):
                self.judge.fail(f"verify: {wrong}")
        gap_s = self.judge.longest_gap_s.get(self.judge.chapter, 0)
        log.info(f"{self.judge.chapter}: {gap_s:.1f} s at the most between two reports")

    def until_the_next_bucket(self) -> None:
        """Where chapters begin with buckets."""
        if self.scale.aligned:
            bucket_ms = 1000 * self.scale.bucket_s
            time.sleep((bucket_ms - self.stage.wall.now() % bucket_ms) / 1000)

    def rows(self, server: str) -> dict[Check, Any]:
        """Of the last report that a reader got there."""
        body = self.judge.bodies.get((server, LIVE), b'{"checks":[]}')
        return {Check(row["service"], row["chainId"]): row for row in json.loads(body)["checks"]}

    def until_all_is_well(self, since_at: int, what: str) -> float:
        """Wait until every server shows all rows current, and observed since this instant; how long it took."""

        def is_well() -> bool:
            reports = [self.rows(server).values() for server in self.servers]
            return all(rows and all(_is_well(row, since_at) for row in rows) for rows in reports)

        return self.stage.until(is_well, what)

    def until_published(self, after: dict[str, int], what: str) -> float:
        """Wait until every server has a publication that is newer than its last one was; how long it took."""
        return self.stage.until(lambda: all(self.judge.newest[server] > after[server] for server in self.servers), what)

    def start_mishap(self, mishap: Mishap, lasting_s: float) -> None:
        """Let it happen, and be shown for so long; it ends by itself."""
        standing = Standing(mishap, self.stage.wall.now(), 0)
        self._order(mishap.target, mishap.fault, **mishap.parameters)
        standing.set_at = self.stage.wall.now()
        self.diary.standings.append(standing)
        self._ends.append(self._pool.submit(self._clear, standing, mishap.slow_s + self.scale.settle_s + lasting_s))

    def until_cleared(self) -> None:
        """Wait until all that went wrong upstream is over."""
        for end in self._ends:
            end.result()
        self._ends.clear()

    def close(self) -> None:
        """The day is over, or broke off: nothing more is cleared."""
        self._is_over.set()
        self._pool.shutdown()

    def harm(self, what: str, do: Callable[[], object], *, to_the_writer: bool = True) -> None:
        """Do it, and wait until all servers have a publication after it: of another epoch, if it ends the writer."""
        stage, began, at = self.stage, time.monotonic(), self.stage.wall.now()
        before, newest = stage.writers()[-1], dict(self.judge.newest)
        least = before._replace(writes=sys.maxsize)

        def is_answered() -> bool:
            nonlocal least
            least = stage.writers()[-1]
            return True

        do()
        if not to_the_writer:
            stage.until(is_answered, f"an answer: {what}")

        def has_written() -> bool:
            return any(
                (writer.epoch, writer.writes) > (least.epoch, least.writes) and writer.writes
                for writer in stage.writers()
            )

        took_s = stage.until(has_written, f"written again: {what}")
        self.until_published(newest, f"a publication after {what}")
        since = [writer for writer in stage.writers() if writer.epoch > before.epoch and writer.writes]
        lost = any(writer.holder != before.holder for writer in since)
        self.diary.gaps.append(Gap(at - round(1000 * self.scale.heartbeat_s), stage.wall.now(), lost))
        whole_s, who = time.monotonic() - began, "another" if lost else "the same"
        log.info(f"{what}: written again after {took_s:.1f} s, by {who} monitor; on all servers after {whole_s:.1f} s")

    def until_someone_stands_by(self) -> None:
        self.stage.until(lambda: self.stage.stands_by(self.stage.standby()), "the other monitor stands by")

    def set_clock(self, offset_s: int) -> None:
        """Let it jump, to a new life. Back in the past, the buckets that were jumped over are lived through (H16)."""
        wall, lives = self.stage.wall, self.diary.lives
        lives[-1].until_at = wall.now()
        if offset_s == 0:
            self.judge.clock_goes_back()
        wall.set(offset_s)
        at = wall.now()
        took_s = self.until_all_is_well(at, "rows are right again after the clock was set")
        lives.append(Life(at, wall.now()))
        log.info(f"the clock was set: rows are right again after {took_s:.1f} s")

    def compare_histories(self) -> None:
        """Wait until every server has a history of now, and hold it against the diary."""
        at = self.stage.wall.now()

        def is_there() -> bool:
            made = (json.loads(self.judge.bodies[server, HISTORY])["generatedAt"] for server in self.servers)
            return all(_is_since(text, at) for text in made)

        self.stage.until(is_there, "a history of now")
        for body in {self.judge.bodies[server, HISTORY] for server in self.servers}:
            exact, open_, wrong = compare(self.diary, body)
            for each in wrong:
                self.judge.fail(each)
            self.exact.update(exact)
            self.tried |= {"buckets that could be nothing else": len(exact), "buckets with a border": open_}
            log.info(f"{len(exact):,} buckets that could be nothing else, {open_:,} with a border, {len(wrong)} wrong")

    def _clear(self, standing: Standing, after_s: float) -> None:
        if self._is_over.wait(after_s):
            return
        mishap = standing.mishap
        for server in self.servers:
            rows = self.rows(server)
            for check in mishap.checks:
                self._compare(server, mishap, rows[check])
        standing.ending_at = self.stage.wall.now()
        self._order(mishap.target, None)
        standing.ended_at = self.stage.wall.now()

    def _compare(self, server: str, mishap: Mishap, row: Any) -> None:
        """Just before it is cleared a row shows it, if it was observed that lately: there may be no writer."""
        check, observed_at = Check(row["service"], row["chainId"]), parse_instant(row["observedAt"])
        if self.diary.forbids(check, observed_at) is not None and CHARACTERS[row["status"]] != mishap.shown:
            self.judge.fail(f"{server}: under {mishap.fault} of {mishap.target} the row is {row}")

    def _order(self, target: str, fault: str | None, **parameters: int) -> None:
        upstreams = self.stage.upstreams
        connection = HTTPConnection(upstreams.host, upstreams.port, timeout=_ORDERED_WITHIN_S)
        try:
            connection.request("POST", "/control", json.dumps({"target": target, "fault": fault, **parameters}))
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        assert answer.status == 200, said


def _is_well(row: Any, since_at: int) -> bool:
    return row["status"] == "unmonitored" or (row["status"] == "current" and _is_since(row["observedAt"], since_at))


def _is_since(text: str, at: int) -> bool:
    """What is from before the clock was set back is from an hour ahead."""
    return at <= parse_instant(text) < at + 1000 * HOUR_S // 2
