"""What the status page says of the last days, in a real browser: a cell for each day, and a day in steps of minutes."""

import json
import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import (
    BUCKET,
    CHROMIUM,
    MISSING,
    Open,
    Site,
    a_check,
    a_history,
    a_live_report,
    all_current,
    now_ms,
)
from tests.builders import DAY, SECOND
from tests.wait import until

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

DASH = "\N{EN DASH}"
ETHEREUM = '.past-rows [data-chain="1"]'


def focused(page: Page, attribute: str) -> str:
    found: str = page.evaluate("name => document.activeElement.getAttribute(name)", attribute)
    return found


def day_before(days: int) -> datetime:
    return datetime.fromtimestamp((now_ms() - days * DAY) / 1000, UTC)


def in_words(day: datetime) -> str:
    return f"{day.strftime('%a')} {day.day} {day.strftime('%b')}"


def buckets_of(days: int, first: int, number: int) -> range:
    """So many buckets of a day in UTC, from this one on, counted from the end of a history."""
    begin = (now_ms() // DAY - days) * DAY // BUCKET + first
    index = begin - now_ms() // BUCKET - 1
    return range(index, index + number)


@pytest.mark.clause("C13")
def test_a_day_is_as_its_worst_was_and_no_greener_than_most_of_it(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None), a_check("current")]
    changes = {
        **dict.fromkeys(buckets_of(2, 10, 1), "k"),
        **dict.fromkeys(buckets_of(2, 20, 1), "u"),
        **dict.fromkeys(buckets_of(3, 0, 200), "?"),
        **dict.fromkeys(buckets_of(4, 0, 288), "."),
        **dict.fromkeys(buckets_of(5, 0, 288), "-"),
        -1: "u",  # is not over yet, and counts in no cell
    }
    site.has(a_live_report(checks), a_history(checks, changes))
    page = open_page(viewport={"width": 1280, "height": 900})
    cells = page.locator(f"{ETHEREUM} button")
    expect(cells).to_have_count(14)
    shown = cells.evaluate_all("all => all.map(cell => cell.dataset.status)")
    assert shown == ["current"] * 8 + ["no-data", "unmonitored", "unknown", "unavailable", "current", "current"]
    said = f"{in_words(day_before(0))}: no problem seen, not over yet"
    expect(cells.last).to_have_attribute("aria-label", said)
    looks = cells.evaluate_all(
        "all => all.map(cell => { const of = getComputedStyle(cell);"
        " return [of.backgroundColor, of.borderStyle, of.borderColor, cell.dataset.status] })"
    )
    assert len({str(look) for look in looks}) == 6, "also what is not over looks like nothing else"


@pytest.mark.clause("C12")
def test_a_network_of_which_nothing_was_seen_has_no_green_day_from_what_it_shares_with_others(
    site: Site, open_page: Open
) -> None:
    checks = [a_check("current", "messaging", None), a_check("unknown"), a_check("current", "ppoi")]
    history = json.loads(a_history(checks))
    last = len(history["rows"][0]["buckets"]) - 1
    of = {row["service"]: row for row in history["rows"]}
    of["indexer"]["buckets"] = "?" * 2000 + "." * (last - 2000) + "c"
    of["ppoi"]["buckets"] = "c" * 2000 + "." * (last - 2000) + "c"
    site.has(a_live_report(checks), json.dumps(history).encode())
    page = open_page()
    cells = page.locator(f"{ETHEREUM} button")
    expect(cells).to_have_count(14)
    shown = cells.evaluate_all("all => all.map(cell => cell.dataset.status)")
    assert set(shown) == {"unknown", "unmonitored"}
    expect(page.locator(f"{ETHEREUM} b")).to_have_text("too little known")


def test_a_share_is_never_rounded_up_and_counts_every_service_of_the_network(site: Site, open_page: Open) -> None:
    checks = [a_check("current"), a_check("current", "ppoi"), a_check("current", "ppoi", 137)]
    site.has(a_live_report(checks), a_history(checks, {-9: "k"}))
    page = open_page()
    expect(page.locator(f"{ETHEREUM} b")).to_have_text("99.97 %")
    site.has(a_live_report(checks), a_history(checks))
    expect(open_page().locator(f"{ETHEREUM} b")).to_have_text("100 %")


@pytest.mark.clause("C13")
def test_by_keyboard_alone_a_day_is_opened_and_its_buckets_are_read(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None), a_check("current")]
    changes = {**dict.fromkeys(buckets_of(1, 12, 3), "u"), **dict.fromkeys(buckets_of(1, 287, 1), "d")}
    site.has(a_live_report(checks), a_history(checks, changes))
    page = open_page()
    page.locator(f"{ETHEREUM} button").last.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    yesterday = day_before(1)
    expect(page.locator(".day:visible h3")).to_have_text(f"Ethereum, {in_words(yesterday)}")
    expect(page).to_have_url(re.compile(rf"#day={yesterday.strftime('%Y-%m-%d')}&chain=1$"))
    expect(page.locator(".day:visible .incidents").first).to_contain_text(
        f"not answering from {in_words(yesterday)} 01:00 UTC, 15 min · limited from {in_words(yesterday)} 23:55 UTC"
    )
    expect(page.locator(".strip")).to_have_count(2)
    page.locator(".strip").first.focus()
    assert focused(page, "aria-label") == f"Messaging, {in_words(yesterday)}"
    assert focused(page, "aria-valuetext") == f"23:55{DASH}00:00 UTC: limited"
    page.keyboard.press("Home")
    page.keyboard.press("PageDown")
    assert focused(page, "aria-valuetext") == f"01:00{DASH}01:05 UTC: not answering"
    expect(page.locator(".readout")).to_have_text(f"Messaging: 01:00{DASH}01:05 UTC: not answering")
    page.locator(f"{ETHEREUM} button").last.click()
    page.locator(".strip").first.focus()
    assert "provisional, not over yet; so far no problem seen" in focused(page, "aria-valuetext")
    filling, well = page.locator(".strip .filling").first, page.locator('.strip .bar[data-status="current"]').first
    fills = [bar.evaluate("bar => getComputedStyle(bar).fill") for bar in (filling, well)]
    assert fills[0] != fills[1]
    page.locator(f"{ETHEREUM} button").last.focus()
    page.keyboard.press("Escape")
    expect(page.locator(".day:visible")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("day="))


def test_an_address_opens_its_network_first_and_its_day(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(address=f"#chain=137&day={day_before(3).strftime('%Y-%m-%d')}")
    expect(page.locator(".day:visible h3")).to_have_text(f"Polygon, {in_words(day_before(3))}")
    expect(page.locator(".networks h3").first).to_have_text("Polygon")
    expect(page.locator(".networks .rows li:visible")).to_have_count(5)
    page.evaluate("location.hash = '#chain=56'")
    expect(page.locator(".networks h3").first).to_have_text("BNB Smart Chain")


@pytest.mark.parametrize("address", ["#chain=7&day=2001-02-03", "#chain=137&day=2026-13-77&lang=xx", "#%"])
def test_an_address_of_what_is_not_there_opens_the_page(site: Site, open_page: Open, address: str) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(address=address)
    expect(page.locator(".past-rows b")).to_have_text(["100 %"] * 5)
    expect(page.locator(".day:visible")).to_have_count(0)


@pytest.mark.clause("C9", "C12")
def test_a_history_that_cannot_be_read_leaves_the_live_rows_as_they_are(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), b"nothing of the kind")
    page = open_page()
    expect(page.locator(".past > p")).to_have_text("No newer history: it cannot be read.")
    expect(page.locator('.answer[data-status="current"]')).to_have_count(15)


def test_the_focus_stays_where_it_is_when_a_new_history_comes(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    cell = page.locator('.past-rows [data-chain="137"] button').nth(5)
    cell.focus()
    label = focused(page, "aria-label")
    site.has(a_live_report(all_current()), a_history(all_current(), {-400: "u"}, generated_at=now_ms() + SECOND))

    def has_the_new_one() -> bool:
        page.clock.run_for(30 * SECOND)
        page.wait_for_timeout(300)
        return page.locator(".past-rows b").first.inner_text() == "99.97 %"

    until(has_the_new_one, "the new history is shown")
    assert focused(page, "aria-label") == label
