"""What people can do on each network, what may go wrong there and since when: the one place from which every face takes
its state (C16), and with ``headline.py`` its words. The JavaScript reader has the same, by the same vectors.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Final, Literal

from lookout_reader.about import NO_ABOUT, About
from lookout_reader.clocks import Clocks, clocks_of
from lookout_reader.document import Check, UnreadableRow, rows_by_check
from lookout_reader.feed import wrong_clock
from lookout_reader.history import History, HistoryRow, bucket_begins_at
from lookout_reader.report import LiveReport, Row
from lookout_reader.rollup import (
    SERVICES,
    SHARED_SERVICE,
    CheckSummary,
    count_checks,
    require_chain,
    summarize_check,
    worst_of,
)
from lookout_reader.status import FUTURE_MS
from lookout_reader.statuses import (
    CHARACTERS,
    EFFECTIVE_STATUSES,
    NO_DATA,
    TROUBLE_CHARACTERS,
    TROUBLE_STATUSES,
    EffectiveStatus,
)

Activity = Literal["send", "balances", "proofs"]
#: With their services, in the order of what people do. A service of the operator's own is no activity of these.
ACTIVITIES: Final[dict[Activity, tuple[str, ...]]] = {
    "send": ("broadcasters", "messaging"),
    "balances": ("indexer", "hosted-indexer"),
    "proofs": ("ppoi",),
}
#: What may happen to an activity, the most serious first; "trouble" is of a service of the operator's own.
EFFECTS: Final = ("fail", "stop", "refused", "wrong", "trouble", "late", "slow", "unknown", "well", "unwatched")
Effect = Literal["fail", "stop", "refused", "wrong", "trouble", "late", "slow", "unknown", "well", "unwatched"]
#: What keeps a reader from knowing. Those of ``NO_REPORT`` are the reason why there is no new report.
Doubt = Literal[
    "ahead", "behind", "offline", "silent", "none", "busy", "unreadable", "refused", "asleep", "stopped",
    "undated", "future", "own", "rows",
]  # fmt: skip
NO_REPORT: Final[tuple[Doubt, ...]] = (
    "offline", "silent", "none", "busy", "unreadable", "refused", "asleep", "stopped",
)  # fmt: skip

STOPPED_MS: Final = 100_000
_ANSWERED_OLD_MS: Final = 90_000  # a monitor makes a report every 30 s, and caches keep one for up to 60 s
_ASLEEP_MS: Final = 45_000  # a reader asks every 30 s at the latest, and waits up to 10 s for the answer
UNREACHED_MS: Final = 150_000  # as long as a row holds: later, the reader may have stopped asking
HISTORY_OLD_BUCKETS: Final = 2
_KNOWN_CODES: Final[dict[str, Doubt]] = {
    "offline": "offline",
    "no-answer": "silent",
    "timeout": "silent",
    "not-available": "none",
    "too-many-requests": "busy",
    "unreadable": "unreadable",
    "wrong-version": "unreadable",
}
_BY_REASON: Final[dict[tuple[Activity | None, str | None], Effect]] = {
    ("balances", "incomplete"): "stop",
    ("balances", "inconsistent"): "wrong",
    ("proofs", "inconsistent"): "refused",
}
_TROUBLE: Final = TROUBLE_CHARACTERS
_UNKNOWN: Final = CHARACTERS["unknown"] + NO_DATA


@dataclass(frozen=True, slots=True)
class Since:
    """When something began, by the history: at ``at``, or before if its beginning was not ``seen``. ``last_at`` is
    when the last of several began."""

    at: int
    seen: bool
    last_at: int


@dataclass(frozen=True, slots=True)
class ActivityState:
    """One activity on one network; ``activity`` is None for a service of the operator's own, which is ``service``.

    ``bad`` are the checks that are watched and not current, the worst first. ``status`` is for its colour.
    """

    activity: Activity | None
    service: str
    status: EffectiveStatus
    effect: Effect
    checks: tuple[CheckSummary, ...]
    bad: tuple[CheckSummary, ...]
    since: Since | None


@dataclass(frozen=True, slots=True)
class Network:
    """A chain; ``chain_id`` is None for the operator's own services without one. Test networks are not ``counted``."""

    chain_id: int | None
    counted: bool
    status: EffectiveStatus
    activities: tuple[ActivityState, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One effect on one activity, on all counted networks where it is so. ``until_at`` is the end that a note of the
    operator's gives."""

    activity: Activity | None
    service: str
    status: EffectiveStatus
    effect: Effect
    chain_ids: tuple[int | None, ...]
    since: Since | None
    until_at: int | None
    unreached: bool  # nothing is known, but it was asked and gave no usable answer

    @property
    def is_trouble(self) -> bool:
        return self.effect != "unknown"


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of a deployment. ``status`` is the worst of all that counts: unknown instead of current if in doubt,
    unmonitored if nothing current was seen on a chain (C16).

    ``problems`` are in the order of what people do, what is not known last. ``services`` has the worst status by
    service, and ``missing`` the checks that the report lacks. ``age_ms`` is the report's, None if it has no date.
    """

    status: EffectiveStatus
    doubts: tuple[Doubt, ...]
    problems: tuple[Problem, ...]
    networks: tuple[Network, ...]
    services: Mapping[str, EffectiveStatus]
    missing: tuple[CheckSummary, ...]
    nothing_reached: bool
    age_ms: int | None
    now: float
    about: About

    @property
    def healthy(self) -> bool:
        return self.status == "current"


def overview_of(
    report: LiveReport | None,
    now: Clocks | float | None = None,
    *,
    about: About = NO_ABOUT,
    history: History | None = None,
    chains: Iterable[int] | None = None,
    report_code: str | None = None,
) -> Overview:
    """The state of the ``chains`` (all that the description or the rows have, if None) without test networks.

    ``now`` is as in ``effective_status``. ``report_code`` is of the last request, None if it succeeded.
    """
    read = clocks_of(report.arrival if report else None, now)
    # By a clock that is known to be wrong nothing is judged.
    clocks = read if wrong_clock(read.clock_ahead_ms) is None else read._replace(now=nan)
    rows = rows_by_check(report) if report else {}
    checks = dict.fromkeys((*rows, *(rows_by_check(history) if history else ())))
    named = about.counted_chains(chain_id for _, chain_id in checks) if chains is None else tuple(dict.fromkeys(chains))
    counted = tuple(chain_id for chain_id in named if chain_id not in about.test_networks)
    summaries, doubts_of_rows = count_checks(report, counted, None, clocks)
    # Without a report the history says which checks there are.
    shown = {summary_check(summary) for summary in summaries}
    others = [check for check in (rows or checks) if check not in shown]
    tests = [summarize_check(check, rows.get(check), clocks) for check in others if check[1] in about.test_networks]
    if not rows:
        summaries += [summarize_check(check, None, clocks) for check in others if check[1] in (None, *counted)]
    if not about.show_unmonitored:
        summaries, tests = ([each for each in some if each.effective != "unmonitored"] for some in (summaries, tests))
    nothing_reached = _is_nothing_reached((*summaries, *tests), clocks)
    age_ms = _age_of(report, read)
    doubts = tuple(_doubts(report, read, age_ms, report_code, nothing_reached))
    maker = _Maker(about, history, rows_by_check(history) if history else {}, clocks)
    networks = tuple(maker.networks(summaries, tests))
    worst = _worst(each.effective for each in summaries)
    if worst == "current" and doubts:
        worst = "unknown"
    services: dict[str, list[EffectiveStatus]] = {}
    for each in summaries:
        services.setdefault(each.service, []).append(each.effective)
    return Overview(
        status=require_chain(worst_of((worst, *doubts_of_rows)), summaries),
        doubts=doubts,
        problems=tuple(maker.problems(networks)),
        networks=networks,
        services={service: worst_of(statuses) for service, statuses in services.items()},
        missing=tuple(each for each in summaries if each.presence == "missing"),
        nothing_reached=nothing_reached,
        age_ms=age_ms,
        now=read.now,
        about=about,
    )


def summary_check(summary: CheckSummary) -> Check:
    return (summary.service, summary.chain_id)


def effect_of(activity: Activity | None, status: EffectiveStatus, reason: str | None) -> Effect:
    """What a row of this status may do to the activity."""
    if status == "current":
        return "well"
    if status not in TROUBLE_STATUSES:
        return "unwatched" if status == "unmonitored" else "unknown"
    if activity == "send":
        return "fail" if status == "unavailable" else "slow"
    return "trouble" if activity is None else _BY_REASON.get((activity, reason), "late")


# ---- What keeps a reader from knowing


def _doubts(
    report: LiveReport | None,
    clocks: Clocks,
    age_ms: int | None,
    report_code: str | None,
    nothing_reached: bool,
) -> Iterable[Doubt]:
    wrong = wrong_clock(clocks.clock_ahead_ms)
    if wrong is not None:
        yield wrong
    if report_code is not None:
        yield _KNOWN_CODES.get(report_code, "refused")
    if report is None:
        return
    if age_ms is None:
        yield "undated"
    elif wrong is None and age_ms < -FUTURE_MS:
        yield "future"
    elif wrong is None and report_code is None and age_ms >= STOPPED_MS:
        answered_ago_ms = clocks.answered_ago_ms or 0
        if answered_ago_ms > _ASLEEP_MS:
            yield "asleep"
        elif age_ms - answered_ago_ms >= _ANSWERED_OLD_MS:
            yield "stopped"
    if nothing_reached:
        yield "own"
    if report.unreadable_rows:
        yield "rows"


def _age_of(report: LiveReport | None, clocks: Clocks) -> int | None:
    """How old the report is, and no less than it has been here."""
    if report is None or report.generated_at is None:
        return None
    age = clocks.now - report.generated_at
    if age != age:  # without a clock
        return None
    return int(age if age < -FUTURE_MS else max(age, clocks.received_ago_ms or 0))


def _is_nothing_reached(checks: Iterable[CheckSummary], clocks: Clocks) -> bool:
    """Whether none of several gave a usable answer, which the monitor's own connection would explain as well."""
    watched = [check for check in checks if check.effective != "unmonitored"]
    return len(watched) > 1 and all(
        _is_unreached(check, clocks)
        or (check.effective == "unavailable" and isinstance(check.row, Row) and check.row.reason == "unreachable")
        for check in watched
    )


def _is_unreached(check: CheckSummary, clocks: Clocks) -> bool:
    """Whether it gave no usable answer the last time or two, so that it is asked again before it is called down."""
    row = check.row
    if not isinstance(row, Row) or (row.published_status, row.reason) != ("unknown", "unreachable"):
        return False
    age_ms = float("nan") if row.observed_at is None else clocks.now - row.observed_at
    return -FUTURE_MS <= age_ms < UNREACHED_MS and (clocks.received_ago_ms or 0) < UNREACHED_MS


# ---- Networks and problems


@dataclass(frozen=True, slots=True)
class _Maker:
    about: About
    history: History | None
    past: Mapping[Check, HistoryRow | UnreadableRow]
    clocks: Clocks

    def networks(self, counted: Sequence[CheckSummary], tests: Sequence[CheckSummary]) -> Iterable[Network]:
        """In the operator's order, test networks last; then what has no chain."""
        shared = [check for check in counted if check.chain_id is None]
        of_all = [check for check in shared if check.service in SERVICES]
        order = {chain_id: place for place, chain_id in enumerate(self.about.chains)}
        for some, is_counted in ((counted, True), (tests, False)):
            ids = {check.chain_id for check in some if check.chain_id is not None}
            for chain_id in sorted(ids, key=lambda each: (order.get(each, len(order)), each)):
                own = [check for check in some if check.chain_id == chain_id]
                yield from self._network(chain_id, [*of_all, *own], is_counted)
        is_alone = all(check.chain_id is None for check in counted)
        yield from self._network(None, shared if is_alone else [each for each in shared if each not in of_all], True)

    def _network(self, chain_id: int | None, checks: Sequence[CheckSummary], is_counted: bool) -> Iterable[Network]:
        order = {service.name: place for place, service in enumerate(self.about.services)}
        own = dict.fromkeys(check.service for check in checks if check.service not in SERVICES)
        wanted: list[tuple[Activity | None, tuple[str, ...]]] = [
            *ACTIVITIES.items(),
            *((None, (service,)) for service in sorted(own, key=lambda each: order.get(each, len(order)))),
        ]
        found = tuple(state for each in wanted if (state := self._activity(*each, checks)) is not None)
        if found:
            yield Network(chain_id, is_counted, _worst(state.status for state in found), found)

    def _activity(
        self, activity: Activity | None, services: Collection[str], all_checks: Sequence[CheckSummary]
    ) -> ActivityState | None:
        checks = [check for check in all_checks if check.service in services]
        if activity == "proofs":  # a gap in an indexer's list leaves proofs pending
            checks += [
                check
                for check in all_checks
                if check.service in ACTIVITIES["balances"]
                and (check.effective, _reason(check)) == ("degraded", "incomplete")
            ]
        if not checks:
            return None
        watched = [check for check in checks if check.effective != "unmonitored"]
        bad = sorted(
            (check for check in watched if check.effective != "current"),
            key=lambda check: EFFECTIVE_STATUSES.index(check.effective),
        )
        # Messaging alone sends nothing.
        is_seen = any(check.service != SHARED_SERVICE for check in watched)
        status = bad[0].effective if bad else "current" if is_seen else "unmonitored"
        effects = [effect_of(activity, check.effective, _reason(check)) for check in bad]
        effect = min(effects, key=EFFECTS.index) if bad else effect_of(activity, status, None)
        since = join_since(self._since(check) for check, each in zip(bad, effects, strict=True) if each == effect)
        return ActivityState(activity, next(iter(services)), status, effect, tuple(checks), tuple(bad), since)

    def _since(self, check: CheckSummary) -> Since | None:
        """Since when this check has been bad, by the last run of buckets that were so."""
        if check.effective == "stale" and isinstance(check.row, Row) and check.row.observed_at is not None:
            return Since(check.row.observed_at, True, check.row.observed_at)
        history, past = self.history, self.past.get(summary_check(check))
        if history is None or not isinstance(past, HistoryRow):
            return None
        bucket_ms = history.bucket_seconds * 1000
        if not 0 <= self.clocks.now - history.to_at < HISTORY_OLD_BUCKETS * bucket_ms:
            return None
        wanted = _TROUBLE if check.effective in TROUBLE_STATUSES else _UNKNOWN
        begin = history.length - 1  # the bucket that fills is bad unless it was seen current
        if past.buckets[begin] != CHARACTERS["current"]:
            while begin > 0 and past.buckets[begin - 1] in wanted:
                begin -= 1
        seen = past.buckets[begin] == CHARACTERS["current"] or past.buckets[:begin].endswith(CHARACTERS["current"])
        return Since(at := bucket_begins_at(history, begin), seen, at)

    def problems(self, networks: Iterable[Network]) -> Iterable[Problem]:
        groups: dict[tuple[object, ...], list[tuple[int | None, ActivityState]]] = {}
        for network in networks:
            for state in network.activities if network.counted else ():
                if state.bad:
                    of_own = state.status if state.activity is None and state.effect == "trouble" else None
                    key = (state.activity or state.service, state.effect, of_own)
                    groups.setdefault(key, []).append((network.chain_id, state))
        found = [self._problem(group) for group in groups.values()]
        order = list(ACTIVITIES)
        yield from sorted(
            found,
            key=lambda each: (
                not each.is_trouble,
                len(order) if each.activity is None else order.index(each.activity),
                EFFECTS.index(each.effect),
            ),
        )

    def _problem(self, group: Sequence[tuple[int | None, ActivityState]]) -> Problem:
        states = [state for _, state in group]
        first = states[0]
        bad = [check for state in states for check in state.bad]
        return Problem(
            activity=first.activity,
            service=first.service,
            status=_worst(state.status for state in states),
            effect=first.effect,
            chain_ids=tuple(chain_id for chain_id, _ in group),
            since=join_since(state.since for state in states),
            until_at=self._until(bad) if first.effect != "unknown" else None,
            unreached=any(_is_unreached(check, self.clocks) for check in bad),
        )

    def _until(self, bad: Iterable[CheckSummary]) -> int | None:
        """The latest end of the notes that are about this now; None if one of them has none."""
        now, checks = self.clocks.now, [summary_check(check) for check in bad]
        notes = [note for note in self.about.notes_at(now) if note.from_at <= now and any(map(note.covers, checks))]
        ends = [note.until_at for note in notes if note.until_at is not None]
        return max(ends) if ends and len(ends) == len(notes) else None


def join_since(parts: Iterable[Since | None]) -> Since | None:
    """Since when the first of them is so."""
    found = list(parts)
    known = [since for since in found if since is not None]
    if not known:
        return None
    first = min(known, key=lambda since: (since.at, since.seen))
    return Since(first.at, first.seen and len(known) == len(found), max(since.last_at for since in known))


def _worst(statuses: Iterable[EffectiveStatus]) -> EffectiveStatus:
    found = set(statuses)
    return next((status for status in EFFECTIVE_STATUSES if status in found), "unmonitored")


def _reason(check: CheckSummary) -> str | None:
    return check.row.reason if isinstance(check.row, Row) else None
