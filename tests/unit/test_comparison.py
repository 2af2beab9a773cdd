"""Two histories of the same days compared."""

from lookout.config.tables import HistoryTable
from lookout.core.history import HistoryRow, HistoryView, Uptime
from lookout.core.model import Check
from lookout.core.plan import Span
from lookout.replay.comparison import (
    ChangedStretch,
    Figure,
    compare,
)
from tests.builders import INDEXER, MESSAGING, MINUTE, NOON, PPOI

LAUNCH_SPAN: Span = HistoryTable().span()
NO_UPTIME = Uptime(None, None, None)


def a_view(rows: dict[Check, str], begins_at: int = NOON, uptime: Uptime = NO_UPTIME) -> HistoryView:
    """Rows of which each character is a bucket's."""
    (length,) = {len(buckets) for buckets in rows.values()}
    told = tuple(HistoryRow(check, buckets, uptime) for check, buckets in rows.items())
    to_at = begins_at + (length - 1) * 5 * MINUTE
    return HistoryView(to_at, LAUNCH_SPAN, begins_at, to_at, told)


def test_buckets_that_differ_in_the_same_way_are_one_stretch() -> None:
    comparison = compare(a_view({MESSAGING: "ccccccuu"}), a_view({MESSAGING: "ckkkcduu"}))
    (row,) = comparison.rows
    assert row.stretches == [
        ChangedStretch("2026-11-05T12:05:00Z", "2026-11-05T12:20:00Z", 3, "c", "k"),
        ChangedStretch("2026-11-05T12:25:00Z", "2026-11-05T12:30:00Z", 1, "c", "d"),
    ]
    assert (row.service, row.chain_id, row.changed) == ("messaging", None, 4)
    assert comparison.total.changes == {"cd": 1, "ck": 3}


def test_only_buckets_that_both_have_are_compared() -> None:
    long = a_view({MESSAGING: "uuuucccc"})
    short = a_view({MESSAGING: "kcck"}, NOON + 20 * MINUTE)
    for one, other in ((long, short), (short, long)):
        comparison = compare(one, other)
        assert (comparison.since, comparison.until) == ("2026-11-05T12:20:00Z", "2026-11-05T12:40:00Z")
        assert (comparison.total.buckets, comparison.total.changed) == (4, 2)


def test_the_total_uptime_is_that_of_all_buckets_together() -> None:
    was = a_view({MESSAGING: "c" * 20, PPOI: "c" * 10 + "?" * 10})
    would_be = a_view({MESSAGING: "c" * 10 + "u" * 10, PPOI: "c" * 10 + "?" * 10})
    total = compare(was, would_be).total
    assert total.uptime["24h"] == Figure(1.0, 0.6667)


def test_rows_of_only_one_configuration_are_left_out_and_named() -> None:
    comparison = compare(a_view({MESSAGING: "c", INDEXER: "c"}), a_view({MESSAGING: "k", PPOI: "c"}))
    assert [row.service for row in comparison.rows] == ["messaging"]
    assert comparison.left_out == ["indexer 1", "ppoi 1"]
