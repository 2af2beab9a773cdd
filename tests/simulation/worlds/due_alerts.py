"""What people are to be told, by the sentences of docs/alerts.md alone: counted along one line of publications, and
read back from the words of a message."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lookout.base.instants import format_second
from lookout.core.episodes import Rule, Rules
from lookout.core.model import Check, Row

_GOOD: Final = ("current", "unmonitored")
_BAD: Final = ("unavailable", "degraded", "catching-up", "unknown")
_HEADINGS: Final = {
    **{f"{status.capitalize()}:": ("began", status) for status in _BAD},
    **{f"Still {status}:": ("goes on", status) for status in _BAD},
    "Recovered:": ("over", "recovered"),
    "Improved:": ("over", "improved"),
    "No longer watched:": ("left", ""),
}
_LINE: Final = re.compile(r"- (\S+?)(?: on (\d+))?: .*?since (\S+?)[,;]")
_DAY_MS: Final = 86_400_000


class About(NamedTuple):
    """One line of a message: what happened to a check, in an episode that began then."""

    kind: str
    check: Check
    since: str


Lines = Mapping[About, str]  # each with its status, or how it ended


class _Episode(NamedTuple):
    since_at: int
    is_seen: bool
    lasted_ms: int = 0
    told_to: tuple[str, ...] = ()
    due_ms: int = 0  # told when it has lasted so long
    wait_ms: int = 0  # and then again after this


class _News(NamedTuple):
    rule: str
    about: About
    how: str
    targets: tuple[str, ...]


class Due(NamedTuple):
    """How it stands after a publication, and the messages that it makes."""

    clock_ms: int = 0  # the time that was seen to pass
    episodes: Mapping[tuple[str, Check], _Episode] = {}
    news: tuple[_News, ...] = ()
    news_since_ms: int = 0
    messages: tuple[tuple[str, Lines], ...] = ()


NOTHING_DUE: Final = Due()


def due_with(
    before: Due, before_at: int | None, at: int, rows: tuple[Row, ...], rules: Rules, targets: tuple[str, ...]
) -> Due:
    """After another publication; ``before_at`` is None if nobody saw the time pass since the last."""
    seen_ms = 0 if before_at is None else sorted((0, at - before_at, rules.hold_ms))[1]
    clock_ms = before.clock_ms + seen_ms
    statuses: dict[Check, str] = {
        row.check: "unknown" if row.expires_at is not None and row.expires_at <= at else row.status for row in rows
    }
    if not before.episodes and not before.news and all(status in _GOOD for status in statuses.values()):
        return Due(clock_ms)
    episodes: dict[tuple[str, Check], _Episode] = {}
    news = list(before.news)
    for rule in rules.rules:
        for check in (row.check for row in rows if row.check in rule.checks):
            key = rule.key, check
            now, told = _next(before.episodes.get(key), seen_ms, statuses[check], rule, at)
            if told is not None:
                kind, since_at, how, to = told
                news.append(_News(rule.key, About(kind, check, format_second(since_at)), how, to))
            if now is not None:
                episodes[key] = now
    watched = {(rule.key, check) for rule in rules.rules for check in rule.checks}
    for (rule_key, check), left in before.episodes.items():
        if left.told_to and (rule_key, check) not in watched:
            news.append(_News(rule_key, About("left", check, format_second(left.since_at)), "", left.told_to))
    since_ms = before.news_since_ms if before.news else clock_ms
    if not news or clock_ms - since_ms < rules.group_ms:
        return Due(clock_ms, episodes, tuple(news), since_ms)
    return Due(clock_ms, episodes, messages=tuple(_messages(news, targets)))


def _next(
    episode: _Episode | None, seen_ms: int, status: str, rule: Rule, at: int
) -> tuple[_Episode | None, tuple[str, int, str, tuple[str, ...]] | None]:
    """What a status makes of an episode, or of none: the episode, and what there is to tell of it."""
    if episode is not None and episode.is_seen:
        episode = episode._replace(lasted_ms=episode.lasted_ms + seen_ms)
    if status in rule.statuses:
        now = (episode or _Episode(at, True, due_ms=rule.for_ms))._replace(is_seen=True)
        is_due = now.lasted_ms >= now.due_ms and (not now.told_to or rule.remind_ms > 0)
        if not is_due:
            return now, None
        wait_ms = min(now.wait_ms * 2, max(_DAY_MS, rule.remind_ms)) if now.wait_ms else rule.remind_ms
        kind = "goes on" if now.told_to else "began"
        now = now._replace(told_to=rule.targets, due_ms=now.lasted_ms + wait_ms, wait_ms=wait_ms)
        return now, (kind, now.since_at, status, rule.targets)
    if episode is None or status in ("unknown", "unmonitored"):
        return episode and episode._replace(is_seen=False), None
    how = "recovered" if status == "current" else "improved"
    return None, ("over", episode.since_at, how, episode.told_to) if episode.told_to else None


def _messages(news: list[_News], targets: tuple[str, ...]) -> Iterator[tuple[str, Lines]]:
    """What began and is over within one message is told by its end alone."""
    for target in targets:
        mine = [each for each in news if target in each.targets]
        over = {(each.rule, each.about.check, each.about.since) for each in mine if each.about.kind in ("over", "left")}
        lines = {
            each.about: each.how
            for each in mine
            if each.about.kind in ("over", "left") or (each.rule, each.about.check, each.about.since) not in over
        }
        if lines:
            yield target, lines


def lines_of(body: str) -> Lines:
    """What a message says. ValueError if it says something else."""
    kind = how = ""
    lines: dict[About, str] = {}
    for line in body.partition("\n\n")[0].splitlines():
        if line in _HEADINGS:
            kind, how = _HEADINGS[line]
        elif found := _LINE.match(line):
            service, chain_id, since = found.groups()
            check = Check(service, None if chain_id is None else int(chain_id))
            lines[About(kind, check, since)] = how
        else:
            raise ValueError(line)
    return lines
