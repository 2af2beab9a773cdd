"""The status page for everybody, in a real browser: without its scripts, read out, small, and large."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, Route, expect

from lookout.base.instants import format_second, parse_instant
from lookout.public.about import PATH
from lookout.public.page.assets import encode_texts, load_assets
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
    find_violations,
    now_ms,
    of_seven_statuses,
    row,
    store,
)
from tests.builders import HOUR, MINUTE, SECOND
from tests.descriptions import LAUNCH as CHAINS
from tests.descriptions import a_description
from tests.integration.served import a_server
from tests.wait import until

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)


def until_ready_made_of(page: Page, rows: int) -> None:
    """The page is made a moment after its report is served."""

    def has_rows() -> bool:
        page.reload()
        return page.locator("table tbody tr").count() == rows

    until(has_rows, f"the page has {rows} rows")


def run_until_loaded_anew(page: Page, seconds: int) -> None:
    """Let so much time pass, in which the page loads itself again."""
    with page.expect_navigation():
        for _ in range(seconds):
            with suppress(Error):  # a page that fails, or is gone, ends the run
                page.clock.run_for(SECOND)


def test_nothing_that_is_read_out_changes_with_every_second(tmp_path: Path, open_page: Open) -> None:
    checks = all_current()
    store(tmp_path, a_live_report(checks), a_history(checks))
    with a_server(tmp_path) as server:
        page = open_page(server.base, clock_ahead_ms=0)
        expect(page.locator(".past-rows b").first).to_have_text("100 %")
    page.clock.fast_forward(10 * MINUTE)
    expect(page.locator(".troubles")).not_to_be_empty()
    expect(page.locator(".past > p")).to_contain_text("No newer history")
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
@pytest.mark.parametrize("scripted", [True, False])
def test_what_none_of_it_says_is_in_plain_sight_once(site: Site, open_page: Open, *, scripted: bool) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(java_script_enabled=scripted, viewport={"width": 1280, "height": 900})
    expect(page.locator(".limits")).to_be_visible()
    past, limits, foot = (page.locator(each).bounding_box() for each in (".past, table", ".limits", ".limits + *"))
    assert past is not None
    assert limits is not None
    assert foot is not None
    assert past["y"] + past["height"] <= limits["y"] < foot["y"]
    said = page.locator("#page").inner_text().lower()
    assert [said.count(note.text.lower()) for note in NOTES] == [1] * len(NOTES)


@pytest.mark.clause("C4", "C12")
def test_without_javascript_the_rows_state_their_instant_and_nothing_is_green(site: Site, open_page: Open) -> None:
    checks = of_seven_statuses()
    live = a_live_report(checks)
    site.has(live, a_history(checks))
    page = open_page(java_script_enabled=False)
    until_ready_made_of(page, 7)
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
    until_ready_made_of(page, 21)
    expect(page.locator(".ready-made > p").nth(2)).to_contain_text("if the time above does not change, reload the page")
    run_until_loaded_anew(page, 31)


def test_a_page_that_has_failed_loads_itself_again(site: Site, browser: Browser) -> None:
    """With texts of another version, as a cache in front might give them."""
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = browser.new_context().new_page()
    page.clock.install()
    old = encode_texts("en").replace('"band.well":', '"band.other":')
    page.route("**/texts-en.js", lambda route: route.fulfill(content_type="text/javascript", body=old))
    page.goto(site.server.base)
    expect(page.locator("h1")).to_have_text("This page has failed; it shows nothing rather than old data")
    page.unroute_all()
    run_until_loaded_anew(page, 31)
    expect(page.locator("h1")).to_contain_text("No problem seen with sending")
    page.context.close()


@pytest.mark.clause("C11")
def test_a_chain_that_the_monitor_renames_has_its_new_name_in_an_open_page(site: Site, open_page: Open) -> None:
    live, history = a_live_report(all_current()), a_history(all_current())
    site.has(live, history, a_description().encode())
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".networks h3").first).to_have_text("Ethereum")
    site.has(live, history, a_description(CHAINS | {1: "Renamed"}).encode())
    run_until_loaded_anew(page, 61)
    expect(page.locator(".networks h3").first).to_have_text("Renamed")


def test_without_a_description_that_can_be_read_an_open_page_stays(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    hotel: dict[str, Callable[[Route], None]] = {PATH: lambda route: route.fulfill(body="<p>Log in first</p>")}
    page = open_page(clock_ahead_ms=0, routes=hotel)
    expect(page.locator(".networks > li")).to_have_count(5)  # until then the page loads itself again
    page.evaluate("window.same = true")
    page.clock.run_for(125 * SECOND)
    assert page.evaluate("window.same")


@pytest.mark.clause("C11", "C12")
def test_a_note_stands_in_the_band_and_changes_no_row(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()), a_description().encode())

    def a_note(text: str, from_at: int, until_at: int | None = None, **scope: object) -> dict[str, object]:
        until = None if until_at is None else format_second(until_at)
        return {"id": text, "text": text, "from": format_second(from_at), "until": until} | scope

    begun = now_ms() - HOUR
    notes = [
        a_note("It moves.", now_ms() + HOUR, services=["indexer"]),
        a_note("<b>Polygon</b> forks.", begun, chains=[137]),
        a_note("It is over.", begun, now_ms() - SECOND),
        a_note("Long ago.", parse_instant("2026-11-09T23:30:00.000Z")),
        "words of an older monitor",
    ]
    described = json.loads(site.server.ask("GET", PATH).body) | {"notes": notes}
    described["notes"][:4] = [{"services": [], "chains": []} | note for note in notes[:4]]  # type: ignore[operator]
    page = open_page(clock_ahead_ms=0, routes={PATH: lambda route: route.fulfill(body=json.dumps(described))})
    expect(page.locator(".networks > li")).to_have_count(5)
    page.evaluate("window.same = true")
    page.clock.fast_forward(61 * SECOND)
    shown = page.locator(".band .operator-notes li")
    expect(shown.locator("p")).to_have_text(["<b>Polygon</b> forks.", "Long ago.", "It moves."])
    expect(shown.locator("p").first).to_have_attribute("dir", "auto")
    expect(shown.nth(0).locator("small")).to_contain_text("From the operator, about Polygon, since ")
    expect(shown.nth(1).locator("small")).to_contain_text("since Tue 10 Nov 00:30 (Mon 9 Nov 23:30 UTC), no end given")
    expect(shown.nth(2).locator("small")).to_contain_text("Planned: From the operator, about Indexer, from ")
    expect(page.locator(".band")).to_have_attribute("data-status", "current")
    assert page.evaluate("window.same"), "and the page was not loaded again for it"


def test_the_operator_and_where_else_the_data_is_stand_at_the_end(tmp_path: Path, open_page: Open) -> None:
    store(tmp_path, a_live_report(all_current()), a_history(all_current()))
    (tmp_path / "acorn.svg").write_bytes(load_assets()["/assets/icon.svg"][1])
    table = '[page]\ntitle = "Acorn"\noperator = "Acorn Ltd"\ncontact = "status@acorn.example"\n'
    table += 'logo = "acorn.svg"\naccent = "#0b7a5e"\n'
    with a_server(tmp_path, more=table) as server:
        page = open_page(server.base)
        expect(page.locator(".about-page")).to_have_text("Acorn status")
        expect(page).to_have_title("● No problem seen · Acorn")
        assert page.locator(".brand img").evaluate("image => image.naturalWidth") > 0
        edge = page.locator("body").evaluate("body => getComputedStyle(body).borderTopColor")
        assert edge == "rgb(11, 122, 94)"
        foot = page.locator("footer")
        expect(foot).to_contain_text("This monitor is run by Acorn Ltd. Contact: status@acorn.example")
        expect(foot.get_by_role("link", name="status@")).to_have_attribute("href", "mailto:status@acorn.example")
        for link in foot.locator("p.links a").all():
            assert server.ask("GET", link.get_attribute("href") or "").http_code == 200


def test_two_thousand_rows_are_bearable_and_can_be_searched(site: Site, open_page: Open) -> None:
    services = ("ppoi", "broadcasters", "indexer", "hosted-indexer")
    checks = [a_check("current", service, chain_id) for service in services for chain_id in range(1, 526)]
    checks.insert(0, a_check("current", "messaging", None))
    checks[-1] = a_check("unavailable", "hosted-indexer", 525)
    site.has(a_live_report(checks), a_history(checks, {-9: "u", -400: "k"}))
    page = open_page()
    expect(page.locator(".past-rows b").first).to_have_text(re.compile("99.9"))
    assert page.evaluate("document.querySelectorAll('*').length") < 8_000
    expect(page.locator(".networks > li").first).to_have_attribute("data-chain", "525")  # first what is wrong
    page.get_by_role("searchbox").fill("chain 333")
    expect(page.locator(".networks > li")).to_have_count(1)
    page.get_by_role("searchbox").fill("no such thing")
    expect(page.get_by_text("Nothing matches the filter.")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    page.locator("#only").check()
    expect(page.locator(".networks > li")).to_have_count(2)  # a configured network has no rows
    page.locator("#only").uncheck()
    page.get_by_role("button", name=re.compile("Show more")).click()
    expect(page.locator(".networks > li")).to_have_count(130)
    site.has(a_live_report(all_current()), a_history(all_current()))
    expect(open_page().get_by_role("searchbox")).to_have_count(0)


def test_a_day_and_open_rows_have_nothing_that_axe_complains_of_and_all_is_small_enough(
    site: Site, open_page: Open
) -> None:
    checks = [*of_seven_statuses(), a_check("unavailable", "x" * 5000)]
    site.has(a_live_report([*checks, 7]), a_history(checks, {-1: "d", -9: "u", -300: "?"}))
    for scheme in ("light", "dark"):
        page = open_page(color_scheme=scheme, reduced_motion="reduce", viewport={"width": 360, "height": 2400})
        expect(row(page, "indexer", 1)).to_be_visible()
        page.locator(".past-rows button").last.click()
        page.get_by_role("slider").focus()
        assert find_violations(page) == []
        size = page.context.new_cdp_session(page).send("Page.getLayoutMetrics")
        assert size["cssContentSize"]["width"] <= 360


def test_the_page_is_light(site: Site) -> None:
    loaded = ("icon.svg", "page.css", "language.js", "page.js", "reload.js", "texts-en.js")
    paths = ("/", *(f"/assets/{name}" for name in loaded))
    weight = sum(len(site.server.ask("GET", path, {"Accept-Encoding": "gzip"}).body) for path in paths)
    assert weight < 40_000


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
