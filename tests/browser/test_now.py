"""What the status page says of now, in a real browser: the band, the networks, and what keeps it from knowing."""

import json
import re
import time
from datetime import datetime
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Route, expect

from lookout.base.instants import format_instant, format_second
from lookout.public.about import PATH
from tests.browser.pages import (
    BERLIN,
    BUCKET,
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
    answer,
    line,
    now_ms,
    of_seven_statuses,
    row,
    store,
)
from tests.builders import HOUR, SECOND
from tests.integration.served import HISTORY, LIVE, a_server

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

FINE = "No problem seen with sending, balances and proofs on all 4 networks"
DOWN: Json = {"status": "unavailable", "reason": "unreachable", "metrics": {}}
UNWATCHED: Json = {"status": "unmonitored", "reason": "not-configured", "observedAt": None, "expiresAt": None}


def changed(changes: dict[tuple[str, int | None], Json]) -> list[Json]:
    """Every check, current but for these."""
    return [check | changes.get((check["service"], check["chainId"]), {}) for check in all_current()]


@pytest.mark.clause("C1", "C3", "C4", "C5")
def test_each_status_has_its_shape_its_word_and_its_reason(site: Site, open_page: Open) -> None:
    checks = of_seven_statuses()
    site.has(a_live_report([*checks, a_check("splendid", chain_id=999)]), a_history(checks))
    page = open_page()
    told = {
        ("messaging", None): ("current", "no problem seen", "4 peers"),
        ("indexer", 1): ("catching-up", "behind", "5 blocks behind, at 100"),
        ("broadcasters", 1): ("degraded", "limited", "3 of 5 heard"),
        ("indexer", 56): ("unavailable", "not answering", "Last good answer "),
        ("indexer", 137): ("unknown", "unknown", "nothing safe to compare"),
        ("hosted-indexer", 11155111): ("unmonitored", "not watched", "nothing to watch"),
        ("ppoi", 137): ("stale", "too old to say", "Last reading, "),
        ("indexer", 999): ("unknown", "unknown", "too little to judge by"),
    }
    for check, (status, word, reason) in told.items():
        shown = row(page, *check)
        expect(shown.locator(".state span")).to_have_text(re.compile(rf"^{word}(, since .*)?$"))
        expect(shown.locator("use")).to_have_attribute("href", f"#shape-{status}")
        expect(shown).to_contain_text(reason)
    expect(row(page, "indexer", 1)).to_contain_text(re.compile(r"checked \d+ s ago"))
    expect(line(page, 999).locator("h3")).to_have_text("Chain 999")
    expect(answer(page, 1, "Send").locator(".word")).to_have_text("may be slow")
    expect(page.locator(".band")).to_have_attribute("data-status", "unavailable")


@pytest.mark.clause("C11")
def test_the_band_is_green_only_if_everything_that_counts_is_current(site: Site, open_page: Open) -> None:
    trouble = changed({("indexer", 11155111): DOWN})
    site.has(a_live_report(trouble), a_history(trouble))
    page = open_page()
    expect(page.locator("h1")).to_have_text(FINE)
    expect(page.locator(".band")).to_have_attribute("data-status", "current")
    expect(line(page, 11155111)).to_contain_text("test network")
    expect(page.locator(".age")).to_have_text(re.compile(r"Updated \d+ s ago"))
    site.has(a_live_report([*all_current()[:-2], a_check("unknown", "hosted-indexer", 42161)]), a_history(trouble))
    page = open_page()
    expect(page.locator("h1")).to_have_text("Nothing is known about balances on Arbitrum One")
    expect(page.locator(".also")).to_have_text("No problem seen on the other networks.")
    expect(page.locator(".band")).to_have_attribute("data-status", "unknown")


@pytest.mark.clause("C4", "C11", "C12")
@pytest.mark.parametrize(
    ("changes", "headline", "also", "status"),
    [
        pytest.param(
            {("indexer", 137): DOWN, ("broadcasters", 56): DOWN},
            "Sending may fail on BNB Smart Chain",
            "Also: balances may be late on Polygon.",
            "unavailable",
            id="in the order of what people do",
        ),
        pytest.param(
            {("messaging", None): DOWN}, "Sending may fail on all 4 networks", "", "unavailable", id="what all share"
        ),
        pytest.param(
            {("indexer", 1): {"status": "catching-up"}, ("ppoi", 1): {"status": "catching-up"}},
            "Balances may be late on Ethereum",
            "Also: proofs may be late on Ethereum.",
            "catching-up",
            id="several things on one network",
        ),
        pytest.param(
            {("indexer", 1): {"status": "degraded", "reason": "incomplete"}},
            "Syncing may stop on Ethereum",
            "Also: proofs may be late on Ethereum.",
            "degraded",
            id="a list with a gap",
        ),
        pytest.param(
            {("ppoi", 1): UNWATCHED, ("ppoi", 137): UNWATCHED, ("broadcasters", 1): UNWATCHED},
            "No problem seen with sending on 3 of 4 networks, balances on all 4 networks, proofs on 2 of 4 networks",
            "",
            "current",
            id="what nobody watches is not claimed, nor is sending by messaging alone",
        ),
        pytest.param(
            {(c["service"], c["chainId"]): UNWATCHED for c in all_current() if c["service"] != "ppoi"},
            "No problem seen with proofs on all 4 networks",
            "",
            "current",
            id="no more is said to be well than is watched",
        ),
        pytest.param(
            {(c["service"], c["chainId"]): UNWATCHED for c in all_current() if c["chainId"] != 11155111},
            "No mainnet is watched",
            "",
            "unmonitored",
            id="a test network alone does not count",
        ),
        pytest.param(
            {(c["service"], c["chainId"]): UNWATCHED for c in all_current()},
            "Nothing is watched",
            "",
            "unmonitored",
            id="nothing at all",
        ),
        pytest.param(
            {(c["service"], c["chainId"]): DOWN for c in all_current() if c["chainId"] != 11155111},
            "Sending may fail on all 4 networks",
            "Also: balances may be late on all 4 networks; proofs may be late on all 4 networks.",
            "unavailable",
            id="a test network answers, so not none of the services does",
        ),
    ],
)
def test_the_band_says_what_is_so_and_no_more(
    site: Site, open_page: Open, changes: dict[tuple[str, int | None], Json], headline: str, also: str, status: str
) -> None:
    checks = changed(changes)
    site.has(a_live_report(checks), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text(headline)
    expect(page.locator(".also")).to_have_text(also)
    expect(page.locator(".band")).to_have_attribute("data-status", status)


@pytest.mark.clause("C16")
def test_the_tab_has_the_state_as_a_shape_and_a_short_name(site: Site, open_page: Open) -> None:
    site.has(a_live_report(changed({("messaging", None): DOWN})), a_history(all_current()))
    page = open_page()
    expect(page).to_have_title("✖ Sending may fail · Lookout")
    icon = page.locator("link[rel=icon]").get_attribute("href") or ""
    assert icon.endswith("/icon-unavailable.svg")
    assert site.server.ask("GET", urlsplit(icon).path).body.startswith(b"<svg")


@pytest.mark.clause("C16")
def test_it_is_said_since_when_and_whether_an_end_is_announced(site: Site, open_page: Open) -> None:
    checks = changed({("messaging", None): DOWN})
    site.has(a_live_report(checks), a_history(checks, dict.fromkeys(range(-4, 0), "u")))
    page = open_page()
    begun_at = now_ms() // BUCKET * BUCKET - 3 * BUCKET
    begun = datetime.fromtimestamp(begun_at / 1000, ZoneInfo(BERLIN))
    expect(page.locator(".since")).to_have_text(re.compile(rf"^Since about (.* )?{begun:%H:%M}, no end announced\.$"))
    expect(line(page, 1).locator(".rows")).not_to_be_visible()
    said = re.compile(rf"^not answering, since about (.* )?{begun:%H:%M}$")
    expect(row(page, "messaging", None).locator(".state")).to_have_text(said)


@pytest.mark.clause("C12")
def test_words_and_colours_of_a_network_say_the_same_and_its_help_stays_when_it_is_opened(
    site: Site, open_page: Open
) -> None:
    checks = changed({("indexer", 137): {"status": "degraded", "reason": "incomplete"}})
    site.has(a_live_report(checks), a_history(checks))
    page = open_page(address="#chain=137")
    expect(line(page, 137).locator("details")).to_have_attribute("open", "")
    expect(answer(page, 137, "Proofs")).to_have_attribute("data-status", "degraded")
    expect(row(page, "indexer", 137)).to_have_count(1)
    help_text = "Wallets may stop syncing, and new proofs may stay pending"
    expect(row(page, "indexer", 137)).to_contain_text(help_text)
    expect(line(page, 137).locator(".rows > li").first).to_contain_text(help_text)


@pytest.mark.clause("C11")
def test_a_configured_network_without_rows_withholds_health(site: Site, open_page: Open) -> None:
    three = [check for check in all_current() if check["chainId"] != 137]
    site.has(a_live_report(three), a_history(three))
    page = open_page()
    expect(page.locator("h1")).to_have_text("Nothing is known about sending, balances and proofs on Polygon")
    line(page, 137).locator("summary").click()
    expect(line(page, 137).locator(".rows")).to_contain_text("The report has no row for it.")
    site.has(a_live_report([]), a_history(three))
    expect(open_page().locator("h1")).to_have_text("Nothing is known right now")


@pytest.mark.clause("C3", "C4", "C9")
def test_with_a_dead_server_everything_turns_grey_on_the_pages_own_clock(tmp_path: Path, open_page: Open) -> None:
    checks = all_current()
    store(tmp_path, a_live_report(checks), a_history(checks))
    with a_server(tmp_path, more=LAUNCH) as server:
        page = open_page(server.base, clock_ahead_ms=0)
        expect(page.locator(".past-rows b")).to_have_text(["100 %"] * 5)
    page.clock.run_for(40 * SECOND)
    no_answer = "No answer: your connection or the monitor's server, not the networks"
    expect(page.locator("h1")).to_have_text(no_answer)
    expect(page.locator(".also")).to_have_text("No problem when last seen.")
    expect(page.locator(".troubles")).to_contain_text("the page keeps asking")
    expect(page.locator(".band")).to_have_attribute("data-status", "unknown")
    expect(page.locator('.answer[data-status="current"]')).to_have_count(15)  # still good until they expire
    page.clock.run_for(120 * SECOND)
    expect(page.locator('.answer[data-status="stale"]')).to_have_count(15)
    assert page.locator(GREEN).count() == 0
    expect(page.locator("h1")).to_have_text(no_answer)
    expect(page.locator(".also")).to_have_text("")
    expect(page.locator(".advice")).to_have_text("This says nothing about your wallet; look again later.")
    page.clock.run_for(180 * SECOND)
    expect(page.locator(".past")).to_have_class("past old")
    expect(page.locator(".past > p")).to_contain_text("The history shown was written")


@pytest.mark.clause("C4", "M14")
def test_a_monitor_that_has_stopped_is_noticed_although_its_rows_hold(site: Site, open_page: Open) -> None:
    seen_at = now_ms() - 60 * SECOND
    old = {"observedAt": format_instant(seen_at), "expiresAt": format_instant(seen_at + 290 * SECOND)}
    site.has(a_live_report([c | old for c in all_current()], generated_at=seen_at), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator("h1")).to_have_text(FINE)  # as it may be behind a cache
    page.clock.fast_forward(50 * SECOND)
    expect(page.locator("h1")).to_have_text("No new report for 100 s: this is the monitor, not the networks")
    expect(page.locator(".also")).to_have_text("No problem when last seen.")


@pytest.mark.clause("C4", "C9", "C16")
def test_a_page_that_was_out_of_sight_for_an_hour_accuses_nobody(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator("h1")).to_have_text(FINE)
    page.route(f"**{LIVE}", lambda _: None)  # the answer is on its way
    page.clock.fast_forward(HOUR)
    expect(page.locator("h1")).to_have_text("This page was asleep and is asking for a new report")
    expect(page.locator(".troubles")).to_have_text("")


@pytest.mark.clause("C4", "C9", "C16")
def test_a_device_that_is_offline_says_so_and_accuses_nobody(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator("h1")).to_have_text(FINE)
    page.context.set_offline(True)
    page.clock.run_for(20 * SECOND)
    expect(page.locator("h1")).to_have_text("This device is offline: that says nothing about the networks")
    expect(page.locator(".also")).to_have_text("No problem when last seen.")


@pytest.mark.clause("C6")
@pytest.mark.parametrize("live", [b'{"schemaVersion": 1, "checks": [', b'{"schemaVersion": 2, "checks": []}'])
def test_a_report_that_cannot_be_read_is_said_to_be_so(site: Site, open_page: Open, live: bytes) -> None:
    site.has(live, a_history(all_current()))
    page = open_page()
    expect(page.locator("h1")).to_have_text("The server's report cannot be read")
    assert page.locator(GREEN).count() == 0


@pytest.mark.clause("C7")
def test_a_row_that_cannot_be_read_spoils_no_other(site: Site, open_page: Open) -> None:
    site.has(a_live_report([*all_current(), a_check("current", chain_id=-5), 7]), a_history(all_current()))
    page = open_page()
    expect(page.locator('.answer[data-status="current"]')).to_have_count(15)
    expect(page.locator(".troubles")).to_have_text("Rows of the report cannot be read.")


@pytest.mark.clause("C1", "C2", "C3")
@pytest.mark.parametrize("ahead_ms", [HOUR, -HOUR])
def test_by_a_clock_that_is_wrong_nothing_is_healthy(site: Site, open_page: Open, ahead_ms: int) -> None:
    site.has(a_live_report(changed({("hosted-indexer", 11155111): UNWATCHED})), a_history(all_current()))
    page = open_page(clock_ahead_ms=ahead_ms)
    way = "ahead of" if ahead_ms > 0 else "behind"
    expect(page.locator(".troubles")).to_contain_text(f"The clock here is {way} the server's")
    expect(page.locator(".age")).to_contain_text(f"the clock here is 1 h {way} the server's")
    expect(row(page, "indexer", 1)).to_contain_text("This device's clock is wrong")
    expect(row(page, "hosted-indexer", 11155111)).to_contain_text("not watched")
    assert page.locator(GREEN).count() == 0


class Dated:
    """Answers with a `Date` that is so much off, or with none: a route of `open_page`."""

    def __init__(self, off_ms: int | None) -> None:
        self.off_ms = off_ms

    def __call__(self, route: Route) -> None:
        answered = route.fetch()
        headers = {name: text for name, text in answered.headers.items() if name != "date"}
        if self.off_ms is not None:
            headers["date"] = formatdate(time.time() + self.off_ms / 1000, usegmt=True)
        route.fulfill(response=answered, headers=headers)


@pytest.mark.clause("C2", "C3", "C4")
@pytest.mark.parametrize("dated", [True, False], ids=["known to be slow", "not known to be"])
def test_a_slow_clock_makes_no_old_report_new(site: Site, open_page: Open, *, dated: bool) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    answers = Dated(0 if dated else None)
    page = open_page(clock_ahead_ms=-HOUR, routes={LIVE: answers, HISTORY: answers})
    expect(page.locator(".networks > li")).to_have_count(5)
    assert page.locator(GREEN).count() == 0
    later = HOUR - 10 * SECOND
    answers.off_ms = later if dated else None
    page.clock.fast_forward(later)  # now the clock shows when the report was made
    page.clock.run_for(2 * SECOND)
    page.wait_for_timeout(500)
    assert page.locator(GREEN).count() == 0


@pytest.mark.parametrize(("off_ms", "is_wrong"), [(-60 * SECOND, False), (-95 * SECOND, True)])
def test_a_clock_that_a_cache_explains_is_not_called_wrong(
    site: Site, open_page: Open, off_ms: int, *, is_wrong: bool
) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    copy = Dated(off_ms)
    page = open_page(routes={LIVE: copy, HISTORY: copy})
    expect(page.locator(".band")).to_have_attribute("data-status", "unknown" if is_wrong else "current")
    expect(page.locator(".troubles")).to_contain_text("The clock here is ahead" if is_wrong else "")


@pytest.mark.clause("C12", "M10")
def test_an_operators_own_services_and_names_are_as_the_configuration_has_them(tmp_path: Path, open_page: Open) -> None:
    name = "Ethereum's <b>main</b> net & more"
    five = [check | UNWATCHED for check in all_current() if check["chainId"] in (None, 1)]
    own = [a_check("current", "bundler", 1) | DOWN, a_check("current", "relayer", None)]
    store(tmp_path, a_live_report([*five, *own]), a_history([*five, *own]))
    tables = f'''
[page]
show_unmonitored = false
[[chains]]
id = 1
name = "{name}"
block_time_s = 2
rpc = ["http://127.0.0.1:1"]
[[services]]
name = "bundler"
title = "Bundlers"
effect = "sending may fail"
[[services.checks]]
chain = 1
kind = "http"
url = "http://127.0.0.1:1"
[[services]]
name = "relayer"
[[services.checks]]
kind = "http"
url = "http://127.0.0.1:1"
'''
    with a_server(tmp_path, more=tables) as server:
        page = open_page(server.base)
        expect(page.locator("h1")).to_have_text(f"Bundlers: sending may fail on {name}")
        expect(line(page, 1).locator(".word")).to_have_text("sending may fail")
        expect(page.locator(".networks h3")).to_have_text([name, "All networks"])
        expect(page.locator(".answer b")).to_have_text(["Bundlers", "Relayer"])  # and nothing that is not there
        expect(page.locator(".limits")).not_to_contain_text("broadcasters")
        expect(page.locator(".past-rows .name")).to_have_text([name, "All networks"])
        Site(server, tmp_path).has(a_live_report([*five, own[0], own[1] | DOWN]), a_history(own))
        expect(open_page(server.base).locator("h1")).to_have_text("None of the watched services answers")


@pytest.mark.clause("C12")
def test_of_two_services_of_one_name_each_has_its_own_state(tmp_path: Path, open_page: Open) -> None:
    def table(name: str) -> str:
        check = '[[services.checks]]\nchain = 1\nkind = "http"\nurl = "http://127.0.0.1:1"\n'
        return f'[[services]]\nname = "{name}"\ntitle = "Relay"\n{check}'

    checks = [*all_current(), a_check("current", "first", 1) | DOWN, a_check("current", "second", 1)]
    store(tmp_path, a_live_report(checks), a_history(checks))
    with a_server(tmp_path, more=table("first") + table("second")) as server:
        relays = line(open_page(server.base), 1).locator(".answer", has_text="Relay")
        expect(relays).to_have_count(2)
        assert [each.get_attribute("data-status") for each in relays.all()] == ["unavailable", "current"]


def unreached(service: str, chain_id: int, seen_ago_ms: int, *, answered: bool = True) -> Json:
    """A row whose last probe or two have failed."""
    seen_at = now_ms() - seen_ago_ms
    answered_at = format_instant(seen_at - 30 * SECOND) if answered else None
    return a_check("unknown", service, chain_id, reason="unreachable") | {
        "observedAt": format_instant(seen_at),
        "lastSuccessAt": answered_at,
    }


@pytest.mark.clause("C1", "C12", "M14")
def test_the_first_minutes_of_an_outage_are_said_to_be_that_until_the_row_is_old(site: Site, open_page: Open) -> None:
    late = unreached("broadcasters", 137, 100 * SECOND)
    never = unreached("ppoi", 137, 100 * SECOND, answered=False)
    site.has(a_live_report(changed({("broadcasters", 137): late, ("ppoi", 137): never})), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    line(page, 137).locator("summary").click()
    reasons = line(page, 137).locator(".rows > li")
    expect(reasons.nth(0)).to_contain_text(re.compile("Broadcasters ?unknown, since about "))
    expect(reasons.nth(0)).to_contain_text(re.compile(r"No usable answer \(last good one .*\d\d:\d\d\), trying again"))
    expect(reasons.nth(1)).to_contain_text("No usable answer yet, trying again")
    expect(answer(page, 137, "Send")).to_have_attribute("data-status", "unknown")
    expect(page.locator(".advice")).to_contain_text("Before you send again")
    page.clock.fast_forward(60 * SECOND)
    expect(reasons.nth(0)).not_to_contain_text("trying again")


@pytest.mark.clause("W8")
def test_a_place_that_sees_a_row_otherwise_or_is_silent_is_named(site: Site, open_page: Open) -> None:
    metrics = {"position": 9, "head": 9, "views": 3, "agreeing": 2}
    site.has(a_live_report(changed({("indexer", 137): {"metrics": metrics}})), a_history(all_current()))
    since = format_second(now_ms() - HOUR)
    differs = [{"service": "indexer", "chainId": 137, "status": "unavailable", "since": since}]
    places = [
        {"name": "", "own": True, "differs": []},
        {"name": "Singapore", "differs": differs},
        {"name": "São Paulo", "silentSince": since, "differs": []},
    ]
    described = json.loads(site.server.ask("GET", PATH).body) | {"places": places}
    page = open_page(clock_ahead_ms=0, routes={PATH: lambda route: route.fulfill(body=json.dumps(described))})
    expect(page.locator(".networks > li")).to_have_count(5)
    page.clock.fast_forward(61 * SECOND)
    expect(page.locator(".age")).to_contain_text("by one monitor, from 2 places.")
    expect(page.locator(".band")).to_contain_text("São Paulo: nothing known from there since ")
    said = re.compile(r"2 of 3 places see this\. Singapore: not answering since .*\d\d:\d\d\.")
    expect(row(page, "indexer", 137)).to_contain_text(said)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"status": "current", "metrics": {"position": 100, "head": 118}}, "up to date, at 100"),
        ({"status": "current", "metrics": {"position": 106, "head": 100}}, "up to date, at 106"),
        ({"status": "current", "metrics": {}}, "up to date"),
        (
            {"status": "degraded", "reason": "incomplete", "metrics": {"position": 9, "missing": 2, "extra": 1}},
            "2 transactions missing, 1 transaction too many, at 9",
        ),
        ({"status": "unknown", "reason": "no-observation"}, "No longer seen on this chain."),
    ],
)
def test_no_row_contradicts_itself(site: Site, open_page: Open, fields: Json, shown: str) -> None:
    site.has(a_live_report(changed({("indexer", 1): {"reason": "synced"} | fields})), a_history(all_current()))
    expect(row(open_page(), "indexer", 1)).to_contain_text(shown)


@pytest.mark.first
@pytest.mark.clause("C12")
def test_where_nothing_is_reached_the_monitors_own_connection_is_named_beside_it(site: Site, open_page: Open) -> None:
    checks = [check | DOWN for check in all_current()]
    site.has(a_live_report(checks), a_history(checks))
    page = open_page()
    own = page.locator(".troubles", has_text="the monitor's own connection")
    expect(page.locator("h1")).to_have_text("None of the watched services answers")
    expect(own).to_be_visible()
    site.has(a_live_report([all_current()[0], *checks[1:]]), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("Sending may fail on all 4 networks")
    expect(own).to_have_count(0)


def test_on_paper_there_are_instants_and_no_ages(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page()
    expect(row(page, "indexer", 1)).to_contain_text(" ago")
    page.emulate_media(media="print")
    expect(row(page, "indexer", 1)).to_contain_text(re.compile(r"checked \d\d:\d\d$"))
    expect(page.locator("#page")).not_to_contain_text(" ago")
    expect(page.locator(".age")).to_contain_text(re.compile(r"Report of .* UTC\)"))
    expect(page.locator(".address")).to_have_text(f"{site.server.base}/")
