"""The situations that people open the page in: what stands first, and that axe finds nothing to complain of."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.pages import BERLIN, CHROMIUM, MISSING, Watched, find_violations
from tests.browser.scenes import SCENES, a_site, open_scene

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

WORDS_AT_MOST = {"fine": 365, "five": 500}  # that people see
PHONE_SCREENS_AT_MOST = 2.5  # when all is fine
FIRST_WORDS_AT_MOST = 220  # on a phone's first screen when all is fine
FIRST_NETWORK_AT_MOST = 420  # pixels from the top, under what a band says of three problems
COUNT_FIRST_WORDS = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  let count = 0;
  while (texts.nextNode()) {
    range.selectNodeContents(texts.currentNode);
    const { top, width } = range.getBoundingClientRect();
    if (width > 0 && top < innerHeight) count += texts.currentNode.data.match(/\\S+/g)?.length ?? 0;
  }
  return count;
}"""
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
            open_scene(page, site.server.base, scene)
            if scene.headline:
                expect(page.locator("h1")).to_have_text(scene.headline)
                assert find_violations(page) == [], name
                if "locale" not in scene.options and not scene.address and not scene.then:
                    words = [each for each in page.locator("body").inner_text().split() if re.search(r"\w", each)]
                    assert len(words) <= WORDS_AT_MOST.get(deployment, 800), name
            size = context.new_cdp_session(page).send("Page.getLayoutMetrics")["cssContentSize"]
            viewport = scene.options["viewport"]
            assert size["width"] <= viewport["width"], name
            if name == "fine-phone":
                assert size["height"] <= PHONE_SCREENS_AT_MOST * viewport["height"]
                assert page.evaluate(COUNT_FIRST_WORDS) <= FIRST_WORDS_AT_MOST
            if name == "five-phone":
                assert page.locator(".networks > li").first.evaluate("each => each.offsetTop") <= FIRST_NETWORK_AT_MOST
            context.close()
            assert watched.complaints == [], name
