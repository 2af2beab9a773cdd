"""The status page in a real browser, on a real server."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from lookout.page.rendering import assets
from tests.browser.pages import (
    BUCKET,
    CHROMIUM,
    MISSING,
    Site,
    Watched,
    a_browser,
    a_check,
    a_history,
    a_live_report,
    all_current,
    filling_bucket_of,
    now_ms,
    store,
)
from tests.builders import HOUR, MINUTE, SECOND
from tests.integration.served import HISTORY, LIVE, a_server

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

DASH = "\N{EN DASH}"
BERLIN = "Europe/Berlin"
SEVEN = {
    "current": "shape-current",
    "catching up": "shape-catching-up",
    "degraded": "shape-degraded",
    "unavailable": "shape-unavailable",
    "unknown": "shape-unknown",
    "unmonitored": "shape-unmonitored",
    "stale": "shape-stale",
}
GREEN = '[data-status="current"]'

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    store(folder, a_live_report(all_current()), a_history(all_current()))
    with a_server(folder) as server:
        yield Site(server, folder)


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[Open]:
    """Opens the page, with a clock that is so much ahead and answers of one's own if told. In the end nothing but the
    server was asked, and nothing was complained of: no violation of the page's policy, and no error."""
    watched: list[Watched] = []

    def opened(
        base: str = site.server.base,
        *,
        clock_ahead_ms: int | None = None,
        routes: Mapping[str, Callable[[Route], None]] | None = None,
        **options: Any,
    ) -> Page:
        context = browser.new_context(timezone_id=BERLIN, **options)
        watched.append(Watched(context.new_page()))
        page = watched[-1].page
        if clock_ahead_ms is not None:
            page.clock.install(time=(now_ms() + clock_ahead_ms) / 1000)
        for path, handler in (routes or {}).items():
            page.route(f"**{path}", handler)
        page.goto(base + "/")
        return page

    yield opened
    for each in watched:
        each.page.context.close()
        assert each.complaints == []
        assert len(each.origins) == 1, each.origins


def of_seven_statuses() -> list[dict[str, Any]]:
    old_at = now_ms() - 4 * MINUTE
    stale = a_check("current", "ppoi", 137) | {"expiresAt": _text(old_at + 150 * SECOND), "observedAt": _text(old_at)}
    return [
        a_check("current", "messaging", None, metrics={"peers": 4}, reason="responding"),
        a_check("catching-up", chain_id=1),
        a_check("degraded", "broadcasters", 1, metrics={"responding": 3, "monitored": 5}, reason="partial-coverage"),
        a_check("unavailable", chain_id=56, metrics={}, reason="unreachable"),
        a_check("unknown", chain_id=137, reason="incompatible-reference"),
        a_check("unmonitored", "hosted-indexer", 11155111),
        stale,
    ]


def _text(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def card(page: Page, service: str, chain_id: int | None) -> Locator:
    chain = "null" if chain_id is None else chain_id
    return page.locator(f""".card[data-check='["{service}",{chain}]']""")


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
    expect(page.locator("h1")).to_have_text("All 17 checks of the mainnets are current")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")
    expect(page.locator(".age")).to_have_text(re.compile(r"Report of \d+ s ago"))

    site.has(a_live_report([*checks[:-2], a_check("unknown", "hosted-indexer", 42161)]), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("1 of 17 checks of the mainnets is unknown")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C3", "C4", "C9")
def test_with_a_dead_server_everything_turns_grey_on_the_pages_own_clock(tmp_path: Path, open_page: Open) -> None:
    checks = all_current()
    store(tmp_path, a_live_report(checks), a_history(checks))
    with a_server(tmp_path) as server:
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
    expect(page.locator("h1")).to_have_text("All 17 checks of the mainnets are stale")
    page.clock.run_for(180 * SECOND)
    expect(page.locator(".past")).to_have_class("past old")
    expect(page.locator(".past .written")).to_contain_text("What is shown was written")


@pytest.mark.clause("C4", "M14")
def test_a_monitor_that_has_stopped_is_noticed_although_its_rows_hold(site: Site, open_page: Open) -> None:
    seen_at = now_ms() - 110 * SECOND
    old = {"observedAt": _text(seen_at), "expiresAt": _text(seen_at + 290 * SECOND)}
    site.has(a_live_report([c | old for c in all_current()], generated_at=seen_at), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")  # as it may be behind a cache
    page.clock.fast_forward(50 * SECOND)
    expect(page.locator(".troubles")).to_contain_text("The monitor seems to have stopped")
    expect(page.locator("h1")).to_have_text("Everything on the mainnets was current when last seen")
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


def test_a_copy_out_of_caches_does_not_make_the_clock_look_wrong(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    copy = Dated(-(15 + 30 + 60) * SECOND)
    page = open_page(routes={LIVE: copy, HISTORY: copy})
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")
    expect(page.locator(".troubles")).to_be_empty()


@pytest.mark.clause("C11")
def test_a_service_that_the_page_does_not_know_counts_too(site: Site, open_page: Open) -> None:
    checks = [*all_current(), a_check("current", "relayer", 1), a_check("unavailable", "relayer", 11155111)]
    site.has(a_live_report(checks), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("All 18 checks of the mainnets are current")
    site.has(a_live_report([*all_current(), a_check("unavailable", "relayer", 1)]), a_history(checks))
    page = open_page()
    expect(page.locator("h1")).to_have_text("1 of 18 checks of the mainnets is unavailable")
    expect(page.locator(".counts")).to_contain_text("relayer on Ethereum")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


@pytest.mark.clause("C11")
def test_a_mainnet_that_has_lost_its_rows_withholds_health_and_one_that_never_had_any_is_named(
    site: Site, open_page: Open
) -> None:
    three = [check for check in all_current() if check["chainId"] != 137]
    site.has(a_live_report(three), a_history(three))
    page = open_page()
    expect(page.locator("h1")).to_have_text("All 13 checks of the mainnets are current")
    expect(page.locator(".counts")).to_contain_text("not watched: Polygon")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "true")
    site.has(a_live_report(three), a_history(all_current()))
    page = open_page()
    expect(page.locator("h1")).to_have_text("4 of 17 checks of the mainnets are unknown")
    expect(page.locator(".counts")).to_contain_text("no rows for Polygon")
    expect(page.locator(".head")).to_have_attribute("data-healthy", "false")


# ---- The strips


def in_berlin(at: int, form: str) -> str:
    return datetime.fromtimestamp(at / 1000, ZoneInfo(BERLIN)).strftime(form)


def words(at: int) -> str:
    local, utc = (datetime.fromtimestamp(at / 1000, zone) for zone in (ZoneInfo(BERLIN), UTC))
    days = [f"{each.strftime('%a')} {each.day} {each.strftime('%b')}" for each in (local, utc)]
    span = f"{in_berlin(at, '%H:%M')}{DASH}{in_berlin(at + BUCKET, '%H:%M')}"
    return f"{days[0]} {span} ({'' if days[0] == days[1] else f'{days[1]} '}{utc.strftime('%H:%M')} UTC)"


def focused(page: Page, attribute: str) -> str | None:
    told: str | None = page.evaluate("name => document.activeElement.getAttribute(name)", attribute)
    return told


@pytest.mark.clause("C13")
def test_by_keyboard_alone_a_bucket_is_reached_read_and_zoomed_to(site: Site, open_page: Open) -> None:
    checks = all_current()
    history = a_history(checks, {-2: "d", -3: "-", -4: "?", -290: "u"})
    to_at = filling_bucket_of(history)
    site.has(a_live_report(checks), history)
    page = open_page()
    expect(page.locator(".strip").first).to_have_attribute("aria-valuemax", "4032")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert focused(page, "role") == "slider"
    assert focused(page, "aria-label") == "History of Messaging, All chains"
    assert focused(page, "aria-valuetext") == f"{words(to_at)}: provisional, still filling; so far current"
    page.keyboard.press("ArrowLeft")
    assert focused(page, "aria-valuetext") == f"{words(to_at - BUCKET)}: degraded"
    expect(page.locator(".readout")).to_have_text(f"{words(to_at - BUCKET)}: degraded")
    page.keyboard.press("ArrowLeft")
    assert focused(page, "aria-valuetext") == f"{words(to_at - 2 * BUCKET)}: no data"
    page.keyboard.press("ArrowLeft")
    assert focused(page, "aria-valuetext") == f"{words(to_at - 3 * BUCKET)}: unknown"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageDown")
    assert focused(page, "aria-valuetext") == f"{words(to_at - 289 * BUCKET)}: unavailable"

    page.keyboard.press("Enter")
    day = " ".join(words(to_at - 289 * BUCKET).split(" ")[:3])
    expect(page.locator("#past-title")).to_contain_text(day)
    assert focused(page, "aria-valuetext") == f"{words(to_at - 289 * BUCKET)}: unavailable"
    page.keyboard.press("Home")
    assert f"{day} 00:00{DASH}00:05" in (focused(page, "aria-valuetext") or "")
    page.keyboard.press("ArrowLeft")  # on to the day before, and the zoom with it
    assert day not in page.locator("#past-title").inner_text()
    page.keyboard.press("ArrowDown")
    assert focused(page, "aria-label") == "History of Private proof of innocence, Ethereum"
    page.keyboard.press("Escape")
    expect(page.locator("#past-title")).to_have_text("The last 14 days")
    page.keyboard.press("Home")
    assert focused(page, "aria-valuenow") == "0"
    page.keyboard.press("End")
    assert focused(page, "aria-valuenow") == "4032"


def test_of_the_strips_that_a_filter_leaves_one_can_be_reached_by_tab(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page()
    expect(page.locator(".strip")).to_have_count(21)
    page.locator("#filter").fill("hosted polygon")
    expect(page.locator(".strip")).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert focused(page, "aria-label") == "History of Hosted indexer, Polygon"
    page.locator("#filter").fill("no such thing")
    expect(page.get_by_text("Nothing matches the filter.")).to_be_visible()
    for text, left in (("messaging", 1), ("", 21)):
        page.locator("#filter").fill(text)
        expect(page.locator(".strip")).to_have_count(left)
        expect(page.locator('.strip[tabindex="0"]')).to_have_count(1)


def test_the_focus_stays_where_it_is_when_rows_come_go_and_move(site: Site, open_page: Open) -> None:
    checks = all_current()
    site.has(a_live_report(checks), a_history(checks))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".strip")).to_have_count(21)
    page.locator(".strip").nth(3).focus()
    label = focused(page, "aria-label")
    assert label == "History of Private proof of innocence, Polygon"
    others = [a_check("current", "ppoi", 5), *checks[12:], checks[3], *checks[4:9], *checks[1:3]]
    site.has(a_live_report(others), a_history(checks))
    page.wait_for_timeout(300)
    page.clock.run_for(20 * SECOND)
    expect(page.locator(".strip")).to_have_count(18)
    assert focused(page, "aria-label") == label
    order = page.locator(".card").evaluate_all("cards => cards.map(card => card.dataset.check)")
    assert order[:3] == ['["ppoi",5]', '["ppoi",137]', '["ppoi",42161]']


def test_a_pointer_over_a_strip_without_a_history_finds_nothing(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), b"nothing of the kind")
    page = open_page()
    expect(page.locator(".past .problem")).to_contain_text("unreadable")
    page.locator(".strip").first.hover()
    expect(page.locator(".readout")).to_be_hidden()


def test_a_retention_beyond_all_reason_is_drawn_all_the_same(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    long = a_history(checks, {-9: "u"}).replace(b'"retentionDays": 14', b'"retentionDays": 9007199254740991')
    site.has(a_live_report(checks), long)
    page = open_page()
    expect(page.locator(".strip .bar.unavailable")).to_have_count(1)
    paths = page.locator(".strip path").evaluate_all("all => all.map(path => path.getAttribute('d')).join()")
    assert "NaN" not in paths


def test_an_instant_in_utc_has_its_day_where_that_is_another(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page()
    moments = page.evaluate(
        "async () => { const { moment } = await import('/assets/words.js');"
        " return [moment(Date.UTC(2026, 10, 9, 23, 30)), moment(Date.UTC(2026, 10, 10, 12, 0))]; }"
    )
    assert moments == ["Tue 10 Nov 00:30 (Mon 9 Nov 23:30 UTC)", "Tue 10 Nov 13:00 (12:00 UTC)"]


@pytest.mark.clause("C13")
def test_the_bucket_that_fills_is_drawn_as_provisional(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    site.has(a_live_report(checks), a_history(checks, {-5: "?", -6: "-", -7: "u"}))
    page = open_page()
    strip = page.locator(".strip")
    strip.scroll_into_view_if_needed()
    filling = strip.locator(".filling")
    expect(filling).to_have_attribute("fill", "url(#hatch-filling)")
    healthy = strip.locator(".bar.current").evaluate("bar => getComputedStyle(bar).fill")
    assert filling.evaluate("bar => getComputedStyle(bar).stroke") != healthy
    looks = {
        name: strip.locator(f".bar.{name}").evaluate(
            "bar => [getComputedStyle(bar).fill, getComputedStyle(bar).stroke]"
        )
        for name in ("current", "unavailable", "unknown", "no-data")
    }
    assert len({tuple(look) for look in looks.values()}) == 4


@pytest.mark.clause("C9", "C12")
def test_a_history_that_cannot_be_read_leaves_the_live_rows_as_they_are(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), b"nothing of the kind")
    page = open_page()
    expect(page.locator(".past .problem")).to_contain_text("unreadable: it is not JSON")
    expect(page.locator(f".card{GREEN}")).to_have_count(21)


def test_uptime_stands_with_its_coverage_and_incidents_come_latest_first(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    site.has(
        a_live_report(checks),
        a_history(checks, {-1: "d", -2: "k", -30: "u", -31: "d", **dict.fromkeys(range(-289, -249), "?")}),
    )
    page = open_page()
    figures = page.locator(".rows .uptimes > span")
    expect(figures.nth(0)).to_have_text("24 h99.31 %of 86 % known")
    expect(figures.nth(1)).to_have_text("7 days100 %of 98 % known")
    expect(figures.nth(2)).to_have_text("14 daystoo little known")
    incidents = page.locator(".incidents li")
    expect(incidents).to_have_count(2)
    expect(incidents.nth(0)).to_contain_text("degraded")
    expect(incidents.nth(0)).to_contain_text("up to 10 min so far ongoing, provisional")
    expect(incidents.nth(1)).to_contain_text("unavailable")
    expect(incidents.nth(1)).to_contain_text("10 min")


def test_in_an_old_history_no_incident_goes_on(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    site.has(a_live_report(checks), a_history(checks, {-1: "d", -2: "d"}))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".incidents li")).to_contain_text("ongoing")
    page.clock.fast_forward(10 * MINUTE)
    expect(page.locator(".past .problem")).not_to_be_empty()
    expect(page.locator(".incidents li")).to_contain_text("up to 10 min seen end unknown")
    expect(page.locator(".incidents li")).not_to_contain_text("ongoing")


# ---- For everybody


def test_nothing_that_is_read_out_changes_with_every_second(tmp_path: Path, open_page: Open) -> None:
    checks = all_current()
    store(tmp_path, a_live_report(checks), a_history(checks))
    with a_server(tmp_path) as server:
        page = open_page(server.base, clock_ahead_ms=0)
        expect(page.locator(".row .uptimes b").first).to_have_text("99.31 %")
    page.locator("#filter").fill("no such thing")
    page.clock.fast_forward(10 * MINUTE)
    expect(page.locator(".troubles")).not_to_be_empty()
    expect(page.locator(".past .problem")).to_contain_text("No newer history")
    page.evaluate(
        "() => { window.changes = 0; const observer = new MutationObserver((all) => { window.changes += all.length; });"
        " for (const region of document.querySelectorAll('[role=alert], [role=status], [aria-live]'))"
        " observer.observe(region, { subtree: true, childList: true, characterData: true }); }"
    )
    age = page.locator(".age").inner_text()
    page.clock.run_for(100 * SECOND)
    expect(page.locator(".age")).not_to_have_text(age)
    assert page.evaluate("window.changes") == 0


@pytest.mark.clause("C12")
def test_what_people_are_to_be_told_is_in_view_with_and_without_javascript(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page()
    expect(page.locator(".card").first).to_be_visible()
    notes = page.evaluate("async () => (await import('/assets/lookout-reader.js')).NOTES.map(note => note.text)")
    assert len(notes) >= 7
    for note in notes:
        expect(page.get_by_text(note).first).to_be_visible()
    without = open_page(java_script_enabled=False)
    for note in notes:
        expect(without.get_by_text(note)).to_be_visible()


@pytest.mark.clause("C4", "C12")
def test_without_javascript_the_rows_state_their_instant_and_nothing_is_green(site: Site, open_page: Open) -> None:
    checks = of_seven_statuses()
    live = a_live_report(checks)
    site.has(live, a_history(checks))
    page = open_page(java_script_enabled=False)
    expect(page.locator("table tbody tr")).to_have_count(7)
    expect(page.locator("time")).to_be_visible()
    expect(page.locator("table")).to_contain_text("catching-up: answered, but was behind")
    assert page.locator("noscript meta[http-equiv=refresh]").count() == 1
    colours = page.locator(".ready-made .shape").evaluate_all("all => all.map(shape => getComputedStyle(shape).fill)")
    assert len(set(colours)) == 1, "current looks like any other"
    assert page.locator(GREEN).count() == 0


@pytest.mark.parametrize("asset", ["page.js", "strips.js", "lookout-reader.js"])
def test_where_a_script_is_missing_the_rows_are_there_and_the_page_loads_itself_anew(
    site: Site, open_page: Open, asset: str
) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    missing: dict[str, Callable[[Route], None]] = {f"/assets/{asset}": lambda route: route.fulfill(status=404)}
    page = open_page(clock_ahead_ms=0, routes=missing)
    expect(page.locator("table tbody tr")).to_have_count(21)
    expect(page.locator(".ready-made > p").first).to_contain_text("if the time above stays the same, reload it")
    with page.expect_navigation():
        page.clock.run_for(31 * SECOND)


def test_where_its_script_runs_the_page_is_not_loaded_anew(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".card").first).to_be_visible()
    page.evaluate("window.same = true")
    page.clock.run_for(65 * SECOND)
    page.wait_for_timeout(300)
    assert page.evaluate("window.same")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_of(site: Site, open_page: Open, scheme: str) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    checks = of_seven_statuses()
    site.has(a_live_report([*checks, 7]), a_history(checks, {-1: "d", -9: "u"}))
    page = open_page(color_scheme=scheme, reduced_motion="reduce", viewport={"width": 1280, "height": 2400})
    expect(page.locator(".incidents li").first).to_be_visible()
    page.locator(".strip").first.focus()
    for what in ("everything", "a day"):
        page.evaluate(axe)
        violations = page.evaluate("async () => (await axe.run()).violations")
        told = [(v["id"], [(n["html"][:160], n["failureSummary"][:300]) for n in v["nodes"]]) for v in violations]
        assert told == [], what
        page.keyboard.press("Enter")


def test_on_a_phone_nothing_is_wider_than_the_screen(site: Site, open_page: Open) -> None:
    checks = [*of_seven_statuses(), a_check("unavailable", "x" * 5000)]
    site.has(a_live_report(checks), a_history(checks, {-1: "d", -9: "u"}))
    for scripted, ahead_ms in ((True, None), (True, HOUR), (False, None)):
        page = open_page(viewport={"width": 360, "height": 740}, java_script_enabled=scripted, clock_ahead_ms=ahead_ms)
        expect(page.locator(".card, tbody tr").first).to_be_visible()
        session = page.context.new_cdp_session(page)
        metrics = session.send("Page.getLayoutMetrics")
        assert metrics["cssContentSize"]["width"] <= 360, (scripted, ahead_ms)


def test_the_page_is_light_and_paints_at_once(site: Site, open_page: Open) -> None:
    site.has(a_live_report([]), a_history([]))
    frame = site.server.ask("GET", "/")
    weight = len(frame.body) + sum(len(body) for _, body in assets().values())
    assert weight < 100_000
    page = open_page()
    expect(page.locator(".head")).to_be_visible()
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    paint = page.evaluate("performance.getEntriesByType('paint').map(entry => [entry.name, entry.startTime])")
    print(f"{weight} bytes; {paint}")  # noqa: T201  for those who look
    assert dict(map(tuple, paint))["first-contentful-paint"] < 3000


@pytest.mark.clause("E1")
def test_the_page_and_its_assets_are_validated_and_guarded(site: Site) -> None:
    page = site.server.ask("GET", "/")
    assert (page.http_code, page.header("cache-control")) == (200, "no-cache")
    assert site.server.ask("GET", "/", {"If-None-Match": page.header("etag") or ""}).http_code == 304
    for path in assets():
        asset = site.server.ask("GET", path)
        assert (asset.http_code, asset.header("cache-control")) == (200, "public, max-age=300"), path
        assert asset.header("etag")
        assert asset.header("x-content-type-options") == "nosniff"
        assert asset.header("content-security-policy") == page.header("content-security-policy")
    assert (page.header("content-security-policy") or "").startswith("default-src 'none'; script-src 'self';")
    assert page.header("referrer-policy") == "no-referrer"


def test_two_thousand_rows_are_bearable(site: Site, open_page: Open) -> None:
    services = ("ppoi", "broadcasters", "indexer", "hosted-indexer")
    checks = [a_check("current", service, chain_id) for service in services for chain_id in range(1, 526)]
    checks[-1] = a_check("unavailable", "hosted-indexer", 525)
    history = a_history(checks, {-9: "u", -400: "k"})
    site.has(a_live_report(checks), history)
    assert len(history) > 8_500_000
    page = open_page()
    expect(page.locator(".card").first).to_be_visible()
    expect(page.locator(".row .uptimes b").first).to_have_text("99.31 %", timeout=15_000)
    assert page.evaluate("document.querySelectorAll('*').length") < 8_000
    expect(card(page, "hosted-indexer", 525)).to_have_attribute("data-status", "unavailable")  # first what is wrong
    began = page.evaluate("performance.now()")
    page.locator("#filter").fill("chain 333")
    expect(page.locator(".card")).to_have_count(4)
    assert page.evaluate("performance.now()") - began < 5 * SECOND
    page.locator("#filter").fill("")
    page.locator("#only").check()
    expect(page.locator(".card")).to_have_count(1)
    page.locator("#only").uncheck()
    page.get_by_role("button", name="Show more").first.click()
    expect(page.locator(".card")).to_have_count(180)
    assert page.evaluate("document.querySelectorAll('*').length") < 15_000
