"""The words of messages, and the same as data."""

import re

import msgspec
import pytest
from msgspec.structs import replace

from lookout.alerts.deployment import Deployment
from lookout.alerts.event import Event, Facts
from lookout.alerts.messages import MOST_LISTED, Message, write_message, write_restored, write_sample
from lookout.base.durations import format_duration
from lookout.core.causes import OWN_CAUSES
from lookout.core.episodes import News, NewsKind
from lookout.core.model import Check, Metrics, Reason, Status
from lookout.core.services import SERVICES
from tests.builders import DAY, HOSTED_INDEXER, HOUR, INDEXER, MESSAGING, MINUTE, NOON, SECOND


def some_news(
    kind: NewsKind,
    check: Check = INDEXER,
    status: Status = "unavailable",
    reason: Reason = "unreachable",
    since_at: int = NOON,
    lasted_ms: int = 5 * MINUTE,
    seen_ms: int | None = None,
    rule: str = "r",
    was: Status = "unavailable",
) -> News:
    seen_ms = lasted_ms if seen_ms is None else seen_ms
    return News(kind, check, status, reason, was, since_at, since_at + lasted_ms, seen_ms, ("ops",), rule)


def unjudged(kind: NewsKind, check: Check) -> News:
    return some_news(kind, check, "unknown", "incompatible-reference", was="unknown")


UNJUDGED = unjudged("began", INDEXER)
SEVEN = range(1, 8)
NAMES = Deployment({1: "Ethereum", 137: "Polygon"}, SERVICES.names)
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
        ([UNJUDGED], "indexer on Ethereum cannot be judged"),
        ([unjudged("goes-on", INDEXER)], "indexer on Ethereum still cannot be judged"),
        ([UNJUDGED, unjudged("began", HOSTED_INDEXER)], "2 checks on Ethereum cannot be judged"),
        ([UNJUDGED, unjudged("began", Check("indexer", 137))], "2 checks cannot be judged"),
        ([some_news("ended", status="current", was="unknown")], "indexer on Ethereum can be judged again"),
        ([some_news("ended", was="unknown")], "indexer on Ethereum can be judged again"),
        ([some_news("ended", was="degraded")], "indexer on Ethereum is bad in another way"),
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
        "Unavailable, all unreachable:\n"
        "- ppoi on Ethereum: since 2026-11-05T12:00:00Z, 5 min\n"
        "- indexer on Ethereum: since 2026-11-05T12:00:00Z, 5 min\n"
        "Still unavailable:\n"
        "- ppoi on chain 56: unreachable, since 2026-11-05T12:00:00Z, 5 min\n"
        "Recovered:\n"
        "- messaging: current at 2026-11-05T13:00:00Z, was unavailable since 2026-11-05T12:00:00Z, 1 h,"
        " of which 50 min were watched\n"
        "No longer watched:\n"
        "- ppoi on Polygon: was unavailable since 2026-11-05T12:00:00Z; whether it recovered is not known\n"
        "\n"
        "unavailable: It did not answer usefully several times in a row.\n"
        "current: It answers, and what was checked is as it should be.\n"
        "unreachable: It could not be reached, or its answer could not be understood.\n"
        "responding: Everything that was asked has answered.\n"
        "What each source and RPC endpoint answers: /sources on the monitor's admin port."
        " `lookout probe` asks them now.\n"
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
        ([some_news("ended", status="current", was="unknown")], True),
        ([some_news("ended", was="unknown")], True),
        ([some_news("ended", was="degraded")], False),
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


NO_HEAD = Facts("no_head", NOON - MINUTE, Metrics(position=101, head=103))


@pytest.mark.clause("M16", "S13")
def test_a_lost_head_is_one_message_with_its_cause_once_and_not_an_outage() -> None:
    deployment = replace(
        NAMES, name="Example", operator="ACME", link="https://status.example.org/", cause_texts=OWN_CAUSES
    )
    facts = {INDEXER: NO_HEAD, HOSTED_INDEXER: Facts("no_head")}
    message = write_message([UNJUDGED, unjudged("began", HOSTED_INDEXER)], deployment, facts)
    assert message.title == "Lookout (Example): 2 checks on Ethereum cannot be judged"
    assert message.body == (
        "Cannot be judged, all incompatible-reference (no_head):\n"
        "- indexer on Ethereum: since 2026-11-05T12:00:00Z, 5 min\n"
        "  last judged: 2026-11-05T11:59:00Z (position 101, head 103)\n"
        "- hosted-indexer on Ethereum: since 2026-11-05T12:00:00Z, 5 min\n"
        "  last judged: never\n"
        "\n"
        "cannot be judged: There is too little to judge by: it may or may not work.\n"
        "incompatible-reference: It answered, but there was nothing safe to compare its answer with.\n"
        "no_head: The chain's endpoints agreed on no head, so there is nothing to compare with.\n"
        "What each source and RPC endpoint answers: /sources on the monitor's admin port."
        " `lookout probe` asks them now.\n"
        "The status page: https://status.example.org/\n"
        "The monitor is run by ACME.\n"
        "This is what one monitor sees from one place. It is not an official status."
    )


def test_what_has_one_cause_is_listed_together_and_the_rest_apart() -> None:
    causes = {Check("ppoi", 1): "refused", Check("ppoi", 137): "timeout: body", Check("indexer", 1): "refused"}
    causes |= {Check("indexer", 137): "dns"}
    news = [some_news("began", check) for check in causes]
    body = write_message(news, NAMES, {check: Facts(cause, NOON) for check, cause in causes.items()}).body
    assert body.partition("\n\n")[0].replace("\n  last good answer: 2026-11-05T12:00:00Z", "") == (
        "Unavailable, all unreachable (refused):\n"
        "- ppoi on Ethereum: since 2026-11-05T12:00:00Z, 5 min\n"
        "- indexer on Ethereum: since 2026-11-05T12:00:00Z, 5 min\n"
        "Unavailable:\n"
        "- ppoi on Polygon: unreachable (timeout: body), since 2026-11-05T12:00:00Z, 5 min\n"
        "- indexer on Polygon: unreachable (dns), since 2026-11-05T12:00:00Z, 5 min"
    )


@pytest.mark.parametrize(
    ("news", "line"),
    [
        pytest.param(
            some_news("began", lasted_ms=HOUR),
            "unreachable (timeout: body), since 2026-11-05T12:00:00Z, 1 h\n  last good answer: 2026-11-05T11:00:00Z\n",
            id="what does not answer says when it last did",
        ),
        pytest.param(
            some_news("began", status="degraded", reason="behind"),
            "behind (timeout: body), since 2026-11-05T12:00:00Z, 5 min\n\n",
            id="what is behind answers, and does not",
        ),
        pytest.param(
            some_news("ended", was="degraded"),
            "unavailable, unreachable (timeout: body), at 2026-11-05T12:05:00Z, was degraded since 2026",
            id="what is bad in another way says why",
        ),
        pytest.param(
            some_news("ended", was="unknown", status="current", reason="synced"),
            "current at 2026-11-05T12:05:00Z, could not be judged since 2026-11-05T12:00:00Z, 5 min\n\n",
            id="what can be judged again and is well has no cause",
        ),
    ],
)
def test_a_line_has_the_cause_and_the_last_good_answer(news: News, line: str) -> None:
    body = write_message([news], NAMES, {INDEXER: Facts("timeout: body", NOON - HOUR)}).body
    assert f"- indexer on Ethereum: {line}" in body


def test_a_message_is_data_as_well() -> None:
    deployment = replace(NAMES, name="Example", link="https://status.example.org/")
    event = write_message([UNJUDGED, RECOVERED], deployment, {INDEXER: NO_HEAD}).event
    assert event is not None
    assert msgspec.json.decode(msgspec.json.encode(event)) == {
        "version": 1,
        "kind": "checks",
        "isOver": False,
        "deployment": "Example",
        "operator": "",
        "link": "https://status.example.org/",
        "items": [
            {
                "kind": "ended",
                "service": "messaging",
                "chainId": None,
                "chain": None,
                "status": "current",
                "reason": "responding",
                "was": "unavailable",
                "since": "2026-11-05T12:00:00.000Z",
                "at": "2026-11-05T13:00:00.000Z",
                "watchedSeconds": 3000,
                "cause": None,
                "lastSuccessAt": None,
                "lastMetrics": {},
            },
            {
                "kind": "began",
                "service": "indexer",
                "chainId": 1,
                "chain": "Ethereum",
                "status": "unknown",
                "reason": "incompatible-reference",
                "was": "unknown",
                "since": "2026-11-05T12:00:00.000Z",
                "at": "2026-11-05T12:05:00.000Z",
                "watchedSeconds": 300,
                "cause": {"code": "no_head", "detail": None},
                "lastSuccessAt": "2026-11-05T11:59:00.000Z",
                "lastMetrics": {"position": 101, "head": 103},
            },
        ],
    }


@pytest.mark.parametrize(
    ("message", "kind", "is_over"),
    [(write_sample(), "sample", False), (write_restored(NOON), "restored", True)],
    ids=["a sample", "a restored backup"],
)
def test_messages_that_are_about_no_check_are_data_as_well(message: Message, kind: str, is_over: bool) -> None:
    assert message.event == Event(1, kind, is_over, "", "", None)


def test_a_sample_says_that_nothing_is_to_be_done() -> None:
    assert "nothing is to be done" in write_sample().body
    assert not write_sample().is_over  # or it would not ring
