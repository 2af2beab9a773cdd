"""The badge that another site embeds: in a real browser, on a page of another origin with a strict policy."""

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect

from lookout.base.instants import format_instant
from lookout.public.page.assets import EMBED_PATH
from lookout_reader.statuses import BY_WORD, EffectiveStatus
from tests.browser.pages import (
    CHROMIUM,
    LAUNCH,
    MISSING,
    Json,
    Site,
    Watched,
    a_check,
    a_history,
    a_live_report,
    all_current,
    find_violations,
    now_ms,
    of_seven_statuses,
    store,
)
from tests.browser.test_reader import wait_for
from tests.builders import SECOND
from tests.integration.served import LIVE, a_server
from tests.web import Answering, serving

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

# What docs/readers.md says is enough, and what strict sites have besides.
POLICY: Final = (
    "default-src 'none'; base-uri 'none'; script-src {base}; connect-src {base}; require-trusted-types-for 'script'; "
    "style-src 'self'"
)
WARNING: Final = "It is not a signal that it is safe to transact."
GREEN, GREY = "rgb(11, 122, 94)", "rgb(109, 115, 124)"
# Everything that a site's styles can do to what it embeds.
HOSTILE: Final = """\
span, a { display: none !important; color: red !important; font-size: 1px !important; }
body { visibility: hidden; text-transform: uppercase; direction: rtl; }
"""


class Foreign(NamedTuple):
    """A site of somebody else, whose pages are set by path."""

    base: str
    pages: dict[str, str]
    policy: list[str]

    def embed(self, server: str, *tags: str, head: str = "", lang: str = "en", path: str = "/") -> str:
        """A page with these attributes of script tags; its address."""
        scripts = "".join(f'<p><script src="{server}{EMBED_PATH}" {tag}></script></p>' for tag in tags)
        document = (
            f'<!doctype html><html lang="{lang}"><title>A wallet</title>{head}<main><h1>Wallet</h1>{scripts}</main>'
        )
        self.pages[path] = document
        self.policy[:] = [POLICY.format(base=server)]
        return self.base + path


@contextmanager
def a_foreign_site() -> Iterator[Foreign]:
    pages: dict[str, str] = {"/elsewhere": "<!doctype html><title>elsewhere</title>"}
    policy: list[str] = [""]

    class Handler(Answering):
        def do_GET(self) -> None:
            is_style = self.path == "/hostile.css"
            body = (HOSTILE if is_style else pages.get(self.path, "")).encode()
            self.send(
                200 if body else 404,
                body,
                Content_Type="text/css" if is_style else "text/html; charset=utf-8",
                Content_Security_Policy=policy[0],
                Cross_Origin_Embedder_Policy="require-corp",
            )

    with serving(Handler) as base:
        yield Foreign(base, pages, policy)


@pytest.fixture(scope="module")
def foreign() -> Iterator[Foreign]:
    with a_foreign_site() as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    store(folder, a_live_report(all_current()), a_history([]))
    with a_server(folder, more=LAUNCH) as server:
        yield Site(server, folder)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    yield from open_page_of(browser)


@pytest.fixture
def kept_page(keeping_browser: Browser) -> Iterator[Page]:
    yield from open_page_of(keeping_browser)


def open_page_of(browser: Browser) -> Iterator[Page]:
    """In the end nothing was complained of: no violation of the site's policy, and no error."""
    context = browser.new_context()
    watched = Watched(context.new_page())
    yield watched.page
    context.close()
    assert [text for text in watched.complaints if "favicon" not in text] == []


def badges(page: Page) -> Locator:
    return page.locator("a[data-status]")


def named(page: Page, words: str) -> Locator:
    """The badge that says this, and nothing more than the warning that each has."""
    return page.get_by_role("link", name=f"{words} {WARNING}", exact=True)


def colour(badge: Locator) -> str:
    return str(badge.evaluate("element => getComputedStyle(element).backgroundColor"))


def serve(site: Site, checks: list[Json]) -> str:
    site.has(a_live_report(checks), a_history([]))
    return site.server.base


def count_polls(page: Page) -> list[Request]:
    polls: list[Request] = []
    page.on("request", lambda request: polls.append(request) if request.url.endswith(LIVE) else None)
    return polls


@pytest.mark.clause("C4", "C10", "A6")
def test_several_badges_on_a_page_share_one_poller(page: Page, foreign: Foreign, site: Site) -> None:
    polls = count_polls(page)
    base = serve(site, [*all_current()[:-1], a_check("unavailable", "hosted-indexer", 11155111)])
    page.clock.install()
    page.goto(foreign.embed(base, 'data-chain="1"', 'data-chain="137" async', "", 'data-chain="11155111" defer'))
    texts = [
        "Ethereum: No problem seen",
        "Polygon: No problem seen",
        "protocol: No problem seen",
        "Sepolia: Balances may be late",
    ]
    for text in texts:  # Sepolia is a test network, and counts only where it is asked for
        expect(named(page, text)).to_be_visible()
    assert len(polls) == 1
    page.clock.fast_forward(34 * SECOND)
    wait_for(page, lambda: len(polls) == 2, "it has asked again")
    page.wait_for_timeout(300)
    assert [poll.method for poll in polls] == ["GET", "GET"]


def test_no_style_of_the_site_reaches_it_and_no_style_of_its_own_needs_permission(
    page: Page, foreign: Foreign, site: Site
) -> None:
    head = '<link rel="stylesheet" href="/hostile.css">'
    page.goto(foreign.embed(serve(site, all_current()), 'data-chain="1"', head=head))
    expect(badges(page)).to_be_visible()
    expect(badges(page)).to_have_text(f"●\ufe0e Ethereum: No problem seen{WARNING}")
    found = badges(page).evaluate(
        "element => { const style = getComputedStyle(element);"
        " return [style.color, style.fontSize, style.textTransform, style.backgroundColor, style.direction]; }"
    )
    assert found == ["rgb(255, 255, 255)", "13px", "none", GREEN, "ltr"]


# What the scripts count is stated by the vectors of both readers; here, that the badge says it.
CASES: Final = {
    "the worst row of the chain counts": (1, {("indexer", 1): "degraded"}, "Ethereum: Balances may be late"),
    "a shared row counts on every chain": (137, {("messaging", None): "unavailable"}, "Polygon: Sending may fail"),
    "a missing row is unknown": (1, {("ppoi", 1): None}, "Ethereum: Nothing is known about proofs"),
    "what is no number of a chain is unknown": ("x$&", {}, "Chain x$&: Nothing is known right now"),
    "what is not watched is not said to be well": (
        1,
        {("ppoi", 1): "unmonitored"},
        "Ethereum: No problem seen with sending and balances on Ethereum",
    ),
    "a shared row alone makes nothing green": (
        None,
        {(row["service"], row["chainId"]): "unmonitored" for row in all_current() if row["chainId"] is not None},
        "protocol: Nothing is watched",
    ),
    "without a chain, test networks do not count": (
        None,
        {("ppoi", 11155111): "unavailable"},
        "protocol: No problem seen",
    ),
}


@pytest.mark.clause("C1", "C4", "C7", "C11")
@pytest.mark.parametrize(("chain", "changes", "text"), CASES.values(), ids=CASES)
def test_it_says_how_a_chain_is(
    chain: int | str | None,
    changes: dict[tuple[str, int | None], str | None],
    text: str,
    page: Page,
    foreign: Foreign,
    site: Site,
) -> None:
    checks = [
        a_check(status, row["service"], row["chainId"])
        for row in all_current()
        if (status := changes.get((row["service"], row["chainId"]), "current")) is not None
    ]
    page.goto(foreign.embed(serve(site, checks), "" if chain is None else f'data-chain="{chain}"'))
    expect(named(page, text)).to_be_visible()
    assert (colour(badges(page)) == GREEN) == ("no problem seen" in text.lower())


@pytest.mark.clause("C11")
@pytest.mark.parametrize(
    ("shared", "status"),
    [
        pytest.param({"messaging": "current", "price": "current"}, "unmonitored", id="what is shared is well"),
        pytest.param({"messaging": "unavailable"}, "unavailable", id="messaging is down"),
        pytest.param({"messaging": "unknown"}, "unknown", id="nothing is known of messaging"),
        pytest.param({"messaging": "unmonitored"}, "unmonitored", id="nothing that is shared is watched"),
    ],
)
def test_of_test_networks_alone_every_face_shows_the_same_status(
    shared: dict[str, str], status: EffectiveStatus, page: Page, foreign: Foreign, tmp_path: Path
) -> None:
    services = ("ppoi", "broadcasters", "indexer")
    checks = [a_check("unavailable", service, 11155111) for service in services]
    checks += [a_check(status, service, None) for service, status in shared.items()]
    store(tmp_path, a_live_report(checks), a_history(checks))
    with a_server(tmp_path, more=LAUNCH[LAUNCH.rindex("[[chains]]") :]) as server:
        page.goto(foreign.embed(server.base, ""))
        expect(badges(page)).to_have_attribute("data-status", status)
        page.goto(server.base)
        expect(page.locator(".band")).to_have_attribute("data-status", status)
        assert json.loads(server.ask("GET", "/badge.json").body)["message"] == BY_WORD[status].name
        for path in ("/status.json", "/summary.json"):
            told = json.loads(server.ask("GET", path).body)["status"]
            assert told["indicator"] == BY_WORD[status].statuspage.indicator


@pytest.mark.first
@pytest.mark.clause("C3", "C4", "C9")
def test_when_the_server_dies_it_goes_grey_as_its_rows_expire(page: Page, foreign: Foreign, tmp_path: Path) -> None:
    expires_at = now_ms() + 20 * SECOND
    checks = [row | {"expiresAt": format_instant(expires_at)} for row in all_current()]
    store(tmp_path, a_live_report(checks), a_history([]))
    with ExitStack() as stack:
        server = stack.enter_context(a_server(tmp_path, more=LAUNCH))
        page.goto(foreign.embed(server.base, 'data-chain="1"', ""))
        expect(badges(page)).to_contain_text(["Ethereum: No problem seen", "protocol: No problem seen"])
    assert now_ms() < expires_at
    assert colour(badges(page).first) == GREEN  # it was seen to be so, and holds until then
    expect(badges(page)).to_contain_text(
        ["Ethereum: Nothing is known right now", "protocol: Nothing is known right now"]
    )
    assert now_ms() >= expires_at
    assert {colour(badge) for badge in badges(page).all()} == {GREY}


@pytest.mark.clause("C9")
def test_without_any_answer_it_is_grey_from_the_start(page: Page, foreign: Foreign, site: Site) -> None:
    base = serve(site, all_current())
    page.route(f"**{LIVE}", lambda route: route.abort())
    page.goto(foreign.embed(base, 'data-chain="1"'))
    expect(named(page, "Ethereum: Nothing is known right now")).to_be_visible()
    assert colour(badges(page)) == GREY


@pytest.mark.first
@pytest.mark.clause("C3", "C4")
def test_a_badge_that_comes_back_with_the_back_button_is_not_green_for_ever(
    kept_page: Page, foreign: Foreign, site: Site
) -> None:
    page = kept_page
    expires_at = now_ms() + 12 * SECOND
    base = serve(site, [row | {"expiresAt": format_instant(expires_at)} for row in all_current()])
    page.goto(foreign.embed(base, 'data-chain="1"'))
    expect(badges(page)).to_have_attribute("data-status", "current")
    page.evaluate("window.same = true")
    page.goto(foreign.base + "/elsewhere")
    page.wait_for_timeout(max(0, expires_at - now_ms()) + 100)
    page.go_back(wait_until="commit")
    expect(badges(page)).to_have_attribute("data-status", "stale")
    assert page.evaluate("window.same")  # it is the page that was left


@pytest.mark.clause("C3", "C4")
def test_after_the_machine_has_slept_it_is_not_green_for_long(page: Page, foreign: Foreign, site: Site) -> None:
    page.clock.install()
    page.goto(foreign.embed(serve(site, all_current()), 'data-chain="1"'))
    expect(badges(page)).to_have_attribute("data-status", "current")
    page.route(f"**{LIVE}", lambda route: route.abort())
    page.evaluate("const now = Date.now; Date.now = () => now() + 8 * 3600e3")  # no timer ran meanwhile
    page.clock.run_for(2 * SECOND)
    expect(badges(page)).to_have_attribute("data-status", "stale")


@pytest.mark.clause("C2")
def test_by_a_clock_that_is_known_to_be_behind_it_is_grey(page: Page, foreign: Foreign, site: Site) -> None:
    """As on a device that is 10 minutes slow, of a monitor that stopped as long ago."""
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "Date",
        "Date": formatdate(now_ms() / 1000 + 600, usegmt=True),
    }
    page.route(f"**{LIVE}", lambda route: route.fulfill(body=a_live_report(all_current()), headers=headers))
    polls = count_polls(page)
    page.goto(foreign.embed(serve(site, all_current()), 'data-chain="1"'))
    wait_for(page, lambda: len(polls) == 1, "it has asked")
    page.wait_for_timeout(1500)  # the badge is drawn every second
    expect(badges(page)).to_have_attribute("data-status", "unknown")


LANGUAGES: Final = {
    "de-CH": ("Ethereum: Kein Problem festgestellt", "ltr"),
    "ar": (None, "rtl"),
    "fr": ("Ethereum: No problem seen", "ltr"),
    "": ("Ethereum: No problem seen", "ltr"),
}


@pytest.mark.parametrize(("lang", "expected"), LANGUAGES.items(), ids=["German", "Arabic", "no texts", "none said"])
def test_it_speaks_the_language_of_the_page_or_english(
    lang: str, expected: tuple[str | None, str], page: Page, foreign: Foreign, site: Site
) -> None:
    page.goto(foreign.embed(serve(site, all_current()), 'data-chain="1"', lang=lang))
    text, direction = expected
    expect(badges(page)).to_have_attribute("dir", direction)
    expect(badges(page)).to_have_attribute("data-status", "current")
    if text is not None:
        expect(badges(page)).to_contain_text(text)
    assert badges(page).evaluate("element => getComputedStyle(element).direction") == direction


def test_axe_finds_nothing_to_complain_of(page: Page, foreign: Foreign, site: Site) -> None:
    base = serve(site, of_seven_statuses())
    page.goto(foreign.embed(base, *(f'data-chain="{chain}"' for chain in (1, 56, 137, 42161, 11155111)), ""))
    expect(badges(page)).to_have_count(6)
    expect(named(page, "Ethereum: Sending may be slow")).to_be_visible()
    assert find_violations(page) == []
    assert page.get_by_role("status").count() == 6
    expect(page.get_by_text(WARNING)).to_have_count(6)
    for warning in page.get_by_text(WARNING).all():
        expect(warning).to_be_visible()
    assert "one monitor" in (badges(page).first.get_attribute("title") or "")


@pytest.mark.clause("E1")
def test_its_script_is_small_cached_and_open_to_every_site(site: Site) -> None:
    sent = site.server.ask("GET", EMBED_PATH, {"Accept-Encoding": "gzip"})
    assert len(sent.body) < 12_000
    assert gzip.decompress(sent.body) == site.server.ask("GET", EMBED_PATH).body
    wanted = {
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "public, max-age=300",
        "access-control-allow-origin": "*",
        "cross-origin-resource-policy": "cross-origin",
    }
    assert {name: sent.header(name) for name in wanted} == wanted
    assert site.server.ask("GET", EMBED_PATH, {"If-None-Match": sent.header("etag") or ""}).http_code == 304
