"""The page in the language of the browser, which is the only one that it loads."""

import re

import pytest
from playwright.sync_api import Page, expect

from lookout.public.page.assets import LANGUAGES, read_catalogue
from lookout_reader.words import NOTES
from tests.browser.pages import CHROMIUM, MISSING, Open, Site, a_history, a_live_report, all_current, of_seven_statuses

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

NOW = {code: str(read_catalogue(code).texts["now"]) for code in LANGUAGES}


def loaded(page: Page) -> list[str]:
    names: list[str] = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    return sorted(match[1] for name in names if (match := re.search(r"/texts-(\w+)\.js$", name)))


@pytest.mark.parametrize(
    ("locale", "code"),
    [("de-AT", "de"), ("es-MX", "es"), ("zh-TW", "zh"), ("ar-EG", "ar"), ("fr-FR", "en"), ("en-GB", "en")],
)
def test_the_language_is_the_browsers_and_no_other_is_loaded(
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


@pytest.mark.clause("C12")
@pytest.mark.parametrize("code", LANGUAGES[1:])
def test_every_language_has_the_warnings_in_view(site: Site, open_page: Open, code: str) -> None:
    checks = [*all_current()[:2], *of_seven_statuses()[2:]]
    site.has(a_live_report(checks), a_history(checks))
    page = open_page(locale=code)
    expect(page.locator(".card").first).to_be_visible()
    texts = read_catalogue(code).texts
    for note in NOTES:
        expect(page.get_by_text(str(texts[f"warning.{note.id}"])).first).to_be_visible()
    expect(page.locator(".head .warning b")).to_have_text(str(texts["warning.not-a-signal"]))


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


def test_from_right_to_left_time_runs_so_too_and_a_date_reads_right(site: Site, open_page: Open) -> None:
    history = a_history(all_current(), {-9: "u", -2: "d"})
    site.has(a_live_report(all_current()), history)
    page = open_page(locale="ar", viewport={"width": 1280, "height": 900})
    strip = page.locator(".strip").first
    strip.scroll_into_view_if_needed()
    red = strip.locator(".bar.unavailable").bounding_box()
    whole, name = strip.bounding_box(), page.locator(".rows .name").first.bounding_box()
    assert red is not None
    assert whole is not None
    assert name is not None
    assert red["x"] < whole["x"] + whole["width"] * 0.1, "the latest is at the left"
    assert name["x"] > whole["x"], "and the name before the strip, where reading begins"

    labels = page.locator(".axis span:not(:empty)").evaluate_all("spans => spans.map(span => span.offsetLeft)")
    assert labels == sorted(labels, reverse=True), "the oldest day is at the right"
    parts = page.locator(".axis span:not(:empty)").first.evaluate(
        """span => {
          const [text] = span.childNodes;
          return [...text.data.matchAll(/\\d+|[\\u0621-\\u064a]+/g)].map(({ 0: word, index }) => {
            const range = document.createRange();
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            return range.getBoundingClientRect().left;
          });
        }"""
    )
    assert len(parts) == 3
    assert parts == sorted(parts, reverse=True), "weekday, day and month are read from right to left"

    page.mouse.move(whole["x"] + 2, whole["y"] + 20)
    readout = page.locator(".readout")
    expect(readout).to_contain_text(str(read_catalogue("ar").texts["past.provisional"]).split("{")[0].strip())
    strip.focus()
    latest = strip.get_attribute("aria-valuenow")
    page.keyboard.press("ArrowRight")
    expect(strip).to_have_attribute("aria-valuenow", str(int(latest or 0) - 1))
    page.keyboard.press("ArrowLeft")
    expect(strip).to_have_attribute("aria-valuenow", str(latest))
