"""What the page's address names is shown, and what is shown is in the address: a row, a day, a grouping."""

import re
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import (
    BERLIN,
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
    store,
)
from tests.builders import DAY
from tests.integration.served import a_server

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)


def focused(page: Page) -> str | None:
    label: str | None = page.evaluate("document.activeElement.getAttribute('aria-label')")
    return label


def day_before(days: int) -> str:
    return datetime.fromtimestamp((now_ms() - days * DAY) / 1000, ZoneInfo(BERLIN)).strftime("%Y-%m-%d")


def test_an_address_opens_a_row_on_a_day_and_follows_what_is_shown(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(address=f"#row=indexer.137&day={day_before(3)}")
    expect(page.locator(".past")).to_have_attribute("data-zoomed", "true")
    expect(page.locator(".strip:focus")).to_be_in_viewport()
    assert focused(page) == "History of Indexer on Polygon"
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"#row=indexer\.137$"))
    page.keyboard.press("PageUp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"#row=indexer\.137&day={day_before(4)}$"))
    page.get_by_role("button", name="the day before").click()
    expect(page).to_have_url(re.compile(rf"&day={day_before(5)}$"))
    page.evaluate("location.hash = '#row=messaging'")
    expect(page.locator(".strip:focus")).to_have_attribute("aria-label", "History of Messaging")


@pytest.mark.parametrize("address", ["#row=nothing.7&day=2001-02-03", "#day=2026-13-77&by=colour&lang=xx", "#%"])
def test_an_address_of_what_is_not_there_opens_the_page(site: Site, open_page: Open, address: str) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(address=address)
    expect(page.locator(".row .uptimes b").first).to_have_text("99.31 %")
    expect(page.locator("#past-title")).to_have_text("The last 14 days")
    expect(page.locator('.group[data-group="chain 1"]')).to_be_visible()


def test_a_day_has_figures_of_its_own(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    noon = datetime.fromisoformat(f"{day_before(2)}T12:00").replace(tzinfo=ZoneInfo(BERLIN))
    first = round(noon.timestamp() * 1000) // BUCKET - now_ms() // BUCKET - 1
    changes = dict.fromkeys(range(first, first + 6), "u") | dict.fromkeys(range(first + 6, first + 78), "?")
    site.has(a_live_report(checks), a_history(checks, changes))
    page = open_page(address=f"#day={day_before(2)}")
    figures = page.locator(".rows .uptimes > span:visible")
    expect(figures).to_have_text(["Uptime that day97.22 %known 75 % of the time", "In trouble30 min"])
    page.get_by_role("button", name="the day before").click()
    expect(figures).to_have_text(["Uptime that day100 %known all the time", "In trouble\N{EN DASH}"])
    page.get_by_role("button", name="All days").click()
    expect(figures).to_have_count(3)


def test_the_operator_and_where_else_the_data_is_stand_at_the_end(tmp_path: Path, open_page: Open) -> None:
    store(tmp_path, a_live_report(all_current()), a_history(all_current()))
    table = '[page]\ntitle = "Acorn"\noperator = "Acorn Ltd"\ncontact = "status@acorn.example"\n'
    with a_server(tmp_path, more=table) as server:
        page = open_page(server.base)
        expect(page.locator(".about-page")).to_contain_text("Status of what Acorn depends on")
        expect(page).to_have_title("No problem seen · Acorn")
        foot = page.locator("footer")
        expect(foot).to_contain_text("This monitor is run by Acorn Ltd. Contact: status@acorn.example")
        expect(foot.get_by_role("link", name="status@")).to_have_attribute("href", "mailto:status@acorn.example")
        for link in foot.locator("p.links a").all():
            assert server.ask("GET", link.get_attribute("href") or "").http_code == 200


def test_on_paper_every_strip_is_drawn_and_the_report_has_its_instant(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(viewport={"width": 1280, "height": 600})
    expect(page.locator(".row .uptimes b").first).to_have_text("99.31 %")
    page.emulate_media(media="print")
    page.pdf()
    assert page.locator(".strip svg").count() == 21
    expect(page.locator(".age")).to_contain_text(re.compile(r"Report of .* UTC\)"))
    expect(page.locator(".filter")).to_be_hidden()
