"""A monitor on simulated upstreams, without a network and on a loop that does not wait: hours take a moment."""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from prometheus_client import CollectorRegistry
from yarl import URL

from lookout.config.file import read_config
from lookout.config.settings import Settings
from lookout.demo.sim.server import UPSTREAMS
from lookout.demo.sim.upstreams import Asked
from lookout.demo.sim.world import launch_world
from lookout.monitor.assembly import Machine, Succession
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import Session
from tests.builders import NOON
from tests.unit.running_monitor import Even, FastClock, FastLoop, InLine, KeptInMemory, Record

_Parsed = TypeVar("_Parsed")
BASE = "http://simulated"
_TAKES_S = 0.2
_ROUTES = [
    (re.compile(re.sub(r"\{(\w+)(?::[^}]*)?\}", r"(?P<\1>.*?)", upstream.route)), upstream) for upstream in UPSTREAMS
]


class AskedFor(NamedTuple):
    """A request: its second, the upstream's address, and the body."""

    second: float
    address: str
    body: bytes

    @property
    def is_to_endpoint(self) -> bool:
        return self.address.startswith("rpc/")

    @property
    def is_for_comparison(self) -> bool:
        return b'"eth_getLogs"' in self.body or b'"variables":{"' in self.body


class Place:
    """The upstreams of a world, and every request to them."""

    def __init__(self, clock: FastClock) -> None:
        self.world = launch_world(None, NOON)
        self.asked: list[AskedFor] = []
        self.errors: dict[str, Exception] = {}  # that requests for comparisons get, by the upstream's address
        self._clock = clock

    def order(self, target: str, fault: str | None, **parameters: int) -> None:
        self.world.faults.order({"target": target, "fault": fault, **parameters}, self._clock.now())

    async def answer(self, request: Request) -> bytes:
        path, body = URL(request.url).path, request.body or b""
        ((variables, upstream),) = (
            (match.groupdict(), upstream) for route, upstream in _ROUTES if (match := route.fullmatch(path))
        )
        asked = AskedFor(self._clock.elapsed_ms() / 1000, upstream.address.format(**variables), body)
        self.asked.append(asked)
        await asyncio.sleep(_TAKES_S)
        now = self._clock.now()
        if asked.is_for_comparison and asked.address in self.errors:
            raise self.errors[asked.address]
        if self.world.wire_fault(asked.address, now) is not None:
            raise ProbeFailed("refused")
        return upstream.reply(Asked(self.world, asked.address, {}, body, now)).body


@dataclass(frozen=True, slots=True)
class SimulatedSession(Session):
    place: Any = field(kw_only=True)

    async def fetch(self, request: Request) -> bytes:
        return bytes(await self.place.answer(request))

    async def parse(self, _body: bytes, parse: Callable[[], _Parsed]) -> _Parsed:
        """Here: the loop would not wait for a thread."""
        return parse()


class Stored(KeptInMemory):
    """A store whose last report is asked for its rows."""

    def row(self, service: str = "indexer", chain_id: int = 1) -> Any:
        checks = json.loads(self.documents[-1]["live"].body)["checks"]
        (row,) = (row for row in checks if (row["service"], row["chainId"]) == (service, chain_id))
        return row

    def status(self, service: str = "indexer") -> str:
        row = self.row(service)
        return f"{row['status']}/{row['reason']}"


@dataclass
class Life:
    """A monitor that lives, and the world that it lives in."""

    succession: Succession
    place: Place
    clock: FastClock
    store: Stored
    registry: CollectorRegistry
    instruments: Instruments
    folder: Path

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until(self, holds: Callable[[], bool], within_s: float) -> float:
        """How long it took, in seconds."""
        began_ms = self.clock.elapsed_ms()
        while not holds():
            assert self.clock.elapsed_ms() - began_ms < within_s * 1000, self.store.row()
            await asyncio.sleep(1)
        return (self.clock.elapsed_ms() - began_ms) / 1000

    async def reload(self, config: str) -> None:
        await self.succession.replace(settings_of(self.folder, config))

    def gauge(self, name: str, service: str = "indexer") -> float | None:
        return self.registry.get_sample_value(f"lookout_coverage_{name}", {"service": service, "chain": "1"})

    def requests(self) -> list[AskedFor]:
        """To the chain's endpoints, for comparisons."""
        return [request for request in self.place.asked if request.is_to_endpoint and request.is_for_comparison]


def settings_of(folder: Path, config: str) -> Settings:
    path = folder / "lookout.toml"
    path.write_text(config)
    return read_config(path)


def live(
    folder: Path,
    config: str,
    story: Callable[[Life], Any],
    store: Stored | None = None,
    record: Record | None = None,
    begin_at_s: float = 0,
    make_place: Callable[[FastClock], Any] = Place,
) -> Life:
    """Let a monitor live for as long as the story takes, which is a coroutine function."""
    store = store or Stored()
    clock = FastClock()
    clock.ahead_ms = round(begin_at_s * 1000)
    registry = CollectorRegistry()
    instruments = Instruments(registry, clock)
    place = make_place(clock)
    session = SimulatedSession(cast("Any", None), 10, place=place)

    async def run() -> Life:
        in_line = lambda _: nullcontext(InLine())  # noqa: E731
        machine = Machine(
            writer=store,
            store=InLine(),
            instruments=instruments,
            clock=clock,
            chance=Even(),
            open_session=lambda _: nullcontext(session),
            open_thread=in_line,
            recorder=cast("Any", record),
        )
        succession = Succession(settings_of(folder, config), store.load(), machine)
        life = Life(succession, place, clock, store, registry, instruments, folder)
        task = asyncio.create_task(succession.run())
        await asyncio.sleep(1)  # the first publication
        await story(life)
        assert not task.done(), task.exception()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return life

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        return runner.run(run())
