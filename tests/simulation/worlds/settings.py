"""The configuration of a world's monitors: everything there is, but for what it is without just now."""

from typing import Any, Final

from msgspec.structs import replace

from lookout.config.settings import Settings
from lookout.config.tables import ChainTable, PolicyTable, RpcEndpoint
from lookout.demo.sim.chain import Layout
from lookout.features.alerts.settings import AlertRule, AlertsTable
from lookout.protocols.broadcasters.seen import BroadcastersTable
from lookout.protocols.client.request import KindTable, SourceTable
from lookout.protocols.messaging import MessagingTable
from lookout.protocols.ppoi import PpoiTable
from tests.simulation.worlds.scene import Scene
from tests.simulation.worlds.script import TARGETS

_URL: Final = "http://127.0.0.1"


def build_settings(scene: Scene) -> Settings:
    """What the file says now, to those who read it."""
    faults = (fault for fault in scene.script.faults if fault.kind in ("without", "reload"))
    gone = {fault.of for fault in faults if scene.active(fault.kind, fault.of)}
    layout = tuple(chain for chain in scene.script.layout if f"chain/{chain.chain_id}" not in gone)
    chain_ids = tuple(chain.chain_id for chain in layout)
    sources: dict[str, tuple[SourceTable, ...]] = {
        "ppoi": (PpoiTable(_URL, "a list", chain_ids),),
        "indexer": _indexers(layout, "indexer", gone),
        "hosted-indexer": _indexers(layout, "hosted-indexer", gone),
        "messaging": (MessagingTable(_URL),),
        "broadcasters": (BroadcastersTable(_URL, chain_ids, via="relay"),),
    }
    alerts: dict[str, Any] = {"alerts": _alerts(scene, gone)}
    return Settings(
        chains=tuple(
            ChainTable(
                id=chain.chain_id,
                name=str(chain.chain_id),
                block_time_s=chain.block_ms / 1000,
                rpc=(RpcEndpoint(_URL),),
            )
            for chain in layout
        ),
        sources={service: tables for service, tables in sources.items() if service not in gone},
        policy=PolicyTable(heartbeat_s=8) if "heartbeat" in gone else PolicyTable(),
        **alerts,
    )


def _indexers(layout: Layout, service: str, gone: set[str]) -> tuple[KindTable, ...]:
    chains = (chain for chain in layout if f"{service}/{chain.chain_id}" not in gone)
    return tuple(KindTable(chain.chain_id, "squid", _URL, chain.confirmations) for chain in chains)


def _alerts(scene: Scene, gone: set[str]) -> AlertsTable:
    """Rules that are in a hurry, since worlds are short: how much so is the seed's."""
    chance = scene.chance("alerts")
    targets = {target: target for target in TARGETS if f"target/{target}" not in gone}
    of_rule: dict[str, tuple[str, ...]] = {"behind": ("chat",), "down": TARGETS, "blind": ("pager",)}
    rules = (
        AlertRule("behind", from_="catching-up", for_s=chance.choice((0, 60, 120)), remind_s=chance.choice((0, 90))),
        AlertRule("down", from_="unavailable", for_s=chance.choice((0, 45, 150)), remind_s=chance.choice((40, 200))),
        AlertRule("blind", services=("indexer", "ppoi"), unknown=True, for_s=chance.choice((20, 60)), remind_s=300),
    )
    group_s, give_up_s = chance.choice((0, 5, 30)), chance.choice((120, 400, 1_200))
    chosen = ((rule, tuple(target for target in of_rule[rule.name] if target in targets)) for rule in rules)
    return AlertsTable(targets, group_s, give_up_s, tuple(replace(rule, targets=to) for rule, to in chosen if to))
