"""The situations that people open the page in: what stands first, and that axe finds nothing to complain of."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.pages import BERLIN, CHROMIUM, MISSING, Watched, find_violations
from tests.browser.scenes import SCENES, a_site

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

WORDS_AT_MOST = {"fine": 365, "five": 500}  # that people see
PHONE_SCREENS_AT_MOST = 2.5  # when all is fine
OFTEN = ("fine", "five")  # the others take minutes, and make campaign looks at them


@pytest.mark.clause("C12")
@pytest.mark.parametrize(
    "deployment",
    [
        pytest.param(each, marks=[] if each in OFTEN else pytest.mark.long)
        for each in sorted({scene.deployment for scene in SCENES.values()})
    ],
)
def test_in_every_scene_the_band_says_it_in_few_words_nothing_is_cut_off_and_axe_finds_nothing(
    tmp_path_factory: pytest.TempPathFactory, browser: Browser, deployment: str
) -> None:
    with a_site(tmp_path_factory.mktemp("scene"), deployment) as site:
        for name, scene in SCENES.items():
            if scene.deployment != deployment:
                continue
            context = browser.new_context(timezone_id=BERLIN, reduced_motion="reduce", **scene.options)
            watched = Watched(context.new_page())
            page = watched.page
            page.emulate_media(media=scene.media, forced_colors="active" if scene.forced_colors else "none")
            page.goto(f"{site.server.base}/{scene.address}")
            if scene.headline:
                expect(page.locator("h1")).to_have_text(scene.headline)
                expect(page.locator(".past > p:not(:empty), .past-rows b").first).to_be_attached()
                assert find_violations(page) == [], name
                if "locale" not in scene.options and not scene.address:
                    words = [each for each in page.locator("body").inner_text().split() if re.search(r"\w", each)]
                    assert len(words) <= WORDS_AT_MOST.get(deployment, 800), name
            size = context.new_cdp_session(page).send("Page.getLayoutMetrics")["cssContentSize"]
            viewport = scene.options["viewport"]
            assert size["width"] <= viewport["width"], name
            if name == "fine-phone":
                assert size["height"] <= PHONE_SCREENS_AT_MOST * viewport["height"]
            context.close()
            assert watched.complaints == [], name
