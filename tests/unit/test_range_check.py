"""``lookout coverage`` on simulated upstreams: what it compares, tries again and says of a range."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from lookout.monitor.range_check import CheckedRange, Ends, check_ranges
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
        self.reports: list[tuple[int, int]] = []
        self._settings = settings_of(folder, a_compared_config(BASE, FIRST))

    def check(self, ends: Ends = WHOLE, **orders: dict[str, int]) -> CheckedRange:
        """With the indexer under these orders."""
        session = SimulatedSession(cast("Any", None), 10, place=self.place)

        async def run() -> list[CheckedRange]:
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
