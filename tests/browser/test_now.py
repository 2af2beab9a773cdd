"""What the status page says of now, in a real browser: the head line, the cards, and what keeps it from knowing."""

import re
import time
from collections.abc import Callable
from datetime import datetime
from email.utils import formatdate
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Route, expect

from lookout.base.instants import format_instant
from tests.browser.pages import (
    BERLIN,
    CHROMIUM,
    GREEN,
    LAUNCH,
    MISSING,
    Json,
    Open,
    Site,
    a_check,
    a_history,
    a_live_report,
    all_current,
    card,
    now_ms,
    of_seven_statuses,
    store,
)
from tests.builders import HOUR, SECOND
from tests.integration.served import HISTORY, LIVE, a_server

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

SEVEN = {
    "no problem seen": "shape-current",
    "behind": "shape-catching-up",
    "limited: partial reading": "shape-degraded",
    "no usable answer": "shape-unavailable",
    "not known": "shape-unknown",
    "not watched": "shape-unmonitored",
    "too old to say": "shape-stale",
}


@pytest.mark.clause("C1", "C3", "C4", "C5")
def test_each_status_has_its_shape_its_word_and_its_reason(site: Site, open_page: Open) -> None:
    checks = of_seven_statuses()
    site.has(a_live_report([*checks, a_check("splendid", chain_id=999)]), a_history(checks))
    page = open_page()
    expect(page.locator(".card")).to_have_count(8)
    shown = page.locator(".card").evaluate_all(
        "cards => cards.map(card => [card.querySelector('.word').textContent,"
        " card.querySelector('use').getAttribute('href').slice(1)])"
    )
    assert dict(map(tuple, shown)) == SEVEN
    expect(card(page, "indexer", 999).locator(".word")).to_have_text("not known")
    expect(card(page, "broadcasters", 1)).to_contain_text("3 of 5 heard")
    expect(card(page, "indexer", 1)).to_contain_text("5 blocks behind, at 100")
    expect(card(page, "indexer", 1)).to_contain_text(re.compile(r"checked \d+ s ago"))
    expect(card(page, "messaging", None)).to_contain_text("4 peers")
    expect(card(page, "ppoi", 137)).to_contain_text(re.compile(r"Last reading, .*\d\d:\d\d: no problem seen\."))
    expect(page.locator(".group", has=card(page, "indexer", 999)).locator("h3")).to_have_text("Chain 999")
    expect(page.locator("h1")).to_have_text(
        "Problems seen: Indexer on BNB Smart Chain, Broadcasters on Ethereum, Indexer on Ethereum"
    )
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C11")
def test_the_head_line_is_healthy_only_if_every_mainnet_check_is_current(site: Site, open_page: Open) -> None:
    checks = all_current()
    trouble_on_the_test_network = [c | {"status": "unavailable"} if c["chainId"] == 11155111 else c for c in checks]
    site.has(a_live_report(trouble_on_the_test_network), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("No problem seen")
    expect(page.locator(".counts")).to_have_text(
        "17 checks: Ethereum, Arbitrum One, Polygon, BNB Smart Chain · test networks are not counted"
    )
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")
    expect(page.locator(".age")).to_have_text(re.compile(r"Report of \d+ s ago"))

    site.has(a_live_report([*checks[:-2], a_check("unknown", "hosted-indexer", 42161)]), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("Not everything is known: Hosted indexer on Arbitrum One")
    expect(page.locator(".counts")).to_contain_text("17 checks · not known: 1, no problem seen: 16")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C3", "C4", "C9")
def test_with_a_dead_server_everything_turns_grey_on_the_pages_own_clock(tmp_path: Path, open_page: Open) -> None:
    checks = all_current()
    store(tmp_path, a_live_report(checks), a_history(checks))
    with a_server(tmp_path, more=LAUNCH) as server:
        page = open_page(server.base, clock_ahead_ms=0)
        expect(page.locator(f".card{GREEN}")).to_have_count(21)
        expect(page.locator(".row .uptimes b").first).to_have_text("99.31 %")
    page.clock.run_for(40 * SECOND)
    expect(page.locator(".troubles")).to_contain_text("The server does not answer.")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")
    expect(page.locator(f".card{GREEN}")).to_have_count(21)  # still good until they expire
    page.clock.run_for(120 * SECOND)
    expect(page.locator('.card[data-status="stale"]')).to_have_count(21)
    assert page.locator(GREEN).count() == 0
    expect(page.locator("h1")).to_contain_text("Nothing is known now: these figures are old, from ")
    page.clock.run_for(180 * SECOND)
    expect(page.locator(".past")).to_have_class("past old")
    expect(page.locator(".past .written")).to_contain_text("What is shown was written")
    until = re.compile(r"^Uptime, last 24 h until \d\d:\d\d99\.31 %")
    expect(page.locator(".rows .uptimes > span").first).to_have_text(until)
    expect(page.locator(".advice")).to_have_text("This says nothing about your wallet; look again later.")


@pytest.mark.clause("C4", "M14")
def test_a_monitor_that_has_stopped_is_noticed_although_its_rows_hold(site: Site, open_page: Open) -> None:
    seen_at = now_ms() - 110 * SECOND
    old = {"observedAt": format_instant(seen_at), "expiresAt": format_instant(seen_at + 290 * SECOND)}
    site.has(a_live_report([c | old for c in all_current()], generated_at=seen_at), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")  # as it may be behind a cache
    page.clock.fast_forward(50 * SECOND)
    expect(page.locator(".troubles")).to_contain_text("The monitor seems to have stopped")
    expect(page.locator("h1")).to_have_text("No problem when last seen")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C6")
@pytest.mark.parametrize(
    "live",
    [
        b'{"schemaVersion": 1, "checks": [',
        b"<!doctype html><title>Sign in</title>",
        b'{"schemaVersion": 2, "generatedAt": "2026-11-05T12:00:00.000Z", "checks": []}',
        b"[]",
    ],
    ids=["cut off", "a web page", "another version", "a list"],
)
def test_a_report_that_cannot_be_read_is_said_to_be_so(site: Site, open_page: Open, live: bytes) -> None:
    site.has(live, a_history(all_current()))
    page = open_page()
    expect(page.locator(".troubles")).to_contain_text("The server's report cannot be read.")
    expect(page.locator("h1")).to_have_text("Nothing is known right now")
    assert page.locator(f".card{GREEN}, .head{GREEN}").count() == 0


@pytest.mark.clause("C7")
def test_a_row_that_cannot_be_read_spoils_no_other(site: Site, open_page: Open) -> None:
    site.has(a_live_report([*all_current(), a_check("current", chain_id=-5), 7]), a_history(all_current()))
    page = open_page()
    expect(page.locator(f".card{GREEN}")).to_have_count(21)
    expect(page.locator(".troubles")).to_have_text("2 rows of the report cannot be read.")


@pytest.mark.clause("C2", "C3")
@pytest.mark.parametrize("ahead_ms", [HOUR, -HOUR], ids=["an hour ahead", "an hour behind"])
def test_by_a_clock_that_is_wrong_nothing_is_healthy(site: Site, open_page: Open, ahead_ms: int) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(clock_ahead_ms=ahead_ms)
    way = "ahead of" if ahead_ms > 0 else "behind"
    expect(page.locator(".troubles")).to_contain_text(f"The clock of this device seems to be {way} the server's.")
    expect(page.locator(".age")).to_contain_text(f"the clock here is 1 h {way} the server's")
    expect(page.locator(".card")).to_have_count(21)
    expect(page.locator(".card").first).to_contain_text("The clock of this device is wrong")
    assert page.locator(f".card{GREEN}, .head{GREEN}").count() == 0
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


def test_an_age_is_never_rounded_up(site: Site, open_page: Open) -> None:
    seen_at = now_ms() - 150 * SECOND
    old = {"observedAt": format_instant(seen_at), "expiresAt": format_instant(seen_at + 290 * SECOND)}
    site.has(a_live_report([a_check("current") | old]), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(card(page, "indexer", 1).locator(".seen")).to_have_text("checked 2 min ago")


class Dated:
    """Answers with a `Date` that is so much off, or with none: a route of `open_page`."""

    def __init__(self, off_ms: int | None) -> None:
        self.off_ms = off_ms

    def __call__(self, route: Route) -> None:
        answer = route.fetch()
        headers = {name: text for name, text in answer.headers.items() if name != "date"}
        if self.off_ms is not None:
            headers["date"] = formatdate(time.time() + self.off_ms / 1000, usegmt=True)
        route.fulfill(response=answer, headers=headers)


@pytest.mark.clause("C2", "C3", "C4")
@pytest.mark.parametrize("dated", [True, False], ids=["known to be slow", "not known to be"])
def test_a_slow_clock_makes_no_old_report_new(site: Site, open_page: Open, *, dated: bool) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    answers = Dated(0 if dated else None)
    page = open_page(clock_ahead_ms=-HOUR, routes={LIVE: answers, HISTORY: answers})
    expect(page.locator(".card")).to_have_count(21)
    assert page.locator(f".card{GREEN}, .head{GREEN}").count() == 0
    later = HOUR - 10 * SECOND
    answers.off_ms = later if dated else None
    page.clock.fast_forward(later)  # now the clock shows when the report was made
    page.clock.run_for(2 * SECOND)
    page.wait_for_timeout(500)
    assert page.locator(f".card{GREEN}, .head{GREEN}").count() == 0
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


def test_a_copy_out_of_a_cache_does_not_make_the_clock_look_wrong(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    copy = Dated(-60 * SECOND)
    page = open_page(routes={LIVE: copy, HISTORY: copy})
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")
    expect(page.locator(".troubles")).to_be_empty()


def test_a_clock_that_no_cache_explains_is_wrong(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    copy = Dated(-95 * SECOND)
    page = open_page(routes={LIVE: copy, HISTORY: copy})
    expect(page.locator(".troubles")).to_contain_text("The clock of this device seems to be ahead of the server's.")


@pytest.mark.clause("M10")
def test_chains_are_called_as_the_configuration_calls_them(tmp_path: Path, open_page: Open) -> None:
    checks = [a_check("current", chain_id=chain_id) for chain_id in (1, 8453, 999)]
    store(tmp_path, a_live_report(checks), a_history(checks, {-9: "u"}))
    chains = "".join(
        f'[[chains]]\nid = {chain_id}\nname = "{name}"\nblock_time_s = 2\nrpc = ["http://127.0.0.1:1"]\n'
        for chain_id, name in ((1, "Ethereum's <b>main</b> net & more"), (8453, "Base"))
    )
    with a_server(tmp_path, more=chains) as server:
        page = open_page(server.base)
        names = ["Ethereum's <b>main</b> net & more", "Base", "Chain 999"]
        expect(page.locator(".group h3")).to_have_text(names)
        expect(page.locator(".incidents li .where").first).to_contain_text("Indexer on ")
        expect(page.locator(".incidents")).to_contain_text("Indexer on Base")
        page.get_by_role("radio", name="service").check()
        expect(page.locator(".card .title")).to_have_text(names)
        assert page.url.endswith("#by=service")
        page.locator("#filter").fill("base")
        expect(page.locator(".card")).to_have_count(1)
        without = open_page(server.base, java_script_enabled=False)
        expect(without.locator("tbody td:nth-child(2)").nth(1)).to_have_text("Base")


@pytest.mark.clause("C11")
def test_a_single_check_is_called_that(site: Site, open_page: Open) -> None:
    checks = [a_check("unmonitored", check["service"], check["chainId"]) for check in all_current()[1:]]
    site.has(a_live_report([all_current()[0], *checks]), a_history(all_current()))
    page = open_page()
    expect(page.locator("h1")).to_have_text("No problem seen; 1 of 17 is watched")
    expect(page.locator(".counts")).to_have_text("1 check · test networks are not counted")
    expect(page.locator(".unwatched")).to_have_text(
        "Not watched: Private proof of innocence, Broadcasters, Indexer, Hosted indexer"
    )
    expect(page.locator(".head")).to_have_attribute("data-status", "unmonitored")


@pytest.mark.clause("C11")
def test_where_most_is_watched_the_mark_is_green_and_the_rest_is_named(site: Site, open_page: Open) -> None:
    left = [("messaging", None), ("ppoi", 1), ("ppoi", 137)]
    checks = [
        a_check("unmonitored", *name) if (name := (c["service"], c["chainId"])) in left else c for c in all_current()
    ]
    site.has(a_live_report(checks), a_history(all_current()))
    page = open_page()
    expect(page.locator("h1")).to_have_text("No problem seen; 14 of 17 are watched")
    expect(page.locator(".unwatched")).to_have_text(
        "Not watched: Messaging, Private proof of innocence on 2 of 4 chains"
    )
    expect(page.locator(".head")).to_have_attribute("data-status", "current")


@pytest.mark.clause("C11")
def test_a_service_that_the_page_does_not_know_counts_too(site: Site, open_page: Open) -> None:
    checks = [*all_current(), a_check("current", "relayer", 1), a_check("unavailable", "relayer", 11155111)]
    site.has(a_live_report(checks), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("No problem seen")
    expect(page.locator(".counts")).to_contain_text("18 checks: ")
    site.has(a_live_report([*all_current(), a_check("unavailable", "relayer", 1)]), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("Problem seen: relayer on Ethereum")
    expect(page.locator(".meaning li")).to_have_text("relayer on Ethereum: no usable answer")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C11")
def test_a_configured_chain_without_rows_withholds_health(site: Site, open_page: Open) -> None:
    three = [check for check in all_current() if check["chainId"] != 137]
    site.has(a_live_report(three), a_history(three))
    page = open_page()
    expect(page.locator("h1")).to_have_text("Not everything is known: 4 services on Polygon")
    expect(page.locator(".counts")).to_contain_text("not in the report: Polygon")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C11")
def test_any_chain_of_the_configuration_counts_unless_it_is_a_test_network(tmp_path: Path, open_page: Open) -> None:
    messaging, *others = all_current()
    base = [check | {"chainId": 8453} for check in others if check["chainId"] == 1]
    sepolia = [check | {"chainId": 84532, "status": "unavailable"} for check in base]
    checks = [messaging, *base, *sepolia]
    store(tmp_path, a_live_report(checks), a_history(checks))
    chains = "".join(f'[[chains]]\nid = {each}\nrpc = ["http://127.0.0.1:1"]\n' for each in (8453, 84532))
    with a_server(tmp_path, more=chains) as server:
        page = open_page(server.base)
        expect(page.locator("h1")).to_have_text("No problem seen")
        expect(page.locator(".counts")).to_have_text("5 checks: Base · test networks are not counted")
        site = Site(server, tmp_path)
        red = [*checks[:2], a_check("unavailable", "broadcasters", 8453, reason="unreachable"), *checks[3:]]
        site.has(a_live_report(red), a_history(checks))
        page = open_page(server.base)
        expect(page.locator("h1")).to_have_text("Problem seen: Broadcasters on Base")
        expect(page.locator(".meaning li")).to_have_text("Base: sending may fail: no broadcaster is heard")


def test_what_nobody_watches_can_be_left_off_the_page(tmp_path: Path, open_page: Open) -> None:
    others = ("ppoi", "broadcasters", "hosted-indexer")
    checks = [a_check("current", "indexer", 8453), *(a_check("unmonitored", service, 8453) for service in others)]
    checks.append(a_check("unmonitored", "messaging", None))
    store(tmp_path, a_live_report(checks), a_history(checks))
    chain = '[[chains]]\nid = 8453\nrpc = ["http://127.0.0.1:1"]\n'
    page_table = '[page]\nshow_unmonitored = false\nrun_by_others = ["indexer"]\n'
    with a_server(tmp_path, more=chain + page_table) as server:
        page = open_page(server.base)
        expect(page.locator(".card")).to_have_count(1)
        expect(page.locator("h1")).to_have_text("No problem seen; 1 of 5 is watched")
        expect(page.locator(".unwatched")).to_have_text(
            "Not watched: Messaging, Private proof of innocence, Broadcasters, Hosted indexer"
        )
        expect(page.locator(".counts")).to_have_text("1 check: Base")
        expect(page.locator(".warnings li", has_text="run by other people")).to_contain_text("Indexer")
        without = open_page(server.base, java_script_enabled=False)
        expect(without.locator("tbody tr")).to_have_count(1)


def unreached(service: str, chain_id: int | None, *, seen_ago_ms: int = 20 * SECOND, answered: bool = True) -> Json:
    """A row whose last probe or two have failed."""
    seen_at = now_ms() - seen_ago_ms
    answered_at = format_instant(seen_at - 30 * SECOND) if answered else None
    return a_check("unknown", service, chain_id, reason="unreachable") | {
        "observedAt": format_instant(seen_at),
        "lastSuccessAt": answered_at,
    }


def berlin_clock(instant: str) -> str:
    return datetime.fromisoformat(instant).astimezone(ZoneInfo(BERLIN)).strftime("%H:%M")


@pytest.mark.clause("C1", "C12")
def test_the_first_minutes_of_an_outage_are_said_to_be_that(site: Site, open_page: Open) -> None:
    checks = [c for c in all_current() if (c["service"], c["chainId"]) not in (("broadcasters", 137), ("ppoi", 137))]
    late, never = unreached("broadcasters", 137), unreached("ppoi", 137, answered=False)
    site.has(a_live_report([*checks, late, never]), a_history(all_current()))
    page = open_page()
    since = berlin_clock(late["lastSuccessAt"])
    expect(page.locator("h1")).to_have_text(
        "Not known, trying again: Private proof of innocence on Polygon, Broadcasters on Polygon"
    )
    expect(page.locator(".meaning li")).to_have_text(
        [
            "Private proof of innocence on Polygon: no usable answer yet, trying again",
            f"Broadcasters on Polygon: no usable answer (last good one {since}), trying again",
        ]
    )
    expect(card(page, "broadcasters", 137)).to_contain_text(f"no usable answer (last good one {since}), trying again")
    expect(card(page, "broadcasters", 137)).to_have_attribute("data-status", "unknown")
    expect(card(page, "broadcasters", 137).locator(".word")).to_have_text("not known")  # as the headline says
    expect(page.locator(".counts")).to_contain_text("not known: 2")


@pytest.mark.clause("C1", "M14")
def test_nobody_is_said_to_try_again_once_the_row_is_old(site: Site, open_page: Open) -> None:
    late = unreached("broadcasters", 137, seen_ago_ms=100 * SECOND)
    checks = [c for c in all_current() if (c["service"], c["chainId"]) != ("broadcasters", 137)]
    site.has(a_live_report([*checks, late]), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator("h1")).to_contain_text("trying again")
    page.clock.fast_forward(60 * SECOND)
    expect(page.locator("h1")).not_to_contain_text("trying again")
    expect(card(page, "broadcasters", 137)).not_to_contain_text("trying again")


@pytest.mark.clause("C12")
@pytest.mark.parametrize(
    ("service", "chain_id", "fields", "sentence"),
    [
        (
            "broadcasters",
            137,
            {"status": "unavailable", "reason": "unreachable"},
            "Polygon: sending may fail: no broadcaster is heard",
        ),
        (
            "broadcasters",
            137,
            {"status": "degraded", "reason": "partial-coverage"},
            "Polygon: sending may take longer: some broadcasters are not heard, others may work",
        ),
        (
            "broadcasters",
            137,
            {"status": "unavailable", "reason": "maintenance"},
            "Broadcasters on Polygon: no usable answer",
        ),
        ("indexer", 1, {"status": "catching-up"}, "Ethereum: new transactions may show up late: the indexer is behind"),
        (
            "indexer",
            1,
            {"status": "degraded"},
            "Ethereum: new transactions may show up very late: the indexer is far behind",
        ),
        (
            "ppoi",
            1,
            {"status": "unavailable", "reason": "unreachable"},
            "Ethereum: new proofs of innocence may be delayed: the node gives no usable answer",
        ),
        (
            "messaging",
            None,
            {"status": "unavailable", "reason": "unreachable"},
            "Messaging: sending through broadcasters may fail: no usable connection to the messaging network",
        ),
        (
            "indexer",
            1,
            {"status": "degraded", "reason": "constructor"},
            "Indexer on Ethereum: answers, but only in a limited way",
        ),
        (
            "indexer",
            1,
            {"status": "unknown", "reason": "incompatible-reference"},
            "Indexer on Ethereum: answers, but there is nothing safe to compare its answer with",
        ),
    ],
)
def test_what_a_row_means_is_said_per_chain_and_never_more_than_it_may(
    site: Site, open_page: Open, service: str, chain_id: int | None, fields: Json, sentence: str
) -> None:
    checks = [c for c in all_current() if (c["service"], c["chainId"]) != (service, chain_id)]
    changed = a_check("degraded", service, chain_id) | fields
    site.has(a_live_report([*checks, changed]), a_history(all_current()))
    expect(open_page().locator(".meaning li")).to_have_text([sentence])


def test_the_same_of_several_chains_is_said_once(site: Site, open_page: Open) -> None:
    down = [
        c | {"status": "unavailable", "reason": "unreachable"} if c["service"] == "broadcasters" else c
        for c in all_current()
    ]
    site.has(a_live_report(down), a_history(all_current()))
    page = open_page()
    expect(page.locator("h1")).to_have_text("Problems seen: Broadcasters on 4 of 4 chains")
    expect(page.locator(".meaning li")).to_have_text(
        ["Ethereum, Arbitrum One, Polygon, BNB Smart Chain: sending may fail: no broadcaster is heard"]
    )


@pytest.mark.parametrize(
    ("metrics", "shown"),
    [
        pytest.param({"position": 100, "head": 118}, "up to date, at 100", id="what is current is not called behind"),
        pytest.param({"position": 106, "head": 100}, "up to date, at 106", id="nor ahead of its head"),
        pytest.param({}, "up to date", id="nor at a position that nobody knows"),
    ],
)
def test_no_card_contradicts_itself(site: Site, open_page: Open, metrics: Json, shown: str) -> None:
    site.has(a_live_report([a_check("current", metrics=metrics)]), a_history(all_current()))
    page = open_page()
    expect(card(page, "indexer", 1).locator(".metrics")).to_have_text(shown)


def test_a_list_that_is_not_the_chains_says_how_many_differ(site: Site, open_page: Open) -> None:
    metrics = {"position": 100, "head": 102, "missing": 2, "extra": 1}
    site.has(a_live_report([a_check("degraded", metrics=metrics, reason="incomplete")]), a_history(all_current()))
    page = open_page()
    shown = "2 transactions missing, 1 transaction too many, at 100"
    expect(card(page, "indexer", 1).locator(".metrics")).to_have_text(shown)
    expect(card(page, "indexer", 1)).to_contain_text("its list has a gap")
    expect(card(page, "indexer", 1)).not_to_contain_text("behind")


def test_chains_have_one_order_wherever_they_stand(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page()
    chains = ["Ethereum", "Arbitrum One", "Polygon", "BNB Smart Chain", "Sepolia"]
    expect(page.locator(".rows h3")).to_have_text(["Shared by the chains", *chains])
    page.get_by_role("radio", name="service").check()
    expect(page.locator('[data-group="service indexer"] .title')).to_have_text([*chains[:4], "Sepolia test network"])
    expect(page.locator(".rows .name").nth(3)).to_have_text("Polygon")


@pytest.mark.first
@pytest.mark.clause("C12")
def test_where_nothing_is_reached_the_monitors_own_connection_is_named_beside_it(site: Site, open_page: Open) -> None:
    down = {"status": "unavailable", "reason": "unreachable", "metrics": {}}
    checks = [check | down for check in all_current()]
    site.has(a_live_report(checks), a_history(checks))
    page = open_page()
    own = page.locator(".troubles", has_text="this monitor's own connection")
    expect(page.locator("h1")).to_have_text("No watched service gives a usable answer")
    expect(own).to_be_visible()
    expect(page.locator(".head .state + .troubles")).to_have_count(1)  # directly below the headline
    expect(page.locator('.card[data-status="unavailable"]')).to_have_count(21)
    site.has(a_live_report([all_current()[0], *checks[1:]]), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("Problems seen: 16 of 17 checks")
    expect(own).to_have_count(0)


UNREACHED: Json = {"status": "unavailable", "reason": "unreachable", "metrics": {}}
UNWATCHED: Json = a_check("unmonitored")
INDEXERS = {("indexer", 1), ("indexer", 137), ("indexer", 56)}


@pytest.mark.clause("C4", "C11")
@pytest.mark.parametrize(
    ("is_bad", "other", "headline", "counts"),
    [
        pytest.param(
            lambda check: check in INDEXERS | {("ppoi", 1)},
            {},
            "Problems seen: Private proof of innocence on Ethereum, Indexer on 3 of 4 chains",
            "no usable answer: 4",
            id="a service has its own chains",
        ),
        pytest.param(
            lambda check: check in INDEXERS | {("messaging", None)},
            {},
            "Problems seen: Messaging, Indexer on 3 of 4 chains",
            "no usable answer: 4",
            id="what is of no chain is on none",
        ),
        pytest.param(
            lambda check: check[1] != 11155111,
            {},
            "Problems seen: 17 of 17 checks",
            "no usable answer: 17",
            id="a test network that answers is a watched service",
        ),
        pytest.param(
            lambda check: check[1] == 11155111,
            {name: UNWATCHED[name] for name in ("status", "reason", "observedAt", "expiresAt")},
            "No mainnet is watched",
            "not watched: 17 · test networks are not counted",
            id="a test network alone is not nothing",
        ),
    ],
)
def test_the_head_line_names_only_what_is_so(
    site: Site,
    open_page: Open,
    is_bad: Callable[[tuple[str, int | None]], bool],
    other: Json,
    headline: str,
    counts: str,
) -> None:
    checks = [c | (UNREACHED if is_bad((c["service"], c["chainId"])) else other) for c in all_current()]
    site.has(a_live_report(checks), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text(headline)
    expect(page.locator(".counts")).to_contain_text(counts)


@pytest.mark.clause("C1")
def test_what_nobody_watches_stays_so_by_a_clock_that_is_wrong(site: Site, open_page: Open) -> None:
    checks = [*all_current()[:-1], a_check("unmonitored", "hosted-indexer", 11155111)]
    site.has(a_live_report(checks), a_history(checks))
    page = open_page(clock_ahead_ms=HOUR)
    expect(card(page, "indexer", 1)).to_contain_text("The clock of this device is wrong")
    expect(card(page, "hosted-indexer", 11155111).locator(".word")).to_have_text("not watched")
    expect(card(page, "hosted-indexer", 11155111)).not_to_contain_text("clock")


def test_why_there_is_no_report_is_said_in_the_language_of_the_page(open_page: Open) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=429)

    page = open_page(routes={LIVE: refuse, HISTORY: refuse}, locale="de")
    expect(page.locator(".troubles")).to_contain_text("Der Server verweigert die Antwort: Er wurde zu oft gefragt.")
    expect(page.locator(".past .problem")).to_have_text("Kein neuerer Verlauf: Der Server wurde zu oft gefragt.")


def test_what_had_something_before_is_not_said_to_have_had_nothing_yet(site: Site, open_page: Open) -> None:
    empty = a_check("unknown", "broadcasters", 1, reason="no-observation")
    answered = empty | {"chainId": 56, "lastSuccessAt": format_instant(now_ms() - HOUR)}
    site.has(a_live_report([empty, answered]), a_history(all_current()))
    page = open_page()
    expect(card(page, "broadcasters", 1)).to_contain_text("Nothing was seen yet")
    expect(card(page, "broadcasters", 56)).to_contain_text("Nothing is seen of it on this chain now.")
    expect(card(page, "broadcasters", 56)).to_contain_text("last good answer ")


@pytest.mark.clause("C12")
@pytest.mark.parametrize("services", [("indexer", "hosted-indexer"), ("broadcasters",), ("broadcasters", "indexer")])
def test_what_people_can_do_is_said_once(site: Site, open_page: Open, services: tuple[str, ...]) -> None:
    late = [check | {"status": "catching-up"} if check["service"] in services else check for check in all_current()]
    site.has(a_live_report(late), a_history(late))
    page = open_page()
    expect(page.locator(".advice")).to_have_text(
        "If sending fails or a transaction does not show up, do not send it again at once: it may have gone through."
        " Look first whether it is in the wallet or on a block explorer."
    )
    site.has(a_live_report(all_current()), a_history(late))
    expect(open_page().locator(".advice")).to_be_empty()


def test_on_paper_there_are_instants_and_no_ages(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page()
    expect(card(page, "indexer", 1)).to_contain_text(" ago")
    page.emulate_media(media="print")
    expect(card(page, "indexer", 1)).to_contain_text(re.compile(r"checked \d\d:\d\d$"))
    expect(page.locator("#page")).not_to_contain_text(" ago")
