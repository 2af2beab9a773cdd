"""The JavaScript reader in a real browser, on a page of another origin than the monitor's: as a wallet has it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, CDPSession, Error, Page, expect

from lookout.base.instants import format_instant
from tests.browser.pages import CHROMIUM, MISSING, a_check, a_live_report, all_current, now_ms
from tests.builders import MINUTE, SECOND
from tests.cases import text_of
from tests.integration.served import LIVE, a_ledger, a_server, publish
from tests.nodejs import READER, build_scripts
from tests.web import Answering, serving

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

PROTOCOL = LIVE.split("/")[3]
PAGES = {
    "/module": '<!doctype html><p id="banner">?</p><script type="module" src="/banner.js"></script>',
    "/script": '<!doctype html><script src="/commonjs/index.js"></script>',
    "/elsewhere": "<!doctype html><p>elsewhere</p>",
}
# What the README of the package shows, and how often it was called.
BANNER = text_of("browser/banner.js")
WORKER = text_of("browser/worker.js")
ASK_WORKER = text_of("browser/ask-worker.js")


class Wallet(NamedTuple):
    """The origin of a wallet's page, with the reader's files; and a live report, if a test sets one."""

    base: str
    live: list[bytes]
    methods: list[str]  # of the requests to the live report
    built: Path  # a folder for what is built of the reader


@contextmanager
def a_wallet(built: Path) -> Iterator[Wallet]:
    live: list[bytes] = []
    methods: list[str] = []

    class Handler(Answering):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path.endswith("/liveness"):
                methods.append("GET")
                self.send(200, live[-1], Content_Type="application/json")
            elif path in PAGES:
                self.send(200, PAGES[path].encode(), Content_Type="text/html; charset=utf-8")
            elif path in ("/banner.js", "/worker.js"):
                script = BANNER if path == "/banner.js" else WORKER
                self.send(200, script.encode(), Content_Type="text/javascript")
            elif (file := (built if path.startswith("/commonjs/") else READER) / path[1:]).is_file():
                self.send(200, file.read_bytes(), Content_Type="text/javascript")
            else:
                self.send_error(404)

    with serving(Handler) as base:
        yield Wallet(base, live, methods, built)


@pytest.fixture(scope="module")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wallet]:
    with a_wallet(tmp_path_factory.mktemp("built")) as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def kept_page(keeping_browser: Browser) -> Iterator[Page]:
    context = keeping_browser.new_context()
    yield context.new_page()
    context.close()


def watch_wire(session: CDPSession) -> tuple[list[str], list[int]]:
    """The methods of all requests from now on, preflights among them, and the codes that came over the wire."""
    methods: list[str] = []
    codes: list[int] = []
    session.on("Network.requestWillBeSent", lambda event: methods.append(event["request"]["method"]))
    session.on("Network.responseReceivedExtraInfo", lambda event: codes.append(event["statusCode"]))
    session.send("Network.enable")
    return methods, codes


def wait_for(page: Page, is_so: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < give_up_at, what
        page.wait_for_timeout(50)


def evaluate(page: Page, expression: str) -> Any:
    """What it comes to, or None while one page takes the place of another."""
    try:
        return page.evaluate(expression)
    except Error:
        return None


@pytest.mark.clause("A6", "C10")
def test_polls_of_a_page_of_another_origin_are_revalidated_without_a_preflight(
    page: Page, wallet: Wallet, tmp_path: Any
) -> None:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        page.clock.install()
        page.goto(wallet.base + "/elsewhere")
        methods, codes = watch_wire(page.context.new_cdp_session(page))
        page.goto(f"{wallet.base}/module?base={server.base}&protocol={PROTOCOL}")
        page.wait_for_function("globalThis.times === 1")
        page.clock.fast_forward(34 * SECOND)
        page.wait_for_function("globalThis.times >= 2 && reader.latest().reportProblem === null")
        wait_for(page, lambda: 304 in codes, "the second answer was a 304")
        assert "OPTIONS" not in methods
        update = page.evaluate("({ ...reader.latest(), report: reader.latest().report.readable })")
        assert (update["report"], update["reportCode"]) == (True, None)


@pytest.mark.clause("C9")
def test_to_a_page_a_server_that_is_gone_is_a_failure_with_a_code(page: Page, wallet: Wallet) -> None:
    page.goto(f"{wallet.base}/module?base=http://127.0.0.1:1&protocol={PROTOCOL}")
    page.wait_for_function("globalThis.times === 1")
    assert page.evaluate("reader.latest().reportCode") == "no-answer"


@pytest.mark.clause("C9")
def test_a_device_that_was_offline_asks_as_soon_as_it_is_online(page: Page, wallet: Wallet) -> None:
    wallet.live.append(a_live_report(all_current()))
    page.clock.install()
    page.goto(f"{wallet.base}/module?base={wallet.base}&protocol=protocol")
    expect(page.locator("#banner")).to_have_text("fine")
    page.context.set_offline(True)
    page.clock.fast_forward(20 * SECOND)
    assert page.evaluate("async () => (await reader.read()).reportCode") == "offline"
    page.clock.fast_forward(16 * SECOND)  # the floor has passed, the back-off has not
    page.context.set_offline(False)
    page.wait_for_function("reader.latest().reportCode === null")


def test_a_page_without_modules_reads_by_a_script_tag(page: Page, wallet: Wallet) -> None:
    build_scripts("reader", wallet.built)
    wallet.live.append(a_live_report(all_current()))
    page.goto(wallet.base + "/script")
    can = page.evaluate(
        """async () => {
            const { canUse, createReader } = lookoutReader;
            const options = { baseUrl: location.origin, protocol: "protocol", history: false };
            const update = await createReader(options).read();
            return canUse(update.report, { ...update, chain: 137, services: ["ppoi", "messaging"] });
        }"""
    )
    assert can is True


@pytest.mark.clause("A6", "C10")
def test_a_service_worker_reads_without_a_preflight(page: Page, wallet: Wallet, tmp_path: Any) -> None:
    build_scripts("reader", wallet.built)
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        asked: list[str] = []
        page.context.on("request", lambda request: asked.append(request.method))
        page.goto(wallet.base + "/elsewhere")
        told = page.evaluate(ASK_WORKER, {"baseUrl": server.base, "protocol": PROTOCOL})
        assert told["reportCode"] is None
        assert told["rows"] > 0
        assert "OPTIONS" not in asked


@pytest.mark.clause("C3", "C4")
def test_a_banner_that_comes_back_with_the_back_button_is_not_fine_for_ever(kept_page: Page, wallet: Wallet) -> None:
    page = kept_page
    expires_at = now_ms() + 6 * SECOND
    rows = [
        a_check("current", service, chain, expiresAt=format_instant(expires_at))
        for service, chain in (("ppoi", 1), ("messaging", None))
    ]
    wallet.live.append(a_live_report(rows))
    page.goto(f"{wallet.base}/module?base={wallet.base}&protocol=protocol")
    expect(page.locator("#banner")).to_have_text("fine")
    page.goto(wallet.base + "/elsewhere")
    wait_for(page, lambda: now_ms() > expires_at, "the rows have expired")
    page.evaluate("history.back()")
    shown = [True, "ppoi is stale,messaging is stale"]
    wait_for(page, lambda: evaluate(page, "[globalThis.persisted, banner.textContent]") == shown, "it is up to date")


@pytest.mark.clause("C3", "C9")
def test_a_page_that_was_frozen_in_the_background_shows_what_has_expired(page: Page, wallet: Wallet) -> None:
    wallet.live.append(a_live_report([a_check("current", "ppoi", 1), a_check("current", "messaging", None)]))
    page.clock.install()
    page.goto(f"{wallet.base}/module?base={wallet.base}&protocol=protocol")
    expect(page.locator("#banner")).to_have_text("fine")
    hide = "(state) => { Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });"
    page.evaluate(hide + " document.dispatchEvent(new Event('visibilitychange')); }", "hidden")
    asked = len(wallet.methods)
    page.clock.fast_forward(10 * MINUTE)
    assert (len(wallet.methods), page.locator("#banner").inner_text()) == (asked, "fine")
    page.evaluate(hide + " document.dispatchEvent(new Event('visibilitychange')); }", "visible")
    assert page.locator("#banner").inner_text() == "ppoi is stale,messaging is stale"
    wait_for(page, lambda: len(wallet.methods) > asked, "it asks again")
