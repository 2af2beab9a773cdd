"""What people are to be told, by the sentences of docs/operations.md alone, counted along a line of publications."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from lookout.core.episodes import EpisodeRule, EpisodeRules
from lookout.core.model import Check, Row

_GOOD: Final = ("current", "unmonitored")
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
    is_seen: bool = True
    lasted_ms: int = 0
    told_to: tuple[str, ...] = ()
    due_ms: int = 0  # told when it has lasted so long
    wait_ms: int = 0  # and then again after this


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
    # Those that answered, and had nothing for their chain for a day; not those that nobody asked yet, or too long ago.
    empty = {
        row.check
        for row in published
        if (row.status, row.reason, row.expires_at) == ("unknown", "no-observation", None)
        and row.observed_at is not None
        and (row.last_success_at is None or row.observed_at - row.last_success_at >= _DAY_MS)
    }
    if not before.episodes and not before.waiting and all(status in _GOOD for status, _ in found.values()):
        return Due(clock_ms)
    episodes: dict[tuple[str, Check], Episode] = {}
    news = list(before.waiting)
    for rule in rules.rules:
        for check, (status, reason) in found.items():
            if check not in rule.checks:
                continue
            old = before.episodes.get((rule.key, check))
            if old is not None and old.is_seen:
                old = old._replace(lasted_ms=old.lasted_ms + seen_ms)
            is_excused = check in empty and not rule.alerts_on_no_data
            now, kind = _follow(old, status, "" if is_excused else reason, rule, at)
            if kind != "ended" and check in quiet and now is not None and kind:
                # It stays due, but it was seen.
                now, kind = (old or Episode(at, status, due_ms=rule.for_ms))._replace(status=status, is_seen=True), ""
            if now is not None:
                episodes[rule.key, check] = now
            told = now or old
            if kind and told is not None and told.told_to:
                news.append(
                    News(kind, check, told.since_at, told.lasted_ms, status, told.status, rule.key, told.told_to, at)
                )
    watched = {(rule.key, check) for rule in rules.rules for check in rule.checks}
    for (key, check), left in before.episodes.items():
        if left.told_to and (key, check) not in watched:
            status = left.status
            news.append(News("left", check, left.since_at, left.lasted_ms, status, status, key, left.told_to, at))
    since_ms = before.waiting_since_ms if before.waiting else clock_ms
    if not news or clock_ms - since_ms < rules.group_ms:
        return Due(clock_ms, episodes, tuple(news), since_ms)
    return Due(clock_ms, episodes, news=tuple(news))


def _follow(
    episode: Episode | None, status: str, reason: str, rule: EpisodeRule, at: int
) -> tuple[Episode | None, str]:
    """What a status makes of an episode, or of none, and what kind of news that is; one without a reason is excused."""
    if status in rule.statuses and reason and (rule.reasons is None or reason in rule.reasons):
        now = (episode or Episode(at, status, due_ms=rule.for_ms))._replace(status=status, is_seen=True)
        if now.lasted_ms < now.due_ms or (now.told_to and rule.remind_ms == 0):
            return now, ""
        wait_ms = min(now.wait_ms * 2, max(_DAY_MS, rule.remind_ms)) if now.wait_ms else rule.remind_ms
        kind = "goes-on" if now.told_to else "began"
        return now._replace(told_to=rule.targets, due_ms=now.lasted_ms + wait_ms, wait_ms=wait_ms), kind
    if episode is None or status in ("unknown", "unmonitored"):
        return episode and episode._replace(is_seen=False), ""
    return None, "ended"
