"""Sources and endpoints that answer from the simulated world, late, wrongly or never."""

import asyncio
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from random import Random
from typing import Final

import msgspec

from lookout.config.settings import Settings, Upstreams
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Check, Found, Members, Peers
from lookout.core.plan import Plan
from lookout.demo.sim.world import World as Sim
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Now
from tests.simulation.worlds.scene import Answered, Asked, HeadAnswered, Life, Scene
from tests.simulation.worlds.simulated_sources import SimulatedAsk, ask_endpoint, endpoint_delay_ms, simulated_sources

TIMEOUT_S: Final = 10.0  # what a session allows (M3)
SIGHTINGS: Final = "source/broadcasters"
NOT_WATCHED: Final = Check("indexer", 999)


class SimSource:
    def __init__(self, scene: Scene, life: Life, name: str, checks: tuple[Check, ...], ask: SimulatedAsk) -> None:
        self.name = name
        self.checks = checks
        self._scene = scene
        self._life = life
        self._ask = ask
        self._chance = scene.chance(f"{life.serial}/{name}")

    async def probe(self, session: Session, _now: Now, /) -> Mapping[Check, Found]:
        scene = self._scene
        scene.emit(Asked(self._life, self.name))
        took_ms = _took_ms(self._chance)
        answer = self._ask(scene.true_at() + took_ms)
        if answer == "hang":
            await asyncio.sleep(TIMEOUT_S)
            self._ended({}, failed=True)
            raise ProbeFailed("timeout")
        await asyncio.sleep(took_ms / 1000)
        if scene.active("bug", self.name):
            scene.bugs_made += 1
            self._ended(None, failed=False)
            raise RuntimeError("a bug")
        if answer == "fail":
            self._ended({}, failed=True)
            raise ProbeFailed("refused")
        session.hear_date(self.name, _date(scene))
        found = dict(zip(self.checks, answer, strict=True))
        if scene.active("few", self.name) and len(found) > 1:
            found.pop(next(iter(found)))
        if scene.active("many", self.name):
            scene.bugs_made += 1
            found[NOT_WATCHED] = Blocks(1)
        self._ended(found, failed=all(_is_failure(each) for each in found.values()))
        return found

    def _ended(self, found: Mapping[Check, Found] | None, *, failed: bool) -> None:
        self._scene.note(f"{self._life.name} {self.name} {'failed' if failed else 'answered'}")
        self._scene.emit(Answered(self._life, self.name, self.checks, found, failed))


class SimEndpoint:
    def __init__(self, scene: Scene, life: Life, chain_id: int, number: int) -> None:
        self.name = f"rpc/{chain_id}/{number}"
        self.chain_id = chain_id
        self._number = number
        self._scene = scene
        self._life = life
        self._chance = scene.chance(f"{life.serial}/{self.name}")

    async def read(self, session: Session, now: Now, /) -> Reading:
        scene, asked_ms = self._scene, self._scene.ms
        took_ms = _took_ms(self._chance) + endpoint_delay_ms(scene.sim, self.chain_id, self._number, scene.true_at())
        answer = ask_endpoint(scene.sim, self.chain_id, self._number, scene.true_at() + took_ms)
        if took_ms >= TIMEOUT_S * 1000:
            answer = "hang"
        await asyncio.sleep(TIMEOUT_S if answer == "hang" else took_ms / 1000)
        if scene.active("bug", self.name):
            scene.bugs_made += 1
            raise RuntimeError("a bug")
        if isinstance(answer, str) or answer.chain_id != self.chain_id:
            is_wrong_chain = not isinstance(answer, str)
            scene.emit(HeadAnswered(self._life, self.chain_id, self._number, asked_ms, None, is_wrong_chain))
            raise ProbeFailed("wrong_chain") if is_wrong_chain else ProbeFailed("timeout")
        session.hear_date(self.name, _date(scene))
        reading = Reading(now(), answer.height, answer.block_at)
        scene.emit(HeadAnswered(self._life, self.chain_id, self._number, asked_ms, reading))
        return reading


def _date(scene: Scene) -> str:
    """An upstream's own clock is right."""
    return formatdate(scene.true_at() / 1000, usegmt=True)


class _Upstreams(Upstreams):
    """What a world's sources have to remember is how often they were asked for it, divided by three."""

    life: Life
    times: int

    def resume(self, seen: Mapping[str, SeenBroadcasters]) -> None:
        remembered = seen.get("broadcasters")
        self.times = 3 * remembered.asked_at[0] if remembered else 0
        self.life.sightings = msgspec.json.encode(remembered) if remembered else b""

    def seen(self) -> Mapping[str, SeenBroadcasters]:
        self.times += 1
        seen = SeenBroadcasters((), {0: self.times // 3})
        self.life.sightings = msgspec.json.encode(seen)
        return {"broadcasters": seen}


def build_upstreams(scene: Scene, life: Life, settings: Settings) -> Upstreams:
    """All that a monitor with these settings asks."""
    plan = settings.plan()
    sources = (SimSource(scene, life, name, checks, ask) for name, checks, ask in _asked(plan, scene.sim))
    endpoints = (
        SimEndpoint(scene, life, chain.chain_id, number)
        for chain in scene.sim.layout
        if chain.chain_id in plan.chains
        for number in range(chain.endpoints)
    )
    upstreams = _Upstreams(tuple(sources), tuple(endpoints))
    upstreams.life = life
    return upstreams


def sources_in(scene: Scene, plan: Plan) -> dict[str, tuple[Check, ...]]:
    """The sources that a plan has, with the checks that each answers for."""
    return {name: checks for name, checks, _ in _asked(plan, scene.sim)}


def _asked(plan: Plan, sim: Sim) -> Iterator[tuple[str, tuple[Check, ...], SimulatedAsk]]:
    for checks, ask in simulated_sources(plan, sim):
        service, chain_id = checks[0]
        yield f"{service}/{chain_id}" if service.endswith("indexer") else service, checks, ask


def _is_failure(found: Found) -> bool:
    match found:
        case Peers(peers=0):
            return True
        case Members(responding=0, monitored=monitored):
            return monitored > 0
        case _:
            return False


def _took_ms(chance: Random) -> int:
    """Mostly quick, at times nearly as long as is allowed."""
    return 20 + int(9_400 * chance.random() ** 12) + int(500 * chance.random() ** 3)
