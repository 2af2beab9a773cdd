"""The launch's own times, waited for: how long the edge serves the last good copy of an origin that failed (E3)."""

import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from lookout.server.replies import HISTORY_CACHING, LIVE_CACHING
from tests.campaign.part import Outcome, Part
from tests.integration.edged import VARNISHD, VSTHROTTLE, Edge, Origin, Script, an_edge, an_origin, fails, hangs, says
from tests.integration.served import HISTORY, LIVE, a_ledger, a_server, publish
from tests.wait import until

_log: Final = logging.getLogger("campaign.waits")
LONGEST_S: Final = {LIVE: 330.0, HISTORY: 420.0}
_CACHING: Final = {LIVE: LIVE_CACHING, HISTORY: HISTORY_CACHING}
_LOOK_EVERY_S: Final = 0.2
_EARLY_S: Final = 10.0  # an origin that hangs may keep the last readers waiting past the copy's end
_LATE_S: Final = 1.0
_NEEDED: Final = "needs Varnish 7 and its modules; on Debian: varnish varnish-modules"


class Wait(NamedTuple):
    """An edge, what of it is asked for, and what happens to its origin."""

    path: str
    trouble: str
    edge: Edge
    fail: Callable[[], None]
    recover: Callable[[], bytes] | None
    """Makes the origin answer again, with these bytes."""


def run(_seconds: float) -> Outcome:
    """All waits at once: together they last as long as the longest, seven minutes."""
    if not (VARNISHD and VSTHROTTLE):
        return Outcome({}, (), f"the edge {_NEEDED}")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_until_then:
        waits = list(_waits(Path(folder), open_until_then))
        with ThreadPoolExecutor(len(waits)) as pool:
            failures = tuple(filter(None, pool.map(watch_to_its_end, waits)))
    return Outcome({"waits": len(waits)}, failures)


def watch_to_its_end(wait: Wait) -> str | None:
    """Watch one copy to its end; what was wrong with it."""
    path, trouble, edge, fail, recover = wait
    longest_s = LONGEST_S[path]
    before = time.monotonic()
    body = edge.ask("GET", path).body
    after = time.monotonic()
    fail()
    last_served = after
    while True:
        asked = time.monotonic()
        answer = edge.ask("GET", path)
        if answer.http_code != 200:
            break
        if answer.body != body:
            return f"{path}, {trouble}: another body was served: {answer.body[:80]!r}"
        last_served = asked
        if asked - before > longest_s + 60:
            break
        time.sleep(_LOOK_EVERY_S)
    lasted_s = last_served - after
    _log.info(f"{path}, {trouble}: last served {lasted_s:.1f} s after it was fetched, of {longest_s:g}")
    if not longest_s - _EARLY_S <= last_served - before or lasted_s > longest_s + _LATE_S:
        return f"{path}, {trouble}: the copy was served for {lasted_s:.1f} s instead of {longest_s:g}"
    if dict(answer.headers).get("cache-control") != "no-store":
        return f"{path}, {trouble}: what came after it may be kept: {answer.headers}"
    if recover is not None:
        expected = recover()
        until(lambda: edge.ask("GET", path).body == expected, "the edge serves its origin again", 30)
    return None


def _waits(folder: Path, open_until_then: ExitStack) -> Iterator[Wait]:
    for path, name in ((LIVE, "live"), (HISTORY, "history")):
        yield _kill_a_server(_make_folder(folder / f"{name}-killed"), path, open_until_then)
        for trouble, script in (("answering 503", fails(503)), ("hanging", hangs)):
            origin = open_until_then.enter_context(an_origin())
            origin.script = says("first", cache_control=_CACHING[path])
            own = _make_folder(folder / f"{name}-{trouble.partition(' ')[0]}")
            edge = open_until_then.enter_context(an_edge(own, origin.port))
            yield Wait(path, trouble, edge, partial(_play, origin, script), partial(_answer_again, origin, path))


def _play(origin: Origin, script: Script) -> None:
    origin.script = script


def _answer_again(origin: Origin, path: str) -> bytes:
    origin.script = says("second", cache_control=_CACHING[path])
    return b"second"


def _kill_a_server(folder: Path, path: str, open_until_then: ExitStack) -> Wait:
    """A real server that ends, and nobody in its place."""
    publish(folder, a_ledger())
    serving = ExitStack()
    server = serving.enter_context(a_server(folder))
    open_until_then.callback(serving.close)
    edge = open_until_then.enter_context(an_edge(folder, server.port))
    return Wait(path, "a server that is gone", edge, serving.close, None)


def _make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


PART: Final = Part("how long copies last, at the launch's own times", 8, run, mostly_waits=True)
