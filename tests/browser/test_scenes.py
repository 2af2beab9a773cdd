"""The situations that people open the page in: what stands first, and that axe finds nothing to complain of."""

from importlib.resources import files

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.pages import BERLIN, CHROMIUM, MISSING, Watched
from tests.browser.scenes import SCENES, a_site

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=MISSING)

EVERY_DAY = "one-red"  # the others take minutes, and make campaign looks at them


@pytest.mark.clause("C12")
@pytest.mark.parametrize(
    "deployment",
    [
        pytest.param(each, marks=[] if each == EVERY_DAY else pytest.mark.long)
        for each in sorted({scene.deployment for scene in SCENES.values()})
    ],
)
def test_in_every_scene_the_headline_says_it_nothing_is_cut_off_and_axe_finds_nothing(
    tmp_path_factory: pytest.TempPathFactory, browser: Browser, deployment: str
) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    with a_site(tmp_path_factory.mktemp("scene"), deployment) as site:
        for name, scene in SCENES.items():
            if scene.deployment != deployment:
                continue
            context = browser.new_context(timezone_id=BERLIN, reduced_motion="reduce", **scene.options)
            watched = Watched(context.new_page())
            page = watched.page
            page.emulate_media(media=scene.media)
            page.goto(f"{site.server.base}/{scene.address}")
            if scene.headline:
                expect(page.locator("h1")).to_have_text(scene.headline)
                expect(page.locator(".row .uptimes b").first).not_to_be_empty()
                page.evaluate(axe)
                violations = page.evaluate("async () => (await axe.run()).violations")
                found = [
                    (v["id"], [(n["html"][:160], n["failureSummary"][:300]) for n in v["nodes"]]) for v in violations
                ]
                assert found == [], name
            size = context.new_cdp_session(page).send("Page.getLayoutMetrics")
            assert size["cssContentSize"]["width"] <= scene.options["viewport"]["width"], name
            context.close()
            assert watched.complaints == [], name
