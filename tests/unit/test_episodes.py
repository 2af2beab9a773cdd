"""When a message is due: episodes, the time that was seen, reminders, gathering; and the words."""

import re

import msgspec
import pytest
from msgspec.structs import replace

from lookout.alerts.messages import MOST_LISTED, Names, write_message, write_sample
from lookout.base.durations import format_duration
from lookout.config.alerts import AlertRule
from lookout.core.episodes import AlertState, News, NewsKind, Rule, Rules, advance, restart
from lookout.core.model import Check, Reason, Status
from lookout.core.services import SERVICES
from tests.builders import DAY, HOUR, INDEXER, MESSAGING, MINUTE, NOON, SECOND, STATUSES, a_row

STEP = 30 * SECOND  # the heartbeat
RULE = Rule("r", frozenset((MESSAGING, INDEXER)), frozenset(("unavailable",)), 2 * MINUTE, 0, ("ops",))
RULES = Rules((RULE,), 0, MINUTE)


def one_rule(**changed: object) -> Rules:
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


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("cccccc", [], id="nothing is reported of what is well"),
        pytest.param("cuuuuc", [], id="nothing is reported of a blip that is shorter than for_s"),
        pytest.param("cuuuuu", [(5, "began")], id="it is reported once it has lasted for_s"),
        pytest.param("uuuuuuuuuu", [(4, "began")], id="it is reported once"),
        pytest.param("uuuuuc", [(4, "began"), (5, "ended")], id="its end is reported"),
        pytest.param("uuuuuccc", [(4, "began"), (5, "ended")], id="its end is reported once"),
        pytest.param("uuuuuk", [(4, "began"), (5, "ended")], id="any known milder status is an end"),
        pytest.param("uuuuu???", [(4, "began")], id="unknown is no end"),
        pytest.param("uuuuu???c", [(4, "began"), (8, "ended")], id="after unknown its end is reported"),
        pytest.param("uuuuu.", [(4, "began")], id="unmonitored is no end"),
        pytest.param("????????", [], id="unknown begins nothing"),
        pytest.param("uu?????uu", [], id="time in which it was not seen does not count"),
        pytest.param("uu?????uuu", [(9, "began")], id="time before it was not seen does count"),
        pytest.param("uuuu????", [], id="it is not reported while it is not seen"),
        pytest.param("uuuucuuuu", [], id="an end begins the count again"),
        pytest.param("ddddddd", [], id="milder than the rule begins nothing"),
        pytest.param("uuuuucuuuuu", [(4, "began"), (5, "ended"), (10, "began")], id="each episode is reported"),
        pytest.param("uuu!uu", [], id="time over a start does not count"),
        pytest.param("uuu!uuu", [(5, "began")], id="time after a start does count"),
        pytest.param("uuuuu!uc", [(4, "began"), (6, "ended")], id="a start reports nothing again"),
        pytest.param("(uuuuuuuuu", [], id="no beginning is reported in a silence"),
        pytest.param("(uuuuuuu)u", [(7, "began")], id="what is still bad when a silence ends is reported then"),
        pytest.param("(uu)uuu", [(4, "began")], id="a silence that ends before for_s delays nothing"),
        pytest.param("(uuuuuuc)uuu", [], id="what was over before a silence ended is never reported"),
        pytest.param("uuuuu(uc)", [(4, "began"), (6, "ended")], id="what was reported before is reported to recover"),
        pytest.param("(uuuuuu?)?u", [(8, "began")], id="what is not seen when a silence ends waits until it is"),
    ],
)
def test_an_episode_is_reported_as_it_was_seen(script: str, expected: list[tuple[int, NewsKind]]) -> None:
    assert follow(script)[0] == expected


def test_a_row_past_its_time_is_not_seen() -> None:
    rules = one_rule(for_ms=0)
    expired = a_row("unavailable", expires_at=NOON)
    assert advance(AlertState(), NOON, [expired], rules)[1] == ()
    assert advance(AlertState(), NOON - 1, [expired], rules)[1] != ()


@pytest.mark.parametrize(
    ("remind_h", "hours"),
    [
        pytest.param(4, [0, 4, 12, 28, 52, 76, 100], id="each after twice the time, up to a day"),
        pytest.param(48, [0, 48, 96], id="rarer than daily stays as rare"),
    ],
)
def test_reminders_come_more_and_more_rarely(remind_h: int, hours: list[int]) -> None:
    rules = replace(one_rule(for_ms=0, remind_ms=remind_h * HOUR), hold_ms=HOUR)
    state, reported = AlertState(), []
    for hour in range(120):
        state, news = advance(state, NOON + hour * HOUR, [a_row("unavailable")], rules)
        reported += [hour for _ in news]
    assert reported == hours
    assert state.episodes[0].reminders == len(hours) - 1


def test_a_reminder_that_a_silence_held_back_comes_once_when_it_ends() -> None:
    rules = one_rule(for_ms=0, remind_ms=STEP)
    state, reported = AlertState(), []
    for n in range(12):
        silenced = (MESSAGING,) if 1 <= n < 8 else (INDEXER,)
        state, news = advance(state, NOON + n * STEP, [a_row("unavailable")], rules, silenced)
        reported += [(n, each.kind) for each in news]
    assert reported == [(0, "began"), (8, "goes-on"), (10, "goes-on")]


def test_what_comes_within_the_time_of_gathering_is_reported_together() -> None:
    rules = replace(RULES, group_ms=MINUTE)
    state, _ = advance(AlertState(), NOON, [a_row("unavailable"), a_row("current", check=INDEXER)], rules)
    reported = []
    for n in range(1, 9):
        rows = [a_row("unavailable"), a_row("unavailable" if n < 8 else "current", check=INDEXER)]
        state, news = advance(state, NOON + n * STEP, rows, rules)
        reported += [(n, [(each.kind, each.check.service) for each in news])] if news else []
    # Messaging at 4, and the indexer at 5, are waited for until 6; the indexer's end at 8 begins to wait again.
    assert reported == [(6, [("began", "messaging"), ("began", "indexer")])]
    assert [each.kind for each in state.gathered] == ["ended"]


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


def test_a_rule_that_changed_goes_on_with_its_episodes_and_one_that_is_gone_has_them_reported() -> None:
    _, state = follow("uuuuu")
    changed = one_rule(for_ms=HOUR, targets=("ops", "chat"))
    assert advance(state, NOON + HOUR, [a_row("unavailable")], changed)[1] == ()
    (end,) = advance(state, NOON + HOUR, [a_row("current")], changed)[1]
    assert end.targets == ("ops",)  # those to whom its beginning was reported
    (left,) = advance(state, NOON + HOUR, [a_row("unavailable")], replace(RULES, rules=()))[1]
    assert (left.kind, left.targets) == ("left", ("ops",))


def test_a_reminder_goes_to_the_targets_of_the_rule_as_it_is_now() -> None:
    _, state = follow("uuuuu")
    changed = one_rule(remind_ms=SECOND, targets=("chat",))
    state, (reminder,) = advance(state, NOON + HOUR, [a_row("unavailable")], changed)
    assert (reminder.kind, reminder.targets) == ("goes-on", ("chat",))
    assert advance(state, NOON + HOUR, [a_row("current")], changed)[1][0].targets == ("chat",)


def test_news_say_which_rule_they_are_of() -> None:
    rules = one_rule(for_ms=0).rules + one_rule(for_ms=0, key="later", targets=("pager",)).rules
    _, news = advance(AlertState(), NOON, [a_row("unavailable")], replace(RULES, rules=rules))
    assert [(each.rule, each.targets) for each in news] == [("r", ("ops",)), ("later", ("pager",))]


def test_a_rule_without_a_name_is_the_same_however_long_it_waits() -> None:
    assert AlertRule(for_s=300).key() == AlertRule(for_s=600).key()
    others = [AlertRule(from_="degraded"), AlertRule(unknown=True), AlertRule(chains=(1,)), AlertRule(name="x")]
    assert len({each.key() for each in (AlertRule(), *others)}) == 5


@pytest.mark.parametrize("damage", [b'"since_at":-1', b'"since_at":999999999999999999'])
def test_a_damaged_state_is_not_taken_for_one(damage: bytes) -> None:
    stored = msgspec.json.encode(follow("uu")[1])
    broken = stored.replace(f'"since_at":{NOON}'.encode(), damage)
    assert broken != stored
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(broken, type=AlertState)


def some_news(
    kind: NewsKind,
    check: Check = INDEXER,
    status: Status = "unavailable",
    reason: Reason = "unreachable",
    since_at: int = NOON,
    lasted_ms: int = 5 * MINUTE,
    seen_ms: int | None = None,
    rule: str = "r",
) -> News:
    seen_ms = lasted_ms if seen_ms is None else seen_ms
    return News(kind, check, status, reason, "unavailable", since_at, since_at + lasted_ms, seen_ms, ("ops",), rule)


SEVEN = range(1, 8)
NAMES = Names({1: "Ethereum", 137: "Polygon"}, SERVICES.names)
RECOVERED = some_news("ended", MESSAGING, "current", "responding", lasted_ms=HOUR, seen_ms=50 * MINUTE)


@pytest.mark.parametrize(
    ("news", "title"),
    [
        ([some_news("began")], "indexer on Ethereum is unavailable"),
        ([some_news("began", MESSAGING)], "messaging is unavailable"),
        ([some_news("goes-on")], "indexer on Ethereum is still unavailable"),
        ([RECOVERED], "messaging recovered"),
        ([some_news("ended", status="degraded", reason="behind")], "indexer on Ethereum improved"),
        ([some_news("left")], "indexer on Ethereum is no longer watched"),
        ([some_news("began"), some_news("began")], "indexer on Ethereum is unavailable"),
        ([some_news("began"), some_news("began", since_at=NOON + 1)], "indexer on Ethereum is unavailable"),
        ([some_news("began"), some_news("ended", status="current")], "indexer on Ethereum recovered"),
        ([some_news("began"), some_news("began", rule="s")], "indexer on Ethereum is unavailable"),
        (
            [some_news("ended", rule="s", status="current"), some_news("ended", status="current")],
            "indexer on Ethereum recovered",
        ),
        (
            [some_news("began", status="degraded", rule="s"), some_news("ended", status="degraded")],
            "1 check is degraded, 1 improved",
        ),
        (
            [some_news("began", rule="s"), some_news("left")],
            "1 check is unavailable, 1 is no longer watched",
        ),
        (
            [some_news("began", since_at=NOON + 1), some_news("ended", status="degraded")],
            "1 check is unavailable, 1 improved",
        ),
        (
            [RECOVERED, some_news("ended", status="current"), *(some_news("began", Check("ppoi", n)) for n in SEVEN)],
            "7 checks are unavailable, 2 recovered",
        ),
        (
            [RECOVERED, some_news("began"), some_news("left", Check("ppoi", 1))],
            "1 check is unavailable, 1 recovered, 1 is no longer watched",
        ),
    ],
)
def test_a_title_says_how_many_and_what(news: list[News], title: str) -> None:
    assert write_message(news, NAMES).title == f"Lookout: {title}"


@pytest.mark.clause("C12")
def test_a_message_lists_the_checks_in_the_reports_order_with_their_times_and_the_public_words() -> None:
    news = [
        some_news("began"),
        some_news("goes-on", Check("ppoi", 56)),
        some_news("began", Check("ppoi", 1)),
        RECOVERED,
    ]
    assert write_message([*news, some_news("left", Check("ppoi", 137))], NAMES).body == (
        "Unavailable:\n"
        "- ppoi on Ethereum: unreachable, since 2026-11-05T12:00:00Z, 5 min\n"
        "- indexer on Ethereum: unreachable, since 2026-11-05T12:00:00Z, 5 min\n"
        "Still unavailable:\n"
        "- ppoi on chain 56: unreachable, since 2026-11-05T12:00:00Z, 5 min\n"
        "Recovered:\n"
        "- messaging: current at 2026-11-05T13:00:00Z, was unavailable since 2026-11-05T12:00:00Z, 1 h,"
        " of which 50 min were watched\n"
        "No longer watched:\n"
        "- ppoi on Polygon: was unavailable since 2026-11-05T12:00:00Z; whether it recovered is not known\n"
        "\n"
        "current: It answers, and what was checked is as it should be.\n"
        "unavailable: It did not answer usefully several times in a row.\n"
        "responding: Everything that was asked has answered.\n"
        "unreachable: It could not be reached, or its answer could not be understood.\n"
        "This is what one monitor sees from one place. It is not an official status."
    )


@pytest.mark.parametrize("count", [MOST_LISTED, MOST_LISTED + 1, 1000])
def test_a_message_lists_so_many_and_says_how_many_more(count: int) -> None:
    over = [some_news("ended", Check("indexer", n + 1), "current", "synced") for n in range(3)]
    began = [some_news("began", Check("ppoi", n + 1)) for n in range(count - 3)]
    words = write_message([*began, *over], NAMES)
    assert words.title == f"Lookout: {count - 3} checks are unavailable, 3 recovered"
    assert words.body.count("\n- ") == MOST_LISTED
    assert ("Recovered:\n" in words.body) == (count - 3 < MOST_LISTED)
    assert re.findall(r"\nand (\d+) more\n", words.body) == ([str(count - MOST_LISTED)] if count > MOST_LISTED else [])


@pytest.mark.parametrize(
    ("news", "is_over"),
    [
        ([some_news("began")], False),
        ([some_news("goes-on")], False),
        ([RECOVERED], True),
        ([some_news("left")], True),
        ([RECOVERED, some_news("left")], True),
        ([RECOVERED, some_news("began")], False),
        ([some_news("began"), some_news("ended", status="current")], True),
    ],
)
def test_a_message_is_over_if_nothing_in_it_is_bad_any_more(news: list[News], is_over: bool) -> None:
    assert write_message(news, NAMES).is_over == is_over


@pytest.mark.parametrize(
    ("lasted_ms", "text"),
    [
        (999, "0 s"),
        (59_999, "59 s"),
        (MINUTE + SECOND, "1 min 1 s"),
        (2 * HOUR + 5 * MINUTE + SECOND, "2 h 5 min"),
        (HOUR + SECOND, "1 h"),
        (DAY + 3 * HOUR, "1 d 3 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(lasted_ms: int, text: str) -> None:
    assert format_duration(lasted_ms) == text


def test_a_duration_after_the_clock_was_set_back_is_what_was_seen() -> None:
    assert (
        "since 2026-11-05T12:00:00Z, 3 min\n"
        in write_message([some_news("began", lasted_ms=-HOUR, seen_ms=3 * MINUTE)], NAMES).body
    )


def test_a_sample_says_that_nothing_is_to_be_done() -> None:
    assert "nothing is to be done" in write_sample().body
    assert not write_sample().is_over  # or it would not ring
