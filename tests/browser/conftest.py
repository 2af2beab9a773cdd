"""The status page on a real server, opened in a real browser."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, Route, sync_playwright

from tests.browser.pages import (
    BERLIN,
    LAUNCH,
    Open,
    Site,
    Watched,
    a_history,
    a_live_report,
    all_current,
    launch,
    now_ms,
    store,
)
from tests.integration.served import a_server


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with launch(playwright) as started:
        yield started


@pytest.fixture(scope="module")
def keeping_browser(playwright: Playwright) -> Iterator[Browser]:
    """One that keeps a page that was left, for the back button."""
    with launch(playwright, keeps_pages=True) as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    store(folder, a_live_report(all_current()), a_history(all_current()))
    with a_server(folder, more=LAUNCH) as server:
        yield Site(server, folder)


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[Open]:
    """Opens the page, with a clock that is so much ahead, with answers and an end of its address if told. In the end
    nothing but the server was asked, and nothing was complained of: no violation of the page's policy, and no error."""
    watched: list[Watched] = []

    def opened(
        base: str = site.server.base,
        *,
        clock_ahead_ms: int | None = None,
        routes: Mapping[str, Callable[[Route], None]] | None = None,
        address: str = "",
        **options: Any,
    ) -> Page:
        context = browser.new_context(timezone_id=BERLIN, **options)
        watched.append(Watched(context.new_page()))
        page = watched[-1].page
        if clock_ahead_ms is not None:
            page.clock.install(time=(now_ms() + clock_ahead_ms) / 1000)
        for path, handler in (routes or {}).items():
            page.route(f"**{path}", handler)
        page.goto(f"{base}/{address}")
        return page

    yield opened
    for each in watched:
        each.page.unroute_all(behavior="ignoreErrors")  # an answer that is still on its way would fail the next test
        each.page.context.close()
        assert each.complaints == []
        assert len(each.origins) == 1, each.origins
