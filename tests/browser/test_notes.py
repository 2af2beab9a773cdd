"""What the operator notes: beside what it is about, and nothing of what is measured changes with it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from lookout.base.clock import format_second
from lookout.public.about import PATH
from tests.browser.pages import CHROMIUM, MISSING, Json, Open, Site, a_history, a_live_report, all_current, now_ms
from tests.builders import HOUR, SECOND

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)


def a_note(
    text: str, *, services: tuple[str, ...] = (), chains: tuple[int, ...] = (), until: int | None = None
) -> Json:
    begun = format_second(now_ms() - HOUR)
    ends = None if until is None else format_second(until)
    return {"id": "1", "text": text, "services": services, "chains": chains, "from": begun, "until": ends}


def noting(site: Site, notes: list[Any]) -> dict[str, Callable[[Route], None]]:
    """The deployment's description with these notes, which an open page takes over."""
    described = json.loads(site.server.ask("GET", PATH).body) | {"notes": notes}
    return {PATH: lambda route: route.fulfill(body=json.dumps(described))}


@pytest.mark.clause("C11", "C12")
def test_a_note_stands_beside_what_it_is_about_and_changes_no_row(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    notes = [
        a_note("We move to another place.", until=now_ms() + HOUR),
        a_note("The indexer of Polygon is built again.", services=("indexer",), chains=(137,)),
        a_note("All indexers get a new disk.", services=("indexer",)),
        a_note("<b>Polygon</b> forks.", chains=(137,)),
        a_note("It is over.", until=now_ms() - SECOND),
        "words of an older monitor",
        {"text": 7},
    ]
    page = open_page(clock_ahead_ms=0, routes=noting(site, notes))
    expect(page.locator(".card")).to_have_count(21)
    page.evaluate("window.same = true")
    page.clock.run_for(61 * SECOND)
    expect(page.locator(".head .operator-notes p")).to_have_text(
        ["We move to another place.", "All indexers get a new disk."]
    )
    polygon = page.locator('.group[data-group="chain 137"] .operator-notes')
    expect(polygon.locator("p")).to_have_text(["The indexer of Polygon is built again.", "<b>Polygon</b> forks."])
    expect(polygon.locator("small").first).to_contain_text("From the operator, about Indexer, since ")
    expect(page.locator(".operator-notes li")).to_have_count(4)
    expect(page.locator("h1")).to_have_text("No problem seen")
    assert page.evaluate("window.same"), "and the page was not loaded again for it"
    page.get_by_role("radio", name="service").check()
    indexer = page.locator('.group[data-group="service indexer"] .operator-notes p')
    expect(indexer).to_have_text(["The indexer of Polygon is built again.", "All indexers get a new disk."])
    page.clock.fast_forward(2 * HOUR)
    expect(page.locator(".head .operator-notes p")).to_have_text(["<b>Polygon</b> forks."])


def test_an_instant_in_utc_has_its_day_where_that_is_another(site: Site, open_page: Open) -> None:
    site.has(a_live_report(all_current()), a_history(all_current()))
    instants = ("2026-11-09T23:30:00Z", "2026-11-10T12:00:00Z", "2099-11-10T12:00:00Z")
    notes = [a_note("It moves.") | {"from": instant} for instant in instants]
    page = open_page(clock_ahead_ms=0, routes=noting(site, notes))
    expect(page.locator(".card")).to_have_count(21)
    page.clock.run_for(61 * SECOND)
    whens = page.locator(".head .operator-notes small")
    expect(whens.first).to_contain_text("since Tue 10 Nov 00:30 (Mon 9 Nov 23:30 UTC), no end given")
    expect(whens.nth(1)).to_contain_text("since Tue 10 Nov 13:00 (12:00 UTC)")
    expect(whens.last).to_contain_text("from Tue 10 Nov 13:00 (12:00 UTC), no end given")
