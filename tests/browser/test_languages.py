"""The page in the language of the browser, which is the only one that it loads."""

import re

import pytest
from playwright.sync_api import Page, expect

from lookout.public.page.assets import LANGUAGES, read_catalogue
from lookout_reader.words import NOTES
from tests.browser.pages import CHROMIUM, MISSING, Open, Site, a_history, a_live_report, all_current
from tests.integration.served import HISTORY, LIVE

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

NOW = {code: str(read_catalogue(code).texts["now"]) for code in LANGUAGES}


def loaded(page: Page) -> list[str]:
    names: list[str] = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    return sorted(match[1] for name in names if (match := re.search(r"/texts-(\w+)\.js$", name)))


@pytest.mark.clause("C12")
@pytest.mark.parametrize(
    ("locale", "code"),
    [("de-AT", "de"), ("es-MX", "es"), ("zh-TW", "zh"), ("ar-EG", "ar"), ("fr-FR", "en"), ("en-GB", "en")],
)
def test_the_language_is_the_browsers_and_what_a_machine_translated_is_marked_and_in_english_too(
    site: Site, open_page: Open, locale: str, code: str
) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(locale=locale)
    expect(page.locator("#now-title")).to_have_text(NOW[code])
    assert loaded(page) == [code]
    root = page.locator("html")
    expect(root).to_have_attribute("lang", code)
    expect(root).to_have_attribute("dir", read_catalogue(code).direction)
    expect(page.locator(".machine")).to_have_count(0 if code == "en" else 1)
    for language in {code, "en"}:
        limits = page.locator(f".limits ul{'' if language == code else '[lang=en]'}").first
        for note in NOTES:
            said = str(read_catalogue(language).texts[f"warning.{note.id}"])
            expect(limits).to_contain_text(said, ignore_case=True)


def test_another_language_can_be_chosen_and_is_in_the_address(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(locale="ar")
    expect(page.locator("#now-title")).to_have_text(NOW["ar"])
    page.get_by_role("link", name="Deutsch").click()
    expect(page.locator("#now-title")).to_have_text(NOW["de"])
    page.get_by_role("link", name="Auf Englisch lesen").click()
    expect(page.locator("#now-title")).to_have_text("Now")
    assert page.url.endswith("#lang=en")


def test_where_a_catalogue_does_not_come_the_page_is_in_english(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(locale="de", routes={"/assets/*/texts-de.js": lambda route: route.fulfill(status=404)})
    expect(page.locator("#now-title")).to_have_text("Now")
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_why_there_is_no_report_is_said_in_the_language_of_the_page(open_page: Open) -> None:
    busy = {path: lambda route: route.fulfill(status=429) for path in (LIVE, HISTORY)}
    page = open_page(routes=busy, locale="de")
    expect(page.locator("h1")).to_have_text("Der Server verweigert die Antwort: Er wurde zu oft gefragt")
    expect(page.locator(".past > p")).to_have_text("Kein neuerer Verlauf: Der Server wurde zu oft gefragt.")


def test_from_right_to_left_time_runs_so_too(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current(), {-300: "u", -2: "d"}))
    page = open_page(locale="ar", viewport={"width": 1280, "height": 900})
    cells = page.locator('.past-rows [data-chain="1"] button')
    first, last, name = (each.bounding_box() for each in (cells.first, cells.last, page.locator(".name").first))
    assert first is not None
    assert last is not None
    assert name is not None
    assert last["x"] < first["x"] < name["x"], "today is at the left, and the name before the cells"
    cells.last.click()
    slider = page.get_by_role("slider")
    slider.focus()
    latest = int(slider.input_value())
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_value(str(max(0, latest - 1)))
