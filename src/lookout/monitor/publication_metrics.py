"""What a scrape says of the last publication and history: rows, heads, uptime. What is not known has no sample."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

from msgspec import UNSET
from msgspec.structs import fields
from prometheus_client.core import GaugeMetricFamily

from lookout.core.heads import ChainProgress
from lookout.core.history import Uptime
from lookout.core.model import Answer, Blocks, Check, Indexes, Row, Status

_WINDOWS: Final = {each.name: each.encode_name for each in fields(Uptime)}
_ROW: Final = ("service", "chain")
# What each is. A row has no more than one of the first two: a ppoi node's indexes are not blocks.
_FIGURES: Final = {
    "lookout_row_lag_blocks": "How many blocks a row is behind the head that it is compared with",
    "lookout_row_lag_indexes": "How many indexes a row is behind its own head",
    "lookout_row_lag_seconds": "How long the chain takes, at its pace, for the blocks that a row is behind",
    "lookout_row_position": "How far a row is",
    "lookout_row_head": "What the position of a row is compared with",
    "lookout_row_expires_timestamp_seconds": "From when on a row says nothing any more",
}


def chain_label(check: Check) -> str:
    return "" if check.chain_id is None else str(check.chain_id)


def collect_rows(
    rows: Sequence[Row], chains: Mapping[int, ChainProgress], answers: Mapping[str, type[Answer]], now: int
) -> Iterator[GaugeMetricFamily]:
    """``answers`` are those of the services. The figures of a row that has expired are not known any more."""
    counts = Counter(row.status for row in rows)
    by_status = GaugeMetricFamily("lookout_rows", "Rows of the last publication, by status", labels=["status"])
    for status in get_args(Status):
        by_status.add_metric([status], counts[status])
    each = GaugeMetricFamily("lookout_row_status", "1 for the status that each row has", labels=[*_ROW, "status"])
    figures = {name: GaugeMetricFamily(name, what, labels=_ROW) for name, what in _FIGURES.items()}
    for row in rows:
        labels = [row.check.service, chain_label(row.check)]
        each.add_metric([*labels, row.status], 1)
        if row.expires_at is not None:
            figures["lookout_row_expires_timestamp_seconds"].add_metric(labels, row.expires_at / 1000)
        if row.expires_at is None or row.expires_at > now:
            for name, figure in _figures(row, answers.get(row.check.service), chains):
                figures[name].add_metric(labels, figure)
    yield from (by_status, each, *figures.values())


def _figures(row: Row, answer: type[Answer] | None, chains: Mapping[int, ChainProgress]) -> Iterator[tuple[str, float]]:
    position, head, chain_id = row.metrics.position, row.metrics.head, row.check.chain_id
    if position is UNSET:
        return
    yield "lookout_row_position", position
    if head is UNSET:
        return
    yield "lookout_row_head", head
    lag = max(0, head - position)  # R11
    if answer is Indexes:
        yield "lookout_row_lag_indexes", lag
    if answer is Blocks and chain_id is not None:
        pace = chains[chain_id].pace
        yield "lookout_row_lag_blocks", lag
        yield "lookout_row_lag_seconds", lag * pace.ms / pace.blocks / 1000


def collect_heads(chains: Mapping[int, ChainProgress]) -> Iterator[GaugeMetricFamily]:
    agreed = GaugeMetricFamily(
        "lookout_head_agreed", "1 while a chain has a head that positions are compared with, else 0", labels=["chain"]
    )
    height = GaugeMetricFamily("lookout_head_height", "The block that a chain's endpoints agree on", labels=["chain"])
    block_at = GaugeMetricFamily(
        "lookout_head_block_timestamp_seconds", "The timestamp of that block", labels=["chain"]
    )
    for chain_id, (head, _) in chains.items():
        agreed.add_metric([str(chain_id)], head is not None)
        if head is not None:
            height.add_metric([str(chain_id)], head.height)
            block_at.add_metric([str(chain_id)], head.block_at / 1000)
    yield from (agreed, height, block_at)


def collect_uptimes(uptimes: Mapping[Check, Uptime]) -> GaugeMetricFamily:
    ratio = GaugeMetricFamily(
        "lookout_row_uptime_ratio", "The uptime of a row, as the history has it", labels=[*_ROW, "window"]
    )
    for check, uptime in uptimes.items():
        for name, window in _WINDOWS.items():
            share = getattr(uptime, name)
            if share is not None:
                ratio.add_metric([check.service, chain_label(check), window], share)
    return ratio
