"""When to send a message: publications in, news out.

An episode is one check that one rule finds bad. It begins with the first publication in which it is, and ends with the
first in which the check is known to be better: what is not seen has not recovered. How long it has lasted is the time
that was seen to pass, so that neither the monitor's absence nor a clock that was set can make it long enough.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from lookout.base.instants import END_AT
from lookout.core.causes import code_of
from lookout.core.history import DAY_MS
from lookout.core.model import Check, Reason, Row, Status
from lookout_reader.statuses import KNOWN_STATUSES

_KNOWN: Final = frozenset[Status](KNOWN_STATUSES)

# What is stored is held to this when it is read: no damaged disk makes an instant that cannot be written.
Instant = Annotated[int, Meta(ge=0, lt=END_AT)]
Lasted = Annotated[int, Meta(ge=0, lt=2**53)]
_NEVER_MS: Final = 2**53
_OF_LAG: Final = ("behind", "not_moving")
_LAG: Final = re.compile(r"(\d+) (?:blocks|indexes) ")
_ENDPOINT: Final = "endpoint "  # no service has a space in its name
NewsKind = Literal["began", "goes-on", "ended", "left"]


class EpisodeRule(Struct, frozen=True):
    """These checks, in one of these statuses and for one of these reasons, are reported to these targets after this
    long; reminders become rarer."""

    key: str  # by which its episodes are found again
    checks: frozenset[Check]
    statuses: frozenset[Status]
    for_ms: int
    remind_ms: int  # 0: never
    targets: tuple[str, ...]
    reasons: frozenset[Reason] | None = None  # None: any
    counts_nothing: bool = True  # whether it is bad that a service answers, and never had anything for a chain

    def is_bad(self, row: Row) -> bool:
        is_counted = row.status in self.statuses and (self.reasons is None or row.reason in self.reasons)
        return is_counted and (self.counts_nothing or not row.is_of_nothing or row.last_success_at is not None)


def endpoint_check(name: str, chain_id: int) -> Check:
    """By what the episodes of an RPC endpoint are found."""
    return Check(_ENDPOINT + name, chain_id)


def endpoint_of(check: Check) -> str | None:
    """The name of the RPC endpoint that this is; None of a service."""
    return check.service.removeprefix(_ENDPOINT) if check.service.startswith(_ENDPOINT) else None


class EpisodeRules(Struct, frozen=True):
    """All rules, how long news are gathered, and how long a published status lasts at most (H8)."""

    rules: tuple[EpisodeRule, ...]
    group_ms: int
    hold_ms: int


class Episode(Struct, frozen=True):
    """One check that one rule found bad, and still does unless it does not see it. The names that are stored are older
    than those here."""

    rule: str
    check: Check
    since_at: Instant
    status: Status  # when it was bad last
    reason: Reason
    is_seen: bool = True  # by the last publication: only then the time until the next one counts
    seen_ms: Lasted = 0
    reported_to: tuple[str, ...] = field(default=(), name="told_to")
    reported_ms: Lasted = field(default=0, name="told_ms")  # how much had been seen at the last report
    reminders: Lasted = 0
    causes: tuple[str, ...] = ()  # the first, and the last if it differs; of a lag the largest. As far as known


class News(Struct, frozen=True):
    """What there is to report about one check. ``left``: it is not configured any more, or its rule is not."""

    kind: NewsKind
    check: Check
    status: Status  # as it is now, or was when it was last watched
    reason: Reason
    was: Status  # when it was bad last
    since_at: Instant
    at: Instant
    seen_ms: Lasted
    targets: tuple[str, ...]
    rule: str = ""
    causes: tuple[str, ...] = ()  # of the episode until then


class AlertState(Struct, frozen=True):
    """All that has to survive a restart or a takeover. ``clock_ms`` is the time that was seen to pass."""

    published_at: Instant | None = None
    clock_ms: Lasted = 0
    episodes: tuple[Episode, ...] = ()
    gathered: tuple[News, ...] = ()
    gathered_since_ms: Lasted = 0  # on that clock


def restart(state: AlertState) -> AlertState:
    """The monitor starts, or its clock was set: what passed since the last publication was not seen."""
    return replace(state, published_at=None)


def advance(
    state: AlertState, at: int, rows: Iterable[Row], rules: EpisodeRules, silenced: Collection[Check] = ()
) -> tuple[AlertState, tuple[News, ...]]:
    """A publication was made: the new state, and the news that are to be sent now, together. Of checks that are
    silenced neither beginnings nor reminders are news, but ends are; what falls due meanwhile is reported later."""
    passed_ms = 0 if state.published_at is None else min(max(0, at - state.published_at), rules.hold_ms)
    before = {(episode.rule, episode.check): episode for episode in state.episodes}
    published = tuple(rows)
    episodes: list[Episode] = []
    news: list[News] = []
    for rule in rules.rules:
        for row in published:
            if row.check in rule.checks:
                episode = before.pop((rule.key, row.check), None)
                heard = _mute(rule) if row.check in silenced else rule
                now, new = _follow(_add_time(episode, passed_ms), _expire(row, at), heard, at)
                episodes += [] if now is None else [now]
                news += [] if new is None else [new]
    news += [_make_news("left", each, each.status, each.reason, at) for each in before.values()]
    gathered = (*state.gathered, *(each for each in news if each.targets))  # no end without a reported beginning
    clock_ms = state.clock_ms + passed_ms
    since_ms = state.gathered_since_ms if state.gathered else clock_ms
    if clock_ms - since_ms < rules.group_ms:
        return AlertState(at, clock_ms, tuple(episodes), gathered, since_ms), ()
    newest = {row.check: _expire(row, at) for row in published}
    return AlertState(at, clock_ms, tuple(episodes)), tuple(_update(each, newest.get(each.check)) for each in gathered)


def _update(news: News, newest: Row | None) -> News:
    """What could not be judged and now can be is what it is when that is reported."""
    if news.kind != "ended" or news.was != "unknown" or newest is None or newest.status not in _KNOWN:
        return news
    return replace(news, status=newest.status, reason=newest.reason)


def note_causes(state: AlertState, causes: Mapping[tuple[Check, Reason], str]) -> AlertState:
    """Remember why the checks of the last publication are bad, for the message that it is over."""
    return replace(state, episodes=tuple(_note_cause(each, causes) for each in state.episodes))


def _note_cause(episode: Episode, causes: Mapping[tuple[Check, Reason], str]) -> Episode:
    cause = causes.get((episode.check, episode.reason))
    if cause is None or not episode.is_seen:
        return episode
    largest = max((each for each in (*episode.causes, cause) if code_of(each) in _OF_LAG), key=_lag, default=None)
    noted = (largest if largest and code_of(each) in _OF_LAG else each for each in (*episode.causes[:1], cause))
    return replace(episode, causes=tuple(dict.fromkeys(noted)))


def _lag(cause: str) -> int:
    found = _LAG.search(cause)
    return int(found[1]) if found else 0


def _mute(rule: EpisodeRule) -> EpisodeRule:
    """The same rule, of which no beginning and no reminder is ever due."""
    return replace(rule, for_ms=_NEVER_MS, remind_ms=0)


def _follow(episode: Episode | None, row: Row, rule: EpisodeRule, at: int) -> tuple[Episode | None, News | None]:
    """What the next publication makes of an episode, or of none."""
    if rule.is_bad(row):
        if episode is None:
            episode = Episode(rule.key, row.check, at, row.status, row.reason)
        return _report_if_due(replace(episode, status=row.status, reason=row.reason, is_seen=True), rule, at)
    if episode is None:
        return None, None
    if row.status not in _KNOWN:
        return replace(episode, is_seen=False), None
    return None, _make_news("ended", episode, row.status, row.reason, at)


def _report_if_due(episode: Episode, rule: EpisodeRule, at: int) -> tuple[Episode, News | None]:
    seen_ms = episode.seen_ms
    if not episode.reported_to:
        kind: NewsKind = "began"
        is_due, reminders = seen_ms >= rule.for_ms, 0
    else:
        kind = "goes-on"
        wait_ms = max(rule.remind_ms, min(rule.remind_ms << min(episode.reminders, 40), DAY_MS))
        is_due, reminders = 0 < wait_ms <= seen_ms - episode.reported_ms, episode.reminders + 1
    if not is_due:
        return episode, None
    reported = replace(episode, reported_to=rule.targets, reported_ms=seen_ms, reminders=reminders)
    return reported, _make_news(kind, reported, reported.status, reported.reason, at)


def _add_time(episode: Episode | None, passed_ms: int) -> Episode | None:
    """Add the time since the last publication, for which the status that it had lasted."""
    if episode is None or not episode.is_seen:
        return episode
    return replace(episode, seen_ms=episode.seen_ms + passed_ms)


def _expire(row: Row, at: int) -> Row:
    """A row past its time says nothing any more (H17)."""
    return replace(row, status="unknown", reason="no-observation") if row.has_expired(at) else row


def _make_news(kind: NewsKind, of: Episode, status: Status, reason: Reason, at: int) -> News:
    return News(
        kind, of.check, status, reason, of.status, of.since_at, at, of.seen_ms, of.reported_to, of.rule, of.causes
    )
