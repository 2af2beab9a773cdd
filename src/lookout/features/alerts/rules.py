"""When to send a message: publications in, news out.

An episode is one check that one rule finds bad. It begins with the first publication that shows the check bad. It ends
with the first known row that the rule does not count and that is better than the last bad one: a check that is not
observed, or fails in another way, has not recovered. If the last bad row was unknown, better is what is better than
unavailable. A row that the other part of the same rule counts is no end either. Until its end the episode waits,
without reminders.

If its rule was changed or removed, an episode goes on under a rule that covers the check now; a check has left only if
no rule does. Each target of a rule gets the beginning once, and each target that got it gets the end.

An episode's duration is monitored time only, so that neither downtime of the monitor nor a changed clock makes it long
enough to report.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from lookout.base.instants import Instant, Lasted
from lookout.core.history import DAY_MS
from lookout.core.model import Check, Reason, Row, Status, unobserved
from lookout.features.outcome import StandIn
from lookout_reader.statuses import BY_WORD, KNOWN_STATUSES

_KNOWN: Final = frozenset[Status](KNOWN_STATUSES)

_NEVER_MS: Final = 2**53
NewsKind = Literal["began", "goes-on", "ended", "left"]


class EpisodeRule(Struct, frozen=True):
    """Which checks are reported to which targets, for which statuses and reasons, and after how long; reminders
    double, up to a day."""

    key: str  # identifies its stored episodes
    checks: frozenset[Check]
    statuses: frozenset[Status]
    for_ms: int
    remind_ms: int  # 0: never
    targets: tuple[str, ...]
    reasons: frozenset[Reason] | None = None  # None: any
    alerts_on_no_data: bool = True  # also answers without data, of a service that had none lately
    known_rule: "EpisodeRule | None" = (
        None  # of the same rule of the configuration, for known rows: those that it counts are no end
    )
    still_ms: int | None = None  # only rows that have been behind at the same position for so long

    def is_bad(self, row: Row, since_at: int) -> bool:
        """Whether the rule counts the row, in an episode that began at ``since_at``: data that was lost then stays
        lost after a day."""
        is_named = row.status in self.statuses and (self.reasons is None or row.reason in self.reasons)
        if self.still_ms is not None and not row.stood_still(self.still_ms):
            return False
        return is_named and (self.alerts_on_no_data or row.lost_data(since_at) or not row.answered_without_data)


STORE: Final = StandIn("the", "store", None)
UNSTORED_MS: Final = 60_000  # how long messages wait for a store that cannot be written


class EpisodeRules(Struct, frozen=True):
    """All rules, the batching time of news, and the longest time that a row counts (H8)."""

    rules: tuple[EpisodeRule, ...]
    group_ms: int
    hold_ms: int


class Episode(Struct, frozen=True):
    """One check that one rule found bad when it was seen last."""

    rule: str
    check: Check
    since_at: Instant
    status: Status  # when it was bad last
    reason: Reason
    is_seen: bool = True  # in the last publication; if not, the time until the next does not count
    seen_ms: Lasted = 0
    reported_to: tuple[str, ...] = field(default=(), name="told_to")
    reported_ms: Lasted = field(default=0, name="told_ms")  # ``seen_ms`` at the last report
    reminders: Lasted = 0


class News(Struct, frozen=True):
    """What to report of a check. ``left``: no rule covers it any more."""

    kind: NewsKind
    check: Check
    status: Status  # now, or when it was last watched
    reason: Reason
    was: Status  # when it was bad last
    since_at: Instant
    at: Instant
    seen_ms: Lasted
    targets: tuple[str, ...]
    rule: str = ""


class AlertState(Struct, frozen=True):
    """All that has to survive a restart or a takeover. ``clock_ms`` is monitored time."""

    published_at: Instant | None = None
    clock_ms: Lasted = 0
    episodes: tuple[Episode, ...] = ()
    gathered: tuple[News, ...] = ()
    gathered_since_ms: Lasted = 0  # on that clock


def restart(state: AlertState) -> AlertState:
    """The monitor starts, or its clock was set: the time since the last publication does not count."""
    return replace(state, published_at=None)


def advance(
    state: AlertState, at: int, rows: Iterable[Row], rules: EpisodeRules, silenced: Collection[Check] = ()
) -> tuple[AlertState, tuple[News, ...]]:
    """After a publication: the new state, and the news to send now in one message. A silence delays beginnings and
    reminders of its checks, but not ends."""
    passed_ms = 0 if state.published_at is None else min(max(0, at - state.published_at), rules.hold_ms)
    before, left = _assign(state.episodes, rules.rules)
    published = tuple(rows)
    episodes: list[Episode] = []
    news: list[News] = []
    for rule in rules.rules:
        for row in published:
            if row.check in rule.checks:
                episode = before.pop((rule.key, row.check), None)
                effective = _mute(rule) if row.check in silenced else rule
                now, new = _follow(_add_time(episode, passed_ms), _expire(row, at), effective, at)
                episodes += [] if now is None else [now]
                news += [] if new is None else [new]
    news += [_make_news("left", episode, episode, at, episode.reported_to) for episode in left]
    gathered = (*state.gathered, *(entry for entry in news if entry.targets))  # no end without a reported beginning
    clock_ms = state.clock_ms + passed_ms
    since_ms = state.gathered_since_ms if state.gathered else clock_ms
    if clock_ms - since_ms < rules.group_ms:
        return AlertState(at, clock_ms, tuple(episodes), gathered, since_ms), ()
    return AlertState(at, clock_ms, tuple(episodes)), gathered


def _assign(
    episodes: Iterable[Episode], rules: Sequence[EpisodeRule]
) -> tuple[dict[tuple[str, Check], Episode], list[Episode]]:
    """The episodes by rule and check, and those whose check no rule covers any more. Two that come under one rule
    become one, as reported as both."""
    own = {rule.key: rule for rule in rules}
    assigned: dict[tuple[str, Check], Episode] = {}
    without_rule: list[Episode] = []
    for episode in episodes:
        if (rule := own.get(episode.rule)) is not None and episode.check in rule.checks:
            assigned[episode.rule, episode.check] = episode
        else:
            without_rule.append(episode)
    left: list[Episode] = []
    for episode in without_rule:
        rule = _find_rule(episode, rules, assigned)
        if rule is None:
            left.append(episode)
            continue
        other = assigned.get((rule.key, episode.check), episode)
        longer = max(other, episode, key=lambda one: (bool(one.reported_to), one.seen_ms))
        reported_to = tuple(dict.fromkeys(other.reported_to + episode.reported_to))
        assigned[rule.key, episode.check] = replace(longer, rule=rule.key, reported_to=reported_to)
    return assigned, left


def _find_rule(
    episode: Episode, rules: Iterable[EpisodeRule], assigned: Collection[tuple[str, Check]]
) -> EpisodeRule | None:
    """The rule under which an episode goes on, of those that cover its check: preferably one that reports to the same
    targets, counts its last bad row, and has no episode of the check. Otherwise a target would get the end of this
    episode while a rule of its own still finds the check bad."""
    row = Row(episode.check, episode.status, episode.reason)

    def rank(rule: EpisodeRule) -> tuple[int, bool, bool]:
        same_targets = len({*rule.targets}.intersection(episode.reported_to))
        return same_targets, rule.is_bad(row, episode.since_at), (rule.key, episode.check) not in assigned

    return max((rule for rule in rules if episode.check in rule.checks), key=rank, default=None)


def _mute(rule: EpisodeRule) -> EpisodeRule:
    """The rule without beginnings and reminders."""
    return replace(rule, for_ms=_NEVER_MS, remind_ms=0)


def _follow(episode: Episode | None, row: Row, rule: EpisodeRule, at: int) -> tuple[Episode | None, News | None]:
    """The episode of a check, if any, after the next publication, and the news of it."""
    if rule.is_bad(row, at if episode is None else episode.since_at):
        if episode is None:
            episode = Episode(rule.key, row.check, at, row.status, row.reason)
        return _report_if_due(replace(episode, status=row.status, reason=row.reason, is_seen=True), rule, at)
    if episode is None:
        return None, None
    if not _ends(episode, row, rule):
        return replace(episode, is_seen=False), None
    return None, _make_news("ended", episode, row, at, episode.reported_to)


def _ends(episode: Episode, row: Row, rule: EpisodeRule) -> bool:
    """Whether a row that the rule does not count is the end of the episode."""
    was = "unavailable" if episode.status == "unknown" else episode.status
    is_better = row.status in _KNOWN and BY_WORD[row.status].severity < BY_WORD[was].severity
    return is_better and not (rule.known_rule is not None and rule.known_rule.is_bad(row, episode.since_at))


def _report_if_due(episode: Episode, rule: EpisodeRule, at: int) -> tuple[Episode, News | None]:
    """The beginning goes to each target that has not got it, a reminder to the others."""
    seen_ms = episode.seen_ms
    late = tuple(target for target in rule.targets if target not in episode.reported_to)
    if late and seen_ms >= rule.for_ms:
        reported_ms = episode.reported_ms if episode.reported_to else seen_ms
        reported = replace(episode, reported_to=episode.reported_to + late, reported_ms=reported_ms)
        return reported, _make_news("began", reported, reported, at, late)
    wait_ms = max(rule.remind_ms, min(rule.remind_ms << min(episode.reminders, 40), DAY_MS))
    if not episode.reported_to or not 0 < wait_ms <= seen_ms - episode.reported_ms:
        return episode, None
    reminded = replace(episode, reported_ms=seen_ms, reminders=episode.reminders + 1)
    targets = tuple(target for target in rule.targets if target not in late)
    return reminded, _make_news("goes-on", reminded, reminded, at, targets)


def _add_time(episode: Episode | None, passed_ms: int) -> Episode | None:
    """Add the time since the last publication, during which the episode's status held."""
    if episode is None or not episode.is_seen:
        return episode
    return replace(episode, seen_ms=episode.seen_ms + passed_ms)


def _expire(row: Row, at: int) -> Row:
    """The row, or an unknown one if it has expired (H17)."""
    return unobserved(row.check) if row.has_expired(at) else row


def _make_news(kind: NewsKind, of: Episode, now: Row | Episode, at: int, targets: tuple[str, ...]) -> News:
    return News(kind, of.check, now.status, now.reason, of.status, of.since_at, at, of.seen_ms, targets, of.rule)
