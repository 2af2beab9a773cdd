"""What people are to be told, by the sentences of docs/operations.md alone, counted along a line of publications."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from lookout.core.model import Check, Row
from lookout.features.alerts.rules import EpisodeRule, EpisodeRules

_GOOD: Final = ("current", "unmonitored")
_FROM_BEST: Final = ("current", "catching-up", "degraded", "unavailable")
_DAY_MS: Final = 86_400_000


class News(NamedTuple):
    """Something to be told of a check, in an episode that began at ``since_at`` and was seen to last so long."""

    kind: str
    check: Check
    since_at: int
    lasted_ms: int
    status: str
    was: str
    rule: str
    targets: tuple[str, ...]
    at: int


class Episode(NamedTuple):
    since_at: int
    status: str
    reason: str
    is_seen: bool = True
    lasted_ms: int = 0
    told_to: tuple[str, ...] = ()  # of the beginning
    told_ms: int = 0  # when it had lasted so long, it was told to somebody last
    reminders: int = 0


class Due(NamedTuple):
    """How it stands after a publication, and the news that go out with it, together."""

    clock_ms: int = 0  # the time that was seen to pass
    episodes: Mapping[tuple[str, Check], Episode] = {}
    waiting: tuple[News, ...] = ()
    waiting_since_ms: int = 0
    news: tuple[News, ...] = ()


NOTHING_DUE: Final = Due()


def due_with(
    before: Due,
    before_at: int | None,
    at: int,
    rows: Iterable[Row],
    rules: EpisodeRules,
    silenced: Iterable[Check] = (),
) -> Due:
    """After another publication; ``before_at`` is None if nobody saw the time pass since the last. Of what is silenced
    only ends are news."""
    quiet = set(silenced)
    seen_ms = 0 if before_at is None else sorted((0, at - before_at, rules.hold_ms))[1]
    clock_ms = before.clock_ms + seen_ms
    published = tuple(rows)
    found: dict[Check, tuple[str, str]] = {
        row.check: ("unknown", "no-observation")
        if row.expires_at is not None and row.expires_at <= at
        else (row.status, row.reason)
        for row in published
    }
    answers = {row.check: row for row in published}
    if not before.episodes and not before.waiting and all(status in _GOOD for status, _ in found.values()):
        return Due(clock_ms)
    open_before, gone = _under_rules_of_now(before.episodes, rules.rules)
    episodes: dict[tuple[str, Check], Episode] = {}
    news = list(before.waiting)
    for rule in rules.rules:
        for check, (status, reason) in found.items():
            if check not in rule.checks:
                continue
            old = open_before.get((rule.key, check))
            if old is not None and old.is_seen:
                old = old._replace(lasted_ms=old.lasted_ms + seen_ms)
            since_at = at if old is None else old.since_at
            is_empty = (status, reason) == ("unknown", "no-observation") and _has_long_nothing(answers[check], since_at)
            is_counted = _counts(rule, status, reason) and _stood_still(rule, status, answers[check])
            if is_counted and (rule.alerts_on_no_data or not is_empty):
                now = (old or Episode(at, status, reason))._replace(status=status, reason=reason, is_seen=True)
                kind, targets, told = ("", (), now) if check in quiet else _tell(now, rule)
                episodes[rule.key, check] = told
            elif old is not None and _is_an_end(old, status, reason, rule):
                kind, targets, told = "ended", old.told_to, old
            elif old is not None:
                episodes[rule.key, check] = old._replace(is_seen=False)
                continue
            else:
                continue
            if kind and targets:
                news.append(
                    News(kind, check, told.since_at, told.lasted_ms, status, told.status, rule.key, targets, at)
                )
    for (key, check), left in gone.items():
        if left.told_to:
            status = left.status
            news.append(News("left", check, left.since_at, left.lasted_ms, status, status, key, left.told_to, at))
    since_ms = before.waiting_since_ms if before.waiting else clock_ms
    if not news or clock_ms - since_ms < rules.group_ms:
        return Due(clock_ms, episodes, tuple(news), since_ms)
    return Due(clock_ms, episodes, news=tuple(news))


def _under_rules_of_now(
    episodes: Mapping[tuple[str, Check], Episode], rules: Sequence[EpisodeRule]
) -> tuple[dict[tuple[str, Check], Episode], dict[tuple[str, Check], Episode]]:
    """What is open stays open while any rule is about its check, since who was told of its beginning is to be told of
    its end. If its own rule is not, then under one that tells the same, that would find bad what was found, and under
    which nothing is open. The second are those that no rule is about."""
    about = {check: [rule for rule in rules if check in rule.checks] for check in dict.fromkeys(c for _, c in episodes)}
    stay = {at: each for at, each in episodes.items() if at[0] in [rule.key for rule in about[at[1]]]}
    gone: dict[tuple[str, Check], Episode] = {}
    for (key, check), each in episodes.items():
        if (key, check) in stay and stay[key, check] is each:
            continue
        if not about[check]:
            gone[key, check] = each
            continue
        # Those who were told go before what is found, and what is found before what is open already.
        told_by = {rule.key: len(set(each.told_to) & set(rule.targets)) for rule in about[check]}
        best = [rule for rule in about[check] if told_by[rule.key] == max(told_by.values())]
        best = [rule for rule in best if _counts(rule, each.status, each.reason)] or best
        best = [rule for rule in best if (rule.key, check) not in stay] or best
        place = best[0].key, check
        other = stay.get(place)
        if other is None:
            stay[place] = each
            continue
        # Of two that become one, the one that was told, and of two that were, the one that has lasted longer.
        told = [one for one in (other, each) if one.told_to] or [other, each]
        told_to = (*other.told_to, *(target for target in each.told_to if target not in other.told_to))
        stay[place] = max(told, key=lambda one: one.lasted_ms)._replace(told_to=told_to)
    return stay, gone


def _counts(rule: EpisodeRule, status: str, reason: str) -> bool:
    return status in rule.statuses and (rule.reasons is None or reason in rule.reasons)


def _stood_still(rule: EpisodeRule, status: str, row: Row) -> bool:
    if rule.still_ms is None:
        return True
    if status == "unknown" or row.observed_at is None or row.still_since_at is None:
        return False
    return row.observed_at - row.still_since_at >= rule.still_ms


def _has_long_nothing(row: Row, since_at: int) -> bool:
    """It answered, and had had nothing for its chain for a day; unlike one that nobody asked yet, or too long ago."""
    if row.expires_at is not None or row.observed_at is None:
        return False
    return row.has_lapsed or row.last_success_at is None or since_at - row.last_success_at >= _DAY_MS


def _is_an_end(episode: Episode, status: str, reason: str, rule: EpisodeRule) -> bool:
    """It is known, better than what was found (of unknown: than the worst), and not bad for the other half of the
    rule."""
    was = "unavailable" if episode.status == "unknown" else episode.status
    if status not in _FROM_BEST[: _FROM_BEST.index(was)]:
        return False
    return rule.known_rule is None or not _counts(rule.known_rule, status, reason)


def _tell(episode: Episode, rule: EpisodeRule) -> tuple[str, tuple[str, ...], Episode]:
    """What is due of an episode that goes on: a beginning to those who have not been told, else a reminder to those of
    the rule who have; and the episode after that."""
    untold = tuple(target for target in rule.targets if target not in episode.told_to)
    if untold and episode.lasted_ms >= rule.for_ms:
        told_ms = episode.told_ms if episode.told_to else episode.lasted_ms
        return "began", untold, episode._replace(told_to=episode.told_to + untold, told_ms=told_ms)
    if not episode.told_to or rule.remind_ms == 0:
        return "", (), episode
    wait_ms = rule.remind_ms
    for _ in range(episode.reminders):
        wait_ms = min(wait_ms * 2, max(_DAY_MS, rule.remind_ms))
    if episode.lasted_ms - episode.told_ms < wait_ms:
        return "", (), episode
    reminded = episode._replace(told_ms=episode.lasted_ms, reminders=episode.reminders + 1)
    return "goes-on", tuple(target for target in rule.targets if target in episode.told_to), reminded
