"""Reads a witness's live report by the reader's rules (W2)."""

import re
from dataclasses import asdict
from typing import Final, cast

from msgspec import Struct

from lookout.core.model import Check, Metrics, Reason, Row, unmonitored
from lookout.features.outcome import Outcome
from lookout.features.witnesses.rules import BEST_FIRST
from lookout_reader.document import UnreadableRow
from lookout_reader.report import Row as ReportRow
from lookout_reader.status import FUTURE_MS

_REASON: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Reading(Struct, frozen=True):
    """How the last request to a witness ended, and what is known of the report that it gave last."""

    outcome: Outcome
    """With the cause if the report could not be had or read; ``describe_cause`` has the words."""
    report_at: int | None = None
    """When the witness made its last report, by its own clock; None if it never gave one."""
    age_s: int | None = None
    """The ``Age`` that a cache wrote into the last answer: the witness should be asked without it."""
    clock_ahead_ms: int | None = None
    """How far our clock seems to be ahead of the witness's; None if that is unknown."""


def view_of(check: Check, found: ReportRow | UnreadableRow | None, at: int, lifetime_ms: int) -> Row:
    """The view of a witness whose report, read at this instant, has this row for the check. A row that does not count
    is ``unknown``, and ``unmonitored`` if the witness does not watch the check (W2, W3)."""
    if found is None or (isinstance(found, ReportRow) and found.published_status == "unmonitored"):
        return unmonitored(check)
    if isinstance(found, UnreadableRow) or _REASON.fullmatch(found.reason or "") is None:
        return Row(check, "unknown", "no-observation")
    reason = cast("Reason", found.reason)  # perhaps one of a later version
    status = next((status for status in BEST_FIRST if status == found.published_status), None)
    observed_at, expires_at = found.observed_at, found.expires_at
    if status is None or observed_at is None or expires_at is None:  # C1, C2
        return Row(check, "unknown", reason)
    if observed_at - at > FUTURE_MS or expires_at <= observed_at:  # C2
        return Row(check, "unknown", reason)
    seen_at, lasts_ms = min(observed_at, at), min(expires_at - observed_at, lifetime_ms)
    metrics = {name: count for name, count in asdict(found.metrics).items() if count is not None}
    return Row(check, status, reason, seen_at, found.last_success_at, seen_at + lasts_ms, Metrics(**metrics))
