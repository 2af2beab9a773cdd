"""The status page for everybody, in a real browser: without its scripts, read out, small, and large."""

from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Route, expect

from lookout.public.page.assets import encode_texts, load_assets, read_catalogue
from lookout_reader.words import NOTES
from tests.browser.pages import (
    CHROMIUM,
    GREEN,
    MISSING,
    Open,
    Site,
    a_check,
    a_history,
    a_live_report,
    all_current,
    card,
    of_seven_statuses,
    store,
)
from tests.builders import HOUR, MINUTE, SECOND
from tests.descriptions import LAUNCH as CHAINS
from tests.descriptions import a_description
from tests.integration.served import a_server
from tests.wait import until

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)


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
    warnings = [read_catalogue("en").texts[f"warning.{note.id}"] for note in NOTES]
    assert len(warnings) >= 7
    for by in ("chain", "service"):
        page.get_by_role("radio", name=by).check()
        for warning in warnings:
            expect(page.get_by_text(str(warning)).first).to_be_visible()
    expect(page.locator(".head")).to_contain_text("It is not a signal that it is safe to transact.")
    without = open_page(java_script_enabled=False)
    for warning in warnings:
        expect(without.get_by_text(str(warning))).to_be_visible()


@pytest.mark.clause("C4", "C12")
def test_without_javascript_the_rows_state_their_instant_and_nothing_is_green(site: Site, open_page: Open) -> None:
    checks = of_seven_statuses()
    live = a_live_report(checks)
    site.has(live, a_history(checks))
    page = open_page(java_script_enabled=False)

    def has_this_report() -> bool:
        page.reload()  # the page is made a moment after the report is served
        return page.locator("table tbody tr").count() == 7

    until(has_this_report, "the page of this report")
    expect(page.locator("time")).to_be_visible()
    expect(page.locator("table")).to_contain_text("behind")
    assert page.locator("noscript meta[http-equiv=refresh]").count() == 1
    colours = page.locator("tbody td").evaluate_all("all => all.map(cell => getComputedStyle(cell).color)")
    assert len(set(colours)) == 1, "current looks like any other"
    assert page.locator(GREEN).count() == 0


@pytest.mark.parametrize("asset", ["page.js", "language.js"])
def test_where_a_script_is_missing_the_rows_are_there_and_the_page_loads_itself_anew(
    site: Site, open_page: Open, asset: str
) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    missing: dict[str, Callable[[Route], None]] = {f"/assets/*/{asset}": lambda route: route.fulfill(status=404)}
    page = open_page(clock_ahead_ms=0, routes=missing)
    expect(page.locator("table tbody tr")).to_have_count(21)
    expect(page.locator(".ready-made > p").nth(1)).to_contain_text("if the time above stays the same, reload it")
    with page.expect_navigation():
        page.clock.run_for(31 * SECOND)


def test_a_page_that_has_failed_loads_itself_again(site: Site, browser: Browser) -> None:
    """With texts of another version, as a cache in front might give them."""
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = browser.new_context().new_page()
    page.clock.install()
    old = encode_texts("en").replace('"headline.current":', '"headline.well":')
    page.route("**/texts-en.js", lambda route: route.fulfill(content_type="text/javascript", body=old))
    page.goto(site.server.base)
    expect(page.locator("h1")).to_have_text("This page has failed, and shows nothing rather than something old")
    page.unroute_all()
    with page.expect_navigation():
        for _ in range(31):
            with suppress(Error):  # it fails again with every second, which ends the run
                page.clock.run_for(SECOND)
    expect(page.locator("h1")).to_have_text("No problem seen")
    page.context.close()


def test_where_its_script_runs_the_page_is_not_loaded_anew(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".card").first).to_be_visible()
    page.evaluate("window.same = true")
    page.clock.run_for(65 * SECOND)
    page.wait_for_timeout(300)
    assert page.evaluate("window.same")


@pytest.mark.clause("C11")
def test_a_chain_that_the_monitor_renames_has_its_new_name_in_an_open_page(site: Site, open_page: Open) -> None:
    live, history = a_live_report(all_current()), a_history(all_current())
    site.has(live, history, a_description().encode())
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".group h3").nth(1)).to_have_text("Ethereum")
    site.has(live, history, a_description(CHAINS | {1: "Renamed"}).encode())
    with page.expect_navigation():
        page.clock.run_for(61 * SECOND)
    expect(page.locator(".group h3").nth(1)).to_have_text("Renamed")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"status": 503, "body": '{"title": "another"}'}, id="a failure"),
        pytest.param({"body": "<p>Log in first</p>"}, id="the page of a hotel"),
        pytest.param(None, id="no answer"),
    ],
)
def test_without_a_description_that_can_be_read_an_open_page_stays(
    site: Site, open_page: Open, answer: dict[str, Any] | None
) -> None:
    asked: list[str] = []

    def reply(route: Route) -> None:
        asked.append(route.request.url)
        if answer is None:
            route.abort()
        else:
            route.fulfill(**answer)

    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(clock_ahead_ms=0, routes={"/about.json": reply})
    expect(card(page, "indexer", 1)).to_be_visible()
    page.evaluate("window.same = true")
    page.clock.run_for(185 * SECOND)
    page.wait_for_timeout(300)
    assert (len(asked), page.evaluate("window.same")) == (3, True)


def test_a_description_that_is_always_another_one_loads_the_page_once_a_minute(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    another: dict[str, Callable[[Route], None]] = {"/about.json": lambda route: route.fulfill(body='{"title": "x"}')}
    page = open_page(clock_ahead_ms=0, routes=another)
    for _ in range(2):
        expect(card(page, "indexer", 1)).to_be_visible()
        page.evaluate("window.same = true")
        page.clock.run_for(45 * SECOND)  # and what it took to open the page, which may be seconds
        page.wait_for_timeout(300)
        assert page.evaluate("window.same")
        with page.expect_navigation():
            page.clock.run_for(16 * SECOND)


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


def test_the_page_is_light(site: Site) -> None:
    site.has(a_live_report([]), a_history([]))
    loaded = ("icon.svg", "page.css", "language.js", "page.js", "reload.js", "texts-en.js")
    paths = ("/", *(f"/assets/{name}" for name in loaded))
    weight = sum(len(site.server.ask("GET", path, {"Accept-Encoding": "gzip"}).body) for path in paths)
    assert weight < 39_000


def test_the_feed_that_the_page_names_is_there(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    link = open_page().locator("link[rel=alternate]")
    feed = site.server.ask("GET", link.get_attribute("href") or "")
    assert feed.http_code == 200
    assert (feed.header("content-type") or "").startswith(link.get_attribute("type") or "none")
    assert f"<title>{link.get_attribute('title')}</title>".encode() in feed.body


@pytest.mark.clause("E1")
def test_the_page_and_its_assets_are_validated_and_guarded(site: Site) -> None:
    page = site.server.ask("GET", "/")
    assert (page.http_code, page.header("cache-control")) == (200, "no-cache")
    assert site.server.ask("GET", "/", {"If-None-Match": page.header("etag") or ""}).http_code == 304
    for path in load_assets():
        asset = site.server.ask("GET", path)
        assert (asset.http_code, asset.header("cache-control")) == (200, "public, max-age=300"), path
        assert asset.header("etag")
        assert asset.header("x-content-type-options") == "nosniff"
        assert asset.header("content-security-policy") == page.header("content-security-policy")
    assert (page.header("content-security-policy") or "").startswith("default-src 'none'; script-src 'self';")
    assert page.header("referrer-policy") == "no-referrer"


@pytest.mark.long
@pytest.mark.long
def test_two_thousand_rows_are_bearable(site: Site, open_page: Open) -> None:
    services = ("ppoi", "broadcasters", "indexer", "hosted-indexer")
    checks = [a_check("current", service, chain_id) for service in services for chain_id in range(1, 526)]
    checks[-1] = a_check("unavailable", "hosted-indexer", 525)
    history = a_history(checks, {-9: "u", -400: "k"})
    site.has(a_live_report(checks), history)
    assert len(history) > 8_500_000
    page = open_page()
    expect(page.locator(".card").first).to_be_visible()
    expect(page.locator(".row .uptimes b").first).to_have_text("99.31 %")
    assert page.evaluate("document.querySelectorAll('*').length") < 8_000
    expect(card(page, "hosted-indexer", 525)).to_have_attribute("data-status", "unavailable")  # first what is wrong
    page.get_by_role("radio", name="service").check()
    expect(page.locator(".card")).to_have_count(80)
    expect(card(page, "hosted-indexer", 525)).to_be_visible()
    page.locator("#filter").fill("chain 333")
    expect(page.locator(".card")).to_have_count(4)
    page.locator("#filter").fill("")
    page.locator("#only").check()
    expect(page.locator(".card")).to_have_count(1)
    page.locator("#only").uncheck()
    page.get_by_role("button", name="Show more (505 left)").first.click()
    expect(page.locator(".card")).to_have_count(180)
    assert page.evaluate("document.querySelectorAll('*').length") < 15_000
