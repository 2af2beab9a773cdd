"""``lookout coverage`` on simulated upstreams: what it compares, tries again and says of a range."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from lookout.app.probe import asking_once
from lookout.config.settings import upstreams_of
from lookout.features.lists.range_check import CheckedRange, check_ranges
from lookout.features.lists.rules.coverage import checked_blocks, split_confirmed
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from tests.compared import a_compared_config
from tests.unit.running_monitor import FastClock, FastLoop
from tests.unit.simulated_upstreams import BASE, Place, SimulatedSession, settings_of
from tests.unit.test_comparer import FIRST


class Ends(NamedTuple):
    first: int | None = None
    last: int | None = None


WHOLE = Ends()
FINAL = FIRST + 2_993  # the head is five blocks above the indexer, and 12 confirmations above it
BEYOND = FINAL + 1_000


class Run:
    """One comparison of a range, in a world of its own."""

    def __init__(self, folder: Path) -> None:
        self.clock = FastClock()
        self.place = Place(self.clock)
        self._later: list[tuple[float, Callable[[], None]]] = []
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
            endpoints_alone = upstreams_of(self._settings)._replace(sources=())
            asking = asking_once(self._settings, self.clock, endpoints_alone, lambda _: nullcontext(session))
            async with asking as (_, probing):
                return await check_ranges(probing, *ends)

        with asyncio.Runner(loop_factory=FastLoop) as runner:
            (checked,) = runner.run(run())
        return checked


@pytest.mark.clause("S17")
def test_all_that_is_too_much_in_a_range_is_confirmed(tmp_path: Path) -> None:
    checked = Run(tmp_path).check(extra={"transactions": 40})
    missing, extra = split_confirmed(checked.coverage)
    assert checked.is_whole
    assert len(extra) > 30  # the other blocks are not final
    assert not missing


@pytest.mark.clause("S17")
@pytest.mark.parametrize("who", [["squid/1"], ["rpc/1/a", "rpc/1/b"]], ids=["the indexer", "two endpoints of three"])
def test_who_fails_for_some_seconds_is_asked_again(who: list[str], tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.place.errors = dict.fromkeys(who, ProbeFailed("refused"))
    run.after_s(8, run.place.errors.clear)
    checked = run.check()
    assert checked.is_whole
    assert checked_blocks(checked.coverage) == checked.last - FIRST + 1


@pytest.mark.clause("S17")
def test_who_fails_for_long_is_given_up(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.place.errors["squid/1"] = ProbeFailed("timeout")
    checked = run.check()
    assert checked.not_compared == (f"blocks {FIRST} to {FINAL}: the indexer gave no usable list",)
    assert checked.causes == ("the list: no complete answer in time (waiting for: ?)",)
    assert 10 < run.place.asked[-1].second < 30


def test_a_lack_of_descriptors_ends_it_and_is_no_finding(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.place.errors["squid/1"] = OwnFault("descriptors")
    with pytest.raises(OwnFault, match="no file descriptor left"):
        run.check()


TOO_HIGH = f"the last final block that the indexer has is {FINAL}"
HEADLESS = "the chain's RPC endpoints agree on no head"
MUTE = "the indexer does not say how far it is (not reached: nothing listens at its address)"


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    ("ends", "refuses", "range_", "why"),
    [
        pytest.param(Ends(None, 5), None, (5, 5), f"first_block is {FIRST}", id="to below the first block"),
        pytest.param(Ends(BEYOND), None, (BEYOND, BEYOND), TOO_HIGH, id="from above the last"),
        pytest.param(Ends(BEYOND, BEYOND + 9), None, (BEYOND, BEYOND + 9), TOO_HIGH, id="both above the last"),
        pytest.param(WHOLE, "rpc/1", (FIRST, FIRST), HEADLESS, id="without a head"),
        pytest.param(WHOLE, "squid/1", (FIRST, FIRST), MUTE, id="without a position"),
    ],
)
def test_a_range_without_a_block_to_compare_is_said_why(
    ends: Ends, refuses: str | None, range_: tuple[int, int], why: str, tmp_path: Path
) -> None:
    run = Run(tmp_path)
    if refuses:
        run.after_s(0, lambda: run.place.order(refuses, "refuse"))
    checked = run.check(ends)
    assert checked.not_compared == ("blocks {} to {}: {}".format(*range_, why),)
    assert (checked.first, checked.last, checked_blocks(checked.coverage)) == (*range_, 0)


@pytest.mark.clause("S17")
def test_of_a_range_that_ends_beyond_the_last_final_block_the_final_ones_are_compared(tmp_path: Path) -> None:
    run = Run(tmp_path)
    checked = run.check(Ends(FINAL - 99, BEYOND))
    assert checked.not_compared == (f"blocks {FINAL + 1} to {BEYOND}: {TOO_HIGH}",)
    assert checked_blocks(checked.coverage) == 100


@pytest.mark.clause("S17")
def test_blocks_that_the_indexer_does_not_have_are_not_compared(tmp_path: Path) -> None:
    checked = Run(tmp_path).check(Ends(FINAL - 99, FINAL), lag={"by": 200})
    (late,) = checked.not_compared
    assert f" to {FINAL}: the last final block that the indexer has is " in late
    assert Run(tmp_path).check(lag={"by": 200}).is_whole
