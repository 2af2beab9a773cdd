"""Badges in a real browser: text that fits, the right colours, and nothing that they load or run."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from lookout.base.instants import format_instant
from tests.browser.pages import CHROMIUM, MISSING, Watched, a_check, a_history, a_live_report, now_ms, store
from tests.builders import SECOND
from tests.cases import text_of
from tests.integration.raw import RawServer, a_raw_server
from tests.wait import until

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

CHAINS: Final = (1, 42161, 137, 56, 11155111, 100)
STATUSES: Final = ("current", "catching-up", "degraded", "unavailable", "unknown", "unmonitored")
WORDS: Final = ("no problem seen", "behind", "limited", "not answering", "unknown", "not watched")
GREY: Final = (109, 115, 124)
COLOURS: Final = {
    "no problem seen": (11, 122, 94),
    "behind": (11, 104, 168),
    "limited": (163, 91, 0),
    "not answering": (185, 49, 10),
    "unknown": GREY,
    "not watched": GREY,
    "too old to say": GREY,
}
NAMES: Final = ("Ethereum", "illi.jl'I|", "WWWWMMMM@%", '<b>&"', "Ünïcödé \N{SNOWMAN} 漢字", "x" * 300)
_OF_A_BADGE: Final = text_of("browser/badge.js")
_PIXEL: Final = text_of("browser/pixel.js")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    """A row of each status, each on a chain with another name."""
    folder = tmp_path_factory.mktemp("badges")
    checks = [a_check(status, chain_id=chain_id) for chain_id, status in zip(CHAINS, STATUSES, strict=True)]
    soon_over = {
        "observedAt": format_instant(now_ms() - 200 * SECOND),
        "expiresAt": format_instant(now_ms() - 50 * SECOND),
    }
    checks.append(a_check("current", "ppoi", 1) | soon_over)
    store(folder, a_live_report(checks), a_history(checks))
    chains = "".join(
        f"[[chains]]\nid = {chain_id}\nname = '''{name}'''\nblock_time_s = 12\nrpc = ['http://127.0.0.1:1']\n"
        for chain_id, name in zip(CHAINS, NAMES, strict=True)
    )
    with a_raw_server(folder, more=chains) as served:
        until(lambda: served.ask("GET", "/badge/indexer/1.svg").http_code == 200, "the report was loaded")
        yield served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """In the end nothing but the server was asked, and nothing was complained of."""
    watched = Watched(browser.new_page())
    yield watched.page
    watched.page.close()
    assert watched.complaints == []
    assert len(watched.origins) <= 1, watched.origins


def drawn(page: Page, server: RawServer, path: str) -> Any:
    page.goto(f"http://127.0.0.1:{server.port}{path}")
    return page.evaluate(_OF_A_BADGE)


@pytest.mark.parametrize(("chain_id", "status", "name"), list(zip(CHAINS, WORDS, NAMES, strict=True)))
def test_its_text_fits_whatever_the_chain_is_called_and_is_hardly_stretched(
    page: Page, server: RawServer, chain_id: int, status: str, name: str
) -> None:
    found = drawn(page, server, f"/badge/indexer/{chain_id}.svg")
    assert found["inside"]
    assert found["whole"][1] == 20
    assert found["message"] == status
    assert found["label"].startswith(f"indexer on {name[:30]}")
    assert found["title"].startswith(f"indexer on {name}: {status}, ")
    label, message = found["stretched"]
    assert 0.93 < message < 1.07
    assert 0.93 < label < (1.07 if name.isascii() else 1.3)


@pytest.mark.clause("C3", "C4")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        *((f"/badge/indexer/{at}.svg", word) for at, word in zip(CHAINS, WORDS, strict=True)),
        ("/badge/ppoi/1.svg", "too old to say"),
        ("/badge.svg", "not answering"),
    ],
)
def test_on_a_page_it_has_the_colour_of_its_status(page: Page, server: RawServer, path: str, message: str) -> None:
    assert tuple(page.evaluate(_PIXEL, [f"http://127.0.0.1:{server.port}{path}", 3])) == COLOURS[message]
    assert drawn(page, server, path)["message"] == message


def test_it_is_one_picture_with_a_name_to_those_who_cannot_see_it(page: Page, server: RawServer) -> None:
    page.goto(f"http://127.0.0.1:{server.port}/badge/indexer/1.svg")
    assert page.get_by_role("img", name="indexer on Ethereum: no problem seen", exact=True).count() == 1


def test_a_script_of_another_site_can_read_all_of_it(page: Page, server: RawServer) -> None:
    read = page.evaluate(
        """async base => Promise.all(["/badge.json", "/summary.json", "/feed.atom"].map(async path => {
          const answer = await fetch(base + path);
          return [answer.status, answer.headers.get("ETag").length, (await answer.text()).length > 50];
        }))""",
        f"http://127.0.0.1:{server.port}",
    )
    assert read == [[200, 18, True]] * 3
