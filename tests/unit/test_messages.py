"""The texts of messages, beside golden files, and the same as data. ``python -m tests.unit.test_messages`` writes the
files anew."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from lookout.base.instants import format_duration, format_second, parse_second
from lookout.config.settings import Settings, around_of
from lookout.config.tables import AdminTable
from lookout.core.model import Check, Metrics, Reason, Status
from lookout.core.services import SERVICES
from lookout.features.alerts.messages import (
    MOST_LISTED,
    AlertEvent,
    AlertFacts,
    Deployment,
    Message,
    describe_effect,
    write_clock,
    write_message,
    write_sample,
)
from lookout.features.alerts.rules import STORE, News, NewsKind
from lookout.features.alerts.settings import AlertsTable, build_policy
from lookout.features.outcome import StandIn
from tests.builders import DAY, HOSTED_INDEXER, HOUR, INDEXER, MESSAGING, MINUTE, NOON, SECOND

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "data" / "messages"
POLYGON, HOSTED_POLYGON = Check("indexer", 137), Check("hosted-indexer", 137)
NAMES = Deployment({1: "Ethereum", 137: "Polygon"}, SERVICES.names)
WALLET = replace(NAMES, name="Example wallet", operator="Example Ltd", link="https://status.example.org/")
WALLET = replace(WALLET, config="/etc/lookout/lookout.toml")
AT_THREE = parse_second("2026-11-17T03:02:11Z")


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


def unjudged(kind: NewsKind, check: Check, since_at: int = NOON) -> News:
    return some_news(kind, check, "unknown", "incompatible-reference", since_at, was="unknown")


NOTHING_KNOWN: Mapping[Check, AlertFacts] = {}


FROM_SINGAPORE = StandIn("view", "hosted-indexer on Polygon from Singapore", 137)
FROM_HERE = StandIn("view", "indexer on Ethereum from Frankfurt", 1)


VIEWS = (FROM_SINGAPORE, StandIn("view", "indexer on Polygon from Lima", 137))
WITNESSES = tuple(StandIn("witness", name, None) for name in ("Lima", "Singapore"))
ENDPOINTS = tuple(StandIn("endpoint", name, 137) for name in ("own node", "rpc 2 of Polygon"))


def not_moving(check: Check) -> News:
    return some_news("began", check, "degraded", "behind")


def seen(kind: NewsKind, view: StandIn) -> News:
    now: tuple[Status, Reason] = ("degraded", "not-everywhere") if kind == "began" else ("current", "responding")
    return some_news(kind, view, *now, was="degraded")


class Case(NamedTuple):
    news: list[News]
    facts: Mapping[Check, AlertFacts] = NOTHING_KNOWN
    deployment: Deployment = NAMES
    nothing_answers: bool = False

    def write(self) -> Message:
        known = {news: self.facts[news.check] for news in self.news if news.check in self.facts}
        return write_message(self.news, self.deployment, known, nothing_answers=self.nothing_answers)


LOST = (
    ("own node of Polygon", "not reached: nothing listens at its address"),
    ("rpc 2 of Polygon", "no usable answer: asked too often (429)"),
    ("rpc 3 of Polygon", "block 71234570 (not_confirmed)"),
)
LAST_GOOD = AlertFacts("http_status: 503", AT_THREE - 31 * SECOND, Metrics(position=71234567, head=71234570))
RECOVERED = some_news("ended", MESSAGING, "current", "responding", lasted_ms=HOUR, seen_ms=50 * MINUTE)
SYNCED = some_news("ended", POLYGON, "current", "synced", AT_THREE, lasted_ms=72 * MINUTE)
CASES = {
    "began": Case([some_news("began", POLYGON, since_at=AT_THREE)], {POLYGON: LAST_GOOD}, WALLET),
    "goes-on": Case(
        [some_news("goes-on", POLYGON, since_at=AT_THREE, lasted_ms=65 * MINUTE)],
        {POLYGON: replace(LAST_GOOD, cause="refused")},
        WALLET,
    ),
    "recovered": Case([SYNCED], {POLYGON: AlertFacts(None, AT_THREE)}, WALLET),
    "no-head": Case(
        [unjudged("began", check, AT_THREE) for check in (POLYGON, HOSTED_POLYGON)],
        {
            POLYGON: replace(LAST_GOOD, cause="no_head", endpoints=LOST),
            HOSTED_POLYGON: AlertFacts("no_head", AT_THREE - 33 * SECOND, endpoints=LOST),
        },
        WALLET,
    ),
    "every-kind": Case(
        [
            some_news("began"),
            some_news("began", Check("ppoi", 1), "degraded", "behind"),
            some_news("goes-on", Check("ppoi", 56)),
            unjudged("goes-on", HOSTED_INDEXER),
            some_news("ended", POLYGON, was="degraded"),
            some_news("ended", HOSTED_POLYGON, "degraded", "incomplete"),
            some_news("ended", Check("ppoi", 137), was="unknown"),
            RECOVERED,
            some_news("left", Check("broadcasters", 1)),
        ],
        {
            INDEXER: AlertFacts("timeout: body", NOON - HOUR),
            Check("ppoi", 1): AlertFacts("behind: 900 indexes below its own head (100 of 1000)"),
            HOSTED_INDEXER: AlertFacts(None, NOON),
        },
    ),
    "endpoints": Case(
        [
            some_news("began", StandIn("endpoint", "rpc 2 of Polygon", 137), lasted_ms=HOUR),
            some_news("began", StandIn("endpoint", "own node of Polygon", 137), "degraded", "incompatible-reference"),
        ],
        {
            StandIn("endpoint", "rpc 2 of Polygon", 137): AlertFacts("refused"),
            StandIn("endpoint", "own node of Polygon", 137): AlertFacts("apart: block 90, 9000 below the head"),
        },
    ),
    "places": Case(
        [
            some_news("began", FROM_SINGAPORE, "degraded", "not-everywhere", lasted_ms=HOUR),
            some_news("began", FROM_HERE, "degraded", "not-everywhere", lasted_ms=HOUR),
            some_news("began", StandIn("witness", "Lima", None), lasted_ms=HOUR),
            some_news("began", POLYGON, "unknown", "not-everywhere", was="unknown"),
            some_news(
                "ended", StandIn("view", "ppoi on Ethereum from Lima", 1), "current", "not-everywhere", was="degraded"
            ),
        ],
        {
            FROM_SINGAPORE: AlertFacts(
                "dissent: Singapore sees it not answering; 2 of 3 places see it working, and the row stays so"
            ),
            FROM_HERE: AlertFacts(
                "own_dissent: this monitor alone sees it behind; 2 of 3 places see it working, and the row stays so"
            ),
            StandIn("witness", "Lima", None): AlertFacts("refused"),
        },
        WALLET,
    ),
    "dissent": Case(
        [some_news("began", FROM_SINGAPORE, "degraded", "not-everywhere", AT_THREE, HOUR)],
        {
            FROM_SINGAPORE: AlertFacts(
                "dissent: Singapore sees it not answering; 2 of 3 places see it working, and the row stays so"
            )
        },
    ),
    "not-moving": Case(
        [
            some_news("began", INDEXER, "catching-up", "behind", lasted_ms=0),
            some_news("began", StandIn("chain", "Polygon", 137), "degraded", "behind", lasted_ms=0),
            some_news("ended", StandIn("chain", "Base", 8453), "current", "responding", was="degraded"),
            some_news("ended", POLYGON, "current", "synced", was="catching-up", rule="still"),
            some_news("ended", POLYGON, "current", "synced", since_at=NOON + MINUTE, was="degraded"),
        ],
        {
            INDEXER: AlertFacts("not_moving: 02:55 UTC; 120 blocks below the head (880 of 1000)"),
            StandIn("chain", "Polygon", 137): AlertFacts(
                "no_new_block: 02:54 UTC", endpoints=(("rpc 1 of Polygon", "block 1000"), ("own node", "refused"))
            ),
        },
    ),
    "nothing-left": Case(
        [some_news("began", POLYGON, "unknown", "no-observation", was="unknown")],
        {POLYGON: replace(LAST_GOOD, cause="nothing_left")},
    ),
    "nothing-answers": Case(
        [some_news("began", check) for check in (INDEXER, POLYGON, MESSAGING)],
        {check: AlertFacts("dns") for check in (INDEXER, POLYGON, MESSAGING)},
        nothing_answers=True,
    ),
    "many": Case(
        [some_news("began", Check("ppoi", n + 1)) for n in range(MOST_LISTED - 1)]
        + [some_news("ended", Check("indexer", n + 1), "current", "synced") for n in range(3)],
        {Check("ppoi", n + 1): AlertFacts("refused") for n in range(MOST_LISTED)},
    ),
    "nothing-observed": Case([some_news("began", status="unknown", reason="no-observation", was="unknown")]),
    "own-service-without-admin-port": Case(
        [some_news("began", Check("faucet", None))], deployment=replace(NAMES, has_admin_port=False)
    ),
}
OTHERS = {
    "sample": write_sample(WALLET),
    "clock-wrong": write_clock(AT_THREE, -90 * SECOND, WALLET),
    "clock-right": write_clock(AT_THREE, 0, WALLET),
}


def texts() -> dict[str, str]:
    messages = {**{name: case.write() for name, case in CASES.items()}, **OTHERS}
    return {name: f"{message.title}\n\n{message.body}\n" for name, message in messages.items()}


@pytest.mark.clause("M16", "S13", "C12")
@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_a_message_is_as_its_golden_file_has_it(name: str) -> None:
    assert texts()[name] == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("news", "title"),
    [
        ([some_news("began"), some_news("began", rule="s")], "indexer on Ethereum is unavailable"),
        ([some_news("began"), some_news("ended", status="current")], "indexer on Ethereum recovered"),
        ([some_news("began", rule="s"), some_news("left")], "1 check is unavailable, 1 is no longer watched"),
        ([unjudged("began", INDEXER), unjudged("began", HOSTED_INDEXER)], "2 checks on Ethereum cannot be judged"),
        ([unjudged("began", INDEXER), unjudged("began", POLYGON)], "2 checks cannot be judged"),
        ([some_news("began", of) for of in WITNESSES], "2 witnesses are unavailable"),
        ([some_news("began", of) for of in (*WITNESSES, INDEXER)], "3 checks are unavailable"),
        ([some_news("began", of) for of in ENDPOINTS], "2 endpoints on Polygon are unavailable"),
        ([not_moving(StandIn("chain", "Polygon", 137))], "chain Polygon is degraded"),
        ([not_moving(StandIn("chain", f"Chain {n}", n)) for n in (5, 6)], "2 chains are degraded"),
        ([some_news("began", STORE)], "the store is unavailable"),
        ([some_news("began", STORE), some_news("began", INDEXER)], "2 checks are unavailable"),
        ([some_news("began", STORE), not_moving(INDEXER)], "the store is unavailable, 1 is degraded"),
        ([seen("began", FROM_SINGAPORE)], "hosted-indexer on Polygon from Singapore is not as published"),
        ([seen("began", view) for view in VIEWS], "2 views on Polygon are not as published"),
        ([seen("ended", view) for view in (FROM_SINGAPORE, FROM_HERE)], "2 views are as published again"),
    ],
)
def test_a_title_says_how_many_and_what(news: list[News], title: str) -> None:
    assert Case(news).write().title == f"Lookout: {title}"


@pytest.mark.parametrize(
    ("news", "is_over"),
    [
        ([some_news("began")], False),
        ([some_news("goes-on")], False),
        ([RECOVERED, some_news("left")], True),
        ([RECOVERED, some_news("began")], False),
        ([some_news("began"), some_news("ended", status="current")], True),
    ],
)
def test_a_message_is_over_if_nothing_in_it_is_bad_any_more(news: list[News], is_over: bool) -> None:
    assert Case(news).write().is_over == is_over


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


@pytest.mark.parametrize(
    ("address", "can_be_asked"),
    [("127.0.0.1:9464", True), ("unix:admin:0", True), ("127.0.0.1:0", False), ("", False)],
)
def test_there_are_commands_only_if_the_admin_port_can_be_asked(address: str, can_be_asked: bool) -> None:
    deployment = build_policy(AlertsTable(), around_of(Settings(admin=AdminTable(address)))).deployment
    assert ("To silence this: " in Case([some_news("began")], {}, deployment).write().body) == can_be_asked


@pytest.mark.clause("C12", "C16")
@pytest.mark.parametrize(
    ("service", "status", "reason", "words"),
    [
        ("indexer", "unavailable", "unreachable", "balances may be late"),
        ("indexer", "degraded", "behind", "balances may be late"),
        ("indexer", "degraded", "incomplete", "syncing may stop, and proofs may be late"),
        ("broadcasters", "degraded", "partial-coverage", "sending may be slow"),
        ("messaging", "unavailable", "unreachable", "sending may fail"),
        ("ppoi", "degraded", "inconsistent", "proofs may be refused"),
        ("ppoi", "catching-up", "behind", "proofs may be late"),
        ("hosted-indexer", "degraded", "inconsistent", "past transactions may be wrong"),
        ("messaging", "unknown", "no-observation", None),
        ("faucet", "unavailable", "unreachable", None),
        ("relayer", "unavailable", "unreachable", "sending may fail"),
        ("relayer", "unknown", "no-observation", None),
    ],
)
def test_what_users_may_notice_is_of_the_status_and_the_reason(
    service: str, status: Status, reason: Reason, words: str | None
) -> None:
    assert describe_effect(service, status, reason, {"relayer": "sending may fail."}) == words


@pytest.mark.parametrize("service", ["chain", "witness", "view", "the"])
def test_an_own_service_may_be_called_as_what_no_row_shows_is(service: str) -> None:
    """Its own row has commands for a silence; what a place sees of it is no chain, and ends as a view does."""
    row, view = Check(service, 1), StandIn("view", f"{service} on Ethereum from Lima", 1)
    began = Case([some_news("began", row)]).write()
    assert began.title == f"Lookout: {service} on Ethereum is unavailable"
    assert f"lookout silence add --service {service} --chain 1 " in began.body
    over = Case([seen("ended", view)]).write()
    assert over.title == f"Lookout: {service} on Ethereum from Lima is as published again"
    assert "was not as published for 5 min" in over.body
    assert over.event is not None
    assert over.event.items[0].service == f"{service} on Ethereum from Lima"


def test_a_message_is_data_as_well() -> None:
    event = CASES["began"].write().event
    assert event is not None
    shown = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").split("```json\n")[1].partition("```")[0]
    assert msgspec.json.decode(msgspec.json.encode(event)) == msgspec.json.decode(shown)


@pytest.mark.parametrize(("name", "is_over"), [("sample", False), ("clock-right", True)])
def test_messages_that_are_about_no_check_are_data_as_well(name: str, is_over: bool) -> None:
    kind = name.partition("-")[0]
    assert OTHERS[name].event == AlertEvent(1, kind, is_over, WALLET.name, WALLET.operator, WALLET.link)
    assert OTHERS[name].is_over == is_over


def test_a_long_message_is_cut_at_a_lines_end_and_says_so() -> None:
    """An alert has as many words of strangers as there are checks."""
    news = [some_news("began", Check("indexer", n + 1), "degraded", "incomplete") for n in range(MOST_LISTED)]
    known = {item: AlertFacts("incomplete: " + "\N{SNOWMAN}" * 500) for item in news}
    body = write_message(news, WALLET, known).body
    whole, _, rest = body.partition("The rest is left out, since this message would be longer than 4 KB.\n")
    assert 3_000 < len(body.encode()) <= 4_096
    assert whole.endswith(f"since {format_second(NOON)}\n")
    assert rest.splitlines()[1:] == write_sample(WALLET).body.splitlines()[-3:]


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, text in texts().items():
        (GOLDEN / f"{name}.txt").write_text(text, encoding="utf-8")
