"""Writes docs/images/: the status page with a simulated fortnight behind it and some trouble now.

``make setup`` does not need what this needs: Chromium, and the packages of development. The instant and the world are
always the same, and so are the images, apart from the fonts of the machine.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Page, Route, ViewportSize, sync_playwright

from lookout.base.instants import parse_instant
from lookout.config.file import read_config
from lookout.core.model import Check
from lookout.demo.fortnight import FORTNIGHT_MS, Incident, draw_incidents, make_events
from lookout.demo.sim.chain import LAUNCH
from lookout.demo.sim.world import World
from lookout.documents.reports import documents_of
from lookout.replay.replay import Replay
from lookout.state.codec import encode_state
from lookout.store.sqlite import open_writer
from tests.browser.pages import LAUNCH as CHAIN_TABLES
from tests.integration.served import HISTORY, LIVE, a_server

ROOT: Final = Path(__file__).parent.parent
IMAGES: Final = ROOT / "docs" / "images"
CHROMIUM: Final = os.environ.get("CHROMIUM", "/usr/bin/chromium")
NOW: Final = parse_instant("2026-11-14T15:22:40.000Z")
SEED: Final = 7
MINUTE: Final = 60_000
DAY: Final = 86_400_000
VIEWPORT: Final[ViewportSize] = {"width": 1280, "height": 900}
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with a_served_fortnight() as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme in SCHEMES:
            context = browser.new_context(viewport=VIEWPORT, color_scheme=scheme, timezone_id="Europe/Berlin")
            page = context.new_page()
            open_page(page, base)
            path = IMAGES / f"page-{scheme}-desktop.png"
            page.screenshot(path=path)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")
            context.close()
        browser.close()


def open_page(page: Page, base: str) -> None:
    """The page at the simulated instant, not at today's."""
    page.clock.set_fixed_time(NOW / 1000 + 9)
    page.route(f"**{LIVE}", _undated)
    page.route(f"**{HISTORY}", _undated)
    page.goto(base)
    page.wait_for_selector(".past-rows b:not(:empty)")


def _undated(route: Route) -> None:
    """Without the server's clock, which is not the simulated one."""
    answer = route.fetch()
    headers = {name: text for name, text in answer.headers.items() if name != "date"}
    route.fulfill(response=answer, headers=headers)


@contextmanager
def a_served_fortnight() -> Iterator[str]:
    """The address of a server with the simulated fortnight."""
    with tempfile.TemporaryDirectory(prefix="lookout-images-") as name:
        folder = Path(name)
        live_through(folder)
        with a_server(folder, more=CHAIN_TABLES) as server:
            yield server.base


def live_through(folder: Path) -> None:
    world = World(LAUNCH, SEED, NOW - FORTNIGHT_MS)
    incidents = [*draw_incidents(world, SEED, NOW), *trouble_now()]
    replay = Replay(read_config(ROOT / "lookout.example.toml").plan())
    for event in make_events(world, incidents, NOW - FORTNIGHT_MS, NOW):
        replay.feed(event)
    with closing(open_writer(folder / "lookout.db")) as writer:
        writer.write(documents_of(replay.ledger), encode_state(replay.ledger.state()).documents)


def trouble_now() -> list[Incident]:
    """Some of each, going on now."""
    return [
        Incident(Check("indexer", 137), "down", NOW - 17 * MINUTE, NOW + DAY),
        Incident(Check("indexer", 42161), "stuck", NOW - 12 * MINUTE, NOW + DAY),
        Incident(Check("broadcasters", 56), "partial", NOW - 48 * MINUTE, NOW + DAY),
        Incident(Check("ppoi", 11155111), "nothing", NOW - 95 * MINUTE, NOW + DAY),
    ]


if __name__ == "__main__":
    main()
