"""Two histories of the same days compared."""

from lookout.config.tables import HistoryTable
from lookout.core.history import HistoryRow, HistoryView, Uptime
from lookout.core.model import Check
from lookout.core.plan import Span
from lookout.replay.comparison import compare
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
    assert list(compare(a_view({MESSAGING: "ccccccuu"}), a_view({MESSAGING: "ckkkcduu"}))) == [
        "messaging: 4 buckets; the same uptime",
        "  2026-11-05T12:05:00Z, 3 buckets: current → catching-up",
        "  2026-11-05T12:25:00Z, 1 bucket: current → degraded",
        "from 2026-11-05T12:00:00Z to 2026-11-05T12:40:00Z, in 1 of 1 rows:",
        "4 of 8 buckets would change: 1 from current to degraded, 3 from current to catching-up",
    ]


def test_only_buckets_that_both_have_are_compared() -> None:
    long = a_view({MESSAGING: "uuuucccc"})
    short = a_view({MESSAGING: "kcck"}, NOON + 20 * MINUTE)
    for one, other in ((long, short), (short, long)):
        *_, span, total = compare(one, other)
        assert span.startswith("from 2026-11-05T12:20:00Z to 2026-11-05T12:40:00Z")
        assert total.startswith("2 of 4 buckets would change")


def test_rows_of_only_one_configuration_are_left_out_and_named() -> None:
    first, *_, last = compare(a_view({MESSAGING: "c", INDEXER: "c"}), a_view({MESSAGING: "k", PPOI: "c"}))
    assert first == "messaging: 1 bucket; the same uptime"
    assert last == "left out, since only one configuration has them: indexer 1, ppoi 1"
