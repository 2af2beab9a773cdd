"""A page of another origin asks for the report in a real browser."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.pages import CHROMIUM, MISSING
from tests.cases import text_of
from tests.integration.served import HISTORY, LIVE, Server, a_later_ledger, a_ledger, a_server, publish
from tests.web import Answering, serving

BOTH = pytest.mark.parametrize(
    "path", [pytest.param(LIVE, id="live"), pytest.param(HISTORY, id="history", marks=pytest.mark.long)]
)
FETCH = text_of("browser/fetch.js")

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)


class Fetched(NamedTuple):
    """What the script saw, and what the browser did for it."""

    code: int | None
    etag: str | None
    body: str | None
    error: str | None
    wire_codes: list[int]  # of the answers that came over the wire, those to preflights left out
    preflights: int


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of another origin."""
    with serving(_Elsewhere) as base, browser.new_context() as context:
        opened = context.new_page()
        opened.goto(base)
        yield opened


class _Elsewhere(Answering):
    def do_GET(self) -> None:
        self.send(200, b"<!doctype html><title>elsewhere</title>", Content_Type="text/html")


def fetch(page: Page, url: str, **options: object) -> Fetched:
    session = page.context.new_cdp_session(page)
    methods: dict[str, str] = {}
    extra: list[tuple[str, int]] = []
    session.on(
        "Network.requestWillBeSent", lambda event: methods.update({event["requestId"]: event["request"]["method"]})
    )
    session.on(
        "Network.responseReceivedExtraInfo", lambda event: extra.append((event["requestId"], event["statusCode"]))
    )
    session.send("Network.enable")
    found = page.evaluate(FETCH, [url, options])
    session.send("Network.disable")  # after it, all events of before have come
    session.detach()
    wire = [code for request, code in extra if methods.get(request) != "OPTIONS"]
    return Fetched(**found, wire_codes=wire, preflights=list(methods.values()).count("OPTIONS"))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        yield server


@pytest.mark.clause("A5", "A6", "A7", "A14")
@BOTH
def test_a_script_reads_the_document_and_its_etag_and_revalidates(
    page: Page, served: Server, tmp_path: Path, path: str
) -> None:
    url = served.base + path
    document, packed = (served.ask("GET", path, {"Accept-Encoding": coding}) for coding in ("identity", "gzip"))
    first = fetch(page, url, credentials="omit")
    assert (first.code, first.etag, first.error) == (200, packed.header("etag"), None)
    assert first.body == document.body.decode()
    assert first.preflights == 0

    conditional = {"headers": {"If-None-Match": first.etag}, "cache": "no-store"}
    second = fetch(page, url, **conditional)
    assert (second.code, second.etag, second.body) == (304, first.etag, "")
    assert second.preflights == 1

    publish(tmp_path, a_later_ledger())
    give_up = time.monotonic() + 60
    while (third := fetch(page, url, **conditional)).code == 304:
        assert time.monotonic() < give_up, "the new document was not served"
        page.wait_for_timeout(50)
    assert third.code == 200
    assert third.etag != first.etag
    assert third.body is not None
    assert third.body != first.body


@pytest.mark.clause("A5", "A9", "A10")
@BOTH
def test_the_browser_answers_from_its_cache_and_revalidates_when_told_to(page: Page, served: Server, path: str) -> None:
    url = served.base + path
    first = fetch(page, url)
    assert (first.code, first.wire_codes) == (200, [200])
    assert fetch(page, url) == first._replace(wire_codes=[])
    assert fetch(page, url, cache="no-cache") == first._replace(wire_codes=[304])
    assert fetch(page, url, cache="reload") == first._replace(wire_codes=[200])


@pytest.mark.clause("E2")
@BOTH
def test_to_a_script_a_429_is_a_network_failure(page: Page, tmp_path: Path, path: str) -> None:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path, rate_limit_per_minute=1) as server:
        assert fetch(page, server.base + path, cache="no-store").code == 200
        refused = fetch(page, server.base + path, cache="no-store")
        assert (refused.code, refused.error, refused.wire_codes) == (None, "TypeError", [429])


@pytest.mark.clause("A6", "A8", "A11", "A12")
@BOTH
def test_a_script_can_read_an_error_of_the_api(page: Page, tmp_path: Path, path: str) -> None:
    with a_server(tmp_path) as server:
        got = fetch(page, server.base + path)
        assert (got.code, got.error) == (503, None)
        assert got.body is not None
        assert '"error"' in got.body


@pytest.mark.clause("A6", "A14")
def test_a_request_with_credentials_is_refused_by_the_browser(page: Page, served: Server) -> None:
    assert fetch(page, served.base + LIVE, credentials="include", cache="no-store").error == "TypeError"
