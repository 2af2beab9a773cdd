"""Plans of any size under the launch thresholds."""

from lookout.config.tables import HistoryTable, PolicyTable
from lookout.core.heads import Pace
from lookout.core.plan import Plan
from lookout.core.services import all_checks


def a_plan(chains: int) -> Plan:
    """Every service on so many chains: 21 rows on 5."""
    chain_ids = range(1, chains + 1)
    checks = all_checks(chain_ids)
    return Plan(
        {chain_id: Pace(12_000, 1) for chain_id in chain_ids},
        frozenset(checks),
        {check: 5 for check in checks if check.service.endswith("indexer")},
        PolicyTable().limits(),
        HistoryTable().span(),
    )
