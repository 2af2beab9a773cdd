"""From a world that breaks a rule to a small one that still does."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from tests.campaign.shrink import shrink
from tests.simulation.worlds.script import Script

StillBreaks = Callable[[Script], bool]


def shrink_script(script: Script, still_breaks: StillBreaks, may_go_on: Callable[[], bool]) -> Script:
    """Leave out whatever the failure does not need, for as long as it may go on."""
    while may_go_on():
        before = script
        for name in ("episodes", "faults"):
            script = _with_fewer(script, name, still_breaks, may_go_on)
        script = next((each for each in _simpler(script) if may_go_on() and still_breaks(each)), script)
        if script == before:
            break
    return script


def _with_fewer(script: Script, name: str, still_breaks: StillBreaks, may_go_on: Callable[[], bool]) -> Script:
    all_of_them: tuple[Any, ...] = getattr(script, name)
    kept = shrink(all_of_them, lambda fewer: still_breaks(replace(script, **{name: fewer})), may_go_on)
    return replace(script, **{name: kept})


def _simpler(script: Script) -> Iterator[Script]:
    """Worlds that are simpler by one thing, the most promising first."""
    simplest = Script(0, 0)
    for name in ("store", "monitors", "servers", "chains"):
        if getattr(script, name) != getattr(simplest, name) and _fits(script, name):
            yield replace(script, **{name: getattr(simplest, name)})
    for number, fault in enumerate(script.faults):
        if fault.lasts_ms > 1_000 and fault.kind not in ("slew", "clock"):
            shorter = replace(fault, lasts_ms=fault.lasts_ms // 2)
            yield replace(script, faults=(*script.faults[:number], shorter, *script.faults[number + 1 :]))


def _fits(script: Script, name: str) -> bool:
    """Whether everything that happens still has somebody to happen to."""
    if name == "chains":
        parts = [*(fault.of for fault in script.faults), *(episode.target for episode in script.episodes)]
        return not any("/56" in part for part in parts)
    return name == "store" or not any(fault.of.isdigit() and fault.of != "0" for fault in script.faults)
