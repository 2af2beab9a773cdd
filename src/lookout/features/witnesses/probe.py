"""Asks each witness once, for ``lookout probe``: what it sees beside our rows, and what is wrong with its report."""

import asyncio
import json
from collections.abc import Iterable, Iterator

from lookout.base.instants import format_duration
from lookout.core.causes import describe_cause
from lookout.documents.api import paths
from lookout.features.feature import ProbedPart, Probing
from lookout.features.outcome import StandIn
from lookout.features.witnesses.reading import ask, describe_reading, find_cause, knows_time, new_feed, view_of
from lookout.features.witnesses.settings import WitnessTable
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.request import Request, below
from lookout.public import about
from lookout_reader.document import rows_by_check
from lookout_reader.feed import Answer, take_answer
from lookout_reader.report import Row


async def probe_witnesses(witnesses: Iterable[WitnessTable], probing: Probing) -> tuple[ProbedPart, ...]:
    found = await asyncio.gather(*(_probe(witness, probing) for witness in witnesses))
    return tuple(part for parts in found for part in parts)


async def _probe(witness: WitnessTable, probing: Probing) -> list[ProbedPart]:
    protocol = probing.around.description.protocol
    try:
        answer = await ask(witness, paths(protocol)[0], None, probing.session)
    except OwnFault as fault:
        return [_doubt(witness, describe_cause(fault.reason))]
    except ProbeFailed as failure:
        other = "" if failure.code is None else await _find_other_protocol(witness, protocol, probing)
        return [_doubt(witness, other or describe_cause(failure.reason))]
    return list(_compare(witness, answer, probing))


def _doubt(witness: WitnessTable, found: str) -> ProbedPart:
    return ProbedPart(StandIn("witness", witness.name, None), found, can_be_checked=False)


async def _find_other_protocol(witness: WitnessTable, own: str, probing: Probing) -> str:
    """Whether it is a deployment of another protocol, which has its report at another path."""
    try:
        described = json.loads(await probing.session.fetch(Request("GET", below(witness.url, about.PATH), witness)))
    except (ProbeFailed, OwnFault, ValueError):
        return ""
    other = described.get("protocol") if isinstance(described, dict) else None
    return f"its protocol is {other!r}, and this monitor's is {own!r}" if other not in (None, own) else ""


def _compare(witness: WitnessTable, answer: Answer, probing: Probing) -> Iterator[ProbedPart]:
    plan, at = probing.around.plan, probing.clock.now()
    feed = take_answer(new_feed(), answer, at, 0)
    if feed.document is None:
        yield _doubt(witness, describe_cause(find_cause(feed) or ""))
        return
    rows, lifetime_ms = rows_by_check(feed.document), plan.limits.row_lifetime_ms
    asked = [check for check in plan.checks() if check in plan.monitored and witness.watches(check)]
    views = {check: view_of(check, rows.get(check), at, lifetime_ms, knows_time=knows_time(feed)) for check in asked}
    for check, view in views.items():
        yield ProbedPart(check, view.status, place=witness.name)
    if missing := [check.name for check in asked if views[check].status == "unmonitored"]:
        yield _doubt(witness, f"it does not watch {', '.join(missing)}")
    lifetimes_ms = {
        row.expires_at - row.observed_at
        for row in feed.document.rows
        if isinstance(row, Row) and row.expires_at is not None and row.observed_at is not None
    }
    if others := sorted(lifetimes_ms - {lifetime_ms}):
        theirs, ours = ", ".join(map(format_duration, others)), format_duration(lifetime_ms)
        yield _doubt(witness, f"its rows expire after {theirs}, and after {ours} here")
    reading = describe_reading(feed, answer.age, has_rows=len(missing) < len(asked))
    yield from (_doubt(witness, describe_cause(doubt)) for doubt in reading.doubts)
