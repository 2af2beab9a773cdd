"""Layouts, plans and lives for rehearsals: ordinary ones, so that a test says only what matters to it."""

from collections.abc import Iterable
from itertools import groupby
from random import Random

from lookout.config.settings import Settings
from lookout.config.tables import ChainTable, PolicyTable, RpcEndpoint
from lookout.core.ledger import Ledger
from lookout.core.model import Row
from lookout.core.plan import Plan
from lookout.demo.rehearsal import Life, Listeners, rehearse
from lookout.demo.sim.episodes import FaultEpisode
from lookout.demo.sim.layout import ChainLayout, Layout
from lookout.demo.sim.world import World
from lookout.protocols.broadcasters.table import BroadcastersTable
from lookout.protocols.messaging import MessagingTable
from lookout.protocols.ppoi import PpoiTable
from lookout.protocols.tables import KindTable
from tests.builders import MINUTE, NOON

SLOW_CHAIN = ChainLayout(1, 12_000, 25_700_000)
FAST_CHAIN = ChainLayout(56, 450, 92_000_000)
ONE_CHAIN: Layout = (SLOW_CHAIN,)
TWO_CHAINS: Layout = (SLOW_CHAIN, FAST_CHAIN)


def plan_of(layout: Layout, policy: PolicyTable | None = None) -> Plan:
    """The plan of an operator who watches everything in the layout."""
    url = "http://127.0.0.1"
    return Settings(
        chains=tuple(
            ChainTable(
                id=chain.chain_id, name=str(chain.chain_id), block_time_s=chain.block_ms / 1000, rpc=(RpcEndpoint(url),)
            )
            for chain in layout
        ),
        sources={
            "ppoi": (PpoiTable(url, "a list", tuple(chain.chain_id for chain in layout if chain.ppoi)),),
            "indexer": tuple(
                KindTable(chain.chain_id, "squid", url, chain.confirmations) for chain in layout if chain.indexer
            ),
            "hosted-indexer": tuple(
                KindTable(chain.chain_id, "squid", url, chain.confirmations) for chain in layout if chain.hosted_indexer
            ),
            "messaging": (MessagingTable(url),),
            "broadcasters": (BroadcastersTable(url, tuple(chain.chain_id for chain in layout if chain.members)),),
        },
        policy=PolicyTable() if policy is None else policy,
    ).plan()


def an_episode(subject: str, kind: str, begins_min: float, lasts_min: float, size: int = 0) -> FaultEpisode:
    """An episode in minutes from noon."""
    begin_at = NOON + round(begins_min * MINUTE)
    return FaultEpisode(subject, kind, begin_at, begin_at + round(lasts_min * MINUTE), size)


def a_world(*episodes: FaultEpisode, layout: Layout = ONE_CHAIN, seed: int = 1) -> World:
    """A world from noon on in which only this goes wrong."""
    return World(layout, seed, NOON, episodes)


def a_life(begins_min: float, ends_min: float) -> Life:
    return Life(NOON + round(begins_min * MINUTE), NOON + round(ends_min * MINUTE))


class Record:
    """Every publication's rows, kept."""

    def __init__(self) -> None:
        self.publications: list[tuple[int, tuple[Row, ...]]] = []

    def published(self, ledger: Ledger) -> None:
        assert ledger.published_at is not None
        self.publications.append((ledger.published_at, ledger.published_rows))

    def of(self, service: str, chain_id: int | None) -> list[tuple[int, Row]]:
        """One check's rows, each with the instant of its first publication."""
        rows: list[tuple[int, Row]] = []
        for at, published in self.publications:
            (row,) = (row for row in published if row.check == (service, chain_id))
            if not rows or rows[-1][1] != row:
                rows.append((at, row))
        return rows

    def course(self, service: str, chain_id: int | None) -> list[tuple[str, str]]:
        """One check's statuses and reasons, each change once."""
        return [each for each, _ in groupby((row.status, row.reason) for _, row in self.of(service, chain_id))]

    def statuses(self, service: str, chain_id: int | None, from_min: float, until_min: float) -> set[str]:
        """The statuses that the check had been given at some time between these minutes after noon."""
        from_at, until_at = NOON + from_min * MINUTE, NOON + until_min * MINUTE
        return {
            row.status
            for at, rows in self.publications
            if from_at <= at < until_at
            for row in rows
            if row.check == (service, chain_id)
        }


def watch(world: World, lives: Iterable[Life], *, seed: int = 1, plan: Plan | None = None) -> Record:
    """Rehearse, keeping every publication."""
    record = Record()
    watched = plan_of(world.layout) if plan is None else plan
    rehearse(watched, world, lives, Random(seed), listeners=Listeners(published=record.published))
    return record
