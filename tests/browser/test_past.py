"""What the status page says of the last days, in a real browser: strips, uptimes and incidents."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from lookout.base.clock import format_instant
from tests.browser.pages import (
    BERLIN,
    BUCKET,
    CHROMIUM,
    GREEN,
    MISSING,
    Open,
    Site,
    a_check,
    a_history,
    a_live_report,
    all_current,
    filling_bucket_of,
    now_ms,
)
from tests.builders import DAY, HOUR, MINUTE, SECOND

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

DASH = "\N{EN DASH}"


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
    for _ in range(4):
        page.keyboard.press("Tab")
    assert focused(page, "role") == "slider"
    assert focused(page, "aria-label") == "History of Messaging"
    assert focused(page, "aria-valuetext") == f"{words(to_at)}: provisional, not over yet; so far no problem seen"
    page.keyboard.press("ArrowLeft")
    assert focused(page, "aria-valuetext") == f"{words(to_at - BUCKET)}: limited"
    expect(page.locator(".readout")).to_have_text(f"{words(to_at - BUCKET)}: limited")
    page.keyboard.press("ArrowLeft")
    assert focused(page, "aria-valuetext") == f"{words(to_at - 2 * BUCKET)}: no data"
    page.keyboard.press("ArrowLeft")
    assert focused(page, "aria-valuetext") == f"{words(to_at - 3 * BUCKET)}: not known"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    assert focused(page, "aria-valuetext") == f"{words(to_at - 289 * BUCKET)}: no usable answer"

    page.keyboard.press("Enter")
    day = " ".join(words(to_at - 289 * BUCKET).split(" ")[:3])
    expect(page.locator("#past-title")).to_contain_text(day)
    assert focused(page, "aria-valuetext") == f"{words(to_at - 289 * BUCKET)}: no usable answer"
    page.keyboard.press("Home")
    assert f"{day} 00:00{DASH}00:05" in (focused(page, "aria-valuetext") or "")
    page.keyboard.press("ArrowLeft")  # on to the day before, and the zoom with it
    assert day not in page.locator("#past-title").inner_text()
    page.keyboard.press("ArrowDown")
    assert focused(page, "aria-label") == "History of Private proof of innocence on Ethereum"
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
    for _ in range(3):
        page.keyboard.press("Tab")
    assert focused(page, "aria-label") == "History of Hosted indexer on Polygon"
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
    page.locator(".strip").nth(9).focus()
    label = focused(page, "aria-label")
    assert label == "History of Private proof of innocence on Polygon"
    others = [a_check("current", "ppoi", 5), *checks[12:], checks[3], *checks[4:9], *checks[1:3]]
    site.has(a_live_report(others), a_history(checks))
    page.wait_for_timeout(300)
    page.clock.run_for(20 * SECOND)
    expect(page.locator(".strip")).to_have_count(18)
    assert focused(page, "aria-label") == label
    order = page.locator(".card").evaluate_all("cards => cards.map(card => card.dataset.check)")
    assert order[-1] == '["ppoi",5]'


def test_a_pointer_over_a_strip_without_a_history_finds_nothing(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), b"nothing of the kind")
    page = open_page()
    expect(page.locator(".past .problem")).to_contain_text("it cannot be read")
    page.locator(".strip").first.hover()
    expect(page.locator(".readout")).to_be_hidden()


@pytest.mark.parametrize(
    ("days", "bucket", "title", "buckets"),
    [
        (14, 5 * MINUTE, "The last 14 days", "steps of 5 min."),
        (30, HOUR, "The last 30 days", "steps of 1 h."),
        (1, 450 * SECOND, "The last day", "steps of 450 s."),
    ],
)
def test_how_many_days_and_how_long_a_bucket_is_are_the_historys_own_figures(
    site: Site, open_page: Open, days: int, bucket: int, title: str, buckets: str
) -> None:
    checks = [a_check("current", "messaging", None)]
    site.has(a_live_report(checks), a_history(checks, bucket=bucket, days=days))
    page = open_page()
    expect(page.locator("#past-title")).to_have_text(title)
    expect(page.locator(".past .hint").first).to_contain_text(f"Choose a day to see it in {buckets}")
    page.locator(".strip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#past-title")).to_contain_text(f"{title}: ")
    page.keyboard.press("Escape")
    expect(page.locator("#past-title")).to_have_text(title)


def test_without_a_history_nobody_says_how_long_it_is(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), b"nothing of the kind")
    page = open_page()
    expect(page.locator("#past-title")).to_have_text("The last days")
    expect(page.locator(".past .hint").first).not_to_contain_text("Choose a day")


def test_a_retention_beyond_all_reason_is_drawn_all_the_same(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    long = a_history(checks, {-9: "u"}).replace(b'"retentionDays": 14', b'"retentionDays": 9007199254740991')
    site.has(a_live_report(checks), long)
    page = open_page()
    expect(page.locator(".strip .bar.unavailable")).to_have_count(1)
    paths = page.locator(".strip path").evaluate_all("all => all.map(path => path.getAttribute('d')).join()")
    assert "NaN" not in paths


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
    expect(page.locator(".past .problem")).to_contain_text("No newer history: it cannot be read.")
    expect(page.locator(f".card{GREEN}")).to_have_count(21)


def test_uptime_stands_with_its_coverage_and_incidents_come_latest_first(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    site.has(
        a_live_report(checks),
        a_history(checks, {-1: "d", -2: "k", -30: "u", -31: "d", **dict.fromkeys(range(-289, -249), "?")}),
    )
    page = open_page()
    figures = page.locator(".rows .uptimes > span")
    expect(figures.nth(0)).to_have_text("Uptime, last 24 h99.31 %known 86 % of the time")
    expect(figures.nth(1)).to_have_text("Uptime, last 7 days100 %known 98 % of the time")
    expect(figures.nth(2)).to_have_text("Uptime, last 14 daystoo little known")
    incidents = page.locator(".incidents li")
    expect(incidents).to_have_count(2)
    expect(incidents.nth(0)).to_contain_text("limited")
    expect(incidents.nth(0)).to_contain_text("up to 10 min so far ongoing, provisional")
    expect(incidents.nth(1)).to_contain_text("no usable answer")
    expect(incidents.nth(1)).to_contain_text("10 min")


@pytest.mark.parametrize(
    ("before", "begins_ago_ms"),
    [
        pytest.param("k", 2 * BUCKET, id="not before it was noticed"),
        pytest.param("c", BUCKET + SECOND, id="with the last good answer if it began with none"),
    ],
)
def test_an_incident_begins_where_its_strip_does(site: Site, open_page: Open, before: str, begins_ago_ms: int) -> None:
    filling_at = now_ms() // BUCKET * BUCKET
    answered = format_instant(filling_at - BUCKET - SECOND)
    down = a_check("unavailable", reason="unreachable", metrics={}) | {"lastSuccessAt": answered}
    site.has(a_live_report([down]), a_history([down], {-3: before, -2: "u", -1: "u"}))
    begun = in_berlin(filling_at - begins_ago_ms, "%H:%M (")
    expect(open_page().locator(".incidents li .when").first).to_contain_text(begun)


@pytest.mark.parametrize(
    ("first", "words"),
    [(".", "not watched"), ("-", "not watched"), ("?", "too little known")],
    ids=["never watched", "since the monitor began", "watched for a while"],
)
def test_the_uptime_of_a_row_that_nobody_watches_is_said_to_be_none(
    site: Site, open_page: Open, first: str, words: str
) -> None:
    checks = [a_check("unmonitored", "hosted-indexer", 11155111)]
    length = 14 * DAY // BUCKET + 1
    site.has(a_live_report(checks), a_history(checks, dict.fromkeys(range(-length, 0), ".") | {-length: first}))
    page = open_page()
    expect(page.locator(".rows .uptimes > span").nth(2)).to_have_text(f"Uptime, last 14 days{words}")


def test_in_an_old_history_no_incident_goes_on(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    site.has(a_live_report(checks), a_history(checks, {-1: "d", -2: "d"}))
    page = open_page(clock_ahead_ms=0)
    expect(page.locator(".incidents li")).to_contain_text("ongoing")
    page.clock.fast_forward(10 * MINUTE)
    expect(page.locator(".past .problem")).not_to_be_empty()
    expect(page.locator(".incidents li")).to_contain_text("up to 10 min seen end unknown")
    expect(page.locator(".incidents li")).not_to_contain_text("ongoing")


def test_an_outage_begins_in_the_list_of_incidents_when_its_card_says(site: Site, open_page: Open) -> None:
    history = a_history(all_current(), {-3: "u", -2: "u", -1: "u"})
    answered_at = filling_bucket_of(history) - 2 * BUCKET - 90 * SECOND
    down = a_check("unavailable", metrics={}, reason="unreachable", lastSuccessAt=format_instant(answered_at))
    site.has(a_live_report([down]), history)
    page = open_page()
    since = in_berlin(answered_at, "%H:%M")
    expect(page.locator(".card .why")).to_contain_text(since)
    expect(page.locator(".incidents li").filter(has_text="Indexer on Ethereum").locator(".when")).to_contain_text(since)


@pytest.mark.parametrize("locale", ["en", "zh", "ar"])
@pytest.mark.parametrize("width", [360, 1280])
def test_no_label_of_the_axis_is_cut_off_or_covers_another(
    site: Site, open_page: Open, locale: str, width: int
) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(locale=locale, viewport={"width": width, "height": 800})
    expect(page.locator(".axis span:not(:empty)").first).to_be_visible()
    places = page.locator(".axis").evaluate(
        "axis => [...axis.querySelectorAll('span:not(:empty)')].map(span => [span.offsetLeft,"
        " span.offsetLeft + span.offsetWidth, axis.clientWidth])"
    )
    assert all(left >= 0 and right <= whole for left, right, whole in places)
    assert all(one[1] < other[0] for one, other in pairwise(sorted(places)))


@pytest.mark.parametrize("width", [760, 1280])
def test_the_dates_of_the_axis_stand_at_even_distances_up_to_its_end(site: Site, open_page: Open, width: int) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    page = open_page(viewport={"width": width, "height": 800})
    page.emulate_media(media="print")
    expect(page.locator(".axis span:not(:empty)").first).to_be_visible()
    shown: list[int] = page.locator(".axis").evaluate(
        "axis => [...axis.children].flatMap((span, n) => span.textContent === '' ? [] : [n])"
    )
    steps = {other - one for one, other in pairwise(shown)}
    assert len(steps) <= 1
    left_out, day, label = page.locator(".axis").evaluate(
        "axis => { const last = [...axis.querySelectorAll('span:not(:empty)')].at(-1);"
        " return [axis.clientWidth - last.offsetLeft, axis.clientWidth / 14, last.offsetWidth]; }"
    )
    assert left_out <= day + label + 1, "no more than a label and a day"


def test_on_paper_it_is_said_how_many_incidents_are_left_out_and_where_the_page_is(site: Site, open_page: Open) -> None:
    checks = [a_check("current", "messaging", None)]
    site.has(a_live_report(checks), a_history(checks, dict.fromkeys(range(-30, -4, 2), "u")))
    page = open_page()
    expect(page.locator(".incidents li")).to_have_count(10)
    expect(page.get_by_role("button", name="Show more (3 left)")).to_be_visible()
    expect(page.locator(".address")).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.get_by_text("Not shown here: 3 more")).to_be_visible()
    expect(page.locator(".address")).to_have_text(f"{site.server.base}/")
    expect(page.locator(".address")).to_be_visible()
