"""What the status page says of the last days, in a real browser: a cell for each day, and a day in steps of minutes."""

import json
import re
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from lookout.base.instants import format_second
from lookout.public.about import NoteDescription
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
from tests.builders import DAY, MINUTE, SECOND
from tests.descriptions import a_description
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
    said = f"{in_words(day_before(2))}: not answering 5 min (Messaging, Indexer), behind 5 min (Messaging, Indexer)"
    expect(cells.nth(11)).to_have_attribute("aria-label", said)
    fill, cell = (cells.nth(11).locator(each).bounding_box() for each in (".fill", "xpath=."))
    assert fill is not None
    assert cell is not None
    assert fill["height"] == pytest.approx((cell["height"] - 2) / 5, abs=0.6), "little trouble fills a fifth"
    assert cells.nth(11).get_attribute("data-rest") == "current"
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


@pytest.mark.clause("C16")
def test_a_cell_is_filled_by_the_share_of_its_day_in_trouble(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None), a_check("current")]
    changes = {**dict.fromkeys(buckets_of(2, 0, 144), "d"), **dict.fromkeys(buckets_of(3, 0, 288), "u")}
    changes |= {**dict.fromkeys(buckets_of(4, 0, 280), "?"), **dict.fromkeys(buckets_of(4, 280, 4), "k")}
    site.has(a_live_report(checks), a_history(checks, changes))
    page = open_page()
    cells = page.locator(f"{ETHEREUM} button")
    expect(cells).to_have_count(14)
    assert page.locator(f"{ETHEREUM} .fill").evaluate_all("all => all.map(fill => fill.style.height)") == [
        "20%",
        "100%",
        "50%",
    ]
    assert [cells.nth(n).get_attribute("data-rest") for n in (9, 10, 11)] == ["unknown", "no-data", "current"]


@pytest.mark.clause("C13")
def test_by_keyboard_alone_a_day_is_opened_and_its_steps_are_read(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None), a_check("current")]
    changes = {**dict.fromkeys(buckets_of(1, 12, 3), "u"), **dict.fromkeys(buckets_of(1, 287, 1), "d")}
    site.has(a_live_report(checks), a_history(checks, changes))
    page = open_page()
    page.locator(f"{ETHEREUM} button").last.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    yesterday, today = in_words(day_before(1)), in_words(day_before(0))
    expect(page.locator(".day:visible h3")).to_have_text(f"Ethereum, {yesterday}")
    expect(page).to_have_url(re.compile(rf"#day={day_before(1).strftime('%Y-%m-%d')}&chain=1$"))
    expect(page.locator(".day:visible h3 + p")).to_have_text(
        "not answering 15 min (Messaging, Indexer), limited 5 min (Messaging, Indexer)"
    )
    expect(page.locator(".strip")).to_have_count(2)
    slider = page.get_by_role("slider", name=f"Time of Ethereum, {yesterday}")
    slider.focus()
    assert focused(page, "aria-valuetext") == f"01:00{DASH}01:05: not answering (Messaging, Indexer)"
    page.keyboard.press("End")
    assert focused(page, "aria-valuetext") == f"23:55{DASH}00:00: limited (Messaging, Indexer)"
    page.keyboard.press("Home")
    assert focused(page, "aria-valuetext") == f"00:00{DASH}00:05: no problem seen (Messaging, Indexer)"
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    assert focused(page, "aria-valuetext") == f"01:00{DASH}01:05: not answering (Messaging, Indexer)"
    page.get_by_role("button", name="5 min earlier").press("Enter")
    expect(page.locator(".readout")).to_have_text(f"00:55{DASH}01:00: no problem seen (Messaging, Indexer)")
    page.keyboard.press("Escape")
    expect(page.locator(".day:visible")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("day="))
    assert focused(page, "aria-label").startswith(yesterday)
    page.keyboard.press("Enter")
    page.locator(".day:visible .steps button", has_text=today).press("Enter")
    expect(page.locator(".day:visible h3")).to_have_text(f"Ethereum, {today}")
    assert "provisional, not over yet; so far no problem seen" in (
        page.get_by_role("slider").get_attribute("aria-valuetext") or ""
    )
    filling, well = page.locator(".strip .filling").first, page.locator('.strip .bar[data-status="current"]').first
    fills = [bar.evaluate("bar => getComputedStyle(bar).fill") for bar in (filling, well)]
    assert fills[0] != fills[1]


def test_a_strip_is_read_where_it_is_touched(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None), a_check("current")]
    site.has(a_live_report(checks), a_history(checks, dict.fromkeys(buckets_of(1, 144, 2), "k")))
    for locale, side in (("en", 1), ("ar", -1)):
        page = open_page(viewport={"width": 390, "height": 844}, has_touch=True, locale=locale)
        page.locator(f"{ETHEREUM} button").nth(12).tap()
        strip = page.locator(".strip").first
        box = strip.bounding_box()
        assert box is not None
        strip.tap(position={"x": box["width"] / 2 + side * box["width"] / 576, "y": 9})
        expect(page.locator(".readout")).to_contain_text(f"12:00{DASH}12:05")


def test_the_past_is_in_one_zone_which_is_said_once(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current(), dict.fromkeys(buckets_of(1, 12, 3), "u")))
    page = open_page(viewport={"width": 390, "height": 844})
    expect(page.locator(".past .hint")).to_contain_text("Times here are UTC; yours is UTC +1 h.")
    dates = page.locator(".heads small:not(:empty)")
    expect(dates).to_have_text([in_words(day_before(days)) for days in (13, 7, 0)])
    assert all(date.is_visible() for date in dates.all())


@pytest.mark.clause("C16")
def test_incidents_of_ten_minutes_are_listed_with_their_notes_and_addresses(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None), a_check("current"), a_check("current", chain_id=137)]
    history = json.loads(a_history(checks))
    for n, (begin, length, character) in enumerate([(12, 2, "d"), (144, 3, "u"), (144, 3, "u")]):
        buckets = list(history["rows"][n]["buckets"])
        for index in buckets_of(1, begin, length):
            buckets[index] = character
        for index in buckets_of(3, 7, 1):
            buckets[index] = "u"  # too short to be listed
        history["rows"][n]["buckets"] = "".join(buckets)
    noon = day_before(1).replace(hour=12, minute=0, second=0, microsecond=0)
    from_at = round(noon.timestamp() * 1000)
    words = "See https://acorn.example/a?b=1, javascript:alert(1) and <b>http://</b>."
    note = NoteDescription(
        "1",
        words,
        ("indexer",),
        (137,),
        format_second(from_at),
        format_second(from_at + MINUTE),
        format_second(from_at),
    )
    about = replace(a_description(), notes=[note]).encode()
    site.has(a_live_report(checks), json.dumps(history).encode(), about)
    page = open_page()
    entries = page.locator(".incidents li")
    yesterday = in_words(day_before(1))
    expect(entries.locator(".state")).to_have_text(
        ["Indexer on Ethereum and Polygon: not answering, 15 min", "Messaging: limited, 10 min"]
    )
    expect(entries.locator("> a")).to_have_text(
        [f"{yesterday} 12:00{DASH}12:15 UTC", f"{yesterday} 01:00{DASH}01:10 UTC"]
    )
    expect(entries.first.locator("p")).to_have_text(f"From the operator: {words}")
    links = entries.first.locator("p a")
    expect(links).to_have_count(1)
    expect(links).to_have_attribute("href", "https://acorn.example/a?b=1")
    expect(page.locator(".band .operator-notes li")).to_have_count(0)
    address = f"#at={noon.strftime('%Y-%m-%dT%H:%MZ')}"
    expect(entries.first.locator("> a")).to_have_attribute("href", f"{address}&chain=1")
    reached = open_page(address=f"{address}&chain=137", viewport={"width": 390, "height": 500})
    expect(reached.locator(".incidents li").first).to_be_in_viewport()
    assert focused(reached, "href") == f"{address}&chain=1"
    expect(reached.locator(".networks h3").first).to_have_text("Ethereum")
    short = day_before(3).strftime("%Y-%m-%dT00:37Z")
    reached = open_page(address=f"#at={short}&chain=137")
    expect(reached.locator(".day:visible h3")).to_have_text(f"Polygon, {in_words(day_before(3))}")
    expect(reached.locator(".readout")).to_have_text(re.compile(f"^00:35{DASH}00:40: not answering"))


def test_many_incidents_are_shown_when_they_are_asked_for(site: Site, open_page: Open) -> None:
    checks = [a_check("current")]
    changes = {index: "d" for n in range(9) for index in buckets_of(2, 20 * n, 2)}
    site.has(a_live_report(checks), a_history(checks, changes))
    page = open_page()
    entries = page.locator(".incidents li")
    expect(entries).to_have_count(3)
    page.get_by_role("button", name="Show more (6 left)").click()
    expect(entries).to_have_count(9)
    oldest = entries.last.locator("a").get_attribute("href")
    expect(open_page(address=oldest).locator(".incidents li").last).to_be_in_viewport()


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
