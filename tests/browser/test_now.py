"""What the status page says of now, in a real browser: the head line, the cards, and what keeps it from knowing."""

import re
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from lookout.base.instants import format_instant
from tests.browser.pages import (
    CHROMIUM,
    GREEN,
    LAUNCH,
    MISSING,
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
    "current": "shape-current",
    "catching up": "shape-catching-up",
    "degraded": "shape-degraded",
    "unavailable": "shape-unavailable",
    "unknown": "shape-unknown",
    "unmonitored": "shape-unmonitored",
    "stale": "shape-stale",
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
    expect(card(page, "indexer", 999).locator(".word")).to_have_text("unknown")
    expect(card(page, "broadcasters", 1)).to_contain_text("3 of 5 answered")
    expect(card(page, "broadcasters", 1)).to_contain_text("Only some of those asked have answered.")
    expect(card(page, "indexer", 1)).to_contain_text("100 of 105, 5 behind")
    expect(card(page, "indexer", 1)).to_contain_text(re.compile(r"seen \d+ s ago"))
    expect(card(page, "messaging", None)).to_contain_text("4 peers")
    expect(card(page, "ppoi", 137)).to_contain_text("It was current then")
    expect(card(page, "indexer", 999)).to_contain_text("Chain 999")
    expect(page.locator("h1")).to_contain_text("unavailable")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C11")
def test_the_head_line_is_healthy_only_if_every_mainnet_check_is_current(site: Site, open_page: Open) -> None:
    checks = all_current()
    trouble_on_the_test_network = [c | {"status": "unavailable"} if c["chainId"] == 11155111 else c for c in checks]
    site.has(a_live_report(trouble_on_the_test_network), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("All 17 checks outside test networks are current")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")
    expect(page.locator(".age")).to_have_text(re.compile(r"Report of \d+ s ago"))

    site.has(a_live_report([*checks[:-2], a_check("unknown", "hosted-indexer", 42161)]), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("1 of 17 checks outside test networks is unknown")
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
    expect(page.locator("h1")).to_have_text("All 17 checks outside test networks are stale")
    page.clock.run_for(180 * SECOND)
    expect(page.locator(".past")).to_have_class("past old")
    expect(page.locator(".past .written")).to_contain_text("What is shown was written")


@pytest.mark.clause("C4", "M14")
def test_a_monitor_that_has_stopped_is_noticed_although_its_rows_hold(site: Site, open_page: Open) -> None:
    seen_at = now_ms() - 110 * SECOND
    old = {"observedAt": format_instant(seen_at), "expiresAt": format_instant(seen_at + 290 * SECOND)}
    site.has(a_live_report([c | old for c in all_current()], generated_at=seen_at), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")  # as it may be behind a cache
    page.clock.fast_forward(50 * SECOND)
    expect(page.locator(".troubles")).to_contain_text("The monitor seems to have stopped")
    expect(page.locator("h1")).to_have_text("Everything outside test networks was current when last seen")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C6")
@pytest.mark.parametrize(
    ("live", "told"),
    [
        (b'{"schemaVersion": 1, "checks": [', "it is not JSON"),
        (b"<!doctype html><title>Sign in</title>", "it is not JSON"),
        (b'{"schemaVersion": 2, "generatedAt": "2026-11-05T12:00:00.000Z", "checks": []}', "schemaVersion is not 1"),
        (b"[]", "it is not a JSON object"),
    ],
    ids=["cut off", "a web page", "another version", "a list"],
)
def test_a_report_that_cannot_be_read_is_said_to_be_so(site: Site, open_page: Open, live: bytes, told: str) -> None:
    site.has(live, a_history(all_current()))
    page = open_page()
    expect(page.locator(".troubles")).to_contain_text("The server's report cannot be read")
    expect(page.locator(".troubles")).to_contain_text(told)
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
    expect(card(page, "indexer", 1).locator(".seen")).to_contain_text("in step, seen 2 min ago")


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
        expect(page.locator(".card .chain")).to_have_text(["Ethereum's <b>main</b> net & more", "Base", "Chain 999"])
        expect(page.locator(".incidents li .where").first).to_contain_text("Indexer, ")
        expect(page.locator(".incidents")).to_contain_text("Indexer, Base")
        page.locator("#filter").fill("base")
        expect(page.locator(".card")).to_have_count(1)
        without = open_page(server.base, java_script_enabled=False)
        expect(without.locator("tbody td:nth-child(2)").nth(1)).to_have_text("Base")


@pytest.mark.clause("C11")
def test_a_single_check_is_called_that(site: Site, open_page: Open) -> None:
    checks = [a_check("unmonitored", check["service"], check["chainId"]) for check in all_current()[1:]]
    site.has(a_live_report([all_current()[0], *checks]), a_history(all_current()))
    expect(open_page().locator("h1")).to_have_text("The only watched check outside test networks is current")


@pytest.mark.clause("C11")
def test_a_service_that_the_page_does_not_know_counts_too(site: Site, open_page: Open) -> None:
    checks = [*all_current(), a_check("current", "relayer", 1), a_check("unavailable", "relayer", 11155111)]
    site.has(a_live_report(checks), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("All 18 checks outside test networks are current")
    site.has(a_live_report([*all_current(), a_check("unavailable", "relayer", 1)]), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("1 of 18 checks outside test networks is unavailable")
    expect(page.locator(".counts")).to_contain_text("relayer on Ethereum")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C11")
def test_a_configured_chain_without_rows_withholds_health(site: Site, open_page: Open) -> None:
    three = [check for check in all_current() if check["chainId"] != 137]
    site.has(a_live_report(three), a_history(three))
    page = open_page()
    expect(page.locator("h1")).to_have_text("4 of 17 checks outside test networks are unknown")
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
        expect(page.locator("h1")).to_have_text("All 5 checks outside test networks are current")
        expect(page.locator(".counts")).to_have_text("Base")
        site = Site(server, tmp_path)
        red = [*checks[:2], a_check("unavailable", "broadcasters", 8453), *checks[3:]]
        site.has(a_live_report(red), a_history(checks))
        page = open_page(server.base)
        expect(page.locator("h1")).to_have_text("1 of 5 checks outside test networks is unavailable")
        expect(page.locator(".counts")).to_contain_text("Broadcasters on Base")


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
        expect(page.locator("h1")).to_have_text("The only watched check is current")
        expect(page.locator(".service .note", has_text="run by other people")).to_have_count(1)
        without = open_page(server.base, java_script_enabled=False)
        expect(without.locator("tbody tr")).to_have_count(1)
