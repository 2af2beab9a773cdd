"""``lookout coverage`` on simulated upstreams: what it compares, tries again and says of a range."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from lookout.monitor.range_check import CheckedRange, Ends, check_ranges
from lookout.protocols.client.failure import ProbeFailed
from tests.compared import a_compared_config
from tests.unit.running_monitor import FastClock, FastLoop
from tests.unit.simulated_upstreams import BASE, Place, SimulatedSession, settings_of
from tests.unit.test_comparer import FIRST

WHOLE = Ends()


class Run:
    """One comparison of a range, in a world of its own."""

    def __init__(self, folder: Path) -> None:
        self.clock = FastClock()
        self.place = Place(self.clock)
        self._later: list[tuple[float, Callable[[], None]]] = []
        self.reports: list[tuple[int, int]] = []
        self._settings = settings_of(folder, a_compared_config(BASE, FIRST))

    def after_s(self, seconds: float, act: Callable[[], None]) -> None:
        """Of the comparison that begins later."""
        self._later.append((seconds, act))

    def check(self, ends: Ends = WHOLE, **orders: dict[str, int]) -> CheckedRange:
        """With the indexer under these orders."""
        session = SimulatedSession(cast("Any", None), 10, place=self.place)

        async def run() -> list[CheckedRange]:
            for later in self._later:
                asyncio.get_running_loop().call_later(*later)
            for fault, parameters in orders.items():
                self.place.order("squid/1", fault, **parameters)
            return await check_ranges(self._settings, self.clock, ends, self._report, lambda _: nullcontext(session))

        with asyncio.Runner(loop_factory=FastLoop) as runner:
            (checked,) = runner.run(run())
        return checked

    def _report(self, _check: object, checked: int, blocks: int) -> None:
        self.reports.append((checked, blocks))


@pytest.mark.clause("S17")
def test_all_that_is_too_much_in_a_range_is_confirmed(tmp_path: Path) -> None:
    checked = Run(tmp_path).check(extra={"transactions": 40})
    assert checked.is_whole
    assert len(checked.extra) > 30  # the other blocks are not final
    assert not checked.missing


@pytest.mark.clause("S17")
@pytest.mark.parametrize("who", [["squid/1"], ["rpc/1/a", "rpc/1/b"]], ids=["the indexer", "two endpoints of three"])
def test_who_fails_for_some_seconds_is_asked_again(who: list[str], tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.place.errors = dict.fromkeys(who, ProbeFailed("refused"))
    run.after_s(8, run.place.errors.clear)
    checked = run.check()
    assert checked.is_whole
    assert checked.checked_blocks == checked.last - FIRST + 1


@pytest.mark.clause("S17")
def test_who_fails_for_long_is_given_up(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.place.errors["squid/1"] = ProbeFailed("timeout")
    checked = run.check()
    assert [each.why for each in checked.not_compared] == ["the indexer gave no usable list"]
    assert checked.causes == ("the list: no complete answer in time (waiting for: ?)",)
    assert 10 < run.place.asked[-1].second < 30
