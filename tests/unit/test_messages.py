"""The words of messages, and the same as data."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from lookout.alerts.deployment import Deployment
from lookout.alerts.effects import EFFECTS, describe_effect
from lookout.alerts.event import AlertEvent, AlertFacts, EndpointFact
from lookout.alerts.lines import MOST_LISTED
from lookout.alerts.messages import Message, write_message, write_restored, write_sample
from lookout.base.durations import format_duration
from lookout.base.instants import parse_second
from lookout.config.settings import Settings
from lookout.config.tables import AdminTable
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


def write(
    news: list[News],
    deployment: Deployment | None = None,
    facts: Mapping[Check, AlertFacts] | None = None,
    *,
    nothing_answers: bool = False,
) -> Message:
    known = {each: facts[each.check] for each in news if each.check in facts} if facts else {}
    return write_message(news, deployment or NAMES, known, nothing_answers=nothing_answers)


def unjudged(kind: NewsKind, check: Check) -> News:
    return some_news(kind, check, "unknown", "incompatible-reference", was="unknown")


UNJUDGED = unjudged("began", INDEXER)
SEVEN = range(1, 8)
ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "alerts.md"
PAGES = ROOT / "src" / "lookout" / "public" / "page" / "texts"
NAMES = Deployment({1: "Ethereum", 137: "Polygon"}, SERVICES.names)
DOWN_FOR_A_MOMENT = some_news("ended", status="current", since_at=NOON + 5 * MINUTE, lasted_ms=SECOND)
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
        (
            [some_news("ended", status="current", was="unknown")],
            "indexer on Ethereum is current now (could not be judged before)",
        ),
        (
            [some_news("ended", was="unknown")],
            "indexer on Ethereum is unavailable now (could not be judged before)",
        ),
        ([some_news("ended", was="degraded")], "indexer on Ethereum is bad in another way"),
        ([some_news("ended", was="unknown", rule="s"), some_news("began")], "indexer on Ethereum is unavailable"),
        (
            [some_news("ended", was="unknown", rule="s"), DOWN_FOR_A_MOMENT, replace(DOWN_FOR_A_MOMENT, kind="began")],
            "indexer on Ethereum recovered",
        ),
        (
            [
                some_news("ended", was="unknown"),
                some_news("ended", was="unknown", status="current", since_at=NOON + HOUR),
            ],
            "indexer on Ethereum is current now (could not be judged before)",
        ),
        (
            [some_news("ended", status="degraded"), some_news("ended", was="unknown", since_at=NOON + HOUR)],
            "1 check is unavailable now (could not be judged before), 1 improved",
        ),
        (
            [RECOVERED, some_news("began"), some_news("left", Check("ppoi", 1))],
            "1 check is unavailable, 1 recovered, 1 is no longer watched",
        ),
    ],
)
def test_a_title_says_how_many_and_what(news: list[News], title: str) -> None:
    assert write(news, NAMES).title == f"Lookout: {title}"


@pytest.mark.clause("C12")
def test_a_message_lists_the_checks_in_the_reports_order_with_their_times_and_the_public_words() -> None:
    news = [
        some_news("began"),
        some_news("goes-on", Check("ppoi", 56)),
        some_news("began", Check("ppoi", 1)),
        RECOVERED,
    ]
    assert write([*news, some_news("left", Check("ppoi", 137))], NAMES).body == (
        "Unavailable (it could not be reached, or its answer could not be understood):\n"
        "- ppoi on Ethereum: for 5 min, since 2026-11-05T12:00:00Z\n"
        "- indexer on Ethereum: for 5 min, since 2026-11-05T12:00:00Z\n"
        "Next: run `lookout probe`: it says why.\n"
        "\n"
        "Still unavailable (it could not be reached, or its answer could not be understood):\n"
        "- ppoi on chain 56: for 5 min, since 2026-11-05T12:00:00Z\n"
        "Next: run `lookout probe`: it says why.\n"
        "\n"
        "Recovered:\n"
        "- messaging: after 1 h, of which 50 min were watched, from 2026-11-05T12:00:00Z to 2026-11-05T13:00:00Z\n"
        "  was unavailable; is current now\n"
        "\n"
        "No longer watched:\n"
        "- ppoi on Polygon: after 5 min, since 2026-11-05T12:00:00Z\n"
        "  was unavailable; whether it recovered is not known\n"
        "\n"
        "unavailable: It did not answer usefully several times in a row.\n"
        "What users may notice: new proofs of innocence may be delayed; new transactions may show up late.\n"
        "To silence this: lookout silence add --service ppoi --chain 1 --chain 56 --for 2h\n"
        "To silence this: lookout silence add --service indexer --chain 1 --for 2h\n"
        "To see more: `lookout probe` asks everything now; /sources on the monitor's admin port has the last answers.\n"
        "This is what one monitor sees from one place. It is not an official status."
    )


@pytest.mark.parametrize(
    ("count", "others"),
    [
        (MOST_LISTED - 3, []),
        (MOST_LISTED - 1, ["- and 2 more"]),
        (MOST_LISTED, ["- 3 checks"]),
        (1000, ["- and 980 more", "- 3 checks"]),
    ],
)
def test_a_message_lists_so_many_and_says_how_many_more(count: int, others: list[str]) -> None:
    over = [some_news("ended", Check("indexer", n + 1), "current", "synced") for n in range(3)]
    began = [some_news("began", Check("ppoi", n + 1)) for n in range(count)]
    words = write([*began, *over], NAMES)
    assert words.title == f"Lookout: {count} checks are unavailable, 3 recovered"
    assert len(re.findall("^- .*: ", words.body, re.MULTILINE)) == min(count + 3, MOST_LISTED)
    assert re.findall("^- [^:\n]*$", words.body, re.MULTILINE) == others


def test_a_group_that_is_not_listed_has_its_cause_and_what_to_do() -> None:
    began = [some_news("began", Check("ppoi", n + 1)) for n in range(MOST_LISTED)]
    facts = {each.check: AlertFacts("refused") for each in began} | {INDEXER: AlertFacts("tls: expired")}
    assert (
        "\n\nUnavailable (not reached: no secure connection (expired)):\n- 1 check\n"
        "Next: check its certificate, and `ca_file` if it is your own.\n\n"
    ) in write([*began, some_news("began")], NAMES, facts).body


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
    assert write(news, NAMES).is_over == is_over


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
        "for 3 min, since 2026-11-05T12:00:00Z\n"
        in write([some_news("began", lasted_ms=-HOUR, seen_ms=3 * MINUTE)], NAMES).body
    )


WALLET = replace(NAMES, name="Example wallet", operator="Example Ltd", link="https://status.example.org/")
WALLET = replace(WALLET, config="/etc/lookout/lookout.toml")
AT_THREE = parse_second("2026-11-17T03:02:11Z")
POLYGON = Check("indexer", 137)
LOST = (
    EndpointFact("own node of Polygon", "not reached: nothing listens at its address", "refused"),
    EndpointFact("rpc 2 of Polygon", "no usable answer: asked too often (429)", "rate_limited: 429"),
    EndpointFact("rpc 3 of Polygon", "no other confirms its answer (block 71234570)"),
)
LAST_GOOD = AlertFacts("http_status: 503", AT_THREE - 31 * SECOND, Metrics(position=71234567, head=71234570))


@pytest.mark.clause("M16", "S13", "C12")
@pytest.mark.parametrize(
    ("news", "facts"),
    [
        pytest.param([some_news("began", POLYGON, since_at=AT_THREE)], {POLYGON: LAST_GOOD}, id="one that began"),
        pytest.param(
            [some_news("goes-on", POLYGON, since_at=AT_THREE, lasted_ms=65 * MINUTE)],
            {POLYGON: replace(LAST_GOOD, cause="refused")},
            id="a reminder",
        ),
        pytest.param(
            [
                replace(
                    some_news("ended", POLYGON, "current", "synced", AT_THREE, lasted_ms=72 * MINUTE),
                    causes=("http_status: 503", "refused"),
                )
            ],
            {POLYGON: AlertFacts(None, AT_THREE)},
            id="one that recovered",
        ),
        pytest.param(
            [
                replace(unjudged("began", check), since_at=AT_THREE, at=AT_THREE + 5 * MINUTE)
                for check in (POLYGON, Check("hosted-indexer", 137))
            ],
            {
                POLYGON: replace(
                    LAST_GOOD,
                    cause="no_head",
                    endpoints=LOST,
                ),
                Check("hosted-indexer", 137): AlertFacts("no_head", AT_THREE - 33 * SECOND, endpoints=LOST),
            },
            id="lost heads",
        ),
    ],
)
def test_the_page_shows_messages_as_they_are_written(news: list[News], facts: dict[Check, AlertFacts]) -> None:
    message = write(news, WALLET, facts)
    assert f"```\n{message.title}\n\n{message.body}\n```\n" in PAGE.read_text(encoding="utf-8")


def test_what_needs_the_same_to_be_done_is_listed_together_and_a_cause_that_all_have_is_said_once() -> None:
    causes = {Check("ppoi", 1): "refused", Check("ppoi", 137): "http_status: 404", Check("indexer", 1): "refused"}
    causes |= {Check("indexer", 137): "http_status: 401"}
    news = [some_news("began", check) for check in causes]
    body = write(news, NAMES, {check: AlertFacts(cause) for check, cause in causes.items()}).body
    assert body.partition("\n\nunavailable: ")[0].replace("\n  last good answer: never", "") == (
        "Unavailable (not reached: nothing listens at its address):\n"
        "- ppoi on Ethereum: for 5 min, since 2026-11-05T12:00:00Z\n"
        "- indexer on Ethereum: for 5 min, since 2026-11-05T12:00:00Z\n"
        "Next: start the service, or ask those who run it; or check its host and port in the configuration.\n"
        "\n"
        "Unavailable:\n"
        "- ppoi on Polygon: no usable answer: HTTP 404, for 5 min, since 2026-11-05T12:00:00Z\n"
        "- indexer on Polygon: no usable answer: HTTP 401, for 5 min, since 2026-11-05T12:00:00Z\n"
        "Next: check its address, key and headers in the configuration."
    )


def failing(*causes: str) -> tuple[EndpointFact, ...]:
    return tuple(EndpointFact(f"rpc {n} of Ethereum", "fails", cause) for n, cause in enumerate(causes, 1))


SILENT = "no complete answer in time (waiting for: body)"
NEXT = (
    "Next: ask it from another machine: if that works, check this one's network, if not, the service.\n"
    "\n"
    "unavailable: It did not answer usefully several times in a row.\n"
    "What users may notice: new transactions may show up late.\n"
    "To silence this: lookout silence add --service indexer --chain 1 --for 2h\n"
    "To see more: `lookout probe` asks everything now; /sources on the monitor's admin port has the last answers.\n"
)


@pytest.mark.parametrize(
    ("news", "lines"),
    [
        pytest.param(
            some_news("began", lasted_ms=HOUR),
            f"Unavailable ({SILENT}):\n- indexer on Ethereum: for 1 h, since 2026-11-05T12:00:00Z\n"
            "  last good answer: 2026-11-05T11:00:00Z\nNext: ",
            id="what does not answer says when it last did",
        ),
        pytest.param(
            some_news("began", status="degraded", reason="behind"),
            f"Degraded ({SILENT}):\n- indexer on Ethereum: for 5 min, since 2026-11-05T12:00:00Z\nNext: ",
            id="what is behind answers, and does not",
        ),
        pytest.param(
            some_news("ended", was="degraded"),
            "Bad in another way:\n"
            "- indexer on Ethereum: after 5 min, from 2026-11-05T12:00:00Z to 2026-11-05T12:05:00Z\n"
            f"  was degraded; is unavailable now: {SILENT}\n{NEXT}",
            id="what is bad in another way says why",
        ),
        pytest.param(
            replace(some_news("ended", was="unknown", status="current", reason="synced"), causes=("no_head",)),
            "Current now (could not be judged before):\n"
            "- indexer on Ethereum: after 5 min, from 2026-11-05T12:00:00Z to 2026-11-05T12:05:00Z\n"
            "  could not be judged: the chain's RPC endpoints agree on no head, so there is nothing to compare with;"
            " is current now\n",
            id="what can be judged again and is well",
        ),
        pytest.param(
            some_news("ended", was="unknown"),
            "Unavailable now (could not be judged before):\n"
            "- indexer on Ethereum: after 5 min, from 2026-11-05T12:00:00Z to 2026-11-05T12:05:00Z\n"
            f"  could not be judged; is unavailable now: {SILENT}\n{NEXT}",
            id="what can be judged again and is down says that it is down",
        ),
    ],
)
def test_a_check_has_its_time_its_cause_and_its_last_good_answer(news: News, lines: str) -> None:
    body = write([news], NAMES, {INDEXER: AlertFacts("timeout: body", NOON - HOUR)}).body
    assert body.startswith(lines)


def test_what_all_of_them_were_and_are_now_is_said_once() -> None:
    ended = [replace(some_news("ended", check, "current", "synced"), causes=("dns",)) for check in (INDEXER, POLYGON)]
    when = "after 5 min, from 2026-11-05T12:00:00Z to 2026-11-05T12:05:00Z"
    assert write(ended, NAMES).body.startswith(
        f"Recovered:\n- indexer on Ethereum: {when}\n- indexer on Polygon: {when}\n"
        "Each was unavailable: not reached: its name could not be resolved; is current now\n\n"
    )


@pytest.mark.parametrize(
    ("news", "facts", "next_step"),
    [
        pytest.param(
            some_news("began", status="unknown", reason="no-observation"),
            {},
            "look at the monitor's log: it lacks something (docs/upkeep.md), or its probes hang",
            id="nothing was observed, and nobody knows why",
        ),
        pytest.param(
            UNJUDGED,
            {INDEXER: AlertFacts("no_head", endpoints=failing("own_fault: no file descriptor left", "refused"))},
            "repair this machine (docs/upkeep.md); nothing is known of the other side",
            id="there is no head, and this machine lacks something",
        ),
        pytest.param(
            UNJUDGED,
            {INDEXER: AlertFacts("no_head", endpoints=failing("dns", "future_block"))},
            "check this machine's clock, then the node's",
            id="there is no head, and this machine's clock may be slow",
        ),
        pytest.param(
            UNJUDGED,
            {INDEXER: AlertFacts("no_head", endpoints=(*failing("http_status: 401", "http_status: 403"), LOST[2]))},
            "for each endpoint that fails: check its address, key and headers in the configuration",
            id="there is no head, and all endpoints fail alike",
        ),
        pytest.param(
            UNJUDGED,
            {INDEXER: AlertFacts("no_head", endpoints=(LOST[2], LOST[2]))},
            "repair the chain's endpoints, or replace them in the configuration (`rpc`); the services themselves may"
            " work",
            id="there is no head, and all endpoints answer",
        ),
        pytest.param(
            some_news("began", status="degraded", reason="behind"),
            {INDEXER: AlertFacts("behind: 900")},
            "run `lookout probe` twice: if its position does not grow, restart it, or ask those who run it",
            id="it is behind",
        ),
        pytest.param(
            some_news("began"),
            {INDEXER: AlertFacts("dns")},
            "check its address in the configuration, and this machine's name servers",
            id="it is not reached",
        ),
        pytest.param(
            some_news("began"),
            {INDEXER: AlertFacts("a_plug_ins: own")},
            "run `lookout probe`: it says why",
            id="a cause of another version",
        ),
    ],
)
def test_a_beginning_says_what_to_do_next(news: News, facts: dict[Check, AlertFacts], next_step: str) -> None:
    assert f"\nNext: {next_step}.\n" in write([news], NAMES, facts).body


def test_of_two_chains_with_one_name_each_has_its_endpoints() -> None:
    twins = replace(NAMES, chains={1: "Twin", 137: "Twin"})
    endpoints = {INDEXER: EndpointFact("rpc 1 of Twin", "one"), POLYGON: EndpointFact("rpc 1 of Twin", "other")}
    facts = {check: AlertFacts("no_head", endpoints=(endpoint,)) for check, endpoint in endpoints.items()}
    body = write([UNJUDGED, unjudged("began", POLYGON)], twins, facts).body
    assert "RPC endpoints:\n  rpc 1 of Twin: one\n  rpc 1 of Twin: other\nNext: " in body


def test_a_reading_that_expired_is_not_said_to_have_never_been() -> None:
    news = some_news("began", status="unknown", reason="no-observation", was="unknown")
    expired = write([news], NAMES, {INDEXER: AlertFacts(None, NOON, has_expired=True)}).body
    assert expired.startswith("Cannot be judged (the monitor has observed nothing since its last reading expired):\n")
    never = write([news], NAMES, {INDEXER: AlertFacts()}).body
    assert never.startswith("Cannot be judged (nothing was seen yet, or it holds nothing for this chain):\n")


def test_when_nothing_answers_the_first_step_is_to_look_at_this_machines_network() -> None:
    first = "Next: first look at this machine's own network: nothing that is watched answers usefully.\n\nUnavailable"
    assert write([some_news("began")], nothing_answers=True).body.startswith(first)
    assert "network" not in write([some_news("left")], nothing_answers=True).body


def test_each_news_has_its_own_cause() -> None:
    behind, down = some_news("began", status="degraded", reason="behind", since_at=NOON - 1), some_news("began")
    event = write_message(
        [behind, down], NAMES, {behind: AlertFacts("behind: 9000"), down: AlertFacts("refused")}
    ).event
    assert event is not None
    assert {item.reason: item.cause and item.cause.code for item in event.items} == {
        "behind": "behind",
        "unreachable": "refused",
    }


@pytest.mark.parametrize(
    ("address", "can_be_asked"),
    [("127.0.0.1:9464", True), ("unix:admin:0", True), ("127.0.0.1:0", False), ("", False)],
)
def test_there_are_commands_only_if_the_admin_port_can_be_asked(address: str, can_be_asked: bool) -> None:
    deployment = Settings(admin=AdminTable(address)).alert_policy().deployment
    assert ("To silence this: " in write([some_news("began")], deployment).body) == can_be_asked


def test_the_commands_name_the_configuration_of_the_monitor() -> None:
    body = write([some_news("began", MESSAGING)], replace(NAMES, config="/etc/my lookout.toml")).body
    assert "lookout silence add -c '/etc/my lookout.toml' --service messaging --for 2h\n" in body


@pytest.mark.clause("C12")
def test_what_users_may_notice_is_what_the_page_says() -> None:
    texts = msgspec.json.decode((PAGES / "en.json").read_bytes())["texts"]
    for service, effects in EFFECTS.items():
        for situation, words in effects.items():
            assert texts[f"means.{service}.{situation}"].startswith(words), (service, situation)
    assert {(service, each) for service in EFFECTS for each in EFFECTS[service]} == {
        tuple(key.split(".")[1:]) for key in texts if key.startswith("means.") and key.count(".") == 2
    } - {("unreached", "never")}


@pytest.mark.clause("C12")
@pytest.mark.parametrize(
    ("service", "status", "reason", "words"),
    [
        ("indexer", "unavailable", "unreachable", "new transactions may show up late"),
        ("indexer", "catching-up", "behind", "new transactions may show up late"),
        ("indexer", "degraded", "behind", "new transactions may show up very late"),
        ("hosted-indexer", "degraded", "incomplete", "past transactions may be missing or wrong"),
        ("hosted-indexer", "degraded", "inconsistent", "past transactions may be missing or wrong"),
        ("ppoi", "degraded", "behind", "new proofs of innocence may be delayed for long"),
        (
            "broadcasters",
            "degraded",
            "partial-coverage",
            "sending may take longer: some broadcasters are not heard, others may work",
        ),
        ("messaging", "unknown", "no-observation", "perhaps nothing of what cannot be judged"),
    ],
)
def test_what_users_may_notice_is_of_the_status_and_the_reason(
    service: str, status: Status, reason: Reason, words: str
) -> None:
    assert describe_effect(service, status, reason) == words


def test_of_a_service_of_the_operators_own_it_is_not_known_what_users_notice() -> None:
    assert describe_effect("faucet", "unavailable", "unreachable") is None
    assert describe_effect("faucet", "unknown", "no-observation") is None
    assert "users" not in write([some_news("began", Check("faucet", None))], NAMES).body


@pytest.mark.parametrize(
    ("checks", "commands"),
    [
        pytest.param([MESSAGING], ["--service messaging"], id="a service without a chain"),
        pytest.param([INDEXER], ["--service indexer --chain 1"], id="one check"),
        pytest.param(
            [INDEXER, HOSTED_INDEXER, POLYGON, Check("hosted-indexer", 137)],
            ["--service indexer --service hosted-indexer --chain 1 --chain 137"],
            id="services that are bad on the same chains",
        ),
        pytest.param(
            [INDEXER, POLYGON, HOSTED_INDEXER],
            ["--service indexer --chain 1 --chain 137", "--service hosted-indexer --chain 1"],
            id="a command for all of it would silence more",
        ),
        pytest.param(
            [Check("indexer", chain_id) for chain_id in range(1, 52)],
            [f"--service indexer {' '.join(f'--chain {n}' for n in range(1, 51))}", "--service indexer --chain 51"],
            id="more chains than a silence can name",
        ),
        pytest.param(
            [Check(f"own{n}", None) for n in range(51)],
            [" ".join(f"--service own{n}" for n in range(50)), "--service own50"],
            id="more services than a silence can name",
        ),
    ],
)
def test_the_commands_silence_what_the_message_is_about_and_nothing_else(
    checks: list[Check], commands: list[str]
) -> None:
    news = [some_news("began", check) for check in checks]
    body = write(news, NAMES).body
    assert re.findall("To silence this: lookout silence add (.*) --for 2h", body) == commands
    assert "silence" not in write(news, replace(NAMES, has_admin_port=False)).body
    assert "/sources" not in write(news, replace(NAMES, has_admin_port=False)).body


@pytest.mark.parametrize(
    ("name", "title"),
    [
        pytest.param("", "Lookout: a test", id="no name"),
        pytest.param("Example", "Lookout (Example): a test", id="a name"),
        pytest.param("Example lookout", "Example lookout: a test", id="a name with ours in it"),
    ],
)
def test_a_subject_has_each_name_once(name: str, title: str) -> None:
    assert write_sample(replace(NAMES, name=name)).title == title


NO_HEAD = AlertFacts("no_head", NOON - MINUTE, Metrics(position=101, head=103))


def test_a_message_is_data_as_well() -> None:
    deployment = replace(NAMES, name="Example", link="https://status.example.org/")
    event = write([UNJUDGED, RECOVERED], deployment, {INDEXER: NO_HEAD}).event
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
    assert message.event == AlertEvent(1, kind, is_over, "", "", None)


def test_a_sample_says_that_nothing_is_to_be_done() -> None:
    assert "nothing is to be done" in write_sample().body
    assert not write_sample().is_over  # or it would not ring
