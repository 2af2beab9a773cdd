"""What a scrape says of the RPC endpoints, as the board has them. What is not known has no sample."""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from lookout.monitor.board import Entry

_ENDPOINT: Final = ("chain", "endpoint")


def collect_endpoints(entries: Iterable[Entry]) -> Iterator[GaugeMetricFamily]:
    height = GaugeMetricFamily(
        "lookout_endpoint_height", "The newest block of an RPC endpoint, while it answers", labels=_ENDPOINT
    )
    lag = GaugeMetricFamily(
        "lookout_endpoint_lag_blocks",
        "How many blocks that is below the agreed head; above it: below 0",
        labels=_ENDPOINT,
    )
    standing = GaugeMetricFamily(
        "lookout_endpoint_standing",
        "1 for what the latest answer of an RPC endpoint counts for",
        labels=[*_ENDPOINT, "standing"],
    )
    for entry in entries:
        labels = [str(entry.chain_id), entry.name]
        if isinstance(entry.height, int):
            height.add_metric(labels, entry.height)
        if isinstance(entry.lag_blocks, int):
            lag.add_metric(labels, entry.lag_blocks)
        if isinstance(entry.standing, str):
            standing.add_metric([*labels, entry.standing], 1)
    yield from (height, lag, standing)
