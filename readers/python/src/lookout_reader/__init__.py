"""Reads Lookout's live report and history by the reader's rules, so that nothing stale or unknown ever looks healthy.

The rules are the clauses C1 to C16 of Lookout's contract. Instants are milliseconds since 1970, as ``instant_now()``
gives them. Parsing never raises: an unreadable part becomes a value with a ``problem`` in words.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from lookout_reader.about import (
    About,
    AboutChain,
    AboutDissent,
    AboutNote,
    AboutPlace,
    AboutService,
    parse_about,
)
from lookout_reader.clocks import Clocks
from lookout_reader.coverage import Coverage, coverage_of
from lookout_reader.document import Unreadable, UnreadableRow, find_row, rows_by_check
from lookout_reader.feed import (
    Answer,
    FailureCode,
    Feed,
    NoAnswer,
    clock_ahead_ms,
    history_feed,
    live_feed,
    take_answer,
    wrong_clock,
)
from lookout_reader.gate import Cause, Needs, Obstacle, Severity, can_use, obstacles_of
from lookout_reader.headline import Headline, effect_word, headline_of
from lookout_reader.history import (
    WINDOWS,
    Bucket,
    History,
    HistoryRow,
    Window,
    bucket_begins_at,
    buckets_of,
    parse_history,
)
from lookout_reader.incidents import Incident, incidents_of
from lookout_reader.instants import instant_now, parse_http_date, parse_instant
from lookout_reader.overview import (
    Activity,
    ActivityState,
    Doubt,
    Effect,
    Network,
    Overview,
    Problem,
    Since,
    overview_of,
)
from lookout_reader.report import LiveReport, Metrics, Row, parse_report
from lookout_reader.rollup import MAINNETS, SERVICES, TEST_NETWORK, CheckSummary, RollUp, ServiceSummary, roll_up
from lookout_reader.status import effective_status
from lookout_reader.statuses import EFFECTIVE_STATUSES, KNOWN_STATUSES, EffectiveStatus
from lookout_reader.version import __version__
from lookout_reader.words import NOTES, Note, agreement_text, notes_for, reason_text, status_text

if TYPE_CHECKING:
    from lookout_reader.poller import Update
    from lookout_reader.reader import AsyncReader, Reader, poll, poll_async, read, read_async
    from lookout_reader.urllib_fetch import fetch_with_urllib

__all__ = [
    "EFFECTIVE_STATUSES",
    "KNOWN_STATUSES",
    "MAINNETS",
    "NOTES",
    "SERVICES",
    "TEST_NETWORK",
    "WINDOWS",
    "About",
    "AboutChain",
    "AboutDissent",
    "AboutNote",
    "AboutPlace",
    "AboutService",
    "Activity",
    "ActivityState",
    "Answer",
    "AsyncReader",
    "Bucket",
    "Cause",
    "CheckSummary",
    "Clocks",
    "Coverage",
    "Doubt",
    "Effect",
    "EffectiveStatus",
    "FailureCode",
    "Feed",
    "Headline",
    "History",
    "HistoryRow",
    "Incident",
    "LiveReport",
    "Metrics",
    "Needs",
    "Network",
    "NoAnswer",
    "Note",
    "Obstacle",
    "Overview",
    "Problem",
    "Reader",
    "RollUp",
    "Row",
    "ServiceSummary",
    "Severity",
    "Since",
    "Unreadable",
    "UnreadableRow",
    "Update",
    "Window",
    "__version__",
    "agreement_text",
    "bucket_begins_at",
    "buckets_of",
    "can_use",
    "clock_ahead_ms",
    "coverage_of",
    "effect_word",
    "effective_status",
    "fetch_with_urllib",
    "find_row",
    "headline_of",
    "history_feed",
    "incidents_of",
    "instant_now",
    "live_feed",
    "notes_for",
    "obstacles_of",
    "overview_of",
    "parse_about",
    "parse_history",
    "parse_http_date",
    "parse_instant",
    "parse_report",
    "poll",
    "poll_async",
    "read",
    "read_async",
    "reason_text",
    "roll_up",
    "rows_by_check",
    "status_text",
    "take_answer",
    "wrong_clock",
]

# Imported on first use: the network modules take longer than all others together.
_OF_THE_NETWORK: Final = {
    "fetch_with_urllib": "urllib_fetch",
    "Update": "poller",
    "AsyncReader": "reader",
    "Reader": "reader",
    "poll": "reader",
    "poll_async": "reader",
    "read": "reader",
    "read_async": "reader",
}


def __getattr__(name: str) -> object:
    if name not in _OF_THE_NETWORK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_OF_THE_NETWORK[name]}"), name)
