"""Any course of publications: what is reported is what the oracle says."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lookout.core.episodes import AlertState, EpisodeRule, EpisodeRules, advance, restart
from lookout.core.model import Check, Reason, Row, Status
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


class Reported(NamedTuple):
    """The number of the publication with which it was reported, and what."""

    n: int
    kind: str
    target: str
    check: Check
    since_at: int
    seen_ms: int


Drawn = tuple[int, bool, tuple[tuple[Status, Reason], ...], bool, tuple[Check, ...]]


def publications(drawn: Sequence[Drawn]) -> list[Publication]:
    at, course = NOON, []
    for gap, follows_a_start, these, expired, silenced in drawn:
        at += gap
        course.append(Publication(at, follows_a_start, these, expired, silenced))
    return course


def with_names(rules: Sequence[EpisodeRule]) -> tuple[EpisodeRule, ...]:
    return tuple(replace(rule, key=f"rule {n}", targets=(f"target {n}",)) for n, rule in enumerate(rules))


gaps = st.sampled_from([0, 500, 10 * SECOND, 29 * SECOND, MINUTE, MINUTE + 1, HOUR, DAY, -SECOND, -HOUR])
rarely = st.sampled_from([False] * 9 + [True])
statuses: st.SearchStrategy[Status] = st.sampled_from(
    # Mostly bad: otherwise hardly anything lasts.
    ("unavailable",) * 6 + ("degraded",) * 2 + ("current", "catching-up", "unknown", "unmonitored")
)
reasons: st.SearchStrategy[Reason] = st.sampled_from(("responding", "responding", "unreachable"))
judged = st.tuples(statuses, reasons)
quiet: st.SearchStrategy[tuple[Check, ...]] = st.sampled_from([(), (), (), CHECKS, CHECKS[:1]])
courses = st.lists(st.tuples(gaps, rarely, st.tuples(judged, judged), rarely, quiet), max_size=60).map(publications)
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
        key=st.just(""),
        checks=st.sampled_from([frozenset(CHECKS), frozenset(CHECKS[:1])]),
        statuses=bad,
        for_ms=st.sampled_from([0, 30 * SECOND, MINUTE, 3 * MINUTE]),
        remind_ms=st.sampled_from([0, SECOND, MINUTE, HOUR]),
        targets=st.just(()),
        reasons=st.sampled_from([None, None, frozenset(("responding", "no-observation")), frozenset(("unreachable",))]),
    ),
    max_size=3,
).map(with_names)
all_rules = st.builds(
    EpisodeRules, rules=some_rules, group_ms=st.sampled_from([0, 500, 30 * SECOND, HOUR]), hold_ms=st.just(HOLD)
)


def rows(publication: Publication) -> list[Row]:
    expires_at = publication.at if publication.expired else publication.at + 1
    return [
        Row(check, status, reason, expires_at=None if status in ("unknown", "unmonitored") else expires_at)
        for check, (status, reason) in zip(CHECKS, publication.statuses, strict=True)
    ]


def follow(
    course: Sequence[Publication], rules: EpisodeRules, stored_after: frozenset[int] = frozenset()
) -> list[Reported]:
    """What is reported, with a restart from what was stored after these publications."""
    state, reported = AlertState(), []
    for n, publication in enumerate(course):
        if publication.follows_a_start:
            state = restart(state)
        state, news = advance(state, publication.at, rows(publication), rules, publication.silenced)
        for each in news:
            reported += [Reported(n, each.kind, to, each.check, each.since_at, each.seen_ms) for to in each.targets]
        if n in stored_after:
            state = msgspec.json.decode(msgspec.json.encode(state), type=AlertState)
    return reported


def expected(course: Sequence[Publication], rules: EpisodeRules) -> list[Reported]:
    due, before_at, reported = NOTHING_DUE, None, []
    for n, publication in enumerate(course):
        before_at = None if publication.follows_a_start else before_at
        due = due_with(due, before_at, publication.at, rows(publication), rules, publication.silenced)
        before_at = publication.at
        for each in due.news:
            reported += [Reported(n, each.kind, to, each.check, each.since_at, each.lasted_ms) for to in each.targets]
    return reported


@given(courses, all_rules)
def test_what_is_reported_is_what_the_oracle_says(course: list[Publication], rules: EpisodeRules) -> None:
    assert follow(course, rules) == expected(course, rules)


@given(courses, all_rules, st.frozensets(st.integers(0, 60)))
def test_a_restart_from_what_was_stored_changes_nothing(
    course: list[Publication], rules: EpisodeRules, stored_after: frozenset[int]
) -> None:
    assert follow(course, rules, stored_after) == follow(course, rules)
