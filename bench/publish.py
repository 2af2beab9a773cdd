"""What a publication costs with a full fortnight behind it, and how that grows with the rows."""

import time
from collections.abc import Iterator
from functools import partial

from bench.figures import Figure, seconds
from bench.plans import a_plan
from lookout.core.history import DAY_MS, HistoryProgress, HistoryState
from lookout.core.ledger import Ledger, State
from lookout.core.model import Observation, Peers
from lookout.core.plan import Plan
from lookout.documents.document import Document
from lookout.documents.reports import history_document, live_document

BUCKET_MS = 300_000
START_AT = 1_793_880_000_000
SOME_TROUBLE = "c" * 97 + "kdu"
QUIET = "c" * 100


def measure() -> Iterator[Figure]:
    smallest: dict[str, float] = {}
    for chains in (5, 525, 5250):
        plan = a_plan(chains)
        rows = len(plan.checks())
        ledger, now_at = a_full_fortnight(plan)
        took = {
            "publication, one row changed": publication(ledger, plan, now_at),
            "live report": seconds(partial(_live_report, ledger)),
            "history": seconds(partial(_history, ledger)),
            "publication that ends a bucket": bucket_end(ledger, now_at),
        }
        for what, s in took.items():
            per_row = s / rows
            smallest.setdefault(what, per_row)
            limit = 1.0 if rows < 10_000 else None
            yield Figure(
                f"{what}, {rows:,} rows",
                f"{s * 1000:,.3f} ms",
                "per row, of 21 rows' cost per row",
                per_row / smallest[what],
                "" if limit is None else "far under 1 s",
                limit is not None and s > limit / 4,
            )


def _live_report(ledger: Ledger) -> Document:
    return live_document(ledger.report())


def _history(ledger: Ledger) -> Document:
    return history_document(ledger.view())


def a_full_fortnight(plan: Plan, buckets: str = SOME_TROUBLE) -> tuple[Ledger, int]:
    """A ledger whose every row has all 4033 characters, these again and again, made from a stored state so that it
    takes no fortnight."""
    ledger = Ledger(plan)
    ledger.start(START_AT)
    ledger.publish(START_AT)
    state = ledger.state()
    if state.history is None:
        raise RuntimeError("a ledger that has published has a history")
    per_day = DAY_MS // BUCKET_MS
    now = START_AT // BUCKET_MS + 14 * per_day
    text = buckets * per_day
    days = {day: text[day % 7 :][:per_day] for day in range(now // per_day - 15, now // per_day)}
    days[now // per_day] = text[: now % per_day]
    progress = HistoryProgress(BUCKET_MS, now - 14 * per_day, now, now * BUCKET_MS, 0)
    tallies = state.history.tallies
    past = HistoryState(progress, tallies, dict.fromkeys(tallies, days))
    full = Ledger(plan, State(state.last_answer_at, state.checks, state.heads, past))
    full.publish(now * BUCKET_MS)
    return full, now * BUCKET_MS


def publication(ledger: Ledger, plan: Plan, now_at: int) -> float:
    """A probe judged and published; the time of one among a thousand within one bucket."""
    checks = plan.checks()
    began = time.perf_counter()
    for n in range(1_000):
        at = now_at + n * 100
        ledger.judge(Observation(checks[0], at, Peers(1 + n % 2)))
        ledger.publish(at)
    return (time.perf_counter() - began) / 1_000


def bucket_end(ledger: Ledger, now_at: int) -> float:
    took = []
    for n in range(1, 4):
        began = time.perf_counter()
        ledger.publish(now_at + n * BUCKET_MS)
        took.append(time.perf_counter() - began)
    return min(took)
