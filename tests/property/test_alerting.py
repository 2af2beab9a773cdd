"""Any course of publications: what is told, held against a slow oracle that looks at the whole past each time."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lookout.core.episodes import AlertState, Rule, Rules, advance, restart
from lookout.core.model import Check, Row, Status
from tests.builders import DAY, HOUR, INDEXER, MESSAGING, MINUTE, NOON, SECOND

CHECKS: Final = (MESSAGING, INDEXER)
KNOWN: Final = ("current", "catching-up", "degraded", "unavailable")
HOLD: Final = MINUTE


class Publication(NamedTuple):
    at: int
    follows_a_start: bool
    statuses: tuple[Status, ...]  # of the checks, in order
    expired: bool


class Told(NamedTuple):
    """The number of the publication with which it was told, and what."""

    n: int
    kind: str
    target: str
    check: Check
    since_at: int
    seen_ms: int


def publications(drawn: Sequence[tuple[int, bool, tuple[Status, ...], bool]]) -> list[Publication]:
    at, course = NOON, []
    for gap, follows_a_start, these, expired in drawn:
        at += gap
        course.append(Publication(at, follows_a_start, these, expired))
    return course


def with_names(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    return tuple(replace(rule, key=f"rule {n}", targets=(f"target {n}",)) for n, rule in enumerate(rules))


gaps = st.sampled_from([0, 500, 10 * SECOND, 29 * SECOND, MINUTE, MINUTE + 1, HOUR, DAY, -SECOND, -HOUR])
rarely = st.sampled_from([False] * 9 + [True])
statuses: st.SearchStrategy[Status] = st.sampled_from(
    # Mostly bad: otherwise hardly anything lasts.
    ("unavailable",) * 6 + ("degraded",) * 2 + ("current", "catching-up", "unknown", "unmonitored")
)
courses = st.lists(st.tuples(gaps, rarely, st.tuples(statuses, statuses), rarely), max_size=60).map(publications)
bad: st.SearchStrategy[frozenset[Status]] = st.sampled_from(
    (
        frozenset[Status](("unavailable",)),
        frozenset[Status](("unavailable", "degraded")),
        frozenset[Status](("unavailable", "unknown")),
    )
)
some_rules = st.lists(
    st.builds(
        Rule,
        key=st.just(""),
        checks=st.sampled_from([frozenset(CHECKS), frozenset(CHECKS[:1])]),
        statuses=bad,
        for_ms=st.sampled_from([0, 30 * SECOND, MINUTE, 3 * MINUTE]),
        remind_ms=st.sampled_from([0, SECOND, MINUTE, HOUR]),
        targets=st.just(()),
    ),
    max_size=3,
).map(with_names)
all_rules = st.builds(
    Rules, rules=some_rules, group_ms=st.sampled_from([0, 500, 30 * SECOND, HOUR]), hold_ms=st.just(HOLD)
)


def rows(publication: Publication) -> list[Row]:
    expires_at = publication.at if publication.expired else publication.at + 1
    return [
        Row(check, status, "responding", expires_at=None if status in ("unknown", "unmonitored") else expires_at)
        for check, status in zip(CHECKS, publication.statuses, strict=True)
    ]


def lived(course: Sequence[Publication], rules: Rules, stored_after: frozenset[int] = frozenset()) -> list[Told]:
    """What is told, with a restart from what was stored after these publications."""
    state, heard = AlertState(), []
    for n, publication in enumerate(course):
        if publication.follows_a_start:
            state = restart(state)
        state, news = advance(state, publication.at, rows(publication), rules)
        for each in news:
            heard += [Told(n, each.kind, to, each.check, each.since_at, each.seen_ms) for to in each.targets]
        if n in stored_after:
            state = msgspec.json.decode(msgspec.json.encode(state), type=AlertState)
    return heard


class Oracle:
    """Says of each publication alone what is to be told with it, from all that were before."""

    def __init__(self, course: Sequence[Publication], rules: Rules) -> None:
        self.course = course
        self.rules = rules

    def lasted_ms(self, n: int) -> int:
        """How long publication ``n`` was seen to last."""
        if n + 1 == len(self.course) or self.course[n + 1].follows_a_start:
            return 0
        return sorted((0, self.course[n + 1].at - self.course[n].at, HOLD))[1]

    def status(self, n: int, check: Check) -> Status:
        row = rows(self.course[n])[CHECKS.index(check)]
        return "unknown" if row.expires_at is not None and row.expires_at <= self.course[n].at else row.status

    def is_bad(self, n: int, rule: Rule, check: Check) -> bool:
        return self.status(n, check) in rule.statuses

    def ends(self, n: int, rule: Rule, check: Check) -> bool:
        return self.status(n, check) in KNOWN and not self.is_bad(n, rule, check)

    def begin(self, n: int, rule: Rule, check: Check) -> int | None:
        """The publication that began the episode which was under way before ``n``, or begins with it."""
        first = n
        while first > 0 and not self.ends(first - 1, rule, check):
            first -= 1
        return next((m for m in range(first, n + 1) if self.is_bad(m, rule, check)), None)

    def seen_ms(self, begin: int, n: int, rule: Rule, check: Check) -> int:
        return sum(self.lasted_ms(m) for m in range(begin, n) if self.is_bad(m, rule, check))

    def tellings(self, begin: int, n: int, rule: Rule, check: Check) -> list[int]:
        """The publications up to ``n`` with which the episode's beginning and its reminders are told."""
        found: list[int] = []
        for m in range(begin, n + 1):
            seen_ms = self.seen_ms(begin, m, rule, check)
            if not self.is_bad(m, rule, check):
                continue
            if not found:
                is_due = seen_ms >= rule.for_ms
            else:
                waits = (rule.remind_ms * 2 ** (len(found) - 1), DAY)
                is_due = rule.remind_ms > 0 and seen_ms - self.seen_ms(begin, found[-1], rule, check) >= min(waits)
            found += [m] if is_due else []
        return found

    def news(self, n: int) -> Iterator[tuple[str, str, Check, int, int]]:
        for rule in self.rules.rules:
            for check in CHECKS:
                begin = self.begin(n, rule, check)
                if check not in rule.checks or begin is None:
                    continue
                tellings = self.tellings(begin, n, rule, check)
                if self.ends(n, rule, check):
                    kind = "ended" if tellings else ""
                elif tellings[-1:] == [n]:
                    kind = "began" if len(tellings) == 1 else "goes-on"
                else:
                    kind = ""
                if kind:
                    yield kind, rule.targets[0], check, self.course[begin].at, self.seen_ms(begin, n, rule, check)

    def told(self) -> list[Told]:
        heard: list[Told] = []
        waiting: list[tuple[str, str, Check, int, int]] = []
        waited_ms = 0
        for n in range(len(self.course)):
            waited_ms += self.lasted_ms(n - 1) if n > 0 and waiting else 0
            waiting += self.news(n)
            if waiting and waited_ms >= self.rules.group_ms:
                heard += [Told(n, *each) for each in waiting]
                waiting, waited_ms = [], 0
        return heard


@given(courses, all_rules)
def test_what_is_told_is_what_the_whole_past_says(course: list[Publication], rules: Rules) -> None:
    assert lived(course, rules) == Oracle(course, rules).told()


@given(courses, all_rules, st.frozensets(st.integers(0, 60)))
def test_a_restart_from_what_was_stored_changes_nothing(
    course: list[Publication], rules: Rules, stored_after: frozenset[int]
) -> None:
    assert lived(course, rules, stored_after) == lived(course, rules)


@given(courses, all_rules)
def test_a_beginning_comes_before_its_end_and_either_once(course: list[Publication], rules: Rules) -> None:
    heard = lived(course, rules)
    for target in {each.target for each in heard}:
        for check in CHECKS:
            kinds = [each.kind for each in heard if (each.target, each.check) == (target, check)]
            assert kinds[:1] in ([], ["began"])
            # After a beginning comes a reminder or the end; after an end, only a beginning.
            assert all((before == "ended") == (after == "began") for before, after in pairwise(kinds))


@given(courses, all_rules)
def test_a_monitor_that_only_ever_starts_has_seen_nothing_last(course: list[Publication], rules: Rules) -> None:
    heard = lived([each._replace(follows_a_start=True) for each in course], rules)
    patient = {rule.targets[0] for rule in rules.rules if rule.for_ms > 0}
    assert not [each for each in heard if each.target in patient]
