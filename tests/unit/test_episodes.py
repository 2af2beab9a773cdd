"""When a message is due: episodes, the time that was seen, reminders, gathering; and what rules count."""

from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from lookout.core.model import Row, Status
from lookout.features.alerts.rules import AlertState, EpisodeRule, EpisodeRules, NewsKind, advance, restart
from lookout.features.alerts.settings import BAD_REASONS, AlertRule
from lookout_reader.words import Reason
from tests.builders import DAY, HOUR, INDEXER, MESSAGING, MINUTE, NOON, SECOND, STATUSES, a_row
from tests.cases import cases

STEP = 30 * SECOND  # the heartbeat
RULE = EpisodeRule("r", frozenset((MESSAGING, INDEXER)), frozenset(("unavailable",)), 2 * MINUTE, 0, ("ops",))
RULES = EpisodeRules((RULE,), 0, MINUTE)


def one_rule(**changed: object) -> EpisodeRules:
    return replace(RULES, rules=(replace(RULE, **changed),))


def follow(script: str) -> tuple[list[tuple[int, NewsKind]], AlertState]:
    """What is reported of one check that has these statuses, a publication each: the publication's number, and the
    kind of the news. ``!`` is a start, and the check is silenced from ``(`` to ``)``."""
    state, reported, n, silenced = AlertState(), [], 0, False
    for letter in script:
        if letter in "()":
            silenced = letter == "("
            continue
        if letter == "!":
            state = restart(state)
            continue
        quiet = (MESSAGING,) if silenced else ()
        state, news = advance(state, NOON + n * STEP, [a_row(STATUSES[letter])], RULES, quiet)
        reported += [(n, each.kind) for each in news]
        n += 1
    return reported, state


@pytest.mark.parametrize(("script", "expected"), cases("episodes", "an episode is reported as it was seen"))
def test_an_episode_is_reported_as_it_was_seen(script: str, expected: list[tuple[int, NewsKind]]) -> None:
    assert follow(script)[0] == [tuple(each) for each in expected]


UNNAMED = AlertRule(for_s=120, remind_s=0)
LEFT = ("left", ("ops",))
GOES_ON = ("ended", ("ops",))  # nothing until the end


@pytest.mark.parametrize(
    ("before", "after", "first", "last"),
    [
        pytest.param(UNNAMED, replace(UNNAMED, from_="unavailable"), [], [GOES_ON], id="another from"),
        pytest.param(replace(UNNAMED, from_="unavailable"), UNNAMED, [], [GOES_ON], id="what 1.0.0 meant without from"),
        pytest.param(UNNAMED, replace(UNNAMED, services=("messaging",)), [], [GOES_ON], id="fewer services"),
        pytest.param(UNNAMED, replace(UNNAMED, unknown=True), [], [GOES_ON], id="unknown is bad too"),
        pytest.param(UNNAMED, replace(UNNAMED, name="new"), [], [GOES_ON], id="a name"),
        pytest.param(UNNAMED, replace(UNNAMED, for_s=3600), [], [GOES_ON], id="a longer wait"),
        pytest.param(
            UNNAMED, replace(UNNAMED, reasons=("incomplete",)), [], [GOES_ON], id="reasons that do not have this one"
        ),
        pytest.param(UNNAMED, replace(UNNAMED, services=("indexer",)), [LEFT], [], id="no rule covers the check"),
        pytest.param(
            UNNAMED,
            replace(UNNAMED, name="new", targets=("ops", "chat")),
            [("began", ("chat",))],
            [("ended", ("ops", "chat"))],
            id="a target that is new gets the beginning",
        ),
        pytest.param(
            UNNAMED,
            replace(UNNAMED, name="new", for_s=3600, targets=("ops", "chat")),
            [],
            [GOES_ON],
            id="but not before it has lasted for_s, and then no end either",
        ),
        pytest.param(
            replace(UNNAMED, name="old"),
            replace(UNNAMED, name="old", targets=("chat",)),
            [("began", ("chat",))],
            [("ended", ("ops", "chat"))],
            id="a target that the rule does not name any more gets the end",
        ),
        pytest.param(
            replace(UNNAMED, name="old", remind_s=60),
            replace(UNNAMED, name="old", remind_s=60, targets=("chat",)),
            [("began", ("chat",)), ("goes-on", ("chat",))],
            [("ended", ("ops", "chat"))],
            id="but no reminder, after which it gets the end too",
        ),
    ],
)
def test_an_episode_goes_on_while_any_rule_covers_its_check(
    before: AlertRule,
    after: AlertRule,
    first: list[tuple[NewsKind, tuple[str, ...]]],
    last: list[tuple[NewsKind, tuple[str, ...]]],
) -> None:
    state, at = AlertState(), NOON

    def built(rule: AlertRule) -> EpisodeRules:
        return replace(RULES, rules=tuple(rule.build((MESSAGING, INDEXER), ("ops",))))

    def publish(rule: AlertRule, *rows: Row) -> list[tuple[NewsKind, tuple[str, ...]]]:
        nonlocal state, at
        found = list[tuple[NewsKind, tuple[str, ...]]]()
        for row in rows:
            at += MINUTE
            state, news = advance(state, at, [row], built(rule))
            found += [(each.kind, each.targets) for each in news if each.since_at == NOON + MINUTE]
        return found

    down, well = replace(a_row("unavailable"), reason="unreachable"), a_row("current")
    assert publish(before, down, down, down) == [("began", ("ops",))]
    assert publish(after, down, down) == first
    assert publish(after, well) == last


def recovered(rule: AlertRule, *seen: tuple[Status, Reason]) -> list[tuple[int, NewsKind, Status]]:
    """The ends of what is seen, each for six minutes: the number of what was seen then, the kind, and the status."""
    rules = replace(RULES, rules=tuple(rule.build((INDEXER,), ("ops",))))
    state, ends = AlertState(), list[tuple[int, NewsKind, Status]]()
    for minute in range(6 * len(seen)):
        status, reason = seen[minute // 6]
        state, news = advance(state, NOON + minute * MINUTE, [Row(INDEXER, status, reason)], rules)
        ends += [(minute // 6, each.kind, each.status) for each in news if each.kind != "began"]
    return ends


BLIND, EMPTY = ("unknown", "incompatible-reference"), ("unknown", "no-observation")
DOWN, BEHIND, CATCHING_UP = ("unavailable", "unreachable"), ("degraded", "behind"), ("catching-up", "behind")
PARTIAL, INCOMPLETE, WELL = ("degraded", "partial-coverage"), ("degraded", "incomplete"), ("current", "synced")


@pytest.mark.parametrize(
    ("rule", "seen", "ends"),
    [
        pytest.param(AlertRule(), (BLIND, DOWN), [], id="unknown that becomes unavailable is no end"),
        pytest.param(AlertRule(), (BLIND, BEHIND), [], id="nor what the rule counts otherwise"),
        pytest.param(AlertRule(from_="unavailable"), (BLIND, DOWN), [], id="nor unavailable with another from"),
        pytest.param(AlertRule(reasons=("no-observation",)), (EMPTY, DOWN), [], id="nor for a reason of others"),
        pytest.param(
            AlertRule(unknown=True, reasons=("no-observation",)), (EMPTY, DOWN), [], id="nor where unknown is bad"
        ),
        pytest.param(AlertRule(), (BLIND, WELL), [(1, "ended", "current")], id="unknown ends when it is well"),
        pytest.param(AlertRule(), (BLIND, CATCHING_UP), [(1, "ended", "catching-up")], id="or milder than the rule"),
        pytest.param(
            AlertRule(from_="unavailable"), (BLIND, BEHIND), [(1, "ended", "degraded")], id="as the rule has it"
        ),
        pytest.param(AlertRule(), (EMPTY, PARTIAL), [(1, "ended", "degraded")], id="or for a reason that is left out"),
        pytest.param(
            AlertRule(),
            (BLIND, DOWN, WELL),
            [(2, "ended", "current"), (2, "ended", "current")],
            id="unknown and unavailable end together",
        ),
        pytest.param(AlertRule(), (DOWN, BLIND, DOWN), [], id="unknown between is no end"),
        pytest.param(
            AlertRule(reasons=("incomplete",)), (INCOMPLETE, DOWN), [], id="a list that cannot be read is no end"
        ),
        pytest.param(
            AlertRule(reasons=("incomplete",)),
            (INCOMPLETE, DOWN, BEHIND, WELL),
            [(3, "ended", "current")],
            id="nor anything that is as bad",
        ),
        pytest.param(
            AlertRule(from_="unavailable"), (DOWN, BEHIND), [(1, "ended", "degraded")], id="what is better is an end"
        ),
    ],
)
def test_an_end_is_better_than_what_ended(
    rule: AlertRule, seen: tuple[tuple[Status, Reason], ...], ends: list[tuple[int, NewsKind, Status]]
) -> None:
    assert recovered(replace(rule, remind_s=0), *seen) == ends


def test_news_say_which_rule_they_are_of() -> None:
    rules = one_rule(for_ms=0).rules + one_rule(for_ms=0, key="later", targets=("pager",)).rules
    _, news = advance(AlertState(), NOON, [a_row("unavailable")], replace(RULES, rules=rules))
    assert [(each.rule, each.targets) for each in news] == [("r", ("ops",)), ("later", ("pager",))]


def test_a_rule_without_a_name_is_the_same_however_long_it_waits() -> None:
    assert AlertRule(for_s=300).key() == AlertRule(for_s=600).key()
    others = [AlertRule(from_="unavailable"), AlertRule(unknown=True), AlertRule(chains=(1,)), AlertRule(name="x")]
    others += [AlertRule(reasons=("unreachable",))]
    assert len({each.key() for each in (AlertRule(), *others)}) == 6


def test_a_rule_without_a_name_has_the_key_that_earlier_versions_stored() -> None:
    rule = AlertRule(from_="unavailable")
    assert [rule.key(), replace(rule, unknown=False).key()] == ["//unavailable/False"] * 2


def test_a_rule_can_name_every_reason_of_what_is_not_well() -> None:
    assert set(get_args(Reason)) - set(BAD_REASONS) == {"synced", "responding", "not-configured"}


def begun_by(rule: AlertRule, status: Status, reason: Reason, minutes: int) -> list[int]:
    """For how many minutes a check has been seen like this when it is reported, within so many."""
    rules = replace(RULES, rules=tuple(rule.build((INDEXER,), ("ops",))))
    state, reported = AlertState(), []
    for minute in range(minutes + 1):
        state, news = advance(state, NOON + minute * MINUTE, [Row(INDEXER, status, reason)], rules)
        reported += [minute for _ in news]
    return reported


LEFT_OUT = AlertRule(for_s=0, remind_s=0)


@pytest.mark.parametrize(
    ("rule", "status", "reason", "reported"),
    [
        pytest.param(LEFT_OUT, "unavailable", "unreachable", [0], id="what is bad is reported after for_s"),
        pytest.param(LEFT_OUT, "unknown", "incompatible-reference", [5], id="lost heads are reported after 5 minutes"),
        pytest.param(LEFT_OUT, "unknown", "no-observation", [5], id="so is a row that was not observed"),
        pytest.param(replace(LEFT_OUT, for_s=480), "unknown", "no-observation", [8], id="or later, if for_s is longer"),
        pytest.param(LEFT_OUT, "unknown", "unreachable", [], id="what may soon be unavailable is not"),
        pytest.param(LEFT_OUT, "degraded", "partial-coverage", [], id="nor are some broadcasters that are silent"),
        pytest.param(
            replace(LEFT_OUT, reasons=("partial-coverage",)), "degraded", "partial-coverage", [0], id="unless named"
        ),
        pytest.param(replace(LEFT_OUT, unknown=False), "unknown", "no-observation", [], id="nothing unknown if false"),
        pytest.param(replace(LEFT_OUT, unknown=True), "unknown", "unreachable", [0], id="anything unknown if true"),
        pytest.param(replace(LEFT_OUT, reasons=("unreachable",)), "unavailable", "unreachable", [0], id="its reason"),
        pytest.param(replace(LEFT_OUT, reasons=("unreachable",)), "unknown", "unreachable", [], id="and its status"),
        pytest.param(replace(LEFT_OUT, reasons=("no-observation",)), "unavailable", "unreachable", [], id="no other"),
        pytest.param(replace(LEFT_OUT, reasons=("no-observation",)), "unknown", "no-observation", [5], id="this one"),
        pytest.param(
            replace(LEFT_OUT, reasons=("no-observation",)), "unknown", "incompatible-reference", [], id="and not that"
        ),
        pytest.param(
            replace(LEFT_OUT, unknown=True, reasons=("unreachable",)), "unknown", "unreachable", [0], id="both keys"
        ),
    ],
)
def test_a_rule_counts_what_its_unknown_and_its_reasons_say(
    rule: AlertRule, status: Status, reason: Reason, reported: list[int]
) -> None:
    assert begun_by(rule, status, reason, 10) == reported


def test_a_service_that_has_nothing_for_a_chain_is_reported_if_it_had_something_lately_or_a_rule_names_that() -> None:
    never = Row(INDEXER, "unknown", "no-observation", observed_at=NOON)
    named = replace(LEFT_OUT, reasons=("no-observation",))
    for rule, row, bad in (
        (LEFT_OUT, never, False),
        (LEFT_OUT, replace(never, last_success_at=NOON - DAY + 1), True),
        (LEFT_OUT, replace(never, last_success_at=NOON - DAY), False),
        (named, never, True),
    ):
        assert any(each.is_bad(row, NOON) for each in rule.build((INDEXER,), ("ops",))) is bad


@pytest.mark.parametrize(
    ("rule", "minutes"),
    [
        pytest.param(AlertRule(), [5], id="by default after five minutes"),
        pytest.param(AlertRule(not_moving_s=900), [15], id="or as it says"),
        pytest.param(AlertRule(not_moving_s=0), [], id="or never"),
        pytest.param(AlertRule(from_="unavailable"), [], id="not if it is for what is down"),
        pytest.param(AlertRule(reasons=("incomplete",)), [], id="nor if it is for another reason"),
        pytest.param(AlertRule(from_="catching-up", for_s=600), [10], id="all that is behind is reported anyway"),
    ],
)
def test_a_position_that_does_not_move_is_reported_before_it_is_degraded(rule: AlertRule, minutes: list[int]) -> None:
    rules = replace(RULES, rules=tuple(rule.build((INDEXER,), ("ops",))))
    state, reported = AlertState(), list[tuple[int, NewsKind]]()
    for minute in range(25):
        at = NOON + minute * MINUTE
        row = Row(INDEXER, "catching-up", "behind", at, still_since_at=NOON if minute < 20 else at)
        if minute == 24:
            row = Row(INDEXER, "current", "synced", at)
        state, news = advance(state, at, [row], rules)
        reported += [(minute, each.kind) for each in news]
    ends: list[tuple[int, NewsKind]] = [(24, "ended") for _ in minutes]  # moving alone is no end, being current is
    assert reported == [*((minute, "began") for minute in minutes), *ends]


def test_what_was_not_observed_and_then_never_had_data_is_no_loss() -> None:
    rules = replace(RULES, rules=tuple(replace(LEFT_OUT, remind_s=600).build((INDEXER,), ("ops",))))
    state, reported = AlertState(), list[tuple[int, NewsKind]]()
    for minute in range(60):
        at = NOON + minute * MINUTE
        row = Row(INDEXER, "unknown", "no-observation", observed_at=None if minute < 10 else at)
        state, news = advance(state, at, [row], rules)
        reported += [(minute, each.kind) for each in news]
    assert reported == [(5, "began")]


def test_of_data_that_stays_lost_people_are_reminded_also_after_a_day() -> None:
    *_, of_unknown = replace(LEFT_OUT, remind_s=3600).build((INDEXER,), ("ops",))
    rules = EpisodeRules((of_unknown,), 0, HOUR)
    state, reported = AlertState(), list[tuple[int, NewsKind]]()
    for hour in range(60):
        at = NOON + hour * HOUR
        row = Row(INDEXER, "unknown", "no-observation", observed_at=at, last_success_at=NOON - HOUR)
        state, news = advance(state, at, [row], rules)
        reported += [(hour, each.kind) for each in news]
    assert [kind for _, kind in reported] == ["began", *["goes-on"] * (len(reported) - 1)]
    assert sum(hour > 24 for hour, _ in reported) > 1


def test_what_cannot_be_judged_and_then_is_down_is_reported_as_both() -> None:
    rules = replace(RULES, rules=tuple(LEFT_OUT.build((INDEXER,), ("ops",))))
    state, reported = AlertState(), []
    unjudged, down = Row(INDEXER, "unknown", "no-observation"), Row(INDEXER, "unavailable", "unreachable")
    for minute, row in enumerate([*[unjudged] * 6, down, down, Row(INDEXER, "current", "synced")]):
        state, news = advance(state, NOON + minute * MINUTE, [row], rules)
        reported += [(minute, each.kind, each.was, each.status) for each in news]
    assert reported == [
        (5, "began", "unknown", "unknown"),
        (6, "began", "unavailable", "unavailable"),
        (8, "ended", "unavailable", "current"),
        (8, "ended", "unknown", "current"),
    ]


@pytest.mark.parametrize("damage", [b'"since_at":-1', b'"since_at":999999999999999999'])
def test_a_damaged_state_is_not_taken_for_one(damage: bytes) -> None:
    stored = msgspec.json.encode(follow("uu")[1])
    broken = stored.replace(f'"since_at":{NOON}'.encode(), damage)
    assert broken != stored
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(broken, type=AlertState)


def test_a_check_that_is_not_watched_any_more_is_reported_if_it_had_been() -> None:
    _, state = follow("uuuuu")
    nobody = one_rule(checks=frozenset((INDEXER,)))
    after, news = advance(state, NOON + HOUR, [a_row("unmonitored")], nobody)
    assert [(each.kind, each.check, each.status, each.targets) for each in news] == [
        ("left", MESSAGING, "unavailable", ("ops",))
    ]
    assert after.episodes == ()
    _, pending = follow("uu")
    assert advance(pending, NOON + HOUR, [], nobody) == (AlertState(NOON + HOUR, 90 * SECOND), ())
