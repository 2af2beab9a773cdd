"""What a scrape says of the lists that are compared with their chains."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily

from lookout.core.completeness.coverage import checked_blocks, gaps_of, oldest_unchecked_at
from lookout.monitor.board import CoverageNote
from lookout.monitor.publication_metrics import chain_label


def collect_coverages(notes: Iterable[CoverageNote], now: int) -> Iterator[GaugeMetricFamily]:
    gauges = {
        "checked_blocks": "Blocks in which an indexer's list was compared with the chain",
        "missing": "Transactions of the chain that are confirmed to be missing in the list",
        "extra": "Transactions of the list that the chain is confirmed not to have",
        "oldest_unchecked_seconds": "Seconds since the least recently compared block was compared",
    }
    families = {
        name: GaugeMetricFamily(f"lookout_coverage_{name}", what, labels=["service", "chain"])
        for name, what in gauges.items()
    }
    for note in notes:
        gaps, labels = gaps_of(note.coverage), [note.check.service, chain_label(note.check)]
        waited_ms = max(0, now - oldest_unchecked_at(note.coverage, note.first_block))
        families["checked_blocks"].add_metric(labels, checked_blocks(note.coverage))
        families["missing"].add_metric(labels, gaps.missing)
        families["extra"].add_metric(labels, gaps.extra)
        families["oldest_unchecked_seconds"].add_metric(labels, waited_ms / 1000)
    yield from families.values()
