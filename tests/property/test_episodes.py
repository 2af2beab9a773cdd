"""Any course of publications: what is reported is what the oracle says."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lookout.core.model import Check, Reason, Row, Status
from lookout.features.alerts.rules import AlertState, EpisodeRule, EpisodeRules, News, advance, restart
from tests.builders import DAY, HOUR, INDEXER, MESSAGING, MINUTE, NOON, SECOND
from tests.oracles.alerts import NOTHING_DUE, due_with

CHECKS: Final = (MESSAGING, INDEXER)
HOLD: Final = MINUTE


class Publication(NamedTuple):
    at: int
    follows_a_start: bool
    statuses: tuple[tuple[Status, Reason], ...]  # of the checks, in order
    expired: bool
    silenced: tuple[Check, ...] = ()
    follows_a_reload: bool = False


class Reported(NamedTuple):
    """The number of the publication with which it was reported, and what."""

    n: int
    kind: str
    target: str
    check: Check
    since_at: int
    seen_ms: int


Drawn = tuple[int, bool, tuple[tuple[Status, Reason], ...], bool, tuple[Check, ...], bool]


def publications(drawn: Sequence[Drawn]) -> list[Publication]:
    at, course = NOON, []
    for gap, follows_a_start, these, expired, silenced, follows_a_reload in drawn:
        at += gap
        course.append(Publication(at, follows_a_start, these, expired, silenced, follows_a_reload))
    return course


def with_other_halves(rules: Sequence[EpisodeRule]) -> tuple[EpisodeRule, ...]:
    """Some have another half, for unknown rows."""
    made = []
    for rule in rules:
        made.append(rule)
        if "unknown" not in rule.statuses:
            key, statuses = f"{rule.key}/unknown", frozenset[Status](("unknown",))
            made.append(replace(rule, key=key, statuses=statuses, reasons=None, known_rule=rule))
    return tuple(made)


gaps = st.sampled_from([0, 500, 10 * SECOND, 29 * SECOND, MINUTE, MINUTE + 1, HOUR, DAY, -SECOND, -HOUR])
rarely = st.sampled_from([False] * 9 + [True])
statuses: st.SearchStrategy[Status] = st.sampled_from(
    # Mostly bad: otherwise hardly anything lasts.
    ("unavailable",) * 6 + ("degraded",) * 2 + ("current", "catching-up", "unknown", "unmonitored")
)
reasons: st.SearchStrategy[Reason] = st.sampled_from(("responding", "responding", "unreachable", "no-observation"))
judged = st.tuples(statuses, reasons)
quiet: st.SearchStrategy[tuple[Check, ...]] = st.sampled_from([(), (), (), CHECKS, CHECKS[:1]])
courses = st.lists(st.tuples(gaps, rarely, st.tuples(judged, judged), rarely, quiet, rarely), max_size=60).map(
    publications
)
bad: st.SearchStrategy[frozenset[Status]] = st.sampled_from(
    (
        frozenset[Status](("unavailable",)),
        frozenset[Status](("unavailable", "degraded")),
        frozenset[Status](("unavailable", "unknown")),
    )
)
some_rules = st.lists(
    st.builds(
        EpisodeRule,
        key=st.sampled_from("abc"),
        checks=st.sampled_from([frozenset(CHECKS), frozenset(CHECKS[:1])]),
        statuses=bad,
        for_ms=st.sampled_from([0, 30 * SECOND, MINUTE, 3 * MINUTE]),
        remind_ms=st.sampled_from([0, SECOND, MINUTE, HOUR]),
        targets=st.lists(st.sampled_from(("chat", "mail", "pager")), min_size=1, unique=True).map(tuple),
        reasons=st.sampled_from([None, None, frozenset(("responding", "no-observation")), frozenset(("unreachable",))]),
        still_ms=st.sampled_from([None, None, MINUTE]),
    ),
    max_size=3,
    unique_by=lambda rule: rule.key,
).map(with_other_halves)
all_rules = st.builds(
    EpisodeRules, rules=some_rules, group_ms=st.sampled_from([0, 500, 30 * SECOND, HOUR]), hold_ms=st.just(HOLD)
)


def rows(publication: Publication) -> list[Row]:
    at = publication.at
    expires_at = at if publication.expired else at + 1
    return [
        Row(check, status, reason)
        if status in ("unknown", "unmonitored")
        else Row(check, status, reason, at, expires_at=expires_at, still_since_at=at - still_ms)
        for check, (status, reason), still_ms in zip(CHECKS, publication.statuses, (MINUTE, SECOND), strict=True)
    ]


def follow(
    course: Sequence[Publication], in_turn: Sequence[EpisodeRules], stored_after: frozenset[int] = frozenset()
) -> list[tuple[int, News]]:
    """The news by the number of the publication, with other rules after each reload, and with a restart from what was
    stored after these publications."""
    state, news, reloads = AlertState(), list[tuple[int, News]](), 0
    for n, publication in enumerate(course):
        reloads += publication.follows_a_reload
        if publication.follows_a_start:
            state = restart(state)
        rules = in_turn[reloads % len(in_turn)]
        state, found = advance(state, publication.at, rows(publication), rules, publication.silenced)
        news += [(n, each) for each in found]
        if n in stored_after:
            state = msgspec.json.decode(msgspec.json.encode(state), type=AlertState)
    return news


def reported(news: Sequence[tuple[int, News]]) -> list[Reported]:
    return [Reported(n, new.kind, to, new.check, new.since_at, new.seen_ms) for n, new in news for to in new.targets]


def expected(course: Sequence[Publication], in_turn: Sequence[EpisodeRules]) -> list[Reported]:
    due, before_at, told, reloads = NOTHING_DUE, None, list[Reported](), 0
    for n, publication in enumerate(course):
        reloads += publication.follows_a_reload
        before_at = None if publication.follows_a_start else before_at
        rules = in_turn[reloads % len(in_turn)]
        due = due_with(due, before_at, publication.at, rows(publication), rules, publication.silenced)
        before_at = publication.at
        for each in due.news:
            told += [Reported(n, each.kind, to, each.check, each.since_at, each.lasted_ms) for to in each.targets]
    return told


reloads = st.lists(all_rules, min_size=1, max_size=3)


@given(courses, reloads)
def test_what_is_reported_is_what_the_oracle_says(course: list[Publication], in_turn: list[EpisodeRules]) -> None:
    assert reported(follow(course, in_turn)) == expected(course, in_turn)


@given(courses, reloads, st.frozensets(st.integers(0, 60)))
def test_a_restart_from_what_was_stored_changes_nothing(
    course: list[Publication], in_turn: list[EpisodeRules], stored_after: frozenset[int]
) -> None:
    assert follow(course, in_turn, stored_after) == follow(course, in_turn)


@given(courses, reloads)
def test_each_target_that_got_a_beginning_gets_the_end_once_all_is_well(
    course: list[Publication], in_turn: list[EpisodeRules]
) -> None:
    """Whatever was changed by reloads meanwhile. All is well for so long that all news are sent."""
    at = course[-1].at if course else NOON
    well: tuple[tuple[Status, Reason], ...] = (("current", "responding"),) * 2
    end = [Publication(at + n * MINUTE, n == 0, well, expired=False) for n in range(HOUR // HOLD + 2)]
    last = {(each.target, each.check): each.kind for each in reported(follow([*course, *end], in_turn))}
    assert set(last.values()) <= {"ended", "left"}


@given(courses, reloads)
def test_an_end_is_of_a_known_row_and_a_check_has_left_only_if_no_rule_covers_it(
    course: list[Publication], in_turn: list[EpisodeRules]
) -> None:
    at_once = [replace(rules, group_ms=0) for rules in in_turn]
    numbers = [sum(before.follows_a_reload for before in course[: n + 1]) for n in range(len(course))]
    for n, new in follow(course, at_once):
        covered = {check for rule in at_once[numbers[n] % len(at_once)].rules for check in rule.checks}
        assert (new.kind == "left") == (new.check not in covered)
        assert new.kind != "ended" or new.status in ("current", "catching-up", "degraded")
